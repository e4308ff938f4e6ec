"""Which records the handler may have now: in order within a lane, with a limited number of calls at once."""

from collections import deque
from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, Literal, TypeAlias, TypeVar

import attrs

from ..types import TopicPartition

__all__ = ("Lanes", "Ordering", "Work")

R = TypeVar("R")

Ordering: TypeAlias = Literal["key", "partition", "none"]
"""What is handled in order: the records of a key in their partition, those of a partition, or nothing."""


@attrs.define(eq=False)
class Work(Generic[R]):
    """Records of one lane for one call of the handler."""

    partition: TopicPartition
    key: bytes | None
    """The key of its lane; None for the lane of all other records of the partition."""
    records: list[R]
    is_open: bool
    """Whether the lane's next record joins it."""
    following: "Work[R] | None" = attrs.field(default=None, repr=False)
    """The next work of an ordered lane, which waits for the end of this one."""
    attempts: int = 0
    """How often the handler was called with the records."""
    since: float = 0.0
    """When the last of these calls began."""
    revoked: bool = False
    """Whether the handler is not called again, since the partition goes to another member."""
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
        self._last: dict[TopicPartition, dict[bytes | None, Work[R]]] = {}
        """The last work of each lane; an ordered lane has one for as long as records of it are in hand."""
        self._ready: deque[Work[R]] = deque()
        self._delayed: list[tuple[float, int, Work[R]]] = []
        self._delays = 0
        self._is_closed = False
        self.running: dict[Work[R], None] = {}
        """The works that were taken, in this order, and are neither finished nor delayed."""

    def add(self, partition: TopicPartition, key: bytes | None, record: R, *, alone: bool = False) -> None:
        """Add a record, after those of its lane that were added before; ``alone`` gives it a work of its own."""
        lane = key if self._ordering == "key" else None
        lanes = self._last.get(partition)
        if lanes is None:
            lanes = self._last[partition] = {}
        last = lanes.get(lane)
        if last is not None and last.is_open and not alone:
            last.records.append(record)
            last.is_open = len(last.records) < self._max_batch
            return
        work = lanes[lane] = Work(partition, lane, [record], self._max_batch > 1 and not alone)
        if last is None or (lane is None and self._ordering != "partition"):
            self._ready.append(work)
        else:
            last.is_open, last.following = False, work

    def take(self, now: float) -> Work[R] | None:
        """Return the next work, which is running then; None if there is none, or enough are running."""
        if self._is_closed or len(self.running) >= self._concurrency:
            return None
        if self._is_due(now):
            work = heappop(self._delayed)[2]
        elif self._ready:
            work = self._ready.popleft()
        else:
            return None
        work.is_open = False
        work.attempts += 1
        work.since = now
        self.running[work] = None
        return work

    def available(self, now: float) -> int:
        """Return how many works can be taken; of the delayed ones, only the first counts."""
        if self._is_closed:
            return 0
        return min(len(self._ready) + self._is_due(now), self._concurrency - len(self.running))

    def _is_due(self, now: float) -> bool:
        return bool(self._delayed) and self._delayed[0][0] <= now

    @property
    def delayed(self) -> Iterator[Work[R]]:
        """The works that wait for another attempt."""
        return (work for _, _, work in self._delayed)

    @property
    def next_due(self) -> float | None:
        """When the next delayed work is due; None if there is none."""
        return self._delayed[0][0] if self._delayed else None

    @property
    def wake_at(self) -> float | None:
        """When a delayed work can be taken; None if that needs another event first, such as the end of a work."""
        return None if self._is_closed or len(self.running) >= self._concurrency else self.next_due

    def finish(self, work: Work[R]) -> None:
        """Let the next records of the work's lane be taken."""
        self.running.pop(work, None)
        if work.following is not None:
            self._ready.append(work.following)
            return
        lanes = self._last.get(work.partition)
        if lanes is not None and lanes.get(work.key) is work:
            del lanes[work.key]

    def delay(self, work: Work[R], until: float) -> None:
        """Take the work again at this time; only its own lane waits for it."""
        self.running.pop(work, None)
        if not work.revoked:
            self._delays += 1
            heappush(self._delayed, (until, self._delays, work))

    def drop(self, partitions: Collection[TopicPartition], *, running: bool) -> list[Work[R]]:
        """Forget the records of these partitions that are not running; return the works that are running.

        With ``running``, the results of those no longer count either.
        """
        for partition in partitions:
            self._last.pop(partition, None)
        self._ready = deque(work for work in self._ready if work.partition not in partitions)
        self._delayed = [entry for entry in self._delayed if entry[2].partition not in partitions]
        heapify(self._delayed)
        found = list(self.running_of(partitions))
        for work in found:
            work.following, work.revoked = None, True
            work.dropped = work.dropped or running
        return found

    def running_of(self, partitions: Collection[TopicPartition]) -> Iterator[Work[R]]:
        """Yield the running works of these partitions."""
        return (work for work in self.running if work.partition in partitions)

    def close(self) -> None:
        """Let no more work be taken."""
        self._is_closed = True
