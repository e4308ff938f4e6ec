"""Hands out fetched records, one by one or as whole batches."""

from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
import anyio.lowlevel

from ..argument_checks import INT64, check_seconds, is_integer, shown
from ..cluster.cluster import Cluster
from ..config import ConsumerConfig
from ..errors import ConsumerStalled, CorruptBatch, UsageError
from ..records.batch import AnyReader, ConsumerRecord
from ..records.columns import Columns
from ..runtime import loop_time
from ..types import TimestampType, TopicPartition
from ._implementation import RecordIterator
from .background_decompression import LARGE, BackgroundDecompression
from .fetch import CompletedFetch
from .fetcher import Fetcher
from .health import ConsumerHealth
from .single_task_guard import SingleUser
from .subscription_state import PartitionState, SubscriptionState

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("ConsumerBatch", "RecordIteration", "check_poll")

K = TypeVar("K")
V = TypeVar("V")

_YIELD_EVERY = 0.01
"""Seconds after which a loop that never has to wait lets other tasks run."""
_LOOK_EVERY = 16
"""Records between two looks at the clock."""


class ConsumerBatch(Generic[K, V]):
    """A batch of one partition, as the producer made it: iterate it for its records, or take it as columns.

    Nothing is decoded before.

    Raises CorruptBatch or DeserializationError while iterating; after the latter the iteration goes on behind the
    record.
    """

    __slots__ = ("_reader", "next_offset", "partition", "timestamp_type", "topic")

    def __init__(
        self,
        where: TopicPartition,
        reader: "AnyReader[K, V]",
        next_offset: int,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    ) -> None:
        self.topic: str = where.topic
        self.partition: int = where.partition
        self._reader = reader
        self.next_offset: int = next_offset
        """The offset after the batch."""
        self.timestamp_type: TimestampType = timestamp_type
        """Who set its records' timestamps."""

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return self._reader

    def columns(self) -> Columns:
        """The records that are left, as buffers in Arrow's layout, without an object for each.

        Deserializers are not used.

        Raises:
            CorruptBatch: the batch is damaged; nothing of it is given.
        """
        return self._reader.columns()

    def to_arrow(self) -> "pa.RecordBatch":
        """The records that are left, as an Arrow record batch; deserializers are not used.

        Its columns: ``key`` and ``value`` (binary), ``topic`` (string, dictionary-encoded), ``partition`` (int32),
        ``offset`` (int64), ``timestamp`` (ms, UTC; null where the format has none), and ``headers`` (a list of ``key``,
        string, and ``value``, binary). The buffers are not copied once more.

        Raises:
            CorruptBatch: the batch is damaged; nothing of it is given.
            ImportError: pyarrow is not installed (``pip install aiokafkawire[arrow]``).
        """
        from ..records.arrow import record_batch

        return record_batch(self.columns(), self.topic, self.partition)

    def __repr__(self) -> str:
        return f"<ConsumerBatch {self.topic}-{self.partition} up to {self.next_offset}>"


