"""Commits a group's offsets and looks them up: asks the group's coordinator, or who else has them."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final
from uuid import UUID

from ..cluster.cluster import Cluster
from ..cluster.connection_pool import CONTROL
from ..cluster.request_variants import in_newest_form
from ..cluster.retry import Deadline
from ..errors import BrokerError, ErrorCode, KafkaError, UnknownTopicOrPartition, UnsupportedVersion
from ..protocol.messages.group_offsets import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchResponse
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Request, Versions
from ..types import CoordinatorType, GroupMetadata, OffsetAndMetadata, TopicPartition, normalize_offsets
from .offset_commit_messages import (
    IN_ZOOKEEPER,
    TopicIdsOutdated,
    check_committed,
    commit_request,
    commit_versions,
    goes_to_zookeeper,
)
from .offset_fetch_messages import (
    Found,
    all_fetched,
    check_fetched,
    fetch_forms,
    fetched_offsets,
    only_committed,
    zookeeper_offsets,
    zookeeper_question,
)

__all__ = ("GroupOffsets",)

_WITHOUT_OFFSETS: Final = "0.8.0"


class GroupOffsets:
    """The offsets of one group. Its coordinator is asked on connections of the ``lane``."""

    def __init__(self, cluster: Cluster, group_id: str, lane: str = CONTROL) -> None:
        self._cluster, self._lane = cluster, lane
        self.group: GroupMetadata = GroupMetadata(group_id)
        """Who commits. Nobody's member at first; whoever joins sets it, and each commit is of who is set as it begins.
        """
        self.heard: Callable[[KafkaError | None], None] = lambda _: None
        """Hears why the coordinator could not be asked, at each try; of None when it has answered."""

    async def close(self) -> None:
        """Close the connections of its lane."""
        await self._cluster.brokers.close_lanes(self._lane)

    # --- committing ------------------------------------------------------------------------------------

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        deadline: Deadline,
        *,
        retention_ms: int | None = None,
        skip_deleted: bool = False,
        newer: Callable[[], Mapping[TopicPartition, OffsetAndMetadata]] | None = None,
        patience: float = math.inf,
    ) -> None:
        """Commit these offsets; it may be that only some are, if it raises.

        Args:
            offsets: of the next records to read.
            deadline: when to give up.
            retention_ms: for how long the broker keeps them, whatever ``offsets.retention.minutes`` says; brokers know
                this from 0.9 on.
            skip_deleted: partitions that there are no more need no offsets: they are not waited for.
            newer: what to commit by now for the same partitions, asked at each try; a coordinator may be found late.
            patience: seconds for an answer. Then it is tried again on another connection, for twice as long: a
                coordinator that waits for its replicas has taken what it does not answer, but reads nothing behind it.
                What else is asked on the lane meanwhile fails, and is to be tried again.

        Raises:
            UsageError: a partition is none, or has no offset; or a static member gives a retention.
            RequestTimeout: not in time; the message has the last cause.
            UnknownMemberId: the group has members, and they commit; or this one is none any more.
            IllegalGeneration, RebalanceInProgress, FencedInstanceId: the membership does not entitle to it.
            UnsupportedVersion: the broker is too old for static members, or for a retention.
            KafkaError: another error that no retry mends.
        """
        given, group = normalize_offsets(offsets), self.group
        ids = _topic_ids(self._cluster, given)
        check, latest = partial(self._check_committed, group.group_id, given, skip_deleted), newer or (lambda: given)
        try:
            try:
                await self._commit(group, latest, deadline, retention_ms, ids, check, patience)
            except TopicIdsOutdated:
                self._cluster.outdated(self._cluster.snapshot)
                await self._commit(group, latest, deadline, retention_ms, {}, check, patience)
        except UnsupportedVersion as refused:
            if not goes_to_zookeeper(group, retention_ms):
                raise _explained(refused, group, retention_ms) from None
            await self._commit_to_zookeeper(group, given, deadline, refused)

    async def _commit(
        self,
        group: GroupMetadata,
        latest: Callable[[], Mapping[TopicPartition, OffsetAndMetadata]],
        deadline: Deadline,
        retention_ms: int | None,
        ids: Mapping[str, UUID],
        check: Callable[[Mapping[str, UUID], OffsetCommitResponse], None],
        patience: float,
    ) -> None:
        def request() -> OffsetCommitRequest:
            return commit_request(group, latest(), ids, retention_ms)

        await self._cluster.ask_coordinator(
            CoordinatorType.GROUP,
            group.group_id,
            request(),
            deadline,
            lane=self._lane,
            wanted=commit_versions(group, by_id=bool(ids), retention_ms=retention_ms),
            check=partial(check, ids),
            failed=self.heard,
            newer=request,
            patience=patience,
        )
        self.heard(None)

    def _check_committed(
        self,
        group_id: str,
        given: Collection[TopicPartition],
        skip_deleted: bool,
        ids: Mapping[str, UUID],
        response: OffsetCommitResponse,
    ) -> None:
        # An error makes for newer metadata, by which the next answer is judged.
        there = [where for where in given if not (skip_deleted and self._is_deleted(where))]
        check_committed(group_id, there, response, ids)

    def _is_deleted(self, where: TopicPartition) -> bool:
        topic = self._cluster.snapshot.topics.get(where.topic)
        return topic is None or topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def _commit_to_zookeeper(
        self,
        group: GroupMetadata,
        given: Mapping[TopicPartition, OffsetAndMetadata],
        deadline: Deadline,
        refused: UnsupportedVersion,
    ) -> None:
        try:
            await self._cluster.ask(
                self._cluster.least_loaded,
                commit_request(group, given),
                deadline,
                wanted=IN_ZOOKEEPER,
                check=partial(check_committed, group.group_id, given),
            )
        except UnsupportedVersion:
            raise self._without_offsets(refused) from None

    def _without_offsets(self, refused: UnsupportedVersion) -> UnsupportedVersion:
        """Return the error to raise where a broker takes no commits, neither as a coordinator nor for ZooKeeper."""
        brokers = [self._cluster.brokers.known(node.address) for node in self._cluster.snapshot.nodes.values()]
        if not any(known is not None and known.release == _WITHOUT_OFFSETS for known in brokers):
            return refused
        return UnsupportedVersion(
            f"Kafka {_WITHOUT_OFFSETS} stores no committed offsets (they came with Kafka 0.8.1): open the consumer "
            f"without group_id, and store the offsets of group {self.group.group_id!r} in your application: {refused}"
        )

    # --- looking up ------------------------------------------------------------------------------------

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: Deadline, *, stable: bool = True
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What is committed for each partition, None for nothing.

        If it is to be ``stable``, transactions that are about to change it are waited for (KIP-447).

        Raises:
            RequestTimeout: not in time; the message has the last cause.
            KafkaError: an error that no retry mends.
        """
        found = await self._fetch(partitions, deadline, partly=False, stable=stable)
        return {where: one for where, one in found.items() if not isinstance(one, BrokerError)}

    async def look_up(self, partitions: Collection[TopicPartition], deadline: Deadline) -> Found:
        """As :meth:`committed`, but one partition that has an error instead holds up no other."""
        return await self._fetch(partitions, deadline, partly=True, stable=True)

    async def all_committed(
        self, deadline: Deadline, *, stable: bool = True
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """All that the group has committed, in one request (KIP-88); a group that does not exist has nothing.

        Brokers before 0.10.2 are asked for all partitions that there are. Raises as :meth:`committed`.
        """
        group_id = self.group.group_id

        def read(response: OffsetFetchResponse) -> Found:
            found = all_fetched(group_id, response)
            check_fetched(found)
            return found

        try:
            return only_committed(await self._ask(None, deadline, {}, read, stable=stable))
        except UnsupportedVersion:
            partitions = await _all_partitions(self._cluster, deadline)
        if not partitions:
            return {}
        found = await self._fetch(partitions, deadline, partly=True, stable=False)
        # A topic that has been deleted meanwhile has no offsets either.
        gone = [where for where, one in found.items() if isinstance(one, UnknownTopicOrPartition)]
        check_fetched({where: one for where, one in found.items() if where not in gone})
        return only_committed(found)

    async def _fetch(
        self, partitions: Collection[TopicPartition], deadline: Deadline, *, partly: bool, stable: bool
    ) -> Found:
        group_id, ids = self.group.group_id, _topic_ids(self._cluster, partitions)

        def read(response: OffsetFetchResponse, ids: Mapping[str, UUID]) -> Found:
            found = fetched_offsets(group_id, partitions, response, ids)
            check_fetched(found, partly=partly)
            return found

        try:
            try:
                return await self._ask(partitions, deadline, ids, partial(read, ids=ids), stable=stable)
            except TopicIdsOutdated:
                self._cluster.outdated(self._cluster.snapshot)
                return await self._ask(partitions, deadline, {}, partial(read, ids={}), stable=stable)
        except UnsupportedVersion as refused:
            return await self._fetch_from_zookeeper(partitions, deadline, refused, partly=partly)

    async def _fetch_from_zookeeper(
        self, partitions: Collection[TopicPartition], deadline: Deadline, refused: UnsupportedVersion, *, partly: bool
    ) -> Found:
        def read(response: OffsetFetchResponse) -> Found:
            found = zookeeper_offsets(self.group.group_id, partitions, response)
            check_fetched(found, partly=partly)
            return found

        request, anyone = zookeeper_question(self.group.group_id, partitions), self._cluster.least_loaded
        try:
            return read(await self._cluster.ask(anyone, request, deadline, wanted=IN_ZOOKEEPER, check=_checked(read)))
        except UnsupportedVersion:
            raise self._without_offsets(refused) from None

    async def _ask(
        self,
        partitions: Collection[TopicPartition] | None,
        deadline: Deadline,
        ids: Mapping[str, UUID],
        read: Callable[[OffsetFetchResponse], Found],
        *,
        stable: bool,
    ) -> Found:
        """Ask the coordinator in the newest form that it knows; what ``read`` raises of an answer is tried again."""
        group_id = self.group.group_id

        async def ask(request: Request[OffsetFetchResponse], wanted: Versions) -> OffsetFetchResponse:
            return await self._cluster.ask_coordinator(
                CoordinatorType.GROUP,
                group_id,
                request,
                deadline,
                lane=self._lane,
                wanted=wanted,
                check=_checked(read),
            )

        return read(await in_newest_form(fetch_forms(group_id, partitions, ids, stable=stable), ask))


async def _all_partitions(cluster: Cluster, deadline: Deadline) -> list[TopicPartition]:
    """All partitions of all topics that this client may see."""
    response = await cluster.ask_metadata(None, deadline)
    return [
        TopicPartition(topic.name, one.partition_index)
        for topic in response.topics
        if topic.name is not None
        for one in topic.partitions
    ]


def _topic_ids(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[str, UUID]:
    """The ids of the topics, if all of them are known: a request has the ids, or the names."""
    snapshot = cluster.snapshot
    ids = {name: snapshot.topic_id(name) for name in {where.topic for where in partitions}}
    return {} if ZERO_UUID in ids.values() else ids


def _checked(read: Callable[[OffsetFetchResponse], Found]) -> Callable[[OffsetFetchResponse], None]:
    def check(response: OffsetFetchResponse) -> None:
        read(response)

    return check


def _explained(refused: UnsupportedVersion, group: GroupMetadata, retention_ms: int | None) -> UnsupportedVersion:
    if retention_ms is not None:
        why = "brokers can be told how long to keep offsets (retention_ms) since 0.9, and by OffsetCommit v2-4 alone"
        return UnsupportedVersion(f"{why}: {refused}")
    if group.group_instance_id is not None:
        return UnsupportedVersion(
            f"static members (group_instance_id) commit since 2.3, by OffsetCommit v7+: {refused}"
        )
    return refused
