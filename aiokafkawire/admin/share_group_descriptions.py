"""Descriptions of share groups, and their offsets, from the brokers' responses (KIP-932)."""

from collections.abc import Iterator
from typing import Final

from ..errors import ErrorCode, WireError, broker_error
from ..protocol.messages.share_group import (
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

__all__ = ("check_described", "check_offsets", "described_groups", "offsets_in", "share_group_description")

_UNKNOWN: Final = -1


def described_groups(response: ShareGroupDescribeResponse) -> dict[str, DescribedGroup]:
    """Return the groups that a response describes; leave out groups with errors."""
    return {group.group_id: group for group in response.groups if group.error_code == ErrorCode.NONE}


def check_described(group_id: str, response: ShareGroupDescribeResponse) -> None:
    """Check that a response describes the requested group.

    Raises:
        BrokerError: the group has an error.
        WireError: the response lacks the group.
    """
    group = next((group for group in response.groups if group.group_id == group_id), None)
    if group is None:
        raise WireError(f"the ShareGroupDescribe response lacks the requested group {group_id!r}")
    _raise_for(group.error_code, f"ShareGroupDescribe of group {group_id!r}", group.error_message)


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


def _raise_for(code: int, request: str, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise broker_error(code, f"{request}: {message}" if message else request)
