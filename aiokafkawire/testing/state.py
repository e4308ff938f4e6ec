"""What the request handlers work on: the cluster that all nodes share, and the node that was asked."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from uuid import UUID

import attrs

from ..protocol.schema import Versions
from .arrivals import Arrivals
from .topics import Topic, Topics

__all__ = ("ClusterState", "Node", "Settings")


@attrs.frozen
class Settings:
    """The brokers' settings, under Kafka's property names."""

    auto_create_topics_enable: bool = True
    num_partitions: int = 1
    message_max_bytes: int = 1_048_588
    fetch_max_bytes: int = 57_671_680
    message_timestamp_after_max_ms: int = 3_600_000  # KIP-1030


class ClusterState:
    """Everything that outlives a connection: topics and their logs, producer ids, who waits for records.

    ``clock`` gives the time in ms since the epoch.
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
        self.topics: Topics = Topics([node.node_id for node in nodes], new_topic_id, settings.num_partitions)
        self.arrivals: Arrivals = Arrivals()
        self._producer_ids = count()

    @property
    def controller_id(self) -> int:
        """The node that metadata names as the controller."""
        return self.nodes[0].node_id

    def next_producer_id(self) -> int:
        """A producer id that nobody has had."""
        return next(self._producer_ids)

    def delete_topic(self, topic: Topic) -> None:
        """Forget a topic, and let those who wait for its records find out."""
        self.topics.delete(topic)
        for partition in topic.partitions:
            self.arrivals.notify(partition.log)


@attrs.define(eq=False)
class Node:
    """One broker of the cluster: its id, where it can be reached, and what it says that it speaks."""

    node_id: int
    host: str
    port: int
    advertised: Mapping[int, Versions]
    cluster: ClusterState = attrs.field(init=False, repr=False)
