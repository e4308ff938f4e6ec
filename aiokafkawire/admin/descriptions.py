"""Descriptions of groups that the admin returns."""

from collections.abc import Mapping

import attrs

from ..types import Address, OffsetAndMetadata, TopicPartition

__all__ = ("GroupDescription", "GroupListing", "GroupMember")


@attrs.frozen
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


@attrs.frozen
class GroupMember:
    """A member of a group.

    ``group_instance_id`` identifies a static member (KIP-345). ``assignment`` has the member's partitions, and
    ``subscription`` its topics: both are empty while the group rebalances, and for members that are not consumers.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...] = ()
    subscription: tuple[str, ...] = ()


@attrs.frozen
class GroupDescription:
    """A classic group with its members and committed offsets.

    ``state`` is "PreparingRebalance", "CompletingRebalance", "Stable", "Empty" or "Dead". ``protocol`` is the chosen
    assignor, empty unless the group is stable. ``authorized_operations`` are the ACL operations that this client may
    perform on the group, such as "READ" (KIP-430); None if they were not requested.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...]
    coordinator: Address
    authorized_operations: frozenset[str] | None
    offsets: Mapping[TopicPartition, OffsetAndMetadata] = attrs.field(hash=False)
