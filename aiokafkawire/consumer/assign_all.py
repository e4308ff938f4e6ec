"""Assigns all partitions of topics to a consumer without a group."""

from collections.abc import Iterable

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.retry import Deadline
from ..types import OffsetSpec, TopicPartition
from .fetcher import Fetcher
from .subscription_state import SubscriptionState

__all__ = ("AllPartitions",)


class AllPartitions:
    """The assignment of every partition of the given topics, including partitions that are added later."""

    def __init__(self, cluster: Cluster, positions: SubscriptionState, fetcher: Fetcher, topics: Iterable[str]) -> None:
        self._cluster, self._positions, self._fetcher = cluster, positions, fetcher
        self._topics = tuple(topics)

    async def take(self, deadline: Deadline) -> None:
        """Assign the existing partitions of the topics.

        Raises:
            TopicNotReady: a topic does not exist, or its metadata is missing at the deadline.
            BrokerError: the broker returned an error, such as an invalid name or denied access.
        """
        starts: dict[TopicPartition, int | OffsetSpec | None] = {}
        for name in self._topics:
            known = await self._cluster.metadata.topic(name, deadline)
            starts |= {TopicPartition(name, partition.index): None for partition in known.partitions}
        self._positions.assign(starts)
        self._fetcher.wake()

    async def follow(self) -> None:
        """Assign partitions that are added to the topics, until cancelled."""
        snapshot = self._cluster.metadata.snapshot
        with self._cluster.metadata.following(lambda: self._topics):
            while True:
                snapshot = await self._cluster.metadata.wait_for_update(snapshot)
                self._take_new(snapshot)

    def _take_new(self, snapshot: Snapshot) -> None:
        known = set(self._positions.assigned)
        found = [
            TopicPartition(name, metadata.index)
            for name in self._topics
            if (topic := snapshot.topics.get(name)) is not None
            for metadata in topic.partitions
        ]
        appeared = [partition for partition in found if partition not in known]
        if appeared:
            self._positions.appeared(appeared)
            self._fetcher.wake()
