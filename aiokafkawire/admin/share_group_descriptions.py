"""Descriptions of share groups, and their offsets, from the brokers' responses (KIP-932)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ..errors import ErrorCode, KafkaError, WireError, broker_error
from ..protocol.messages.share_group import (
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
    DescribedGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    Member,
    ShareGroupDescribeResponse,
)
from ..types import Address, TopicPartition
from .descriptions import ShareGroupDescription, ShareMemberDescription, SharePartitionOffsetInfo
from .group_descriptions import authorized_operations

__all__ = (
    "altered_offsets",
    "check_described",
    "check_offsets",
    "deleted_offsets",
    "offsets_in",
    "share_group_description",
    "share_group_outcomes",
)

_UNKNOWN: Final = -1


def share_group_outcomes(response: ShareGroupDescribeResponse) -> dict[str, DescribedGroup | KafkaError]:
    """Return the group or the error of each group in a response."""
    return {
        group.group_id: group
        if group.error_code == ErrorCode.NONE
        else _error(group.error_code, f"ShareGroupDescribe of group {group.group_id!r}", group.error_message)
        for group in response.groups
    }


def check_described(group_id: str, response: ShareGroupDescribeResponse) -> None:
    """Check that a response describes the requested group.

    Raises:
        BrokerError: the group has an error.
        WireError: the response lacks the group.
    """
    outcome = share_group_outcomes(response).get(group_id)
    if outcome is None:
        raise WireError(f"the ShareGroupDescribe response lacks the requested group {group_id!r}")
    if isinstance(outcome, KafkaError):
        raise outcome


def share_group_description(group: DescribedGroup, coordinator: Address) -> ShareGroupDescription:
    """Return the description of a group."""
    return ShareGroupDescription(
        group.group_id,
        group.group_state,
        tuple(_member(member) for member in group.members),
        coordinator,
        authorized_operations(group.authorized_operations),
        group.group_epoch,
        group.assignment_epoch,
        group.assignor_name,
    )


def _member(member: Member) -> ShareMemberDescription:
    assignment = sorted(
        TopicPartition(topic.topic_name, index)
        for topic in member.assignment.topic_partitions
        for index in topic.partitions
    )
    return ShareMemberDescription(
        member.member_id,
        member.client_id,
        member.client_host,
        tuple(assignment),
        tuple(sorted(member.subscribed_topic_names)),
        member.member_epoch,
        member.rack_id,
    )


# --- offsets -------------------------------------------------------------------------------------------------------


def check_offsets(group_id: str, response: DescribeShareGroupOffsetsResponse) -> None:
    """Check that a response has the offsets of the requested group.

    Raises:
        BrokerError: the group or a partition has an error.
        WireError: the response lacks the group.
    """
    group = _group(group_id, response)
    api = "DescribeShareGroupOffsets"
    _raise_for(group.error_code, f"{api} of group {group_id!r}", group.error_message)
    for partition, answer in _partitions(group):
        _raise_for(answer.error_code, f"{api} of {partition} for group {group_id!r}", answer.error_message)


def offsets_in(
    group_id: str, response: DescribeShareGroupOffsetsResponse
) -> dict[TopicPartition, SharePartitionOffsetInfo]:
    """Return the offsets of the requested group, sorted by partition."""
    found = dict(_partitions(_group(group_id, response)))
    return {partition: _offset(found[partition]) for partition in sorted(found)}


def _offset(answer: DescribeShareGroupOffsetsResponsePartition) -> SharePartitionOffsetInfo:
    if answer.start_offset < 0:
        return SharePartitionOffsetInfo(None)
    leader_epoch = answer.leader_epoch if answer.leader_epoch >= 0 else None
    # The lag of an offset after the end is negative.
    lag = None if answer.lag == _UNKNOWN else max(0, answer.lag)
    return SharePartitionOffsetInfo(answer.start_offset, leader_epoch, lag)


def _group(group_id: str, response: DescribeShareGroupOffsetsResponse) -> DescribeShareGroupOffsetsResponseGroup:
    for group in response.groups:
        if group.group_id == group_id:
            return group
    raise WireError(f"the DescribeShareGroupOffsets response lacks the requested group {group_id!r}")


def _partitions(
    group: DescribeShareGroupOffsetsResponseGroup,
) -> Iterator[tuple[TopicPartition, DescribeShareGroupOffsetsResponsePartition]]:
    for topic in group.topics:
        for answer in topic.partitions:
            yield TopicPartition(topic.topic_name, answer.partition_index), answer


def altered_offsets(
    group_id: str, offsets: Mapping[TopicPartition, int], response: AlterShareGroupOffsetsResponse
) -> dict[TopicPartition, int | KafkaError]:
    """Return the offset or the error of each partition.

    Raises:
        BrokerError: the error of the whole group.
    """
    what = f"AlterShareGroupOffsets of group {group_id!r}"
    _raise_for(response.error_code, what, response.error_message)
    answers = {
        TopicPartition(topic.topic_name, answer.partition_index): answer
        for topic in response.responses
        for answer in topic.partitions
    }
    found: dict[TopicPartition, int | KafkaError] = {}
    for partition, offset in offsets.items():
        answer = answers.get(partition)
        if answer is None:
            found[partition] = WireError(f"the response to {what} lacks the requested {partition}")
        elif answer.error_code != ErrorCode.NONE:
            found[partition] = _error(answer.error_code, f"{what} for {partition}", answer.error_message)
        else:
            found[partition] = offset
    return found


def deleted_offsets(
    group_id: str, topics: Iterable[str], response: DeleteShareGroupOffsetsResponse
) -> dict[str, KafkaError | None]:
    """Return None or the error for each topic whose offsets were to be deleted."""
    what = f"DeleteShareGroupOffsets of group {group_id!r}"
    answers = {topic.topic_name: topic for topic in response.responses}
    found: dict[str, KafkaError | None] = {}
    for name in topics:
        answer = answers.get(name)
        if answer is None:
            found[name] = WireError(f"the response to {what} lacks the requested topic {name!r}")
        elif answer.error_code != ErrorCode.NONE:
            found[name] = _error(answer.error_code, f"{what} for topic {name!r}", answer.error_message)
        else:
            found[name] = None
    return found


def _raise_for(code: int, request: str, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise _error(code, request, message)


def _error(code: int, request: str, message: str | None) -> KafkaError:
    return broker_error(code, f"{request}: {message}" if message else request)
