"""The admin's requests about committed offsets of groups."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ..argument_checks import check_mapping
from ..cluster.cluster import Cluster
from ..cluster.list_offsets import look_up_offsets, look_up_starts
from ..cluster.retry import Deadline
from ..errors import (
    BrokerError,
    GroupIdNotFound,
    InvalidCommitOffsetSize,
    KafkaError,
    OffsetMetadataTooLarge,
    RequestTimeout,
    TopicAuthorizationFailed,
    UnknownMemberId,
    UnknownTopicOrPartition,
    WireError,
)
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
from .concurrent_outcomes import ask_one_by_one, concurrently, raise_if_unsupported, timed_out
from .coordinator_outcomes import by_coordinator
from .outcomes import Outcomes
from .repeats import Repeats
from .response_errors import error_of, raise_for

__all__ = (
    "alter_offsets",
    "delete_offsets",
    "lag_of",
    "offsets_of",
    "offsets_of_groups",
    "reset_offsets",
)

_LANE: Final = "admin"
_OF_A_PARTITION: Final = (
    InvalidCommitOffsetSize,
    OffsetMetadataTooLarge,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
"""The errors of a commit that are about one partition; other errors are about the whole group."""


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
) -> Outcomes[str, dict[TopicPartition, OffsetAndMetadata]]:
    """Return all committed offsets of each group, or its error, as :meth:`GroupOffsets.committed` raises it."""
    requested = list(dict.fromkeys(group_ids))
    found: Outcomes[str, dict[TopicPartition, OffsetAndMetadata]] = {}

    async def together(some: list[str]) -> None:
        request, wanted = groups_question(some, stable=stable)
        try:
            response = await cluster.ask_coordinator(
                CoordinatorType.GROUP, some[0], request, deadline, lane=_LANE, wanted=wanted, check=lambda _: None
            )
        except KafkaError as error:
            if deadline.passed(cluster.runtime.now()):
                found.update(dict.fromkeys(some, error))
            return
        found.update({group_id: only_committed(offsets) for group_id, offsets in groups_fetched(response).items()})

    async def alone(group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        return await GroupOffsets(cluster, group_id).all_committed(deadline, stable=stable)

    if len(requested) > 1:
        await concurrently(together, await by_coordinator(cluster, CoordinatorType.GROUP, requested, deadline))
    # Retry a group on its own if its coordinator has moved or answered with an error.
    found |= await ask_one_by_one([group_id for group_id in requested if group_id not in found], alone)
    return raise_if_unsupported({group_id: found[group_id] for group_id in requested})


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
) -> Outcomes[TopicPartition, OffsetAndMetadata]:
    """Commit offsets for a group without members; return the committed offset or the error of each partition.

    Raise as :meth:`GroupOffsets.commit` if the error is about the whole group, or there is only one partition.
    """
    check_group_id(group_id)
    requested = normalize_offsets(offsets)
    answered: dict[TopicPartition, BrokerError | None] = {}
    if not requested:
        return {}
    try:
        await GroupOffsets(cluster, group_id).commit(requested, deadline, answered=answered.update)
    except UnknownMemberId as error:
        # This client is not a member, so the error means that the group has members.
        why = "the group has members, and only members can commit; stop them first"
        raise UnknownMemberId(f"offsets of group {group_id!r} were not set: {why} ({error})") from error
    except KafkaError as failure:
        errors = [error for error in answered.values() if error is not None]
        if len(requested) == 1 or not errors or not all(isinstance(error, _OF_A_PARTITION) for error in errors):
            raise
        outcomes: Outcomes[TopicPartition, OffsetAndMetadata] = {
            partition: answered.get(partition) or offset for partition, offset in requested.items()
        }
        return timed_out(outcomes, deadline) if isinstance(failure, RequestTimeout) else outcomes
    return dict(requested)


async def reset_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, OffsetSpec | int], deadline: Deadline
) -> Outcomes[TopicPartition, OffsetAndMetadata]:
    """Look up offsets, and commit them for a group. Raise and return as `look_up_offsets` and :func:`alter_offsets`."""
    check_group_id(group_id)
    check_mapping("offsets", offsets, "{TopicPartition('orders', 0): OffsetSpec.EARLIEST}")
    starts: dict[TopicPartition, OffsetSpec | int] = {}
    for given, start in offsets.items():
        partition = check_partition(given)
        check_start(partition, start)
        starts[partition] = start
    specs = {partition: start for partition, start in starts.items() if isinstance(start, OffsetSpec)}
    found = await look_up_starts(cluster, specs, deadline)
    resolved = {
        partition: OffsetAndMetadata(found[partition] if isinstance(start, OffsetSpec) else start)
        for partition, start in starts.items()
    }
    return await alter_offsets(cluster, group_id, resolved, deadline)


async def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Collection[TopicPartition], deadline: Deadline
) -> Outcomes[TopicPartition, None]:
    """Delete a group's committed offsets by an OffsetDelete request; return None or the error for each partition.

    Raises:
        BrokerError: the coordinator rejected the request as a whole.
        UnsupportedVersion: the broker is older than 2.4.
    """
    if not partitions:
        return {}
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        )
        for name, indexes in by_topic(dict.fromkeys(partitions)).items()
    ]

    def check(response: OffsetDeleteResponse) -> None:
        raise_for(response.error_code, f"OffsetDelete of group {group_id!r}")

    request = OffsetDeleteRequest(group_id=group_id, topics=topics)
    repeats = Repeats(GroupIdNotFound)  # brokers before 4.0 delete a group without members with its last offset
    with repeats.explaining():
        response = await cluster.ask_coordinator(
            CoordinatorType.GROUP,
            group_id,
            request,
            deadline,
            lane=_LANE,
            check=check,
            unanswered=repeats.unanswered,
        )
    errors = {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    return {partition: _deleted(group_id, partition, errors.get(partition)) for partition in partitions}


def _deleted(group_id: str, partition: TopicPartition, code: int | None) -> KafkaError | None:
    if code is None:
        return WireError(f"the OffsetDelete response for group {group_id!r} lacks the requested {partition}")
    return error_of(code, f"OffsetDelete of {partition} for group {group_id!r}")
