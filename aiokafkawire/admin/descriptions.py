"""What the admin tells of groups."""

from collections.abc import Mapping

import attrs

from ..types import Address, OffsetAndMetadata, TopicPartition

__all__ = ("GroupDescription", "GroupListing", "GroupMember")


@attrs.frozen
class GroupListing:
    """A group that there is, of any kind.

    ``protocol_type`` is "consumer" for consumers, and empty if the group only keeps offsets. ``state`` is such as
    "Stable" or "Empty" (KIP-518; None from brokers before 2.6), ``type`` "classic", "consumer", "share" or "streams"
    (KIP-848; None from brokers before 3.8). ``coordinator`` is the broker that has it.
    """

    group_id: str
    protocol_type: str
    state: str | None
    type: str | None
    coordinator: Address


@attrs.frozen
class GroupMember:
    """A member of a group.

    ``group_instance_id`` is what a static member is known by (KIP-345). ``assignment`` is what it is to read, and
    ``subscription`` the topics that it asked for: both are empty while the group rebalances, and of members that are
    no consumers.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...] = ()
    subscription: tuple[str, ...] = ()


@attrs.frozen
class GroupDescription:
    """A classic group, its members, and what it has committed.

    ``state`` is "PreparingRebalance", "CompletingRebalance", "Stable", "Empty" or "Dead". ``protocol`` is the assignor
    that was chosen, empty unless the group is stable. ``authorized_operations`` are the operations of ACLs that this
    client may do with it, as "READ" (KIP-430); None if they were not asked for.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...]
    coordinator: Address
    authorized_operations: frozenset[str] | None
    offsets: Mapping[TopicPartition, OffsetAndMetadata] = attrs.field(hash=False)
