"""Which partitions a step of the fetcher looks at: all, or only those of brokers that something has happened to.

With a thousand brokers there are thousands of answers, and each concerns one broker. To look at all partitions for each
would take time that grows with the square of their number.
"""

from collections.abc import Iterable
from itertools import islice

from ..cluster.metadata import Snapshot
from ..types import TopicPartition
from .preferred_replica import source
from .subscription_state import PartitionState, SubscriptionState

__all__ = ("FetchScope",)


class FetchScope:
    """Remembers which places each broker is asked for, as long as nothing changes that."""

    def __init__(self, positions: SubscriptionState) -> None:
        self._positions = positions
        self._by_broker: dict[int, dict[TopicPartition, PartitionState]] = {}
        # What that was found by.
        self._snapshot: Snapshot | None = None
        self._changes = -1
        # None for all of them.
        self._touched: list[PartitionState] | None = None
        self.topics: tuple[str, ...] = ()
        """The topics of all places; those that are paused, too."""

    @property
    def brokers(self) -> int:
        """How many brokers there are to read from."""
        return len(self._by_broker)

    def one_of(self, node_id: int) -> list[PartitionState]:
        """Return one of the places that this broker is asked for, if there is one: to look at it is to look at all."""
        return list(islice(self._by_broker.get(node_id, {}).values(), 1))

    def turn_to(self, places: Iterable[PartitionState] = ()) -> None:
        """Something has happened to these, and may concern others of their brokers; without any, to all."""
        touched = list(places)
        if not touched:
            self._touched = None
        elif self._touched is not None:
            self._touched += touched

    def take(self, snapshot: Snapshot, now: float) -> list[PartitionState] | None:
        """What to look at now, all places of each broker that is concerned; None for everything.

        ``now`` is in seconds.
        """
        touched, self._touched = self._touched, []
        if touched and snapshot is self._snapshot and self._positions.changes == self._changes:
            found = self._of_their_brokers(snapshot, touched, now)
            if found is not None:
                return found
        self._sort(snapshot, now)
        return None

    def _of_their_brokers(
        self, snapshot: Snapshot, touched: list[PartitionState], now: float
    ) -> list[PartitionState] | None:
        """None if something is not as it was: another replica is read, or a position has to be looked up."""
        concerned: dict[int, dict[TopicPartition, PartitionState]] = {}
        for place in touched:
            node = source(snapshot, place, now)
            if node is None or self._by_broker.get(node.node_id, {}).get(place.where) is not place:
                return None
            concerned[node.node_id] = self._by_broker[node.node_id]
        found: list[PartitionState] = []
        for node_id, places in concerned.items():
            for place in places.values():
                node = source(snapshot, place, now)
                if node is None or node.node_id != node_id or place.wants_lookup:
                    return None
                found.append(place)
        return found

    def _sort(self, snapshot: Snapshot, now: float) -> None:
        self._snapshot, self._changes, self._by_broker = snapshot, self._positions.changes, {}
        self.topics = tuple(dict.fromkeys(place.where.topic for place in self._positions))
        for place in self._positions:
            node = source(snapshot, place, now)
            if node is not None:
                self._by_broker.setdefault(node.node_id, {})[place.where] = place
