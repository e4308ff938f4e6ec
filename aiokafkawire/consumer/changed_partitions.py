"""Selects the partitions that a step of the fetcher considers: all, or only those of brokers with changes.

Each response concerns the partitions of one broker. Considering all partitions after each response would take time that
grows with the square of the number of brokers.
"""

from collections.abc import Iterable
from itertools import islice

from ..cluster.metadata import Snapshot
from ..types import TopicPartition
from .read_replica import select_read_replica
from .subscription_state import PartitionState, SubscriptionState

__all__ = ("ChangedPartitions",)


class ChangedPartitions:
    """A cache of the partitions to fetch from each broker, and the dirty partitions: those with recent changes."""

    def __init__(self, positions: SubscriptionState) -> None:
        self._positions = positions
        self._by_broker: dict[int, dict[TopicPartition, PartitionState]] = {}
        # The metadata, and ``SubscriptionState.changes``, when the cache was made.
        self._snapshot: Snapshot | None = None
        self._changes = -1
        # The partitions with changes; None if all may have changed.
        self._dirty: list[PartitionState] | None = None
        self.topics: tuple[str, ...] = ()
        """The topics of all assigned partitions, including paused partitions."""

    @property
    def brokers(self) -> int:
        """The number of brokers to fetch from."""
        return len(self._by_broker)

    def any_of(self, node_id: int) -> list[PartitionState]:
        """Return a list of any one partition of the broker, to pass to :meth:`mark_dirty`; empty if it has none."""
        return list(islice(self._by_broker.get(node_id, {}).values(), 1))

    def mark_dirty(self, states: Iterable[PartitionState] = ()) -> None:
        """Mark all partitions of the brokers of ``states`` dirty; without ``states``, those of all brokers."""
        dirty = list(states)
        if not dirty:
            self._dirty = None
        elif self._dirty is not None:
            self._dirty += dirty

    def take(self, snapshot: Snapshot, now: float) -> list[PartitionState] | None:
        """Return all partitions of the brokers with a dirty partition, and clear the marks.

        None stands for all brokers, as after a change of the metadata or the assignment. ``now`` is in seconds.
        """
        dirty, self._dirty = self._dirty, []
        if dirty and snapshot is self._snapshot and self._positions.changes == self._changes:
            found = self._of_their_brokers(snapshot, dirty, now)
            if found is not None:
                return found
        self._sort(snapshot, now)
        return None

    def _of_their_brokers(
        self, snapshot: Snapshot, dirty: list[PartitionState], now: float
    ) -> list[PartitionState] | None:
        """Return all partitions of the brokers of ``dirty``; None if a partition has a new broker or needs a lookup."""
        concerned: dict[int, dict[TopicPartition, PartitionState]] = {}
        for state in dirty:
            node = select_read_replica(snapshot, state, now)
            if node is None or self._by_broker.get(node.node_id, {}).get(state.partition) is not state:
                return None
            concerned[node.node_id] = self._by_broker[node.node_id]
        found: list[PartitionState] = []
        for node_id, states in concerned.items():
            for state in states.values():
                node = select_read_replica(snapshot, state, now)
                if node is None or node.node_id != node_id or state.needs_lookup:
                    return None
                found.append(state)
        return found

    def _sort(self, snapshot: Snapshot, now: float) -> None:
        self._snapshot, self._changes, self._by_broker = snapshot, self._positions.changes, {}
        self.topics = tuple(dict.fromkeys(state.partition.topic for state in self._positions))
        for state in self._positions:
            node = select_read_replica(snapshot, state, now)
            if node is not None:
                self._by_broker.setdefault(node.node_id, {})[state.partition] = state
