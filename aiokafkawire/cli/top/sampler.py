"""Takes samples of a cluster: a few requests to each broker, whatever the number of topics and groups."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import anyio
import attrs

from ...client import Client
from ...cluster.metadata import Node, is_large
from ...errors import BrokerError, ErrorCode, KafkaError, UnsupportedVersion, UnsupportedVersionAnswered
from ...protocol.messages.group_admin import ListGroupsRequest
from ...protocol.messages.metadata import MetadataResponse
from ...protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ...protocol.messages.quorum_voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from ...protocol.schema import Request, Response, Versions
from ...types import OffsetSpec, TopicPartition
from .group_messages import (
    MANY_GROUPS,
    ONE_GROUP,
    describe_request,
    listed_groups,
    offsets_request,
    one_group_request,
    share_offsets_request,
    with_description,
    with_error,
    with_offsets,
    with_share_offsets,
)
from .layout import Layout, layout_is_due, layout_of, nodes_of
from .options import Pattern
from .sample import Sample, SampledGroup

__all__ = ("Sampler",)

R = TypeVar("R", bound=Response)
T = TypeVar("T")

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
_GROUPS_AT_ONCE: Final = 200
"""The number of groups in one request."""
_PARTITIONS_AT_ONCE: Final = 20_000
"""The number of partitions in one request."""
_OLD_REQUESTS_AT_ONCE: Final = 16
"""The number of requests in flight to a broker that takes only one group in each."""
_CONSUMER: Final = -1


class Sampler:
    """Takes samples, one at a time.

    Every broker gets ListGroups, a describe request and OffsetFetch for up to 200 groups each, and ListOffsets for up
    to 20,000 partitions. The metadata of all topics is requested every 30 s in a large cluster. A broker that does not
    answer is not asked again in the same sample, and does not delay the others.

    Args:
        kafka: an open client.
        topics: the topics to show.
        groups: the groups to show.
        timeout: the limit for each response, in seconds.
    """

    def __init__(self, kafka: Client, *, topics: Pattern, groups: Pattern, timeout: float) -> None:
        self._cluster = kafka._cluster
        self._topics, self._groups, self._timeout = topics, groups, timeout
        self._layout: Layout | None = None
        self._layout_at = 0.0
        self._outdated = False
        self._has_quorum = True
        self._last: Mapping[str, SampledGroup] = {}
        self._errors: dict[int, str] = {}
        self._away = set[int]()

    async def sample(self) -> Sample:
        """Take a sample. Errors of single brokers and groups are part of the sample.

        Raises:
            KafkaError: no broker answered.
        """
        layout = await self._current_layout()
        self._errors, self._away = {}, set()
        groups: dict[str, SampledGroup] = {}
        await self._at_each_broker(layout, layout.nodes, partial(self._groups_of, groups))
        missing = [group for name, group in self._last.items() if name not in groups]  # others have another coordinator
        for node_id, error in self._errors.items():
            groups |= with_error((group for group in missing if group.coordinator == node_id), error)
        self._last = groups
        at, time_ms, ends = self._cluster.runtime.now(), self._cluster.runtime.wall_ms(), dict[TopicPartition, int]()
        by_leader = self._partitions_by_leader(layout, groups.values())
        await self._at_each_broker(layout, by_leader, partial(self._ends_of, by_leader, ends))
        return Sample(at, time_ms, layout, ends, groups, self._errors)

    # --- the layout ------------------------------------------------------------------------------------

    async def _current_layout(self) -> Layout:
        now, layout = self._cluster.runtime.now(), self._layout
        if (
            layout is not None
            and not layout_is_due(layout, now - self._layout_at, outdated=self._outdated)
            and nodes_of(await self._metadata([])) == layout.nodes
        ):
            return layout
        response = await self._metadata(None)
        controller = await self._controller(response)
        self._layout_at, self._outdated = now, False
        if is_large(response):
            layout = await self._cluster.runtime.offload(layout_of, response, self._topics.matches, controller)
        else:
            layout = layout_of(response, self._topics.matches, controller)
        self._layout = layout
        return layout

    async def _metadata(self, topics: Sequence[str] | None) -> MetadataResponse:
        return await self._cluster.ask_metadata(topics, self._cluster.deadline(self._timeout), lane=_LANE)

    async def _controller(self, response: MetadataResponse) -> int | None:
        """Return the controller: of KRaft clusters the quorum's leader, since any broker is in the metadata (KIP-590).

        Return None if this client may not describe the quorum.
        """
        if self._has_quorum:
            quorum = DescribeQuorumRequestTopicData(
                topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
            )
            deadline = self._cluster.deadline(self._timeout)
            try:
                answer = await self._cluster.ask(
                    self._cluster.least_loaded, DescribeQuorumRequest(topics=[quorum]), deadline, lane=_LANE
                )
            except UnsupportedVersion:
                self._has_quorum = False
            except KafkaError:
                return None
            else:
                if answer.error_code == ErrorCode.NONE:
                    return next((part.leader_id for topic in answer.topics for part in topic.partitions), None)
                if answer.error_code != ErrorCode.UNSUPPORTED_VERSION:
                    return None
                self._has_quorum = False
        return response.controller_id if response.controller_id >= 0 else None

    # --- groups ----------------------------------------------------------------------------------------

    async def _groups_of(self, found: dict[str, SampledGroup], node: Node) -> None:
        """Add the groups of a coordinator to ``found``."""
        listed = listed_groups(await self._ask(node, ListGroupsRequest()), node.node_id)
        groups = {group_id: group for group_id, group in listed.items() if self._groups.matches(group_id)}
        by_type: dict[str, list[str]] = defaultdict(list)
        for group in groups.values():
            by_type[group.type].append(group.group_id)
        for kind, group_ids in by_type.items():
            for some in _chunks(group_ids, _GROUPS_AT_ONCE):
                chunk = {group_id: groups[group_id] for group_id in some}
                try:
                    chunk = with_description(chunk, await self._ask(node, describe_request(kind, some)))
                except (UnsupportedVersion, BrokerError) as error:
                    chunk = with_error(chunk.values(), _text(error))
                found |= await self._with_offsets(node, kind, chunk)

    async def _with_offsets(self, node: Node, kind: str, groups: dict[str, SampledGroup]) -> dict[str, SampledGroup]:
        try:
            if kind == "share":
                return with_share_offsets(groups, await self._ask(node, share_offsets_request(list(groups))))
            try:
                return with_offsets(groups, await self._ask(node, offsets_request(list(groups)), MANY_GROUPS))
            except UnsupportedVersion:
                return await self._one_by_one(node, groups)
        except (UnsupportedVersion, UnsupportedVersionAnswered) as error:
            return {name: attrs.evolve(group, offsets_error=_text(error)) for name, group in groups.items()}

    async def _one_by_one(self, node: Node, groups: dict[str, SampledGroup]) -> dict[str, SampledGroup]:
        """Fetch the offsets of each group from a broker before 3.0; brokers before 0.10.2 do not return all offsets."""
        found: dict[str, SampledGroup] = {}
        pending = iter(groups)

        async def fetch() -> None:
            for group_id in pending:
                group = groups[group_id]
                try:
                    response = await self._ask(node, one_group_request(group_id), ONE_GROUP)
                except UnsupportedVersion as error:
                    found[group_id] = attrs.evolve(group, offsets_error=_text(error))
                else:
                    found.update(with_offsets({group_id: group}, response, group_id))

        async with anyio.create_task_group() as tasks:
            for _ in range(min(len(groups), _OLD_REQUESTS_AT_ONCE)):
                tasks.start_soon(fetch)
        return found

    # --- end offsets -----------------------------------------------------------------------------------

    def _partitions_by_leader(self, layout: Layout, groups: Iterable[SampledGroup]) -> dict[int, list[TopicPartition]]:
        """Return the partitions of the topics to show, and those that groups have committed offsets of."""
        topics = layout.topics.keys()
        others = {partition for group in groups for partition in group.committed if partition.topic not in topics}
        found: dict[int, list[TopicPartition]] = defaultdict(list)
        for partition, leader in layout.leaders.items():
            if partition.topic in topics or partition in others:
                found[leader].append(partition)
        return found

    async def _ends_of(
        self, by_leader: Mapping[int, Sequence[TopicPartition]], found: dict[TopicPartition, int], node: Node
    ) -> None:
        """Add the end offsets of the partitions that a broker leads to ``found``."""
        for some in _chunks(by_leader[node.node_id], _PARTITIONS_AT_ONCE):
            topics: dict[str, ListOffsetsTopic] = {}
            for partition in some:
                topic = topics.get(partition.topic)
                if topic is None:
                    topic = topics[partition.topic] = ListOffsetsTopic(name=partition.topic, partitions=[])
                latest = OffsetSpec.LATEST.timestamp
                topic.partitions.append(ListOffsetsPartition(partition_index=partition.partition, timestamp=latest))
            response = await self._ask(node, ListOffsetsRequest(replica_id=_CONSUMER, topics=list(topics.values())))
            for answered in response.topics:
                for answer in answered.partitions:
                    if answer.error_code != ErrorCode.NONE:
                        # A partition without an end offset is shown as such; others may lead it now.
                        self._outdated = True
                    elif answer.offset >= 0:
                        found[TopicPartition(answered.name, answer.partition_index)] = answer.offset
                    elif answer.old_style_offsets:
                        found[TopicPartition(answered.name, answer.partition_index)] = answer.old_style_offsets[0]

    # --- brokers ---------------------------------------------------------------------------------------

    async def _at_each_broker(
        self, layout: Layout, node_ids: Iterable[int], function: Callable[[Node], Awaitable[None]]
    ) -> None:
        """Call a function for each broker, concurrently; keep its error, and do not ask again if it does not answer."""

        async def call(node: Node) -> None:
            try:
                await function(node)
            except* KafkaError as errors:
                error = _first(errors)
                self._errors[node.node_id] = _text(error)
                if not isinstance(error, BrokerError | UnsupportedVersion):  # otherwise it has answered
                    self._away.add(node.node_id)
                    self._outdated = True

        async with anyio.create_task_group() as tasks:
            for node_id in node_ids:
                if node_id in layout.nodes and node_id not in self._away:
                    tasks.start_soon(call, layout.nodes[node_id])

    async def _ask(self, node: Node, request: Request[R], versions: Versions = _ANY) -> R:
        """Send a request to a broker, once: the next sample is the retry."""
        deadline = self._cluster.deadline(self._timeout)
        connection = await self._cluster.connection(node, _LANE, deadline)
        return await connection.request(request, timeout=deadline.left(self._cluster.runtime.now()), wanted=versions)


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _first(errors: BaseException) -> BaseException:
    while isinstance(errors, BaseExceptionGroup):
        errors = errors.exceptions[0]
    return errors


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
