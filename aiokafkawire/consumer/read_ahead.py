"""Reads records ahead for a thread other than the event loop's, which takes them one by one without a thread switch.

A :class:`Lent` holds records that the loop's thread has read ahead. Only the calling thread writes ``taken``, the
number of records that it has taken; only the loop's thread writes the other attributes, and it updates the positions
(:meth:`ReadAhead.settle`) before it uses the positions. So a record counts as handed out once the calling thread has
it, and not before.

1. The calling thread stores the new ``taken`` first, and then compares ``iterator_state.changes`` with ``seen``. If
   they differ, it restores the old ``taken`` and calls the loop's thread. The loop's thread increments
   ``iterator_state.changes`` first, and then reads ``taken``. So either the loop's thread knows of the record, or the
   record was not handed out.
2. Records that were not taken are lent again by the next call. If the partition was paused or withheld meanwhile, they
   are read again from the fetched data; after a seek or a revocation they are dropped.
3. An error follows the last record: the calling thread takes the error by raising it.
"""

from itertools import islice
from typing import Any, Generic, Literal, TypeVar

import anyio
import attrs

from ..errors import ConsumerStalled, CorruptBatch, KafkaError, UsageError
from ..records.batch import ConsumerRecord
from .completed_fetch import CompletedFetch
from .consumer_batch import ConsumerBatch
from .record_iteration import RecordIteration
from .subscription_state import SubscriptionState

__all__ = ("Lent", "ReadAhead")

K = TypeVar("K")
V = TypeVar("V")

_RECURRING = (ConsumerStalled, CorruptBatch, StopAsyncIteration, UsageError)
"""Errors that are raised at once instead of lent, since the next call raises them again in any case."""


@attrs.define(eq=False)
class _Part(Generic[K, V]):
    """The records of one partition in a :class:`Lent`; their indexes are ``first`` to ``last - 1``."""

    fetched: CompletedFetch
    records: list[ConsumerRecord[K, V]]
    start: int
    """The position before the first record."""
    start_epoch: int | None
    first: int
    last: int = 0
    end: int = 0
    """The position after the last record."""
    cursor: int = 0
    """The offset to continue from in the fetched data; transaction markers may lie between ``end`` and this offset."""

    def after(self, taken: int) -> tuple[int, int | None]:
        """Return this partition's position and leader epoch once ``taken`` records of all parts are taken."""
        if taken <= self.first:
            return self.start, self.start_epoch
        if taken >= self.last:
            return self.end, self.fetched.leader_epoch
        record = self.records[taken - 1]
        return record.offset + 1, record.leader_epoch

    def settle(self, finished: int, taken: int) -> None:
        """Move the position past the taken records of this part, and record whether some of them are unfinished.

        Both arguments count the records of all parts, from the first one on.
        """
        state = self.fetched.ask.state
        position, epoch = self.after(taken)
        if taken < self.last or state.position is None or state.position < position:
            state.position, state.leader_epoch = position, epoch
        in_hand = max(finished, self.first) < min(taken, self.last)
        state.held = self.after(finished)[0] if in_hand else None


@attrs.define(eq=False)
class Lent(Generic[K, V]):
    """Records, or one batch, that the calling thread may take."""

    records: list[ConsumerRecord[K, V]] = attrs.field(factory=list)
    batch: ConsumerBatch[K, V] | None = None
    error: Exception | None = None
    """The error after the last record."""
    count: int = 0
    """The number of records, or batches, without the error."""
    taken: int = 0
    """The number of records, or batches, that the calling thread has taken; ``count + 1`` after raising the error."""
    seen: int = -1
    """The value of ``iterator_state.changes`` when the records were lent."""
    one_by_one: bool = False
    """Whether taking a record finishes the record before; otherwise only the next call finishes records."""
    parts: list[_Part[K, V]] = attrs.field(factory=list)
    finished: int = 0
    """The number of records that the user has certainly finished."""
    settled: int = 0
    """The value of ``taken`` when the positions were last moved."""

    @property
    def has_more(self) -> bool:
        """Whether a record, a batch or an error was not taken yet."""
        return self.taken < self.count + (self.error is not None)


