"""Descriptions of groups that the admin returns."""

from collections.abc import Mapping

import attrs

from .._lazy_classes import frozen
from ..types import Address, OffsetAndMetadata, TopicPartition

__all__ = (
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "ShareGroupDescription",
    "ShareMemberDescription",
    "SharePartitionOffsetInfo",
)


@frozen
class GroupListing:
    """A group of any type, as the brokers list it.

    ``protocol_type`` is "consumer" for consumers, and empty if the group only has offsets. ``state`` is for example
    "Stable" or "Empty" (KIP-518; None from brokers before 2.6). ``type`` is "classic", "consumer", "share" or "streams"
    (KIP-848; None from brokers before 3.8). ``coordinator`` is the address of the group's coordinator.
    """

    group_id: str
    protocol_type: str
    state: str | None
    type: str | None
    coordinator: Address


@frozen
class GroupMember:
    """A member of a group.

    ``group_instance_id`` identifies a static member (KIP-345). ``assignment`` has the member's partitions, and
    ``subscription`` its topics: both are empty while a classic group rebalances, and for members that are not
    consumers.

    ``type`` is the member's protocol, "classic" or "consumer": a consumer group may have members of both during an
    upgrade (KIP-1099; None for its members from brokers before 4.0). The other fields are those of members of consumer
    groups (KIP-848), otherwise None: ``member_epoch``, the assignment epoch that the member has reached; ``rack``;
    ``subscribed_pattern``, the regular expression of further topics; and ``target_assignment``, the partitions that the
    member will have when the group is stable.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...] = ()
    subscription: tuple[str, ...] = ()
    type: str | None = "classic"
    member_epoch: int | None = None
    rack: str | None = None
    subscribed_pattern: str | None = None
    target_assignment: tuple[TopicPartition, ...] | None = None


@frozen
class GroupDescription:
    """A classic group or a consumer group (KIP-848), with its members and committed offsets.

    ``type`` is "classic" or "consumer". ``state`` is "Stable", "Empty" or "Dead"; during a rebalance
    "PreparingRebalance" or "CompletingRebalance" in a classic group, "Assigning" or "Reconciling" in a consumer group.
    ``protocol_type`` is "consumer" for consumers of either type. ``protocol`` is the chosen assignor, empty unless a
    classic group is stable. ``authorized_operations`` are the ACL operations that this client may perform on the group,
    such as "READ" (KIP-430); None if they were not requested. ``group_epoch`` rises whenever members, subscriptions or
    topics of a consumer group change, and ``assignment_epoch`` is the group epoch of its last assignment; None for
    classic groups.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...]
    coordinator: Address
    authorized_operations: frozenset[str] | None
    offsets: Mapping[TopicPartition, OffsetAndMetadata] = attrs.field(hash=False)
    type: str = "classic"
    group_epoch: int | None = None
    assignment_epoch: int | None = None


@frozen
class ShareMemberDescription:
    """A member of a share group (KIP-932).

    ``subscription`` has the member's topics, and ``assignment`` the partitions that it reads; other members may read
    the same partitions. ``member_epoch`` is the assignment epoch that the member has reached.
    """

    member_id: str
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...]
    subscription: tuple[str, ...]
    member_epoch: int
    rack: str | None


@frozen
class ShareGroupDescription:
    """A share group (KIP-932) with its members.

    ``state`` is "Stable" or "Empty". ``group_epoch`` rises whenever members, subscriptions or topics change, and
    ``assignment_epoch`` is the group epoch of the last assignment. ``assignor`` is the coordinator's assignor.
    ``authorized_operations`` are the ACL operations that this client may perform on the group, such as "READ"
    (KIP-430); None if they were not requested.
    """

    group_id: str
    state: str
    members: tuple[ShareMemberDescription, ...]
    coordinator: Address
    authorized_operations: frozenset[str] | None
    group_epoch: int
    assignment_epoch: int
    assignor: str


@frozen
class SharePartitionOffsetInfo:
    """The progress of a share group in one partition (KIP-932).

    The group has finished all records before ``start_offset``, and perhaps some after it. ``lag`` is the number of
    offsets that it has not finished (KIP-1226); None if the broker does not know it, as those before 4.2.
    ``leader_epoch`` is the leader epoch of the partition when the offset was stored. All are None if the group has not
    finished a record of the partition.
    """

    start_offset: int | None
    leader_epoch: int | None = None
    lag: int | None = None
