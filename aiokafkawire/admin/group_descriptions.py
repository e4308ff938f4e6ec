"""Descriptions of groups from the responses to ConsumerGroupDescribe (KIP-848) and DescribeGroups."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from ..errors import ErrorCode, KafkaError, WireError
from ..group.consumer_protocol import decode_assignment, decode_subscription
from ..protocol.acl_codes import AclOperation
from ..protocol.messages import consumer_group, group_admin
from ..types import Address, OffsetAndMetadata, TopicPartition
from .descriptions import GroupDescription, GroupMember
from .response_errors import error_of

__all__ = (
    "DescribedGroup",
    "authorized_operations",
    "description",
    "group_outcomes",
    "is_of_another_type",
)

DescribedGroup: TypeAlias = consumer_group.DescribedGroup | group_admin.DescribedGroup
"""A group in a response, or its error."""
G = TypeVar("G", consumer_group.DescribedGroup, group_admin.DescribedGroup)

_NOT_REQUESTED: Final = -(2**31)
_MEMBER_TYPES: Final = {0: "classic", 1: "consumer"}


def is_of_another_type(group: DescribedGroup) -> bool:
    """Return whether the response to ConsumerGroupDescribe says that the group is missing or of another type.

    Brokers of Kafka 3.7 to 3.9 answer UNSUPPORTED_VERSION unless their consumer groups are enabled.
    """
    absent = group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    return isinstance(group, consumer_group.DescribedGroup) and absent


def group_outcomes(api: str, groups: Iterable[G]) -> dict[str, G | KafkaError]:
    """Return the group or the error of each group in a response of an API; a group of another type is no error."""
    found: dict[str, G | KafkaError] = {}
    for group in groups:
        if group.error_code == ErrorCode.NONE:
            found[group.group_id] = group
            continue
        what = f"{api} of group {group.group_id!r}"
        error = None if is_of_another_type(group) else error_of(group.error_code, what, group.error_message)
        # Some brokers list a group twice, the second time as missing.
        found.setdefault(group.group_id, error or group)
    return found


def description(
    group: DescribedGroup, coordinator: Address, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> GroupDescription:
    """Return the description of a group of either type."""
    if isinstance(group, consumer_group.DescribedGroup):
        return GroupDescription(
            group.group_id,
            group.group_state,
            "consumer",
            group.assignor_name,
            tuple(_consumer_group_member(member) for member in group.members),
            coordinator,
            authorized_operations(group.authorized_operations),
            offsets,
            "consumer",
            group.group_epoch,
            group.assignment_epoch,
        )
    return GroupDescription(
        group.group_id,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(_classic_member(member, consumers=group.protocol_type == "consumer") for member in group.members),
        coordinator,
        authorized_operations(group.authorized_operations),
        offsets,
    )


def authorized_operations(bits: int) -> frozenset[str] | None:
    """Return the names of the ACL operations in a response; None if the request did not ask for them."""
    if bits == _NOT_REQUESTED:
        return None
    return frozenset(operation.name for operation in AclOperation if bits >> operation & 1)


def _consumer_group_member(member: consumer_group.Member) -> GroupMember:
    return GroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        tuple(sorted(member.subscribed_topic_names)),
        _MEMBER_TYPES.get(member.member_type),
        member.member_epoch,
        member.rack_id,
        member.subscribed_topic_regex or None,
        _partitions(member.target_assignment),
    )


def _partitions(assignment: consumer_group.ConsumerGroupDescribeResponseAssignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, index)
            for topic in assignment.topic_partitions
            for index in topic.partitions
        )
    )


def _classic_member(member: group_admin.DescribedGroupMember, *, consumers: bool) -> GroupMember:
    assignment: tuple[TopicPartition, ...] = ()
    subscription: tuple[str, ...] = ()
    if consumers:
        # An invalid subscription of another client must not prevent the description of the other members.
        try:
            subscription = decode_subscription(bytes(member.member_metadata)).topics
            assignment = decode_assignment(bytes(member.member_assignment)).partitions
        except WireError:
            pass
    return GroupMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        assignment,
        subscription,
    )
