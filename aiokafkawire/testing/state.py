"""What the request handlers work on: the cluster that all nodes share, and the node that was asked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from uuid import UUID

import attrs

from ..errors import ErrorCode
from ..protocol.schema import Versions
from .arrivals import Arrivals
from .refused import Refused
from .replicas import NO_LEADER, Partition
from .timers import Timers
from .topics import Topic, Topics

__all__ = ("ClusterState", "Node", "Settings")

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"


@attrs.frozen
class Settings:
    """The brokers' settings, under Kafka's property names."""

    auto_create_topics_enable: bool = True
    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    message_max_bytes: int = 1_048_588
    fetch_max_bytes: int = 57_671_680
    message_timestamp_after_max_ms: int = 3_600_000  # KIP-1030
    offsets_topic_num_partitions: int = 50
    transaction_state_log_num_partitions: int = 50


class ClusterState:
    """Everything that outlives a connection: topics and their logs, producer ids, who waits for records.

    ``clock`` gives the time in ms since the epoch; ``timers`` runs on the loop's own.
    """

    def __init__(
        self,
        cluster_id: str,
        nodes: "Sequence[Node]",
        settings: Settings,
        *,
        clock: Callable[[], int],
        new_topic_id: Callable[[], UUID],
    ) -> None:
        self.cluster_id = cluster_id
        self.nodes = nodes
        self.settings = settings
        self.clock = clock
        self.timers: Timers = Timers()
        self.topics: Topics = Topics(
            [node.node_id for node in nodes], new_topic_id, settings.num_partitions, settings.default_replication_factor
        )
        self.arrivals: Arrivals = Arrivals()
        self._producer_ids = count()

    @property
    def alive(self) -> "list[Node]":
        """The nodes that run."""
        return [node for node in self.nodes if node.alive]

    @property
    def controller_id(self) -> int:
        """The node that metadata names as the controller: the first that runs."""
        return next((node.node_id for node in self.alive), NO_LEADER)

    def node(self, node_id: int) -> "Node":
        """The node of that id.

        Raises:
            KeyError: there is none.
        """
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        raise KeyError(f"no broker {node_id}: there are {', '.join(str(one.node_id) for one in self.nodes)}")

    def next_producer_id(self) -> int:
        """A producer id that nobody has had."""
        return next(self._producer_ids)

    # --- partitions --------------------------------------------------------------------------------------------

    def changed(self, partition: Partition) -> None:
        """Tell those who wait on a partition that records came, more are committed, or another leads."""
        self.arrivals.notify(partition.log)

    def move_leader(self, partition: Partition, node_id: int, *, unclean: bool = False) -> None:
        """Have another replica lead. Raises Refused as :meth:`Partition.elect`."""
        partition.elect(node_id, unclean=unclean)
        self.changed(partition)

    def node_stopped(self, node: "Node") -> None:
        """A node is gone: others lead where it led."""
        node.alive = False
        self._all_changed(self.topics.node_stopped(node.node_id))

    def node_started(self, node: "Node") -> None:
        """A node is back."""
        node.alive = True
        self._all_changed(self.topics.node_started(node.node_id))

    def _all_changed(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self.changed(partition)

    def delete_topic(self, topic: Topic) -> None:
        """Forget a topic, and let those who wait for its records find out."""
        self.topics.delete(topic)
        self._all_changed(topic.partitions)

    # --- coordinators ------------------------------------------------------------------------------------------

    def coordinator_partition(self, topic: str, key: str) -> Partition:
        """The partition of one of the brokers' own topics that a group or transactional id belongs to.

        Its leader is the coordinator. The topic is made when it is first needed, as Kafka does.
        """
        found = self.topics.get(topic)
        if found is None:
            partitions = {
                OFFSETS_TOPIC: self.settings.offsets_topic_num_partitions,
                TRANSACTIONS_TOPIC: self.settings.transaction_state_log_num_partitions,
            }[topic]
            copies = min(3, len(self.nodes))
            found = self.topics.create(topic, num_partitions=partitions, replication_factor=copies)
        return found.partitions[(java_hash(key) & 0x7FFF_FFFF) % len(found.partitions)]

    def check_coordinator(self, node: "Node", topic: str, key: str) -> None:
        """Whether this node is the coordinator of a group (``OFFSETS_TOPIC``) or transactional id.

        Raises:
            Refused: NOT_COORDINATOR.
        """
        if self.coordinator_partition(topic, key).leader != node.node_id:
            raise Refused(ErrorCode.NOT_COORDINATOR)


def java_hash(text: str) -> int:
    """What Java's ``String.hashCode`` gives, as an unsigned int."""
    value = 0
    data = text.encode("utf-16-be")
    for index in range(0, len(data), 2):
        value = (31 * value + (data[index] << 8) + data[index + 1]) & 0xFFFF_FFFF
    return value


@attrs.define(eq=False)
class Node:
    """One broker of the cluster: its id, where it can be reached, and what it says that it speaks."""

    node_id: int
    host: str
    port: int
    advertised: Mapping[int, Versions]
    rack: str | None = None
    alive: bool = True
    cluster: ClusterState = attrs.field(init=False, repr=False)

    def led(self, topic: str, index: int) -> Partition:
        """One partition that this node leads.

        Raises:
            Refused: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.
        """
        partition = self.cluster.topics.partition(topic, index)
        partition.check_leader(self.node_id)
        return partition
