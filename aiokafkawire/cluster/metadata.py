"""What is known of the cluster: immutable snapshots, each made from the one before and a Metadata response."""

from collections.abc import Mapping
from uuid import UUID

import attrs

from ..errors import ErrorCode
from ..protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from ..protocol.primitives import ZERO_UUID
from ..types import Address, TopicPartition

__all__ = ("EMPTY", "Node", "Partition", "Snapshot", "Topic", "merge")


@attrs.frozen
class Node:
    """A broker, and where it listens."""

    node_id: int
    address: Address
    rack: str | None = None


@attrs.frozen
class Partition:
    """A partition: ``leader`` is None while nobody leads; ``leader_epoch`` is -1 where the broker does not say."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@attrs.frozen
class Topic:
    """A topic, or with an ``error`` other than 0 why it is not known. ``partitions`` are in order of their index."""

    name: str
    topic_id: UUID
    error: int
    partitions: tuple[Partition, ...]
    is_internal: bool = False


@attrs.frozen
class Snapshot:
    """The cluster at one moment. ``generation`` grows by one with each."""

    generation: int
    cluster_id: str | None
    controller_id: int
    nodes: Mapping[int, Node]
    topics: Mapping[str, Topic]
    topic_names: Mapping[UUID, str]
    updated_at: float

    def partition(self, where: TopicPartition) -> Partition | None:
        """The partition, if it is known."""
        topic = self.topics.get(where.topic)
        if topic is None or not 0 <= where.partition < len(topic.partitions):
            return None
        return topic.partitions[where.partition]

    def leader(self, where: TopicPartition) -> Node | None:
        """The broker that leads the partition, if both are known."""
        partition = self.partition(where)
        return self.nodes.get(partition.leader) if partition is not None and partition.leader is not None else None

    def topic_id(self, topic: str) -> UUID:
        """The topic's id; all zeros where the brokers have none (before 2.8)."""
        known = self.topics.get(topic)
        return known.topic_id if known is not None else ZERO_UUID


EMPTY = Snapshot(0, None, -1, {}, {}, {}, float("-inf"))
"""Nothing is known yet."""


def merge(before: Snapshot, response: MetadataResponse, now: float) -> Snapshot:
    """The next snapshot: what the response says, unless we know of a newer leader already.

    A broker that lags behind may still name the leader before the last; its epoch tells (KIP-320).
    """
    nodes = {one.node_id: Node(one.node_id, Address(one.host, one.port), one.rack) for one in response.brokers}
    topics = {}
    for answered in response.topics:
        if answered.name is not None:
            topics[answered.name] = _topic(answered, answered.name, before.topics.get(answered.name))
    return Snapshot(
        generation=before.generation + 1,
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes=nodes,
        topics=topics,
        topic_names={one.topic_id: name for name, one in topics.items() if one.topic_id != ZERO_UUID},
        updated_at=now,
    )


def _topic(answered: MetadataResponseTopic, name: str, known: Topic | None) -> Topic:
    # A topic that was deleted and made again has a new id, and epochs that begin anew.
    same = known is not None and known.topic_id == answered.topic_id
    older = known.partitions if known is not None and same else ()
    ordered = sorted(answered.partitions, key=lambda one: one.partition_index)
    if [one.partition_index for one in ordered] != list(range(len(ordered))):
        # Positions are indexes everywhere else: a list with holes names no partition that can be trusted.
        return Topic(name, answered.topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())
    partitions = tuple(_partition(one, older) for one in ordered)
    return Topic(name, answered.topic_id, answered.error_code, partitions, answered.is_internal)


def _partition(answered: MetadataResponsePartition, older: tuple[Partition, ...]) -> Partition:
    index = answered.partition_index
    if index < len(older) and -1 < answered.leader_epoch < older[index].leader_epoch:
        return older[index]
    return Partition(
        index=index,
        leader=answered.leader_id if answered.leader_id >= 0 else None,
        leader_epoch=answered.leader_epoch,
        replicas=tuple(answered.replica_nodes),
        in_sync=tuple(answered.isr_nodes),
    )
