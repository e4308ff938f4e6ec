"""Descriptions of share groups, and their offsets, from the brokers' responses (KIP-932)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ..errors import KafkaError, WireError
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
from .response_errors import error_of, raise_for

__all__ = (
    "altered_offsets",
    "check_described",
    "check_offsets",
    "deleted_offsets",
    "offsets_by_group",
    "offsets_in",
    "share_group_description",
    "share_group_outcomes",
)

_UNKNOWN: Final = -1


def share_group_outcomes(response: ShareGroupDescribeResponse) -> dict[str, DescribedGroup | KafkaError]:
    """Return the group or the error of each group in a response."""
    found: dict[str, DescribedGroup | KafkaError] = {}
    for group in response.groups:
        what = f"ShareGroupDescribe of group {group.group_id!r}"
        found[group.group_id] = error_of(group.error_code, what, group.error_message) or group
    return found


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
    _check_group(_group(group_id, response))


def _check_group(group: DescribeShareGroupOffsetsResponseGroup) -> None:
    api, name = "DescribeShareGroupOffsets", f"group {group.group_id!r}"
    raise_for(group.error_code, f"{api} of {name}", group.error_message)
    for partition, answer in _partitions(group):
        raise_for(answer.error_code, f"{api} of {partition} for {name}", answer.error_message)


def offsets_by_group(
    response: DescribeShareGroupOffsetsResponse,
) -> dict[str, dict[TopicPartition, SharePartitionOffsetInfo] | KafkaError]:
    """Return the offsets or the error of each group in a response."""
    found: dict[str, dict[TopicPartition, SharePartitionOffsetInfo] | KafkaError] = {}
    for group in response.groups:
        try:
            _check_group(group)
            found[group.group_id] = _offsets(group)
        except KafkaError as error:
            found[group.group_id] = error
    return found


def offsets_in(
    group_id: str, response: DescribeShareGroupOffsetsResponse
) -> dict[TopicPartition, SharePartitionOffsetInfo]:
    """Return the offsets of the requested group, sorted by partition."""
    return _offsets(_group(group_id, response))


def _offsets(group: DescribeShareGroupOffsetsResponseGroup) -> dict[TopicPartition, SharePartitionOffsetInfo]:
    found = dict(_partitions(group))
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
    raise_for(response.error_code, what, response.error_message)
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
        else:
            error = error_of(answer.error_code, f"{what} for {partition}", answer.error_message)
            found[partition] = offset if error is None else error
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
        else:
            found[name] = error_of(answer.error_code, f"{what} for topic {name!r}", answer.error_message)
    return found
