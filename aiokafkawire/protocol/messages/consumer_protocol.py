"""What consumers tell one another through the classic group protocol: subscriptions and assignments.

A subscription is a protocol's metadata in JoinGroup, an assignment what SyncGroup hands out. An Int16 goes before
either: its version. Versions only add fields at the end, so a reader takes a newer one for the newest it knows, and
leaves the rest of the bytes alone.
"""

from ..primitives import Array, Bytes, Int32, String
from ..schema import Message, field, message, nested

__all__ = (
    "ConsumerProtocolAssignment",
    "ConsumerProtocolAssignmentTopicPartition",
    "ConsumerProtocolSubscription",
    "ConsumerProtocolSubscriptionTopicPartition",
)


@nested
class ConsumerProtocolSubscriptionTopicPartition:
    """Partitions of one topic that the member has held up to now."""

    topic: String = field("1+")
    partitions: Array[Int32] = field("1+")


@message(versions="0-3")
class ConsumerProtocolSubscription(Message):
    """What a member wants to read, told to the group's leader."""

    topics: Array[String] = field("0+")
    user_data: Bytes | None = field("0+", nullable="0+", default=None)  # the assignor's own
    # KIP-429
    owned_partitions: Array[ConsumerProtocolSubscriptionTopicPartition] = field("1+", default=list, ignorable=True)
    # KIP-792: when owned_partitions were assigned; -1: unknown
    generation_id: Int32 = field("2+", default=-1, ignorable=True)
    rack_id: String | None = field("3+", nullable="3+", default=None, ignorable=True)  # KIP-881


@nested
class ConsumerProtocolAssignmentTopicPartition:
    """Partitions of one topic for the member to read."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@message(versions="0-3")
class ConsumerProtocolAssignment(Message):
    """What a member is to read, decided by the group's leader; the same in every version."""

    assigned_partitions: Array[ConsumerProtocolAssignmentTopicPartition] = field("0+")
    user_data: Bytes | None = field("0+", nullable="0+", default=None)  # the assignor's own
