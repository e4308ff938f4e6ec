"""Reads records ahead for a thread other than the loop's, which takes them one by one without changing threads.

A :class:`Lent` holds what the loop's thread has read ahead. Only the calling thread writes ``taken``, the number of
records that it has taken; only the loop's thread writes the rest, and it moves the positions (:meth:`ReadAhead.settle`)
whenever it looks at them. So a record counts as handed out once the calling thread has it, and not before.

1. The calling thread stores the new ``taken`` first, and compares ``marks.changes`` with ``seen`` afterwards. If they
   differ, it stores the old ``taken`` again and asks the loop's thread. The loop's thread increments ``marks.changes``
   first, and reads ``taken`` afterwards. So either the loop's thread knows of the record, or it was not handed out.
2. What was not taken is lent again by the next call. If the partition is paused or withheld meanwhile, it is read again
   from what was fetched; after a seek, and of partitions that were revoked, it is dropped.
3. An error is the last thing of what is lent: the thread takes it by raising it.
"""

from itertools import islice
from typing import Generic, Literal, TypeVar

import anyio
import attrs

from ..errors import ConsumerStalled, CorruptBatch, UsageError
from ..records.batch import ConsumerRecord
from .fetch import CompletedFetch
from .record_iteration import ConsumerBatch, RecordIteration

__all__ = ("Lent", "ReadAhead")

K = TypeVar("K")
V = TypeVar("V")

_RECURRING = (ConsumerStalled, CorruptBatch, StopAsyncIteration, UsageError)
"""Errors that the next call raises again by itself."""


@attrs.define(eq=False)
class _Part(Generic[K, V]):
    """The records of one partition among those that are lent; their indexes are ``first`` to ``last - 1``."""

    fetched: CompletedFetch
    records: list[ConsumerRecord[K, V]]
    start: int
    """The position before the first of them."""
    start_epoch: int | None
    first: int
    last: int = 0
    end: int = 0
    """The position after the last of them."""
    cursor: int = 0
    """From where the fetched data is read on; markers of transactions may lie between ``end`` and this."""

    def after(self, taken: int) -> tuple[int, int | None]:
        """Return the position and its leader epoch once so many of all that is lent are taken."""
        if taken <= self.first:
            return self.start, self.start_epoch
        if taken >= self.last:
            return self.end, self.fetched.leader_epoch
        record = self.records[taken - 1]
        return record.offset + 1, record.leader_epoch

    def settle(self, finished: int, taken: int) -> None:
        """Move the position behind what was taken; what was taken and is not finished is in the user's hands."""
        place = self.fetched.ask.place
        position, epoch = self.after(taken)
        if taken < self.last or place.position is None or place.position < position:
            place.position, place.leader_epoch = position, epoch
        in_hand = max(finished, self.first) < min(taken, self.last)
        place.held = self.after(finished)[0] if in_hand else None


@attrs.define(eq=False)
class Lent(Generic[K, V]):
    """Records, or one batch, that the calling thread may take."""

    records: list[ConsumerRecord[K, V]] = attrs.field(factory=list)
    batch: ConsumerBatch[K, V] | None = None
    error: Exception | None = None
    """What follows the last record."""
    count: int = 0
    """How many records, or batches, there are; the error is not among them."""
    taken: int = 0
    """How many of them the calling thread has taken; one more than ``count`` once it has raised the error."""
    seen: int = -1
    """What ``marks.changes`` was when it was lent."""
    one_by_one: bool = False
    """Whether the user has finished a record when it takes the next one, and not only when it calls again."""
    parts: list[_Part[K, V]] = attrs.field(factory=list)
    finished: int = 0
    """How many the user has finished for certain."""
    settled: int = 0
    """What ``taken`` was when the positions were moved last."""

    @property
    def has_more(self) -> bool:
        """Whether there is a record, a batch or an error that was not taken."""
        return self.taken < self.count + (self.error is not None)


