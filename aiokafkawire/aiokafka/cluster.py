"""aiokafka's view of the cluster's metadata, which is read from this client's snapshots."""

from collections.abc import Callable

from ..cluster.metadata import Partition, Snapshot
from ..types import TopicPartition
from .structs import BrokerMetadata

__all__ = ("ClusterMetadata",)


class ClusterMetadata:
    """The brokers, topics and partitions that the client knows.

    Args:
        snapshot: returns the present metadata.
    """

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    @property
    def controller(self) -> BrokerMetadata | None:
        """The controller; None if it is not known."""
        return self.broker_metadata(self._snapshot().controller_id)

    def brokers(self) -> set[BrokerMetadata]:
        """Return all brokers."""
        nodes = self._snapshot().nodes.values()
        return {BrokerMetadata(node.node_id, node.address.host, node.address.port, node.rack) for node in nodes}

    def broker_metadata(self, broker_id: int) -> BrokerMetadata | None:
        """Return a broker; None if it is not known."""
        node = self._snapshot().nodes.get(broker_id)
        return None if node is None else BrokerMetadata(node.node_id, node.address.host, node.address.port, node.rack)

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """Return the names of the topics in the metadata, which are those in use."""
        topics = self._snapshot().topics.values()
        return {one.name for one in topics if one.partitions and not (exclude_internal_topics and one.is_internal)}

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic; None if the topic is not known."""
        partitions = self._partitions(topic)
        return {one.index for one in partitions} if partitions else None

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic that have a leader; None if the topic is not known."""
        partitions = self._partitions(topic)
        return {one.index for one in partitions if one.leader is not None} if partitions else None

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """Return the id of a partition's leader: -1 if it has none, None if the partition is not known."""
        known = self._snapshot().partition(partition)
        if known is None:
            return None
        return -1 if known.leader is None else known.leader

    def partitions_for_broker(self, broker_id: int) -> set[TopicPartition] | None:
        """Return the partitions that a broker leads; None if it leads none."""
        topics = self._snapshot().topics.values()
        led = {
            TopicPartition(topic.name, one.index)
            for topic in topics
            for one in topic.partitions
            if one.leader == broker_id
        }
        return led or None

    def _partitions(self, topic: str) -> tuple[Partition, ...]:
        known = self._snapshot().topics.get(topic)
        return () if known is None else known.partitions

    def __str__(self) -> str:
        snapshot = self._snapshot()
        return f"ClusterMetadata(brokers: {len(snapshot.nodes)}, topics: {len(snapshot.topics)})"
