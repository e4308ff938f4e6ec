"""All partitions of topics, for a consumer that shares them with nobody."""

from collections.abc import Iterable

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.retry import Deadline
from ..types import OffsetSpec, TopicPartition
from .fetcher import Fetcher
from .subscription_state import SubscriptionState

__all__ = ("AllPartitions",)


class AllPartitions:
    """Has every partition of its topics read: those that there are, and those that come later."""

    def __init__(self, cluster: Cluster, positions: SubscriptionState, fetcher: Fetcher, topics: Iterable[str]) -> None:
        self._cluster, self._positions, self._fetcher = cluster, positions, fetcher
        self._topics = tuple(topics)

    async def take(self, deadline: Deadline) -> None:
        """Begin with what there is.

        Raises:
            TopicNotReady: a topic does not exist, or is not known at the deadline.
            BrokerError: the broker refuses: the name is invalid, or access is denied.
        """
        starts: dict[TopicPartition, int | OffsetSpec | None] = {}
        for name in self._topics:
            known = await self._cluster.topic(name, deadline)
            starts |= {TopicPartition(name, partition.index): None for partition in known.partitions}
        self._positions.assign(starts)
        self._fetcher.wake()

    async def follow(self) -> None:
        """Take what comes later, until cancelled."""
        snapshot = self._cluster.snapshot
        with self._cluster.following(lambda: self._topics):
            while True:
                snapshot = await self._cluster.newer(snapshot)
                self._take_new(snapshot)

    def _take_new(self, snapshot: Snapshot) -> None:
        known = set(self._positions.assigned)
        found = [
            TopicPartition(name, partition.index)
            for name in self._topics
            if (topic := snapshot.topics.get(name)) is not None
            for partition in topic.partitions
        ]
        appeared = [where for where in found if where not in known]
        if appeared:
            self._positions.appeared(appeared)
            self._fetcher.wake()
