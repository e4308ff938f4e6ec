"""aiokafka's types of members' subscriptions and assignments, which assignors take and return."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..structs import TopicPartition

__all__ = ("ConsumerProtocol", "ConsumerProtocolMemberAssignment", "ConsumerProtocolMemberMetadata")


class ConsumerProtocolMemberMetadata(NamedTuple):
    """A member's subscription; ``user_data`` is the assignor's."""

    version: int
    subscription: Sequence[str]
    user_data: bytes


class ConsumerProtocolMemberAssignment(NamedTuple):
    """A member's assignment: the partitions of each topic; ``user_data`` is the assignor's."""

    version: int
    assignment: Sequence[tuple[str, Sequence[int]]]
    user_data: bytes

    def partitions(self) -> list[TopicPartition]:
        """Return the assigned partitions."""
        return [TopicPartition(topic, partition) for topic, found in self.assignment for partition in found]


class ConsumerProtocol:
    """The protocol type of consumers' groups, and its types."""

    PROTOCOL_TYPE: Final = "consumer"
    ASSIGNMENT_STRATEGIES: Final = ("range", "roundrobin")
    METADATA = ConsumerProtocolMemberMetadata
    ASSIGNMENT = ConsumerProtocolMemberAssignment
