"""Removal of followers from the in-sync replicas when they lag for too long."""

from collections.abc import Callable
from functools import partial

from .replicas import HostedPartition
from .timers import Timer, Timers

__all__ = ("ReplicaLag",)


class ReplicaLag:
    """The timers for followers that lag; at the end of its timer a follower leaves the in-sync replicas.

    Args:
        timers: the cluster's timers.
        seconds: the permitted lag (``replica.lag.time.max.ms``).
        expelled: called with a partition whose in-sync replicas shrank.
    """

    def __init__(self, timers: Timers, seconds: float, expelled: Callable[[HostedPartition], None]) -> None:
        self._timers = timers
        self._seconds = seconds
        self._expelled = expelled
        self._timed: dict[HostedPartition, dict[int, Timer]] = {}

    def check(self, partition: HostedPartition) -> None:
        """Start a timer for each in-sync follower that began to lag; cancel the timers of those that caught up."""
        timed = self._timed.get(partition)
        lagging = partition.lagging
        if not lagging and timed is None:
            return
        timed = self._timed.setdefault(partition, {})
        for node in [node for node in timed if node not in lagging]:
            timed.pop(node).cancel()
        for node in lagging:
            if node not in timed:
                timed[node] = self._timers.after(self._seconds, partial(self._expel, partition, node))
        if not timed:
            del self._timed[partition]

    def start(self) -> None:
        """Restart the timers, when the cluster is opened."""
        timed, self._timed = self._timed, {}
        for partition, timers in timed.items():
            for timer in timers.values():
                timer.cancel()
            self.check(partition)

    def forget(self, partition: HostedPartition) -> None:
        """Cancel the timers of a deleted partition."""
        for timer in self._timed.pop(partition, {}).values():
            timer.cancel()

    def _expel(self, partition: HostedPartition, node: int) -> None:
        self._timed[partition].pop(node, None)
        if partition.expel(node):
            self._expelled(partition)
