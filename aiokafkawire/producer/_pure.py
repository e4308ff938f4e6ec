"""How a record comes into its batch, in plain Python: the readable twin of the compiled one."""

from array import array
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar, final

from ..errors import BufferFull, TopicNotReady
from ..records._pure import Delivery
from ..records.batch import BatchBuilder, record_size_bound
from ..records.delivery_result import DeliveryResult
from ..types import Header, Headers, RecordMetadata
from .door import (
    SPARE,
    YIELD_EVERY,
    Door,
    Loop,
    Partitioning,
    copy_bytes,
    header_pairs,
    refuse_partition,
    refuse_thread,
    refuse_timestamp,
    refuse_topic,
)

__all__ = ("Appender", "Budget", "OpenBatch", "OpenTopic", "Turn", "Waiters")

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)

_NO_HEADERS: Final[Headers] = ()


@final
class Budget:
    """Bytes that count against ``buffer_memory``, and how many may."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.used: int = 0


@final
class Turn:
    """A partition's turn to get the records without a key, and the bytes it was chosen for so far."""

    __slots__ = ("available", "limit", "most", "partition", "sent")

    def __init__(self, partition: int, available: Sequence[int], sent: int, limit: int, most: int) -> None:
        self.partition: int = partition
        self.available: Sequence[int] = available
        self.sent: int = sent
        self.limit: int = limit
        """Up to so many bytes the turn goes on without a question."""
        self.most: int = most
        """And up to so many as long as there is room in the open batch."""


@final
class OpenBatch:
    """What the records of a batch come into: its builder, and the result that their deliveries wait on.

    ``timestamps`` (an array of ms) gets the time of each.
    """

    __slots__ = ("builder", "closed", "result", "timestamps")

    def __init__(self, builder: BatchBuilder, result: DeliveryResult, timestamps: "array[int]") -> None:
        self.builder: BatchBuilder = builder
        self.result: DeliveryResult = result
        self.timestamps: array[int] = timestamps
        self.closed: bool = False
        """Whether it takes no more records: it is full, was sent once, or will not be sent."""

    def append(
        self,
        budget: Budget,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header],
    ) -> int:
        """Put a record in: its index, or -1 where it takes none any more."""
        if self.closed:
            return -1
        builder = self.builder
        before = builder.size
        index = builder.append(timestamp, key, value, tuple(headers))
        if index < 0:
            self.closed = True
            return -1
        budget.used += builder.size - (before if index else 0)
        self.timestamps.append(timestamp)
        return index


@final
class OpenTopic:
    """A topic that records are sent to, as long as nothing changes.

    Args:
        name: the topic.
        count: how many partitions it has.
        available: those with a leader.
        turn: whose turn it is, if records without a key go by turns.
    """

    __slots__ = ("available", "batches", "count", "name", "turn")

    def __init__(self, name: str, count: int, available: Sequence[int], turn: Turn | None) -> None:
        self.name: str = name
        self.count: int = count
        self.available: Sequence[int] = available
        self.turn: Turn | None = turn
        self.batches: list[OpenBatch | None] = [None] * count


@final
class Waiters:
    """An event of a batch on asyncio's ``loop``, for tasks alone. Each awaits a future, with no coroutine around it."""

    __slots__ = ("_futures", "_is_set", "_loop")

    def __init__(self, loop: Loop) -> None:
        self._loop, self._is_set = loop, False
        self._futures: list[Any] = []

    def set(self) -> None:
        """Resume who waits, in the next turn of the loop and in the order in which they came."""
        self._is_set = True
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():  # its task was cancelled
                future.set_result(None)

    def wait(self) -> Awaitable[None]:
        """What to await, once."""
        future = self._loop.create_future()
        if self._is_set:
            future.set_result(None)
        else:
            self._futures.append(future)
        awaited: Awaitable[None] = future
        return awaited


