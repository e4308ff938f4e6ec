"""Asks for what the admin does with the offsets of groups."""

from collections.abc import Collection, Iterable, Mapping

from ..argument_checks import check_mapping
from ..cluster.cluster import Cluster
from ..cluster.list_offsets import look_up_offsets
from ..cluster.metadata import Node
from ..cluster.retry import Deadline
from ..errors import ErrorCode, UnknownMemberId, UnsupportedVersion, WireError, broker_error
from ..group.committed_offsets import GroupOffsets
from ..group.consumer_protocol import by_topic
from ..group.offset_fetch_messages import groups_fetched, groups_question, only_committed
from ..protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ..types import (
    CoordinatorType,
    IsolationLevel,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
    check_group_id,
    check_partition,
    check_start,
    normalize_offsets,
)

__all__ = (
    "alter_offsets",
    "delete_offsets",
    "lag_of",
    "offsets_of",
    "offsets_of_groups",
    "reset_offsets",
)

_LANE = "admin"


# --- looking up ----------------------------------------------------------------------------------------------------


async def offsets_of(
    cluster: Cluster, group_id: str, partitions: Collection[TopicPartition] | None, deadline: Deadline, *, stable: bool
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What a group has committed for these partitions, or for all. Raises as :meth:`GroupOffsets.committed`."""
    group = GroupOffsets(cluster, group_id)
    if partitions is None:
        return await group.all_committed(deadline, stable=stable)
    if not partitions:
        return {}
    return only_committed({**await group.committed(partitions, deadline, stable=stable)})


async def offsets_of_groups(
    cluster: Cluster, group_ids: Iterable[str], deadline: Deadline, *, stable: bool
) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
    """All that each group has committed. Raises as :meth:`GroupOffsets.committed`."""
    asked = list(dict.fromkeys(group_ids))
    found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    for together in await _by_coordinator(cluster, asked, deadline) if len(asked) > 1 else []:
        request, wanted = groups_question(together, stable=stable)
        try:
            response = await cluster.ask_coordinator(
                CoordinatorType.GROUP, together[0], request, deadline, lane=_LANE, wanted=wanted, check=lambda _: None
            )
        except UnsupportedVersion:
            continue
        found |= {group_id: only_committed(one) for group_id, one in groups_fetched(response).items()}
    for group_id in asked:
        # One whose coordinator has moved, or which has an error, is asked for in its own right.
        if group_id not in found:
            found[group_id] = await GroupOffsets(cluster, group_id).all_committed(deadline, stable=stable)
    return {group_id: found[group_id] for group_id in asked}


async def _by_coordinator(cluster: Cluster, group_ids: list[str], deadline: Deadline) -> list[list[str]]:
    """Those who share a coordinator; nobody does where brokers know no coordinators."""
    found: dict[Node, list[str]] = {}
    for group_id in group_ids:
        try:
            node = await cluster.coordinator(CoordinatorType.GROUP, group_id, deadline)
        except UnsupportedVersion:
            return []
        found.setdefault(node, []).append(group_id)
    return [together for together in found.values() if len(together) > 1]


async def lag_of(
    cluster: Cluster, group_id: str, isolation: IsolationLevel, deadline: Deadline
) -> dict[TopicPartition, int]:
    """From what is committed to the end, in offsets. Raises as `offsets_of` and `look_up_offsets`."""
    committed = await offsets_of(cluster, group_id, None, deadline, stable=False)
    ends = await look_up_offsets(cluster, dict.fromkeys(committed, OffsetSpec.LATEST), deadline, isolation)
    lag = {}
    for where, at in committed.items():
        end = ends[where]
        # A group may be beyond the end: records were lost since, or somebody set it there.
        lag[where] = 0 if end is None else max(0, end.offset - at.offset)
    return lag


# --- changing ------------------------------------------------------------------------------------------------------


async def alter_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], deadline: Deadline
) -> None:
    """Commit them for a group without members. Raises as :meth:`GroupOffsets.commit`."""
    check_group_id(group_id)
    offsets = normalize_offsets(offsets)
    if not offsets:
        return
    try:
        await GroupOffsets(cluster, group_id).commit(offsets, deadline)
    except UnknownMemberId as error:
        # Whoever is nobody's member was not thrown out of the group: it has others.
        why = "has members, and only they commit; stop them first"
        raise UnknownMemberId(f"offsets of group {group_id!r} were not set, for it {why} ({error})") from error


async def reset_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, OffsetSpec | int], deadline: Deadline
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Look them up, and commit them. Raises as `look_up_offsets` and :func:`alter_offsets`."""
    check_group_id(group_id)
    check_mapping("offsets", offsets, "{TopicPartition('orders', 0): OffsetSpec.EARLIEST}")
    asked: dict[TopicPartition, OffsetSpec | int] = {}
    for given, start in offsets.items():
        where = check_partition(given)
        check_start(where, start)
        asked[where] = start
    specs = {where: one for where, one in asked.items() if isinstance(one, OffsetSpec)}
    found = await _resolved(cluster, specs, deadline)
    starts = {
        where: OffsetAndMetadata(found[where] if isinstance(one, OffsetSpec) else one) for where, one in asked.items()
    }
    await alter_offsets(cluster, group_id, starts, deadline)
    return starts


async def _resolved(
    cluster: Cluster, specs: Mapping[TopicPartition, OffsetSpec], deadline: Deadline
) -> dict[TopicPartition, int]:
    """The offset for each; where no record is that late, the end."""
    found = await look_up_offsets(cluster, specs, deadline)
    late = [where for where, one in found.items() if one is None]
    found |= await look_up_offsets(cluster, dict.fromkeys(late, OffsetSpec.LATEST), deadline)
    resolved = {where: one.offset for where, one in found.items() if one is not None}
    missing = [where for where in specs if where not in resolved]
    if missing:
        raise WireError(f"an answer to ListOffsets has no end of {missing[0]}, which was asked")
    return resolved


async def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Collection[TopicPartition], deadline: Deadline
) -> None:
    """OffsetDelete.

    Raises:
        BrokerError: why not; offsets of the partitions that are not named are gone.
        UnsupportedVersion: the broker is older than 2.4.
    """
    if not partitions:
        return
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        )
        for name, indexes in by_topic(dict.fromkeys(partitions)).items()
    ]

    def check(response: OffsetDeleteResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            raise broker_error(response.error_code, f"OffsetDelete of group {group_id!r}")

    request = OffsetDeleteRequest(group_id=group_id, topics=topics)
    response = await cluster.ask_coordinator(
        CoordinatorType.GROUP, group_id, request, deadline, lane=_LANE, check=check
    )
    answers = {
        TopicPartition(topic.name, one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }
    for where in partitions:
        if where not in answers:
            raise WireError(f"an answer to OffsetDelete of group {group_id!r} lacks {where}, which was asked")
        if answers[where] != ErrorCode.NONE:
            raise broker_error(answers[where], f"OffsetDelete of {where} for group {group_id!r}")
