"""What consumers tell one another through the classic group protocol: subscriptions and assignments."""

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
    """DOC(ConsumerProtocolSubscription.OwnedPartitions)."""

    topic: String = field("1+")
    partitions: Array[Int32] = field("1+")


@message(versions="0-3")
class ConsumerProtocolSubscription(Message):
    """DOC."""

    topics: Array[String] = field("0+")
    user_data: Bytes | None = field("0+", nullable="0+", default=None)
    owned_partitions: Array[ConsumerProtocolSubscriptionTopicPartition] = field("1+", default=list, ignorable=True)
    generation_id: Int32 = field("2+", default=-1, ignorable=True)
    rack_id: String | None = field("3+", nullable="3+", default=None, ignorable=True)


@nested
class ConsumerProtocolAssignmentTopicPartition:
    """DOC(ConsumerProtocolAssignment.AssignedPartitions)."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@message(versions="0-3")
class ConsumerProtocolAssignment(Message):
    """DOC."""

    assigned_partitions: Array[ConsumerProtocolAssignmentTopicPartition] = field("0+")
    user_data: Bytes | None = field("0+", nullable="0+", default=None)
