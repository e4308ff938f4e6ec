"""Descriptions of topics from the responses to Metadata and DescribeTopicPartitions."""

from collections.abc import Collection, Sequence
from typing import TypeAlias
from uuid import UUID

from ..errors import KafkaError, WireError
from ..protocol.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
    TopicRequest,
)
from .group_descriptions import authorized_operations
from .response_errors import error_of
from .topic_descriptions import PartitionDescription, TopicDescription
from .topic_messages import TopicKey

__all__ = ("TopicPages", "described_topics", "ids_request", "names_request", "page_request")

_Outcome: TypeAlias = TopicDescription | KafkaError


# --- Metadata ------------------------------------------------------------------------------------------------------


def names_request(names: Sequence[str], *, operations: bool) -> MetadataRequest:
    """Return the Metadata request for topics by name, which creates no topic."""
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=operations,
    )


def ids_request(ids: Sequence[UUID], *, operations: bool) -> MetadataRequest:
    """Return the Metadata request for topics by id (KIP-516)."""
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=operations,
    )


def described_topics(requested: Collection[TopicKey], response: MetadataResponse) -> dict[TopicKey, _Outcome]:
    """Return the description or the error of each requested topic, by name or id as it was requested."""
    found: dict[TopicKey, _Outcome] = {}
    wanted = set(requested)
    for topic in response.topics:
        for key in (topic.topic_id, topic.name):
            if key is not None and key in wanted:
                found[key] = error_of(topic.error_code, f"describing topic {str(key)!r}") or _described(topic)
    return found


def _described(topic: MetadataResponseTopic) -> TopicDescription:
    return TopicDescription(
        topic.name or "",
        topic.topic_id,
        topic.is_internal,
        tuple(_partition(one) for one in sorted(topic.partitions, key=lambda one: one.partition_index)),
        authorized_operations(topic.topic_authorized_operations),
    )


def _partition(partition: MetadataResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id if partition.leader_id >= 0 else None,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
    )


# --- DescribeTopicPartitions ---------------------------------------------------------------------------------------


def page_request(names: Sequence[str], cursor: Cursor | None) -> DescribeTopicPartitionsRequest:
    """Return the request for the next partitions of topics, up to as many as the broker permits (KIP-966)."""
    # Brokers return topics in the order of their names.
    left = [name for name in names if cursor is None or name >= cursor.topic_name]
    return DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in left], cursor=cursor)


class TopicPages:
    """The topics in the responses to DescribeTopicPartitions, of which one may end within a topic."""

    def __init__(self, requested: Sequence[str], *, operations: bool) -> None:
        self._requested, self._operations = list(requested), operations
        self._topics: dict[str, DescribeTopicPartitionsResponseTopic] = {}
        self._partitions: dict[str, dict[int, PartitionDescription]] = {}
        self.cursor: Cursor | None = None
        """The beginning of the next page; None if there is no next page."""

    def add(self, response: DescribeTopicPartitionsResponse) -> None:
        """Add the next page.

        Raises:
            WireError: the broker repeats the cursor, so that the pages would never end.
        """
        for topic in response.topics:
            name = topic.name or ""
            self._topics[name] = topic
            partitions = self._partitions.setdefault(name, {})
            partitions.update({one.partition_index: _partition_with_elr(one) for one in topic.partitions})
            topic.partitions = []
        before, self.cursor = self.cursor, response.next_cursor
        if self.cursor is not None and self.cursor == before:
            raise WireError(f"the DescribeTopicPartitions response repeats its cursor, {self.cursor}")

    def outcomes(self) -> dict[TopicKey, _Outcome]:
        """Return the description or the error of each requested topic."""
        return {name: self._outcome(name) for name in self._requested}

    def _outcome(self, name: str) -> _Outcome:
        topic = self._topics.get(name)
        if topic is None:
            return WireError(f"the DescribeTopicPartitions response lacks the requested topic {name!r}")
        error = error_of(topic.error_code, f"describing topic {name!r}")
        if error is not None:
            return error
        partitions = self._partitions[name]
        # The broker always sends the operations.
        allowed = authorized_operations(topic.topic_authorized_operations) if self._operations else None
        in_order = tuple(partitions[index] for index in sorted(partitions))
        return TopicDescription(name, topic.topic_id, topic.is_internal, in_order, allowed)


def _partition_with_elr(partition: DescribeTopicPartitionsResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id if partition.leader_id >= 0 else None,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        tuple(partition.eligible_leader_replicas or ()),
        tuple(partition.last_known_elr or ()),
    )