class ReadAhead(Generic[K, V]):
    """The event loop's side of reading one consumer from another thread; its methods run on the loop's thread."""

    def __init__(self, reads: RecordIteration[K, V], positions: SubscriptionState) -> None:
        self._reads, self._positions = reads, positions
        self._lent: Lent[K, V] | None = None
        self._positions.lent = self

    def settle(self) -> None:
        """Move the positions past the records that the calling thread has taken."""
        lent = self._lent
        if lent is None:
            return
        taken = lent.taken
        self._positions.iterator_state.polls += taken - lent.settled
        lent.settled = taken
        finished = max(lent.finished, taken - 1) if lent.one_by_one else lent.finished
        for part in lent.parts:
            if self._is_current(part):
                part.settle(finished, taken)

    def taken(self) -> tuple[Lent[K, V] | None, int]:
        """Return the records that are lent, and how many of them were taken when the positions were settled last."""
        return self._lent, 0 if self._lent is None else self._lent.settled

    def finish(self, taken: tuple[Any, int] | None = None) -> None:
        """Mark the taken records as finished: the user has polled, or has committed them when these were ``taken``."""
        lent, settled = self.taken() if taken is None else taken
        if lent is not None:
            lent.finished = max(lent.finished, settled)

    async def lend(
        self, unit: Literal["one by one", "together", "batch"], max_records: int, timeout: float | None
    ) -> Lent[K, V] | None:
        """Lend up to ``max_records`` records, or one batch; return None if nothing arrives within ``timeout`` seconds.

        With ``one by one``, all records are of one partition. Errors other than those below are part of the result.

        Raises:
            CorruptBatch, ConsumerStalled, UsageError: as the iteration of the consumer does.
        """
        reads = self._reads
        self._positions.iterator_state.changes += 1  # makes the calling thread call the loop's thread from now on
        self.settle()
        self.finish()
        await reads.let_others_run()
        reads.require_open()
        lent = self._lent
        if lent is not None and lent.has_more and (lent.batch is not None) == (unit == "batch") and self._lasts(lent):
            reads.finish_in_hand()
        else:
            self._put_back()
            lent = await self._read(unit, max_records, timeout)
            if lent is None:
                return None
        lent.one_by_one = unit == "one by one"
        self._lent = lent
        self.settle()
        lent.seen = self._positions.iterator_state.changes
        return lent

    def _is_current(self, part: _Part[K, V]) -> bool:
        ask = part.fetched.ask
        return ask.is_current and self._positions.get(ask.state.partition) is ask.state

    def _lasts(self, lent: Lent[K, V]) -> bool:
        """Return whether all records that were not taken can still be handed out."""
        return all(self._reads.is_readable(part.fetched) for part in lent.parts if part.last > lent.taken)

    def _put_back(self) -> None:
        """Rewind the data of partitions with records that were not taken; move other positions past the records."""
        lent, self._lent = self._lent, None
        for part in lent.parts if lent is not None else ():
            if not self._is_current(part):
                continue
            assert lent is not None  # it has parts, so it exists
            state = part.fetched.ask.state
            if lent.taken >= part.last:
                state.position = max(part.cursor, state.position or 0)
            else:
                part.fetched.rewind()

    async def _read(self, unit: str, max_records: int, timeout: float | None) -> Lent[K, V] | None:
        lent: Lent[K, V] = Lent()
        try:
            with anyio.move_on_after(timeout):
                while not lent.has_more:
                    reading = await self._reads.next_reading()
                    # Nothing below waits, so no cancellation comes between reading and lending.
                    if unit == "batch":
                        _add_batch(lent, reading)
                    else:
                        self._add_records(lent, reading, max_records)
                if unit == "together":
                    self._add_others(lent, max_records)
        except _RECURRING:
            raise
        except Exception as error:
            lent.error = error
        return lent if lent.has_more else None

    def _add_records(self, lent: Lent[K, V], fetched: CompletedFetch, max_records: int) -> None:
        """Add records of one partition: of the current batch, and of the following batches of the same fetch."""
        state = fetched.ask.state
        assert state.position is not None  # there are records after it
        part = _Part(fetched, lent.records, state.position, state.leader_epoch, first=lent.count, end=state.position)
        while fetched.reader is not None:
            reader = fetched.reader
            try:
                lent.records.extend(islice(reader, max_records - len(lent.records)))
            except Exception as error:
                lent.error = error
            part.end = state.position = reader.next_offset
            if lent.error is not None or len(lent.records) >= max_records:
                break
            part.end = state.position = fetched.batch_end
            fetched.reader = None
            if not self._begin_next_batch(fetched):
                break
        lent.count = len(lent.records)
        part.last = lent.count + (lent.error is not None)
        part.cursor = state.position
        if part.last > part.first:
            lent.parts.append(part)
            state.position, state.leader_epoch = part.start, part.start_epoch

    def _begin_next_batch(self, fetched: CompletedFetch) -> bool:
        """Start the next batch of the same fetch without waiting, and return whether it was started.

        At the end of the data, at a damaged batch, and at records that are not deserialized yet, it is not:
        :meth:`lend` handles these later.
        """
        try:
            fetched.begun = fetched.begun or next(fetched, None)
            return fetched.begun is not None and self._reads.begin_batch(fetched)
        except KafkaError:
            return False

    def _add_others(self, lent: Lent[K, V], max_records: int) -> None:
        """Add fetched records of other partitions."""
        while lent.error is None and lent.count < max_records and not self._reads.pending_errors:
            try:
                fetched = self._reads.ready(without=[part.fetched for part in lent.parts])
            except KafkaError:  # raised again when these are taken
                return
            if fetched is None:
                return
            self._add_records(lent, fetched, max_records)


def _add_batch(lent: Lent[K, V], fetched: CompletedFetch) -> None:
    """Lend the current batch as a whole."""
    state, reader = fetched.ask.state, fetched.reader
    if reader is None:
        return
    assert state.position is not None  # there are records after it
    end = fetched.batch_end
    lent.batch, lent.count = ConsumerBatch(state.partition, reader, end, fetched.timestamp_type), 1
    part = _Part(fetched, lent.records, state.position, state.leader_epoch, first=0, last=1, end=end, cursor=end)
    lent.parts.append(part)
    fetched.reader = None