class RecordIteration(Generic[K, V]):
    """The iterations of a consumer; :class:`~.consumer.Consumer` has them, and says what is read."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: SubscriptionState,
        fetcher: Fetcher,
        key_deserializer: Callable[[bytes], K] | None,
        value_deserializer: Callable[[bytes], V] | None,
    ) -> None:
        self._cluster, self._config, self._positions, self._fetcher = cluster, config, positions, fetcher
        self._key_deserializer, self._value_deserializer = key_deserializer, value_deserializer
        self._decompression = BackgroundDecompression(cluster, check_crcs=config.check_crcs, on_done=fetcher.tell)
        self._reading: CompletedFetch | None = None
        # The places of which the user has records in hand.
        self._in_hand: list[PartitionState] = []
        self._marks = positions.marks
        self._user = SingleUser(self._marks, self._has_in_hand, cluster.owner.require_own_loop)
        self._waiting = 0
        self._got_at: float | None = None
        # Called when nothing is in hand any more.
        self._on_release: Callable[[], None] = lambda: None
        # Called when the user comes for more and has to wait for it.
        self._on_asked: Callable[[], None] = lambda: None
        # Called before the iteration waits for data, with the positions past all that is here; may raise.
        self._before_waiting: Callable[[], None] = lambda: None
        # Errors that the next call raises.
        self._untold: deque[Exception] = deque()
        self._yielded_at = 0.0
        self._was_cancelled = False
        self._state = "new"

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Iterate the records. Raises as :meth:`__anext__` does; the iteration may be entered again.

        It ends when the consumer is closed, by whichever task.
        """
        if self._has_been_closed():
            return self  # which raises UsageError
        if RecordIterator is None:
            return _Records(self)
        return RecordIterator(self._marks, self._next_for, self._cluster.runtime.now is loop_time)

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """The next record, waiting for one.

        Raises:
            DeserializationError: the position is past the record, and the loop may be entered again.
            CorruptBatch: a batch is damaged; to go on, seek beyond it.
            KafkaError: fetching fails, at once or for ``default_api_timeout_ms``, and retries do not mend it.
            StopAsyncIteration: another task has closed the consumer meanwhile.
            UsageError: the consumer is not open, or another task uses it, or this is another event loop.
        """
        # Before a record is taken: a cancellation in here must not cost one.
        await self._let_others_run()
        self._check_state()
        return await self._next_record()

    async def _next_in_loop(self, records: "_Records[K, V]") -> ConsumerRecord[K, V]:
        """As :meth:`__anext__`, of an ``async for`` in plain Python, which a close ends."""
        await self._let_others_run()
        self._check_state(ends=True)
        record = await self._next_record(checks_user=records.seen != self._marks.changes)
        records.seen = self._marks.changes
        return record

    async def _next_for(self, iterator: RecordIterator) -> ConsumerRecord[K, V]:
        """As :meth:`__anext__`; what comes after it in the same batch, the iterator finds itself. A close ends it."""
        await self._let_others_run(look=True)
        self._check_state(ends=True)
        record = await self._next_record()
        assert self._reading is not None  # the record is of it
        iterator.adopt(self._reading.reader, self._reading.ask.place)
        return record

    async def _next_record(self, *, checks_user: bool = True) -> ConsumerRecord[K, V]:
        while True:
            reading = self._reading
            if reading is None or reading.reader is None or not self._is_readable(reading):
                reading = self._reading = await self._next_reading()
            elif checks_user:
                self._user.check()
            checks_user = False
            reader: AnyReader[K, V] | None = reading.reader
            if reader is None:
                continue
            place = reading.ask.place
            place.held = place.position
            try:
                record = next(reader, None)
            finally:
                place.position = reader.next_offset
            if record is not None:
                return record
            place.position, reading.reader = reading.batch_end, None

    async def poll(self, max_records: int = 500, timeout: float | None = None) -> list[ConsumerRecord[K, V]]:
        """Up to ``max_records`` records, as soon as there are any.

        Args:
            max_records: the most to return; they may be of several partitions.
            timeout: how long to wait for the first, in seconds; None waits for ever. After it, the list is empty, and
                so it is if another task closes the consumer meanwhile.

        Raises as the iteration does; with records in hand already, the next call does.
        """
        check_poll(max_records, timeout)
        await self._let_others_run()
        self._check_state()
        records: list[ConsumerRecord[K, V]] = []
        with anyio.move_on_after(timeout), suppress(StopAsyncIteration):
            while not records:
                self._take_from(await self._next_reading(), max_records, records)
        while len(records) < max_records and not self._untold and not self._has_been_closed():
            # Without waiting: a cancellation would cost the records that are here.
            try:
                reading = self._ready()
            except Exception:
                if records:  # these come first, and the next call raises it
                    break
                raise
            if reading is None:
                break
            self._take_from(reading, max_records, records)
        return records

    def _take_from(self, reading: CompletedFetch, most: int, records: list[ConsumerRecord[K, V]]) -> None:
        """Add records of the batch that is begun, until there are so many."""
        reader: AnyReader[K, V] | None = reading.reader
        if reader is None:
            return
        place = reading.ask.place
        try:
            for record in reader:
                records.append(record)
                if len(records) >= most:
                    return
            place.position, reading.reader = reading.batch_end, None
        except Exception as error:
            if not records:
                raise
            # These come first, and it is told by the next call.
            self._untold.append(error)
        finally:
            if reading.reader is not None:
                place.position = reader.next_offset

    def batches(self) -> AsyncIterator[ConsumerBatch[K, V]]:
        """Iterate whole batches instead of records: the fastest way. The position moves a batch at a time.

        Of a batch that was begun as records, the rest comes. Raises and ends as the iteration of records does.
        """
        return _Batches(self)

    async def _next_batch(self) -> ConsumerBatch[K, V]:
        await self._let_others_run()
        self._check_state(ends=True)
        while True:
            batch = self._take_batch(await self._next_reading())
            if batch is not None:
                return batch

    def _take_batch(self, reading: CompletedFetch) -> ConsumerBatch[K, V] | None:
        reader: AnyReader[K, V] | None = reading.reader
        if reader is None:
            return None
        reading.reader, reading.ask.place.position = None, reading.batch_end
        return ConsumerBatch(reading.ask.place.where, reader, reading.batch_end, reading.timestamp_type)

    def _ready_batch(self) -> ConsumerBatch[K, V] | None:
        """Return another batch that is here, in hand together with those before; None if there is none.

        Errors are left to the next call that waits.
        """
        try:
            reading = self._ready()
        except Exception:
            return None
        return None if reading is None else self._take_batch(reading)

    async def _next_reading(self) -> CompletedFetch:
        """Fetched data of some partition with a batch begun; waits for it. What was in hand is finished."""
        self._user.begin()
        try:
            return await self._wait_for_reading()
        finally:
            self._user.end()

    async def _wait_for_reading(self) -> CompletedFetch:
        self._marks.changes += 1
        self._finish_in_hand()
        self._in_hand.clear()
        self._on_asked()
        since = self._cluster.runtime.now()
        while True:
            arrived = self._fetcher.arrived
            if self._has_been_closed():
                raise StopAsyncIteration
            self._require_open()
            if self._untold:
                raise self._untold.popleft()
            fault = self._fetcher.next_fault()
            if fault is not None:
                raise fault
            ready = self._ready()
            if ready is not None:
                return ready
            self._before_waiting()
            self._waiting += 1
            try:
                since = await self._wait_for(arrived, since)
            finally:
                self._waiting -= 1

    async def _wait_for(self, arrived: anyio.Event, since: float) -> float:
        """Wait for something new; since when this has gone on."""
        limit = self._config.stall_timeout_ms
        if limit is None:
            await arrived.wait()
            return since
        with anyio.move_on_after(max(0.0, since + limit / 1000 - self._cluster.runtime.now())):
            await arrived.wait()
        now = self._cluster.runtime.now()
        if now < since + limit / 1000:
            return since
        health = self.health()
        if health.stalled:
            raise ConsumerStalled(f"no records for {limit / 1000:g} s (stall_timeout_ms): {health.why_idle}")
        return now

    @abstractmethod
    def health(self) -> ConsumerHealth:
        """How the consumer is."""

    def _ready(self, *, without: Collection[CompletedFetch] = ()) -> CompletedFetch | None:
        """The same, if there is some here; the user is about to have it in hand."""
        for fetched in self._in_turn():
            if fetched not in without and self._is_readable(fetched) and self._begin_batch(fetched):
                place = fetched.ask.place
                place.leader_epoch, self._got_at = fetched.leader_epoch, self._cluster.runtime.now()
                if place.held is None:
                    place.hold()
                    self._in_hand.append(place)
                return fetched
        return None

    def _in_turn(self) -> Iterator[CompletedFetch]:
        """Unread data in the order in which it came. Mostly the first is taken, and then the others are not listed."""
        unread = self._fetcher.unread
        if unread:
            yield next(iter(unread.values()))
        yield from list(unread.values())

    def _finish_in_hand(self) -> None:
        """The user comes for more, or says that it has finished what it has in hand."""
        if self._positions.lent is not None:
            self._positions.lent.finish()
        now = self._cluster.runtime.now()
        if self._reading is not None:
            self._reading.ask.place.finish(now)
        for place in self._in_hand:
            place.finish(now)
        self._positions.lost_in_hand.clear()
        self._on_release()

    def _begin_batch(self, fetched: CompletedFetch) -> bool:
        """Make sure that a batch is begun. Data without another one is used up, and makes room for more.

        A large compressed batch is begun once a thread has decompressed it; then the iteration looks again.
        """
        if fetched.reader is not None:
            return True
        place, check = fetched.ask.place, self._config.check_crcs
        try:
            batch = fetched.begun = fetched.begun or next(fetched, None)
            if batch is None:
                self._use_up(fetched)
                return False
            is_large = batch.header.codec and batch.header.size > LARGE
            if is_large and not self._decompression.is_done(fetched, batch):
                return False
            fetched.reader = batch.records(
                *place.where,
                from_offset=place.position or 0,
                key_deserializer=self._key_deserializer,
                value_deserializer=self._value_deserializer,
                check_crcs=check,
            )
        except CorruptBatch:
            # Whoever enters the loop again must not find the batch behind it: it is fetched anew.
            self._fetcher.used_up(fetched)
            raise
        fetched.begun, fetched.is_decompressed = None, False
        fetched.timestamp_type = batch.header.timestamp_type
        return True

    def _use_up(self, fetched: CompletedFetch) -> None:
        place = fetched.ask.place
        if place.position == fetched.ask.offset:
            size = len(fetched.records)
            told = f"{size} bytes came without a whole batch that reaches it"
            raise CorruptBatch(f"{place.where} at offset {place.position}: {told}; to go on, seek beyond it")
        self._fetcher.used_up(fetched)

    def _pass_hidden_batches(self, fetched: CompletedFetch | None) -> None:
        """Move the position past control batches and aborted ones that follow what was handed out.

        Does nothing while records of the last batch are left, and before the first record is handed out.
        """
        if fetched is None or fetched.begun is not None or not fetched.ask.is_current:
            return
        if not fetched.ask.offset < fetched.batch_end == fetched.ask.place.position:
            return
        # Whoever reads this batch has to ask for the next one, whose end the data has from here on.
        self._marks.changes += 1
        try:
            if fetched.reader is not None:
                next(fetched.reader, None)  # raises if bytes are left
            fetched.reader = None
            fetched.begun = next(fetched, None)
        except CorruptBatch:  # the iteration raises it
            if fetched.reader is None:
                self._fetcher.used_up(fetched)

    def _is_readable(self, fetched: CompletedFetch) -> bool:
        place = fetched.ask.place
        if place.paused or place.withheld or place.has_reached_end:
            return False
        return fetched.ask.is_current and self._positions.get(place.where) is place

    def _check_state(self, *, ends: bool = False) -> None:
        """Refuse to hand out records if the consumer is not open.

        An iteration that closing ``ends`` began before: it gets StopAsyncIteration.
        """
        if self._state != "open":
            if ends and self._has_been_closed():
                raise StopAsyncIteration
            self._require_open()

    def _has_been_closed(self) -> bool:
        return self._state in ("closing", "closed")

    def _has_in_hand(self) -> bool:
        """Whether the user has not come back for more since it got records."""
        if self._reading is not None and self._reading.ask.place.is_in_hand:
            return True
        return any(place.is_in_hand for place in self._in_hand)

    def _require_open(self) -> None:
        self._cluster.owner.require_own_loop()
        if self._state != "open" or self._fetcher.has_ended:
            state = "closed" if self._fetcher.has_ended else self._state
            raise UsageError(f"the consumer is {state}: use it inside its 'async with'")

    async def _let_others_run(self, *, look: bool = False) -> None:
        """Looking at the clock costs more than a record does: it is done for every few."""
        self._marks.asked += 1
        look = look or self._marks.asked % _LOOK_EVERY == 0
        if not look:
            return
        # A call that was cancelled here did let others run. If each call were, those in scopes that are cancelled from
        # the beginning would never get a record.
        if not self._was_cancelled and self._cluster.runtime.now() - self._yielded_at > _YIELD_EVERY:
            self._was_cancelled = True
            await anyio.lowlevel.checkpoint()
            self._yielded_at = self._cluster.runtime.now()
        self._was_cancelled = False


