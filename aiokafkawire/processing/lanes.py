"""Which records the handler may have now: in order within a lane, with a limited number of calls at once."""

from collections import deque
from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import attrs

from ..types import TopicPartition

__all__ = ("Lanes", "Ordering", "Work")

R = TypeVar("R")

Ordering: TypeAlias = Literal["key", "partition", "none"]
"""What is handled in order: the records of a key in their partition, those of a partition, or nothing."""


@attrs.define(eq=False)
class _Lane(Generic[R]):
    """Records that wait to be handled: one after the other if the lane is ``ordered``."""

    id: tuple[TopicPartition, bytes | None]
    ordered: bool
    waiting: deque[tuple[R, bool]] = attrs.field(factory=deque)
    busy: bool = False
    """Whether records of an ordered lane are being handled, or wait to be handled again."""
    dropped: bool = False


@attrs.define(eq=False)
class Work(Generic[R]):
    """Records of one lane for one call of the handler."""

    partition: TopicPartition
    records: list[R]
    lane: _Lane[R] = attrs.field(repr=False)
    attempts: int = 0
    """How often the handler was called with the records."""
    dropped: bool = False
    """Whether the result no longer counts, since the partition was lost."""


class Lanes(Generic[R]):
    """The records in hand, by lane.

    A record whose ordering has no key, as with ``"none"`` or a null key, is in an unordered lane of its partition.

    Args:
        ordering: what is handled in order.
        concurrency: the largest number of works at once.
        max_batch: the largest number of records in one work.
    """

    def __init__(self, ordering: Ordering, concurrency: int, max_batch: int = 1) -> None:
        self._ordering, self._concurrency, self._max_batch = ordering, concurrency, max_batch
        self._lanes: dict[TopicPartition, dict[bytes | None, _Lane[R]]] = {}
        self._ready: deque[_Lane[R]] = deque()
        self._delayed: list[tuple[float, int, Work[R]]] = []
        self._delays = 0
        self._is_closed = False
        self.running: dict[Work[R], None] = {}
        """The works that were taken, in this order, and are neither finished nor delayed."""

    def add(self, partition: TopicPartition, key: bytes | None, record: R, *, alone: bool = False) -> None:
        """Add a record, after those of its lane that were added before; ``alone`` gives it a work of its own."""
        lane_key = key if self._ordering == "key" else None
        lanes = self._lanes.setdefault(partition, {})
        lane = lanes.get(lane_key)
        if lane is None:
            ordered = self._ordering == "partition" or lane_key is not None
            lane = lanes[lane_key] = _Lane((partition, lane_key), ordered)
        lane.waiting.append((record, alone))
        if len(lane.waiting) == 1 and not lane.busy:
            self._ready.append(lane)

    def take(self, now: float) -> Work[R] | None:
        """Return the next work, which is running then; None if there is none, or enough are running."""
        if self._is_closed or len(self.running) >= self._concurrency:
            return None
        work = self._due(now) or self._first_ready()
        if work is not None:
            work.attempts += 1
            self.running[work] = None
        return work

    def _due(self, now: float) -> Work[R] | None:
        due = self.next_due
        return heappop(self._delayed)[2] if due is not None and due <= now else None

    def _first_ready(self) -> Work[R] | None:
        while self._ready:
            lane = self._ready.popleft()
            if lane.dropped:
                continue
            work = Work(lane.id[0], self._batch(lane.waiting), lane)
            lane.busy = lane.ordered
            if lane.waiting and not lane.busy:
                self._ready.append(lane)
            self._discard_if_empty(lane)
            return work
        return None

    def _batch(self, waiting: deque[tuple[R, bool]]) -> list[R]:
        record, alone = waiting.popleft()
        batch = [record]
        while not alone and waiting and len(batch) < self._max_batch and not waiting[0][1]:
            batch.append(waiting.popleft()[0])
        return batch

    @property
    def next_due(self) -> float | None:
        """When the next delayed work is due; None if there is none."""
        while self._delayed and self._delayed[0][2].dropped:
            heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    @property
    def wake_at(self) -> float | None:
        """When a delayed work can be taken; None if that needs another event first, such as the end of a work."""
        return None if self._is_closed or len(self.running) >= self._concurrency else self.next_due

    def finish(self, work: Work[R]) -> None:
        """Let the next records of the work's lane be taken."""
        self.running.pop(work, None)
        lane = work.lane
        if lane.ordered and not lane.dropped:
            lane.busy = False
            if lane.waiting:
                self._ready.append(lane)
            self._discard_if_empty(lane)

    def delay(self, work: Work[R], until: float) -> None:
        """Take the work again at this time; only its own lane waits for it."""
        self.running.pop(work, None)
        if not work.dropped and not work.lane.dropped:
            self._delays += 1
            heappush(self._delayed, (until, self._delays, work))

    def drop(self, partitions: Collection[TopicPartition], *, running: bool) -> list[Work[R]]:
        """Forget the records of these partitions that are not running; return the works that are running.

        With ``running``, the results of those no longer count either.
        """
        for partition in partitions:
            for lane in self._lanes.pop(partition, {}).values():
                lane.dropped = True
                lane.waiting.clear()
        for _, _, delayed in self._delayed:
            delayed.dropped = delayed.dropped or delayed.partition in partitions
        found = list(self.running_of(partitions))
        for work in found:
            work.lane.dropped = True
            work.dropped = work.dropped or running
        return found

    def running_of(self, partitions: Collection[TopicPartition]) -> Iterator[Work[R]]:
        """Yield the running works of these partitions."""
        return (work for work in self.running if work.partition in partitions)

    def close(self) -> None:
        """Let no more work be taken."""
        self._is_closed = True

    def _discard_if_empty(self, lane: _Lane[Any]) -> None:
        if not lane.waiting and not lane.busy:
            partition, key = lane.id
            lanes = self._lanes.get(partition)
            if lanes is not None and lanes.get(key) is lane:
                del lanes[key]
                if not lanes:
                    del self._lanes[partition]