class ReadAhead(Generic[K, V]):
    """The loop's side of the reading of one consumer by another thread.

    Every method runs on the loop's thread.
    """

    def __init__(self, reads: RecordIteration[K, V]) -> None:
        self._reads, self._positions = reads, reads._positions
        self._lent: Lent[K, V] | None = None
        self._positions.lent = self

    def settle(self) -> None:
        """Move the positions behind what the calling thread has taken."""
        lent = self._lent
        if lent is None:
            return
        taken = lent.taken
        self._positions.marks.asked += taken - lent.settled
        lent.settled = taken
        finished = max(lent.finished, taken - 1) if lent.one_by_one else lent.finished
        for part in lent.parts:
            if self._is_current(part):
                part.settle(finished, taken)

    def finish(self) -> None:
        """Count what was taken as finished: the user comes for more, or has committed."""
        if self._lent is not None:
            self._lent.finished = max(self._lent.finished, self._lent.settled)

    async def lend(
        self, kind: Literal["one by one", "together", "batch"], most: int, timeout: float | None
    ) -> Lent[K, V] | None:
        """Lend up to ``most`` records, or one batch; None after ``timeout`` seconds without any.

        Records that are to be taken ``one by one`` are of one partition.

        Raises:
            CorruptBatch, ConsumerStalled, UsageError: as the iteration of the consumer does. Other errors are lent.
        """
        reads = self._reads
        self._positions.marks.changes += 1  # the calling thread has to come here from now on
        self.settle()
        self.finish()
        await reads._let_others_run()
        reads._require_open()
        lent = self._lent
        if lent is not None and lent.has_more and (lent.batch is not None) == (kind == "batch") and self._lasts(lent):
            reads._finish_in_hand()
        else:
            self._put_back()
            lent = await self._read(kind, most, timeout)
            if lent is None:
                return None
        lent.one_by_one = kind == "one by one"
        self._lent = lent
        self.settle()
        lent.seen = self._positions.marks.changes
        return lent

    def _is_current(self, part: _Part[K, V]) -> bool:
        ask = part.fetched.ask
        return ask.is_current and self._positions.get(ask.place.where) is ask.place

    def _lasts(self, lent: Lent[K, V]) -> bool:
        """Return whether all of it that was not taken can still be handed out."""
        return all(self._reads._is_readable(part.fetched) for part in lent.parts if part.last > lent.taken)

    def _put_back(self) -> None:
        """Have what was not taken read again, and what follows otherwise."""
        lent, self._lent = self._lent, None
        for part in lent.parts if lent is not None else ():
            if not self._is_current(part):
                continue
            assert lent is not None  # it has parts
            place = part.fetched.ask.place
            if lent.taken >= part.last:
                place.position = max(part.cursor, place.position or 0)
            else:
                part.fetched.rewind()

    async def _read(self, kind: str, most: int, timeout: float | None) -> Lent[K, V] | None:
        lent: Lent[K, V] = Lent()
        try:
            with anyio.move_on_after(timeout):
                while not lent.has_more:
                    reading = await self._reads._next_reading()
                    # Nothing below waits, so no cancellation comes between reading and lending.
                    if kind == "batch":
                        _add_batch(lent, reading)
                    else:
                        self._add_records(lent, reading, most)
                if kind == "together":
                    self._add_others(lent, most)
        except _RECURRING:
            raise
        except Exception as error:
            lent.error = error
        return lent if lent.has_more else None

    def _add_records(self, lent: Lent[K, V], fetched: CompletedFetch, most: int) -> None:
        """Add records of one partition: of the batch that is begun, and of those after it in the same fetch."""
        place = fetched.ask.place
        assert place.position is not None  # there are records after it
        part = _Part(fetched, lent.records, place.position, place.leader_epoch, first=lent.count, end=place.position)
        while fetched.reader is not None:
            reader = fetched.reader
            try:
                lent.records.extend(islice(reader, most - len(lent.records)))
            except Exception as error:
                lent.error = error
            part.end = place.position = reader.next_offset
            if lent.error is not None or len(lent.records) >= most:
                break
            part.end = place.position = fetched.batch_end
            fetched.reader = None
            if not self._begin_next_batch(fetched):
                break
        lent.count = len(lent.records)
        part.last = lent.count + (lent.error is not None)
        part.cursor = place.position
        if part.last > part.first:
            lent.parts.append(part)
            place.position, place.leader_epoch = part.start, part.start_epoch

    def _begin_next_batch(self, fetched: CompletedFetch) -> bool:
        """Begin the next batch of the same fetch, if that takes no time. What is used up or damaged is left as it is.

        The consumer finds that out once the records before are taken.
        """
        try:
            fetched.begun = fetched.begun or next(fetched, None)
            return fetched.begun is not None and self._reads._begin_batch(fetched)
        except CorruptBatch:
            return False

    def _add_others(self, lent: Lent[K, V], most: int) -> None:
        """Add records of other partitions that are here already."""
        while lent.error is None and lent.count < most and not self._reads._untold:
            try:
                fetched = self._reads._ready(without=[part.fetched for part in lent.parts])
            except CorruptBatch:  # it is raised again when these are taken
                return
            if fetched is None:
                return
            self._add_records(lent, fetched, most)


def _add_batch(lent: Lent[K, V], fetched: CompletedFetch) -> None:
    """Lend the batch that is begun as a whole."""
    place, reader = fetched.ask.place, fetched.reader
    if reader is None:
        return
    assert place.position is not None  # there are records after it
    end = fetched.batch_end
    lent.batch, lent.count = ConsumerBatch(place.where, reader, end, fetched.timestamp_type), 1
    part = _Part(fetched, lent.records, place.position, place.leader_epoch, first=0, last=1, end=end, cursor=end)
    lent.parts.append(part)
    fetched.reader = None
