"""The partitions in the messages of consumer groups."""

from collections.abc import Iterable
from uuid import UUID

from ...protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from .consumer_member import TopicIdPartition

__all__ = ("assignment_of", "by_topic", "owned_by")


def owned_by(request: ConsumerGroupHeartbeatRequest) -> set[TopicIdPartition] | None:
    """Return the partitions that a member reports; None if it reports none."""
    if request.topic_partitions is None:
        return None
    return {TopicIdPartition(topic.topic_id, index) for topic in request.topic_partitions for index in topic.partitions}


def by_topic(partitions: Iterable[TopicIdPartition]) -> list[tuple[UUID, list[int]]]:
    """Return the ids of the topics, each with its partitions in ascending order."""
    topics: dict[UUID, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic_id, []).append(partition.partition)
    return list(topics.items())


def assignment_of(partitions: Iterable[TopicIdPartition]) -> ConsumerGroupHeartbeatResponseAssignment:
    """Return the assignment of a response."""
    return ConsumerGroupHeartbeatResponseAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(partitions)
        ]
    )
