"""Hands out a consumer's records to any number of tasks, singly or by partition, as aiokafka's consumer does."""

import asyncio
from collections.abc import Callable, Collection
from itertools import islice
from typing import Any, Final, TypeAlias

import anyio

from ... import errors as own
from ...consumer.completed_fetch import CompletedFetch
from ...consumer.consumer import Consumer
from ...records import ConsumerRecord as RawRecord
from ...runtime import current_task, has_ended
from ...types import TopicPartition
from ..error_translation import translated
from ..errors import NoOffsetForPartitionError
from ..records import ConsumerRecord, wrap, wrap_all

__all__ = ("Deserializer", "SharedReader")

Deserializer: TypeAlias = Callable[[Any], Any] | None
"""A function that is called with the bytes of a key or value, also with None for a null one."""

_BETWEEN_PAUSES: Final = 64
"""The number of records between two looks at the clock, to let other tasks run."""


class SharedReader:
    """The records of one consumer.

    A record is finished, so that auto-commit covers it, once any task requests another record: of any partition, or of
    its partition if the request names some.

    Args:
        consumer: the consumer, which has no deserializers.
        key_deserializer, value_deserializer: convert keys and values; None for bytes.
    """

    def __init__(
        self, consumer: Consumer[bytes, bytes], key_deserializer: Deserializer, value_deserializer: Deserializer
    ) -> None:
        self._consumer, self._iteration, self._fetcher = consumer, consumer._iteration, consumer._fetcher
        self._positions = consumer._positions
        self._key, self._value = key_deserializer, value_deserializer
        self._converts = key_deserializer is not None or value_deserializer is not None
        self._counters = consumer._positions.iterator_state
        self._reading: CompletedFetch | None = None
        # The counted changes at which ``_reading`` was chosen, and the records that it may still give without a pause.
        self._seen = self._left = 0
        self._taker: Any = None
        # The record, or the dict of records, that was handed out last.
        self._given: object = None

    @property
    def has_ended(self) -> bool:
        """Whether the consumer is closed, or is being closed."""
        return self._iteration.has_been_closed()

    @property
    def is_unfinished_elsewhere(self) -> bool:
        """Whether another task than the running one has taken the last records, and has not finished them.

        It may still run, or may have failed or been cancelled, or have had no other task than to return the records.
        """
        taker = self._taker
        if taker is None or taker is current_task():
            return False
        if not isinstance(taker, asyncio.Future):  # a task of trio
            return not has_ended(taker)
        if not taker.done() or taker.cancelled():
            return True
        # Asking for the exception would count as its retrieval, and asyncio would no longer log it.
        return taker._exception is not None or taker.result() is self._given

    # --- one record ---------------------------------------------------------------------------------------

    def take(self, taker: Any, partitions: Collection[TopicPartition]) -> "ConsumerRecord[Any, Any] | None":
        """Return the next record to the task ``taker`` if that needs no wait; otherwise None."""
        reading = self._reading
        if reading is None or self._seen != self._counters.changes or self._left <= 0:
            return None
        if partitions and reading.ask.state.partition not in partitions:
            return None
        self._left -= 1
        self._counters.polls += 1
        self._taker = taker
        return self._next_of(reading)

    async def wait_for_next(
        self, taker: Any, partitions: Collection[TopicPartition]
    ) -> "ConsumerRecord[Any, Any] | None":
        """Wait for the next record of any partition, or of these; return None once the consumer is closed."""
        await self._iteration.let_others_run(check_clock=True)
        self._left = _BETWEEN_PAUSES
        taken = self.take(taker, partitions)
        if taken is not None:
            return taken
        self._finish(partitions)
        while True:
            arrived = self._fetcher.arrived
            if self.has_ended:
                return None
            self.raise_pending()
            reading = self._iteration.ready(of=partitions)
            if reading is not None:
                self._reading, self._seen = reading, self._counters.changes
                self._left, self._taker = _BETWEEN_PAUSES, taker
                record = self._next_of(reading)
                if record is not None:
                    return record
                continue
            self._raise_lasting(partitions)
            self._pass_over(partitions)
            await self._wait(arrived)

    def _next_of(self, reading: CompletedFetch) -> "ConsumerRecord[Any, Any] | None":
        """Return the next record of the current batch; None at its end, after which there may be another batch."""
        reader: Any = reading.reader
        if reader is None:
            return None
        state = reading.ask.state
        state.held = state.position
        try:
            record = next(reader, None)
        finally:
            state.position = reader.next_offset
        if record is None:
            state.position, reading.reader = reading.batch_end, None
            return None
        given = self._converted(record) if self._converts else wrap(record, record.key, record.value)
        self._given = given
        return given

    # --- many records -------------------------------------------------------------------------------------

    async def wait_for_many(
        self, taker: Any, partitions: Collection[TopicPartition], timeout: float, max_records: int | None
    ) -> "dict[TopicPartition, list[ConsumerRecord[Any, Any]]]":
        """Return the fetched records by partition; wait for the first for ``timeout`` seconds at most.

        Args:
            taker: the task that gets them.
            partitions: the partitions to read; empty for all.
            timeout: how long to wait if no record is there. After that, and once the consumer is closed, the result is
                empty.
            max_records: the maximum number of records in all; None for all that are fetched.
        """
        await self._iteration.let_others_run(check_clock=True)
        # The next single record has to be chosen anew: ready() counts the records of its partition as unfinished.
        self._reading = None
        self._finish(partitions)
        found: dict[TopicPartition, list[ConsumerRecord[Any, Any]]] = {}
        with anyio.move_on_after(timeout) as waiting:
            while not self.has_ended:
                arrived = self._fetcher.arrived
                self.raise_pending()
                self._drain(found, partitions, max_records)
                if found:
                    break
                self._raise_lasting(partitions)
                if timeout <= 0 or waiting.cancel_called:
                    break
                self._pass_over(partitions)
                await self._wait(arrived)
        if found:
            self._taker, self._given = taker, found
        return found

    def _drain(
        self,
        found: "dict[TopicPartition, list[ConsumerRecord[Any, Any]]]",
        partitions: Collection[TopicPartition],
        max_records: int | None,
    ) -> None:
        """Add the fetched records, without waiting: a cancellation would lose those taken so far."""
        left, drained = max_records, dict[TopicPartition, CompletedFetch]()
        while left is None or left > 0:
            try:
                reading = self._iteration.ready(of=partitions)
                # One fetch of each partition at most, so that the list is not as long as all that is fetched ahead.
                if reading is None or drained.setdefault(reading.ask.state.partition, reading) is not reading:
                    return
                records = self._take_from(reading, left)
            except Exception:
                if found:  # return these first; the next call meets the error again
                    return
                raise
            if records:
                found.setdefault(reading.ask.state.partition, []).extend(records)
                if left is not None:
                    left -= len(records)

    def _take_from(self, reading: CompletedFetch, most: int | None) -> "list[ConsumerRecord[Any, Any]]":
        """Return the records of the current batch; those before a damaged one, or one that cannot be deserialized."""
        reader: Any = reading.reader
        state, taken = reading.ask.state, list[RawRecord[bytes, bytes]]()
        try:
            taken.extend(reader if most is None else islice(reader, most))
            if most is None or len(taken) < most:
                state.position, reading.reader = reading.batch_end, None
        except own.KafkaError as error:
            if not taken:
                raise
            self._iteration.pending_errors.append(error)
        finally:
            if reading.reader is not None:
                state.position = reader.next_offset
        return self._all_converted(taken) if self._converts else wrap_all(taken)

    # --- deserializers ------------------------------------------------------------------------------------

    def _all_converted(self, records: "list[RawRecord[bytes, bytes]]") -> "list[ConsumerRecord[Any, Any]]":
        made: list[ConsumerRecord[Any, Any]] = []
        for record in records:
            try:
                made.append(self._converted(record))
            except Exception:
                if not made:
                    raise
                break
        return made

    def _converted(self, record: "RawRecord[bytes, bytes]") -> "ConsumerRecord[Any, Any]":
        """Return a record with its key and value deserialized; read it again next time if that fails."""
        try:
            key = record.raw_key if self._key is None else self._key(record.raw_key)
            value = record.raw_value if self._value is None else self._value(record.raw_value)
        except Exception:
            self._read_again(record)
            raise
        return wrap(record, key, value)

    def _read_again(self, record: "RawRecord[bytes, bytes]") -> None:
        partition = TopicPartition(record.topic, record.partition)
        state = self._positions.get(partition)
        if state is None:
            return
        held = state.held
        self._positions.seek(partition, record.offset)
        # Unlike after a seek of the user, no commit may cover the records before this one yet, which the user gets now.
        state.held = held
        self._fetcher.wake()

    # --- waiting ------------------------------------------------------------------------------------------

    def _finish(self, partitions: Collection[TopicPartition]) -> None:
        """Finish the records handed out, of all partitions or of these; the user requests more of them."""
        iteration = self._iteration
        if not partitions:
            iteration.release()
        else:
            now = self._consumer._cluster.runtime.now()
            for state in iteration.in_hand:
                if state.partition in partitions:
                    state.finish(now)
            iteration.in_hand = [state for state in iteration.in_hand if state.partition not in partitions]
            for partition in partitions:
                self._positions.lost_in_hand.pop(partition, None)
            iteration.on_release()
        iteration.on_poll()

    def finish_all(self) -> None:
        """Finish all records handed out."""
        self._iteration.finish_in_hand()

    def _pass_over(self, partitions: Collection[TopicPartition]) -> None:
        """Mark unread data of other partitions than these, so that it delays no fetch; without any, clear the marks."""
        changed, unread = False, self._fetcher.unread
        for state in self._positions:
            passed_over = bool(partitions) and state.partition not in partitions and state.partition in unread
            if state.passed_over != passed_over:
                state.passed_over, changed = passed_over, True
        if changed:
            self._fetcher.wake()

    async def _wait(self, arrived: anyio.Event) -> None:
        self._iteration.waiting += 1
        try:
            await arrived.wait()
        finally:
            self._iteration.waiting -= 1

    def raise_pending(self) -> None:
        """Raise the next error of the group or of a partition, if there is one, and once the client is closed."""
        self._iteration.require_open()
        pending = self._iteration.pending_errors
        error = pending.popleft() if pending else self._fetcher.next_fault()
        # The fetcher goes on, and has logged it: as in aiokafka, an outage ends no loop.
        if error is not None and not isinstance(error, own.RequestTimeout):
            raise _as_theirs(error)

    def _raise_lasting(self, partitions: Collection[TopicPartition]) -> None:
        """Raise the error of a partition that waits for a seek, each time that records of it are requested."""
        for state in self._positions:
            if state.lost and (not partitions or state.partition in partitions):
                error = self._fetcher.error_of(state.partition)
                if error is not None:
                    raise _as_theirs(error)

    def error_of(self, partition: TopicPartition) -> Exception | None:
        """Return the error of a partition that waits for a seek; None if it does not."""
        state = self._positions.get(partition)
        error = self._fetcher.error_of(partition) if state is not None and state.lost else None
        return None if error is None else _as_theirs(error)


def _as_theirs(error: Exception) -> Exception:
    """Return the error of a partition or of the group as aiokafka's."""
    if type(error) is own.UsageError:  # there is no offset to begin at, and auto_offset_reset is "none"
        return NoOffsetForPartitionError(str(error))
    if isinstance(error, own.KafkaError):
        return translated(own.copy_for_reraise(error))
    return error
