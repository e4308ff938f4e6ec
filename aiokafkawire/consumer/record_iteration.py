"""Hands out fetched records, one by one or as whole batches."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar

import anyio
import anyio.lowlevel
import attrs

from ..argument_checks import INT64, check_seconds, is_integer, shown
from ..cluster.cluster import Cluster
from ..config import ConsumerConfig
from ..errors import ConsumerStalled, CorruptBatch, UsageError
from ..event_log import EventLog
from ..records.batch import AnyReader, ConsumerRecord
from ..records.deserialization import DeserializedReader, FailureHandler, RecordDeserializer
from ..runtime import loop_time
from ..serialization import AnyDeserializer, knows_record
from ..tracing import Handling, Tracing
from ..types import TopicPartition
from ._implementation import RecordIterator
from .background_decompression import BackgroundDecompression, needs_thread
from .background_deserialization import BackgroundDeserialization
from .completed_fetch import CompletedFetch
from .consumer_batch import ConsumerBatch
from .fetcher import Fetcher
from .health import ConsumerHealth
from .single_task_guard import SingleUser
from .subscription_state import PartitionState, SubscriptionState

__all__ = ("RecordIteration", "check_poll")

_log = EventLog("aiokafkawire.consumer")

K = TypeVar("K")
V = TypeVar("V")

_YIELD_EVERY = 0.01
"""Seconds after which an iteration that does not wait lets other tasks run."""
_CLOCK_EVERY = 16
"""The number of records between two readings of the clock."""


@attrs.frozen
class HandedOut:
    """The records that the user had received at one moment."""

    positions: Mapping[PartitionState, tuple[int, int | None]]
    """The epoch and the position of each partition of which there were unfinished records."""
    taken: tuple[Any, int] | None
    """The records that another thread had taken; see :meth:`.Lends.taken`."""


class RecordIteration(Generic[K, V]):
    """The part of a consumer that hands out records and batches, to one task at a time.

    Args:
        cluster: has the clock, and the event loop that calls have to run on.
        config: the consumer's settings.
        positions: the consumer's partitions.
        fetcher: has the fetched data.
        key_deserializer, value_deserializer: convert keys and values of records; None for bytes.
        health: returns the consumer's health, to see whether it is stalled.
        failures: takes the records that cannot be deserialized; None raises their errors.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: SubscriptionState,
        fetcher: Fetcher,
        key_deserializer: AnyDeserializer[K] | None,
        value_deserializer: AnyDeserializer[V] | None,
        health: Callable[[], ConsumerHealth],
        failures: FailureHandler | None = None,
    ) -> None:
        self._cluster, self._config, self._positions, self._fetcher = cluster, config, positions, fetcher
        self._health = health
        self._functions: tuple[Any, Any] = key_deserializer, value_deserializer
        self.deserialization: BackgroundDeserialization | None = None
        """What deserializes records before they are handed out; None if the reader of each batch calls functions."""
        if failures is not None or any(knows_record(function, "deserialize") for function in self._functions):
            self.deserialization = BackgroundDeserialization(
                cluster,
                RecordDeserializer(key_deserializer, value_deserializer),
                failures,
                check_crcs=config.check_crcs,
                is_wanted=lambda fetched: positions.is_current(fetched.ask.state, fetched.ask.epoch),
                on_done=fetcher.notify,
            )
        self.decompression: BackgroundDecompression = BackgroundDecompression(
            cluster, check_crcs=config.check_crcs, on_done=fetcher.notify
        )
        self._reading: CompletedFetch | None = None
        self.in_hand: list[PartitionState] = []
        """The partitions of which the user may have unfinished records."""
        self.keeps_in_hand: bool = False
        """Whether records stay unfinished until :meth:`release`, even if the user requests more records."""
        self._iterator_state = positions.iterator_state
        self.user: SingleUser = SingleUser(self._iterator_state, self._has_in_hand, cluster.owner.require_own_loop)
        self.waiting: int = 0
        """The number of calls that wait for records."""
        self.got_at: float | None = None
        """When the user last received a record or a batch, in seconds of the runtime's clock."""
        self.on_release: Callable[[], None] = lambda: None
        """Called when the user has finished all records handed out."""
        self.on_poll: Callable[[], None] = lambda: None
        """Called when the user polls and has to wait for records."""
        self.before_waiting: Callable[[], None] = lambda: None
        """Called before the iteration waits for data, with the positions past all fetched records; may raise."""
        self.has_topics: Callable[[], bool] = lambda: True
        """Whether the consumer has a subscription or partitions."""
        self._is_warned = False
        self.pending_errors: deque[Exception] = deque()
        """Errors that the next call raises."""
        self.state: Literal["new", "open", "closing", "closed"] = "new"
        """The consumer's state, which :class:`Consumer` sets."""
        self._yielded_at = 0.0
        self._was_cancelled = False
        self.tracing: Tracing | None = cluster.record_tracing
        """What makes spans of the records handed out; None if nothing does."""
        self._handling: Handling | None = None
        self._met_headers = False

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Iterate as :meth:`Consumer.__aiter__`."""
        if self.has_been_closed():
            return self  # its __anext__ raises UsageError
        iterator = RecordIterator(self._iterator_state, self._next_for, self._cluster.runtime.now is loop_time)
        if self.tracing is not None:
            iterator.trace(self.tracing.handling(self._config.group_id))
        return iterator

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """Return the next record as :meth:`Consumer.__anext__`."""
        if self.tracing is None:
            return await self._next_or_fail()
        if self._handling is None:
            self._handling = self.tracing.handling(self._config.group_id)
        self._handling.next(None)
        record = await self._next_or_fail()
        if record.headers:
            self._handling.next(record)
        return record

    async def _next_or_fail(self) -> ConsumerRecord[K, V]:
        # Yield before taking a record, as a cancellation here must not lose one.
        await self.let_others_run()
        self._check_state()
        return await self._next_record()

    async def _next_for(self, iterator: RecordIterator) -> ConsumerRecord[K, V]:
        """Return the next record, and let ``iterator`` read the rest of its batch; end the iteration after a close."""
        await self.let_others_run(check_clock=True)
        self._check_state(ends=True)
        record = await self._next_record()
        assert self._reading is not None  # the record came from it
        iterator.adopt(self._reading.reader, self._reading.ask.state)
        iterator.enter(record)
        return record

    async def _next_record(self) -> ConsumerRecord[K, V]:
        checks_user = True
        while True:
            reading = self._reading
            if reading is None or reading.reader is None or not self.is_readable(reading):
                reading = self._reading = await self.next_reading()
            elif checks_user:
                self.user.check()
            checks_user = False
            reader: AnyReader[K, V] | None = reading.reader
            if reader is None:
                continue
            state = reading.ask.state
            state.held = state.position
            try:
                record = next(reader, None)
            finally:
                state.position = reader.next_offset
            if record is not None:
                return record
            state.position, reading.reader = reading.batch_end, None

    async def poll(self, max_records: int = 500, timeout: float | None = None) -> list[ConsumerRecord[K, V]]:
        """Return records as :meth:`Consumer.poll`."""
        check_poll(max_records, timeout)
        await self.let_others_run()
        self._check_state()
        records: list[ConsumerRecord[K, V]] = []
        began, self._met_headers = self._cluster.runtime.now(), False
        with anyio.move_on_after(timeout), suppress(StopAsyncIteration):
            while not records:
                self._take_from(await self.next_reading(), max_records, records)
        while len(records) < max_records and not self.pending_errors and not self.has_been_closed():
            # Without waiting: a cancellation would lose the records taken so far.
            try:
                reading = self.ready()
            except Exception:
                if records:  # return these first; the next call raises the error
                    break
                raise
            if reading is None:
                break
            self._take_from(reading, max_records, records)
        if self._met_headers and self.tracing is not None:
            self.tracing.received(records, self._config.group_id, self._cluster.runtime.now() - began)
        return records

    def _take_from(self, reading: CompletedFetch, max_records: int, records: list[ConsumerRecord[K, V]]) -> None:
        """Add records of the current batch to ``records``, up to ``max_records`` in all."""
        reader: AnyReader[K, V] | None = reading.reader
        if reader is None:
            return
        state = reading.ask.state
        try:
            for record in reader:
                records.append(record)
                if len(records) >= max_records:
                    return
            state.position, reading.reader = reading.batch_end, None
        except Exception as error:
            if not records:
                raise
            # Return these first; the next call raises the error.
            self.pending_errors.append(error)
        finally:
            self._met_headers = self._met_headers or reader.met_headers
            if reading.reader is not None:
                state.position = reader.next_offset

    def batches(self) -> AsyncIterator[ConsumerBatch[K, V]]:
        """Iterate batches as :meth:`Consumer.batches`."""
        return _Batches(self)

    async def next_batch(self) -> ConsumerBatch[K, V]:
        """Return the next batch; raise and end as the iteration of batches does."""
        await self.let_others_run()
        self._check_state(ends=True)
        while True:
            batch = self._take_batch(await self.next_reading())
            if batch is not None:
                return batch

    def _take_batch(self, reading: CompletedFetch) -> ConsumerBatch[K, V] | None:
        reader: AnyReader[K, V] | None = reading.reader
        if reader is None:
            return None
        reading.reader, reading.ask.state.position = None, reading.batch_end
        if isinstance(reader, DeserializedReader) and reader.is_empty:
            return None
        return ConsumerBatch(reading.ask.state.partition, reader, reading.batch_end, reading.timestamp_type)

    def ready_batch(self) -> ConsumerBatch[K, V] | None:
        """Return another fetched batch without finishing the batches handed out before; None if there is none.

        Errors are left to the next call that waits.
        """
        try:
            reading = self.ready()
        except Exception:
            return None
        return None if reading is None else self._take_batch(reading)

    async def next_reading(self) -> CompletedFetch:
        """Finish the records handed out, wait for data of any partition, and return the data with a started batch."""
        self.user.begin()
        try:
            return await self._wait_for_reading()
        finally:
            self.user.end()

    async def _wait_for_reading(self) -> CompletedFetch:
        self._iterator_state.changes += 1
        if not self.keeps_in_hand:
            self.release()
        self.on_poll()
        since = self._cluster.runtime.now()
        while True:
            arrived = self._fetcher.arrived
            if self.has_been_closed():
                raise StopAsyncIteration
            self.require_open()
            if self.pending_errors:
                raise self.pending_errors.popleft()
            fault = self._fetcher.next_fault()
            if fault is not None:
                raise fault
            ready = self.ready()
            if ready is not None:
                return ready
            self.before_waiting()
            self._warn_without_topics()
            self.waiting += 1
            try:
                since = await self._wait_for(arrived, since)
            finally:
                self.waiting -= 1

    def _warn_without_topics(self) -> None:
        if self._is_warned or self.has_topics():
            return
        self._is_warned = True
        _log.warning("a consumer without topics waits for records: name some in consumer(), or subscribe() or assign()")

    async def _wait_for(self, arrived: anyio.Event, since: float) -> float:
        """Wait for data or an error; return the time from which on ``stall_timeout_ms`` counts.

        Raises:
            ConsumerStalled: nothing arrived for ``stall_timeout_ms``, and the consumer's health shows a problem.
        """
        limit = self._config.stall_timeout_ms
        if limit is None:
            await arrived.wait()
            return since
        with anyio.move_on_after(max(0.0, since + limit / 1000 - self._cluster.runtime.now())):
            await arrived.wait()
        now = self._cluster.runtime.now()
        if now < since + limit / 1000:
            return since
        health = self._health()
        if health.stalled:
            raise ConsumerStalled(f"no records for {limit / 1000:g} s (stall_timeout_ms): {health.why_idle}")
        return now

    def ready(
        self, *, without: Collection[CompletedFetch] = (), of: Collection[TopicPartition] = ()
    ) -> CompletedFetch | None:
        """Return data outside ``without``, with a started batch for the caller to hand out; None if there is none.

        If ``of`` names partitions, return data of these alone.
        """
        for fetched in self._in_turn():
            if of and fetched.ask.state.partition not in of:
                continue
            if fetched not in without and self.is_readable(fetched) and self.begin_batch(fetched):
                state = fetched.ask.state
                state.leader_epoch, self.got_at = fetched.leader_epoch, self._cluster.runtime.now()
                self.keep(state)
                return fetched
        return None

    def keep(self, state: PartitionState) -> None:
        """Count the records of this partition as unfinished from the position on, unless some are unfinished."""
        if state.held is None:
            state.hold()
            self.in_hand.append(state)

    def _in_turn(self) -> Iterator[CompletedFetch]:
        """Yield the oldest unread data, which usually suffices, and then all unread data in the order of arrival."""
        unread = self._fetcher.unread
        if unread:
            yield next(iter(unread.values()))
        yield from list(unread.values())

    def release(self) -> None:
        """Finish the records handed out, since the user needs none of them any more."""
        self.finish_in_hand()
        self.in_hand.clear()

    def finish_in_hand(self) -> None:
        """Mark the records handed out as finished: the user has polled."""
        if self._positions.lent is not None:
            self._positions.lent.finish()
        now = self._cluster.runtime.now()
        if self._reading is not None:
            self._reading.ask.state.finish(now)
        for state in self.in_hand:
            state.finish(now)
        self._positions.lost_in_hand.clear()
        self.on_release()

    def handed_out(self) -> HandedOut:
        """Return what the user has received until now, for :meth:`finish_committed`."""
        self._positions.settle()
        lent = self._positions.lent
        states = list(self.in_hand) if self._reading is None else [self._reading.ask.state, *self.in_hand]
        positions = {state: (state.epoch, state.position) for state in states}
        return HandedOut(positions, None if lent is None else lent.taken())

    def finish_committed(self, committed: HandedOut) -> None:
        """Mark the records that the user had before a commit as finished, and no others.

        Listeners and tasks beside the one that commits may receive more records while the commit waits for its answer.
        """
        if self._positions.lent is not None:
            self._positions.lent.finish(committed.taken)
        now = self._cluster.runtime.now()
        for state, (epoch, position) in committed.positions.items():
            if (state.epoch, state.position) == (epoch, position):
                state.finish(now)
            elif state.epoch == epoch and state.held is not None and position is not None:
                state.held = max(state.held, position)
        lost_in_hand = self._positions.lost_in_hand
        for partition in [partition for partition, lost in lost_in_hand.items() if not lost.state.is_in_hand]:
            del lost_in_hand[partition]
        self.on_release()

    def begin_batch(self, fetched: CompletedFetch) -> bool:
        """Start the next batch of ``fetched`` if none is in progress, and return whether a batch is in progress then.

        If ``fetched`` has no more batches, it is discarded. A large compressed batch is started by a later call, after
        a thread has decompressed it; and so is one whose records are deserialized asynchronously.
        """
        if fetched.reader is not None:
            return True
        state, check = fetched.ask.state, self._config.check_crcs
        try:
            batch = fetched.begun = fetched.begun or next(fetched, None)
            if batch is None:
                self._use_up(fetched)
                return False
            if needs_thread(batch.header) and not self.decompression.is_done(fetched, batch):
                return False
            if self.deserialization is not None:
                return self.deserialization.begin(fetched, batch)
            fetched.reader = batch.records(
                *state.partition,
                from_offset=state.position or 0,
                key_deserializer=self._functions[0],
                value_deserializer=self._functions[1],
                check_crcs=check,
            )
        except CorruptBatch:
            # A later iteration must not skip the batch: it is fetched again.
            self._fetcher.discard(fetched)
            raise
        fetched.begun, fetched.is_decompressed = None, False
        fetched.timestamp_type = batch.header.timestamp_type
        return True

    def _use_up(self, fetched: CompletedFetch) -> None:
        state = fetched.ask.state
        if state.position == fetched.ask.offset:
            size = len(fetched.records)
            problem = f"the broker returned {size} bytes without a whole batch at this offset"
            raise CorruptBatch(f"{state.partition} at offset {state.position}: {problem}; to continue, seek past it")
        self._fetcher.discard(fetched)

    def pass_hidden_batches(self, fetched: CompletedFetch | None) -> None:
        """Move the position past control batches and aborted batches that follow the records handed out.

        Do nothing while records of the last batch remain, or before the first record is handed out.
        """
        if fetched is None or fetched.begun is not None or not fetched.ask.is_current:
            return
        if not fetched.ask.offset < fetched.batch_end == fetched.ask.state.position:
            return
        # Iterators that read this batch must not continue there, since the position may move past hidden batches.
        self._iterator_state.changes += 1
        try:
            if fetched.reader is not None:
                next(fetched.reader, None)  # raises if bytes are left
            fetched.reader = None
            fetched.begun = next(fetched, None)
        except CorruptBatch:  # the iteration raises it
            if fetched.reader is None:
                self._fetcher.discard(fetched)

    def is_readable(self, fetched: CompletedFetch) -> bool:
        """Return whether records of this data may be handed out now."""
        state = fetched.ask.state
        if state.paused or state.withheld or state.has_reached_end:
            return False
        return fetched.ask.is_current and self._positions.get(state.partition) is state

    def _check_state(self, *, ends: bool = False) -> None:
        """Raise UsageError if the consumer is not open; with ``ends``, StopAsyncIteration if it was closed."""
        if self.state != "open":
            if ends and self.has_been_closed():
                raise StopAsyncIteration
            self.require_open()

    def close(self) -> None:
        """End the background tasks: the consumer is closed."""
        self.decompression.close()
        if self.deserialization is not None:
            self.deserialization.close()

    def report(self, error: Exception) -> None:
        """Let the user's next call raise this error."""
        self.pending_errors.append(error)
        self._fetcher.notify()

    def polls(self) -> tuple[int, bool]:
        """Return how often the user has polled so far, and whether it is waiting for records now."""
        self._positions.settle()
        return self._iterator_state.polls, self.waiting > 0

    def has_been_closed(self) -> bool:
        """Return whether the consumer is closed, or is being closed."""
        return self.state in ("closing", "closed")

    def _has_in_hand(self) -> bool:
        """Return whether the user has not finished all records that were handed out."""
        if self._reading is not None and self._reading.ask.state.is_in_hand:
            return True
        return any(state.is_in_hand for state in self.in_hand)

    def require_open(self) -> None:
        """Raise UsageError unless the consumer is open, and the running event loop is its own."""
        self._cluster.owner.require_own_loop()
        if self.state != "open" or self._fetcher.has_ended:
            state = "closed" if self._fetcher.has_ended else self.state
            raise UsageError(f"the consumer is {state}: use it inside its 'async with'")

    async def let_others_run(self, *, check_clock: bool = False) -> None:
        """Let other tasks run if this task has run too long without waiting; read the clock only every few records."""
        self._iterator_state.polls += 1
        check_clock = check_clock or self._iterator_state.polls % _CLOCK_EVERY == 0
        if not check_clock:
            return
        # A call that was cancelled at the checkpoint did let other tasks run. If the next call yielded again, a task in
        # a cancelled scope would never get a record.
        if not self._was_cancelled and self._cluster.runtime.now() - self._yielded_at > _YIELD_EVERY:
            self._was_cancelled = True
            await anyio.lowlevel.checkpoint()
            self._yielded_at = self._cluster.runtime.now()
        self._was_cancelled = False


def check_poll(max_records: object, timeout: object) -> None:
    """Raise UsageError for invalid arguments of poll(), with a hint: other clients' poll() takes a timeout first."""
    if not is_integer(max_records, 1, INT64):
        if is_integer(max_records, -INT64, 0):
            raise UsageError(f"max_records must be at least 1, got {max_records}")
        hint = ": write poll(timeout=...) for seconds, and poll(max_records=...) for records"
        raise UsageError(f"max_records must be a positive integer, got {shown(max_records)}{hint}")
    check_seconds("timeout", timeout)


class _Batches(AsyncIterator[ConsumerBatch[K, V]]):
    """An iterator of batches, which can continue after an error, unlike a generator."""

    def __init__(self, consumer: RecordIteration[K, V]) -> None:
        self._consumer = consumer
        self._began_closed = consumer.has_been_closed()

    async def __anext__(self) -> ConsumerBatch[K, V]:
        if self._began_closed:
            self._consumer.require_open()
        return await self._consumer.next_batch()