class _Records(AsyncIterator[ConsumerRecord[K, V]]):
    """An ``async for`` over records in plain Python."""

    def __init__(self, consumer: RecordIteration[K, V]) -> None:
        self._consumer = consumer
        self.seen = -1
        """The consumer's ``IteratorState.changes`` when the last record came: nothing is checked until that changes."""

    def __anext__(self) -> Awaitable[ConsumerRecord[K, V]]:
        return self._consumer._next_in_loop(self)


def check_poll(max_records: object, timeout: object) -> None:
    """Raise UsageError for arguments of poll(); other clients take the timeout first, which is no number of records."""
    if not is_integer(max_records, 1, INT64):
        if is_integer(max_records, -INT64, 0):
            raise UsageError(f"max_records is 1 at least, got {max_records}")
        hint = ": write poll(timeout=...) for seconds, and poll(max_records=...) for records"
        raise UsageError(f"max_records must be an integer from 1 on, got {shown(max_records)}{hint}")
    check_seconds("timeout", timeout)


class _Batches(AsyncIterator[ConsumerBatch[K, V]]):
    """An iterator that goes on after an error, which a generator would not."""

    def __init__(self, consumer: RecordIteration[K, V]) -> None:
        self._consumer = consumer
        self._began_closed = consumer._has_been_closed()

    async def __anext__(self) -> ConsumerBatch[K, V]:
        if self._began_closed:
            self._consumer._require_open()
        return await self._consumer._next_batch()