@final
class Appender(Generic[K, V]):
    """Puts records into the open batches of their partitions. What it is not told at once, it asks the ``door``.

    Args:
        door: opens topics and batches.
        budget: what all records may take.
        most: what one record may take, in bytes.
        partitioning: which partition a record goes to.
        wall_ms: the time now, in ms since the epoch.
        key_serializer: makes bytes of keys, which are bytes without it.
        value_serializer: the same of values.
        asks_first: whether the door has to be asked about every record, as in transactions.
        thread_id: tells in which thread it is called; after :meth:`bind` other threads are refused.
    """

    __slots__ = (
        "_asks_first",
        "_budget",
        "_door",
        "_most",
        "_partitioning",
        "_serialize_key",
        "_serialize_value",
        "_thread",
        "_thread_id",
        "_topics",
        "_unyielded",
        "_wall_ms",
    )

    def __init__(
        self,
        door: Door,
        budget: Budget,
        most: int,
        partitioning: Partitioning,
        wall_ms: Callable[[], int],
        key_serializer: Callable[[K], bytes] | None = None,
        value_serializer: Callable[[V], bytes] | None = None,
        *,
        asks_first: bool = False,
        thread_id: Callable[[], int] = lambda: 0,
    ) -> None:
        self._thread: int | None = None
        self._thread_id = thread_id
        self._door, self._budget, self._most, self._partitioning = door, budget, most, partitioning
        self._wall_ms, self._asks_first = wall_ms, asks_first
        self._serialize_key, self._serialize_value = key_serializer, value_serializer
        self._topics: dict[str, OpenTopic] = {}
        self._unyielded = 0

    def bind(self) -> None:
        """Take records in this thread alone from now on."""
        self._thread = self._thread_id()

    def forget(self) -> None:
        """Something has changed: ask the door about every topic again."""
        self._topics.clear()

    def send_nowait(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """As :meth:`aiokafkawire.producer.producer.Producer.send_nowait`, which this is."""
        batch, index = self.append(topic, value, key, partition, timestamp_ms, headers)
        if not index or batch.builder.size >= batch.builder.limit:
            self._door.wake()
        return Delivery(batch.result, index)

    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """As :meth:`aiokafkawire.producer.producer.Producer.send`, which this is."""
        door = self._door
        try:
            batch, index = self.append(topic, value, key, partition, timestamp_ms, headers)
        except (TopicNotReady, BufferFull):
            batch, index = await door.accept(topic, value, key, partition, timestamp_ms, headers)
        if not index:
            unwritten = door.go_now()
            if unwritten is not None:
                await unwritten
        elif batch.builder.size >= batch.builder.limit:
            door.wake()
        return await batch.result.wait(index)

    async def enqueue(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """As :meth:`aiokafkawire.producer.producer.Producer.enqueue`, which this is."""
        door = self._door
        self._unyielded += 1
        if self._unyielded >= YIELD_EVERY:
            self._unyielded = 0
            # Before the record is accepted: whoever is cancelled in here knows that it was not.
            await door.let_others_run()
        try:
            batch, index = self.append(topic, value, key, partition, timestamp_ms, headers)
        except (TopicNotReady, BufferFull):
            batch, index = await door.accept(topic, value, key, partition, timestamp_ms, headers)
        if not index or batch.builder.size >= batch.builder.limit:
            door.wake()
        return Delivery(batch.result, index)

    def append(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[OpenBatch, int]:
        """Put one record into a batch: the batch, and its index there."""
        if self._thread is not None and self._thread_id() != self._thread:
            raise refuse_thread()
        if timestamp_ms is not None and not (type(timestamp_ms) is int and 0 <= timestamp_ms < 2**63):
            raise refuse_timestamp(timestamp_ms)
        if not isinstance(topic, str):
            raise refuse_topic(topic)
        opened = self._topics.get(topic)
        if opened is None:
            opened = self._topics[topic] = self._door.open_topic(topic)
        raw_key = _raw(key, self._serialize_key, "key")
        raw_value = _raw(value, self._serialize_value, "value")
        pairs = () if headers is None or headers is _NO_HEADERS else header_pairs(headers)
        size = record_size_bound(raw_key, raw_value, pairs)
        if size > self._most or self._budget.used + size > self._budget.limit:
            raise self._door.refuse(topic, size)
        if partition is None:
            partition = self._choose(opened, raw_key, size)
        elif not isinstance(partition, int) or isinstance(partition, bool) or not 0 <= partition < opened.count:
            raise refuse_partition(topic, partition, opened.count)
        if self._asks_first:
            self._door.ask(topic, partition)
        timestamp = self._wall_ms() if timestamp_ms is None else timestamp_ms
        batch = opened.batches[partition]
        index = -1 if batch is None else batch.append(self._budget, timestamp, raw_key, raw_value, pairs)
        if batch is None or index < 0:
            batch, index = self._door.open_batch(topic, partition, timestamp, raw_key, raw_value, pairs)
            opened.batches[partition] = batch
        return batch, index

    def append_many(
        self,
        topic: str,
        values: Sequence[V | None],
        keys: Sequence[K | None] | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
        start: int,
        stop: int,
    ) -> int:
        """Put records ``start`` to ``stop`` into batches; the index of the first that is not in one.

        Raises what is the matter with the first; with a later one, the next call does.
        """
        for at in range(start, stop):
            try:
                key = None if keys is None else keys[at]
                batch, index = self.append(topic, values[at], key, partition, timestamp_ms, headers)
            except Exception:
                if at == start:
                    raise
                return at
            if not index or batch.builder.size >= batch.builder.limit:
                self._door.wake()
        return stop

    def _choose(self, opened: OpenTopic, key: bytes | None, size: int) -> int:
        partitioning, turn = self._partitioning, opened.turn
        if turn is not None and (key is None or partitioning.ignores_keys):
            sent = turn.sent + size - SPARE
            if sent <= turn.limit or (sent <= turn.most and _has_room(opened.batches[turn.partition], size)):
                turn.sent = sent
                return turn.partition
        chosen = partitioning.choose(opened.name, key, opened.available, opened.count, size)
        if partitioning.turns is not None:
            opened.turn = partitioning.turns.get(opened.name)
        return chosen


def _has_room(batch: OpenBatch | None, size: int) -> bool:
    return batch is not None and not batch.closed and batch.builder.size + size <= batch.builder.limit


def _raw(given: Any, serialize: Callable[[Any], bytes] | None, what: str) -> bytes | None:
    if given is None:
        return None
    raw = serialize(given) if serialize is not None else given
    return raw if isinstance(raw, bytes) else copy_bytes(raw, what, made=serialize is not None)
