"""The admin's requests about committed offsets of groups."""

from collections.abc import Collection, Iterable, Mapping

from ..argument_checks import check_mapping
from ..cluster.cluster import Cluster
from ..cluster.list_offsets import look_up_offsets
from ..cluster.metadata import Node
from ..cluster.retry import Deadline
from ..errors import ErrorCode, UnknownMemberId, UnsupportedVersion, WireError, broker_error
from ..group.consumer_protocol import by_topic
from ..group.group_offsets import GroupOffsets
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
    "by_coordinator",
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
    """Return a group's offsets of ``partitions``, or all offsets for None. Raise as :meth:`GroupOffsets.committed`."""
    group = GroupOffsets(cluster, group_id)
    if partitions is None:
        return await group.all_committed(deadline, stable=stable)
    if not partitions:
        return {}
    return only_committed({**await group.committed(partitions, deadline, stable=stable)})


async def offsets_of_groups(
    cluster: Cluster, group_ids: Iterable[str], deadline: Deadline, *, stable: bool
) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
    """Return all committed offsets of each group. Raise as :meth:`GroupOffsets.committed`."""
    requested = list(dict.fromkeys(group_ids))
    found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    for together in await by_coordinator(cluster, requested, deadline) if len(requested) > 1 else []:
        request, wanted = groups_question(together, stable=stable)
        try:
            response = await cluster.ask_coordinator(
                CoordinatorType.GROUP, together[0], request, deadline, lane=_LANE, wanted=wanted, check=lambda _: None
            )
        except UnsupportedVersion:
            continue
        found |= {group_id: only_committed(offsets) for group_id, offsets in groups_fetched(response).items()}
    for group_id in requested:
        # Retry a group on its own if its coordinator has moved or answered with an error.
        if group_id not in found:
            found[group_id] = await GroupOffsets(cluster, group_id).all_committed(deadline, stable=stable)
    return {group_id: found[group_id] for group_id in requested}


async def by_coordinator(cluster: Cluster, group_ids: list[str], deadline: Deadline) -> list[list[str]]:
    """Return the lists of groups that have the same coordinator, so that one request is enough for each list.

    Groups without another at their coordinator are in no list, nor any if brokers do not support FindCoordinator.
    """
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
    """Return the lag, in offsets, of partitions with a committed offset. Raise as `offsets_of`, `look_up_offsets`."""
    committed = await offsets_of(cluster, group_id, None, deadline, stable=False)
    ends = await look_up_offsets(cluster, dict.fromkeys(committed, OffsetSpec.LATEST), deadline, isolation)
    lag = {}
    for partition, offset in committed.items():
        end = ends[partition]
        # A committed offset may be beyond the end, if records were lost later or a client committed such an offset.
        lag[partition] = 0 if end is None else max(0, end.offset - offset.offset)
    return lag


# --- changing ------------------------------------------------------------------------------------------------------


async def alter_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], deadline: Deadline
) -> None:
    """Commit offsets for a group without members. Raise as :meth:`GroupOffsets.commit`."""
    check_group_id(group_id)
    offsets = normalize_offsets(offsets)
    if not offsets:
        return
    try:
        await GroupOffsets(cluster, group_id).commit(offsets, deadline)
    except UnknownMemberId as error:
        # This client is not a member, so the error means that the group has members.
        why = "the group has members, and only members can commit; stop them first"
        raise UnknownMemberId(f"offsets of group {group_id!r} were not set: {why} ({error})") from error


async def reset_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, OffsetSpec | int], deadline: Deadline
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Look up offsets, commit them for a group, return them. Raise as `look_up_offsets` and :func:`alter_offsets`."""
    check_group_id(group_id)
    check_mapping("offsets", offsets, "{TopicPartition('orders', 0): OffsetSpec.EARLIEST}")
    starts: dict[TopicPartition, OffsetSpec | int] = {}
    for given, start in offsets.items():
        partition = check_partition(given)
        check_start(partition, start)
        starts[partition] = start
    specs = {partition: start for partition, start in starts.items() if isinstance(start, OffsetSpec)}
    found = await _resolved(cluster, specs, deadline)
    resolved = {
        partition: OffsetAndMetadata(found[partition] if isinstance(start, OffsetSpec) else start)
        for partition, start in starts.items()
    }
    await alter_offsets(cluster, group_id, resolved, deadline)
    return resolved


async def _resolved(
    cluster: Cluster, specs: Mapping[TopicPartition, OffsetSpec], deadline: Deadline
) -> dict[TopicPartition, int]:
    """Look up an offset for each partition; use the partition's end if no record is at or after the requested time."""
    found = await look_up_offsets(cluster, specs, deadline)
    late = [partition for partition, offset in found.items() if offset is None]
    found |= await look_up_offsets(cluster, dict.fromkeys(late, OffsetSpec.LATEST), deadline)
    resolved = {partition: offset.offset for partition, offset in found.items() if offset is not None}
    missing = [partition for partition in specs if partition not in resolved]
    if missing:
        raise WireError(f"the ListOffsets response lacks the requested end of {missing[0]}")
    return resolved


async def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Collection[TopicPartition], deadline: Deadline
) -> None:
    """Delete a group's committed offsets by an OffsetDelete request.

    Raises:
        BrokerError: the offset of a partition was not deleted; offsets of other partitions may be deleted.
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
    errors = {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    for partition in partitions:
        if partition not in errors:
            raise WireError(f"the OffsetDelete response for group {group_id!r} lacks the requested {partition}")
        if errors[partition] != ErrorCode.NONE:
            raise broker_error(errors[partition], f"OffsetDelete of {partition} for group {group_id!r}")
