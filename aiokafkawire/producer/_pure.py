"""The appender, which encodes records into their batches, in plain Python: the readable twin of the compiled one."""

from array import array
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context
from typing import Any, Final, Generic, Protocol, TypeVar, final

from ..errors import BufferFull, KafkaError, TopicNotReady
from ..records._pure import Delivery
from ..records.batch import BatchBuilder, record_size_bound
from ..records.delivery_result import DeliveryResult
from ..tracing import RecordTrace, Tracing
from ..types import Header, Headers, RecordMetadata
from .record_checks import (
    RECORD_OVERHEAD,
    YIELD_EVERY,
    PartitionNotKnown,
    copy_bytes,
    header_pairs,
    invalid_timestamp,
    invalid_topic,
    wrong_thread,
)
from .record_columns import ManyRecords

__all__ = ("Appender", "BatchEvent", "BufferSpace", "OpenBatch", "OpenTopic", "StickyPartition", "item_ends")

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)

_NO_HEADERS: Final[Headers] = ()


class Loop(Protocol):
    """The part of asyncio's event loop that :class:`BatchEvent` uses."""

    def create_future(self) -> Any:
        """Return a new future."""

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> object:
        """Call ``callback(*args)`` in the loop's next iteration."""


class Sends(Protocol):
    """The part of the sender that the appender uses."""

    def wake(self) -> None:
        """Send the ready batches soon; the appender calls this when it opens or fills a batch."""

    def send_immediately(self) -> Coroutine[Any, Any, None] | None:
        """Send the ready batches now if no request is in flight, otherwise soon.

        If bytes are left to write, a coroutine is returned, which the caller must await at once; otherwise None.
        """


class ChoosesPartitions(Protocol):
    """The part of :class:`~.partitioner.Partitioning` that the appender uses."""

    @property
    def choose(self) -> Callable[[str, bytes | None, Sequence[int], int, int], int]: ...
    @property
    def hashes_keys(self) -> bool: ...
    @property
    def ignores_keys(self) -> bool: ...
    @property
    def sticky(self) -> "Mapping[str, StickyPartition] | None": ...


@final
class BufferSpace:
    """The number of bytes that all batches occupy, and its limit (``buffer_memory``)."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.used: int = 0


@final
class StickyPartition:
    """The current partition for a topic's records without a key, and the number of bytes sent to this partition."""

    __slots__ = ("available", "limit", "max_sent", "partition", "sent")

    def __init__(self, partition: int, available: Sequence[int], sent: int, limit: int, max_sent: int) -> None:
        self.partition: int = partition
        self.available: Sequence[int] = available
        self.sent: int = sent
        self.limit: int = limit
        """The maximum of ``sent`` if the open batch is full; beyond it, a partition is chosen anew."""
        self.max_sent: int = max_sent
        """The maximum of ``sent`` while the open batch has room."""


@final
class OpenBatch:
    """A batch to which records can be appended: its builder, and the result that the records' deliveries wait for.

    Each record's timestamp, in ms since the epoch, is appended to the array ``timestamps``.
    """

    __slots__ = ("builder", "closed", "result", "timestamps", "untraced")

    def __init__(self, builder: BatchBuilder, result: DeliveryResult, timestamps: "array[int]") -> None:
        self.builder: BatchBuilder = builder
        self.result: DeliveryResult = result
        self.timestamps: array[int] = timestamps
        self.closed: bool = False
        """Whether no more records may be appended: the batch is full, was prepared for sending, or will not be sent."""
        self.untraced: object = None
        """The context whose records of this batch are not traced; None if there is none yet."""

    def append(
        self,
        space: BufferSpace,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header],
    ) -> int:
        """Append a record, add its size to ``space`` and return its index; return -1 if the batch is closed or full."""
        if self.closed:
            return -1
        builder = self.builder
        before = builder.size
        index = builder.append(timestamp, key, value, tuple(headers))
        if index < 0:
            self.closed = True
            return -1
        space.used += builder.size - (before if index else 0)
        self.timestamps.append(timestamp)
        return index


@final
class OpenTopic:
    """A topic with the open batch of each partition; the object is discarded when the metadata changes.

    Args:
        name: the topic's name.
        count: the number of the topic's partitions.
        available: the indexes of the partitions that have a leader.
        sticky: the partition for records without a key; None if the partitioner is not sticky or has not chosen yet.
    """

    __slots__ = ("available", "batches", "count", "name", "sticky")

    def __init__(self, name: str, count: int, available: Sequence[int], sticky: StickyPartition | None) -> None:
        self.name: str = name
        self.count: int = count
        self.available: Sequence[int] = available
        self.sticky: StickyPartition | None = sticky
        self.batches: list[OpenBatch | None] = [None] * count


@final
class BatchEvent:
    """An event that a batch's completion sets; tasks of asyncio's ``loop`` wait for it, each by a future of its own."""

    __slots__ = ("_futures", "_is_set", "_loop")

    def __init__(self, loop: Loop) -> None:
        self._loop, self._is_set = loop, False
        self._futures: list[Any] = []

    def set(self) -> None:
        """Resume the waiting tasks in the loop's next iteration, in the order of their calls of :meth:`wait`."""
        self._is_set = True
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():  # its task was cancelled
                future.set_result(None)

    def wait(self) -> Awaitable[None]:
        """Return an awaitable, for one task only, that ends once the event is set."""
        future = self._loop.create_future()
        if self._is_set:
            future.set_result(None)
        else:
            self._futures.append(future)
        awaited: Awaitable[None] = future
        return awaited


class Appender(Generic[K, V]):
    """The base class of the producer: its methods encode records into the open batches of the records' partitions.

    A subclass implements the last methods, which open topics and batches, and wait for metadata and buffer space.

    Args:
        sender: sends the batches.
        space: counts the bytes that all batches occupy.
        max_record_size: the maximum size of a record in bytes, as computed by ``record_size_bound``.
        partitioning: chooses partitions.
        wall_ms: returns the current time, in ms since the epoch.
        key_serializer: converts keys to bytes; None if keys are bytes already.
        value_serializer: converts values to bytes; None if values are bytes already.
        transactional: whether :meth:`_add_to_transaction` is called for each record.
        thread_id: returns the calling thread's id, for :meth:`_bind_thread`.
    """

    def __init__(
        self,
        sender: Sends,
        space: BufferSpace,
        max_record_size: int,
        partitioning: ChoosesPartitions,
        wall_ms: Callable[[], int],
        key_serializer: Callable[[K], bytes] | None = None,
        value_serializer: Callable[[V], bytes] | None = None,
        *,
        transactional: bool = False,
        thread_id: Callable[[], int] = lambda: 0,
    ) -> None:
        self._wake, self._send_immediately = sender.wake, sender.send_immediately
        self._space, self._max_record_size, self._partitioning = space, max_record_size, partitioning
        self._wall_ms, self._transactional = wall_ms, transactional
        self._serialize_key, self._serialize_value = key_serializer, value_serializer
        self._thread: int | None = None
        self._thread_id = thread_id
        self._topics: dict[str, OpenTopic] = {}
        self._unyielded = 0
        self._tracing: Tracing | None = None

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
        """Send one record, and wait until it is acknowledged.

        Args:
            topic: the record's topic.
            value: bytes or an object for the ``value_serializer``; None is a tombstone.
            key: bytes or an object for the ``key_serializer``; by default hashed to a partition as in Java's client.
            partition: the record's partition, instead of the partitioner's choice.
            timestamp_ms: the record's timestamp, in ms since the epoch; by default the current time.
            headers: a sequence of (name, content) pairs, or a mapping; each content is bytes or None.

        If the call is cancelled before the record is in a batch, the record is not sent; if later, it is still sent.

        Raises:
            BufferFull, TopicNotReady: there was no buffer space, or the topic was not known, within ``max_block_ms``.
            RecordTooLarge: the record is larger than ``max_request_size`` or ``buffer_memory``.
            RequestTimeout: no acknowledgement within ``delivery_timeout_ms``; a broker may have written the record.
            BrokerError: the broker refused the record.
            UsageError: an argument is invalid, the topic does not have the partition, or the producer is not open.
        """
        try:
            batch, index = self._append(topic, value, key, partition, timestamp_ms, headers, alone=True)
        except (TopicNotReady, BufferFull, PartitionNotKnown):
            batch, index = await self._wait_and_append(topic, value, key, partition, timestamp_ms, headers)
        if not index:
            unwritten = self._send_immediately()
            if unwritten is not None:
                await unwritten
        elif batch.builder.size >= batch.builder.limit:
            self._wake()
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
        """Accept one record: wait for the topic's metadata and for buffer space, but not for the acknowledgement.

        Arguments and errors are those of :meth:`send`. Await the returned delivery for the record's metadata or error.
        """
        self._unyielded += 1
        if self._unyielded >= YIELD_EVERY:
            self._unyielded = 0
            # Yield before the record is accepted: a caller that is cancelled here knows that no batch has the record.
            await self._let_others_run()
        try:
            batch, index = self._append(topic, value, key, partition, timestamp_ms, headers)
        except (TopicNotReady, BufferFull, PartitionNotKnown):
            batch, index = await self._wait_and_append(topic, value, key, partition, timestamp_ms, headers)
        if not index or batch.builder.size >= batch.builder.limit:
            self._wake()
        return Delivery(batch.result, index)

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
        """Accept one record without waiting, and return its delivery. Arguments are those of :meth:`send`.

        Raises:
            BufferFull: ``buffer_memory`` is used up.
            TopicNotReady: the topic's partitions are not known yet; the client requests the topic's metadata.
            RecordTooLarge, UsageError: as :meth:`send`.
        """
        batch, index = self._append(topic, value, key, partition, timestamp_ms, headers)
        if not index or batch.builder.size >= batch.builder.limit:
            self._wake()
        return Delivery(batch.result, index)

    def _bind_thread(self) -> None:
        """Accept records only from the calling thread from now on."""
        self._thread = self._thread_id()

    def _trace(self, tracing: Tracing) -> None:
        """Add the trace contexts of ``tracing`` to the records from now on."""
        self._tracing = tracing

    def _invalidate_topics(self) -> None:
        """Discard the open topics, after a change of the metadata or the producer's state; records open them again."""
        self._topics.clear()

    def _append(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
        *,
        alone: bool = False,
    ) -> tuple[OpenBatch, int]:
        """Append one record to a batch; return the batch and the record's index in the batch.

        ``alone`` is whether the record has a span of its own, if it is traced.
        """
        if self._thread is not None and self._thread_id() != self._thread:
            raise wrong_thread()
        if timestamp_ms is not None and not (type(timestamp_ms) is int and 0 <= timestamp_ms < 2**63):
            raise invalid_timestamp(timestamp_ms)
        if not isinstance(topic, str):
            raise invalid_topic(topic)
        opened = self._topics.get(topic)
        if opened is None:
            opened = self._topics[topic] = self._open_topic(topic)
        raw_key = _raw(key, self._serialize_key, "key")
        raw_value = _raw(value, self._serialize_value, "value")
        pairs = () if headers is None or headers is _NO_HEADERS else header_pairs(headers)
        size = record_size_bound(raw_key, raw_value, pairs)
        if size > self._max_record_size or self._space.used + size > self._space.limit:
            raise self._no_space(topic, size)
        if partition is None:
            partition = self._choose(opened, raw_key, size)
        elif not isinstance(partition, int) or isinstance(partition, bool) or not 0 <= partition < opened.count:
            raise self._no_partition(topic, partition, opened.count)
        if self._transactional:
            self._add_to_transaction(topic, partition)
        timestamp = self._wall_ms() if timestamp_ms is None else timestamp_ms
        if self._tracing is not None:
            room = self._max_record_size - size
            return self._append_traced(
                self._tracing, opened, partition, timestamp, raw_key, raw_value, pairs, room, alone
            )
        batch = opened.batches[partition]
        index = -1 if batch is None else batch.append(self._space, timestamp, raw_key, raw_value, pairs)
        if batch is None or index < 0:
            batch, index = self._open_batch(topic, partition, timestamp, raw_key, raw_value, pairs)
            opened.batches[partition] = batch
        return batch, index

    def _append_traced(
        self,
        tracing: Tracing,
        opened: OpenTopic,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        given: Sequence[Header],
        room: int,
        alone: bool,
    ) -> tuple[OpenBatch, int]:
        """Append a record with the caller's trace context, if the caller is traced."""
        batch, context, trace, pairs = opened.batches[partition], tracing.variable.get(), None, given
        if batch is not None and not batch.closed:
            if batch.untraced is not context or given:
                trace = tracing.begin(opened.name, partition, batch.result, context, key, value, given, room, alone)
                pairs = given if trace is None else [*given, *trace.headers]
            index = batch.append(self._space, timestamp, key, value, pairs)
            if index >= 0:
                _note(batch, index, trace, None if given else context)
                return batch, index
        if trace is None or not trace.is_new:
            trace = tracing.begin(opened.name, partition, None, context, key, value, given, room, alone)
            pairs = given if trace is None else [*given, *trace.headers]
        batch, index = self._open_batch(opened.name, partition, timestamp, key, value, pairs)
        opened.batches[partition] = batch
        _note(batch, index, trace, None if given else context)
        return batch, index

    def _append_many(
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
        """Append the records from ``start`` to ``stop`` - 1; return the index of the first record that is not appended.

        If record ``start`` has an error, raise it. If a later record has one, stop before that record; the next call
        begins with it, and raises the error.
        """
        for at in range(start, stop):
            try:
                key = None if keys is None else keys[at]
                batch, index = self._append(topic, values[at], key, partition, timestamp_ms, headers)
            except Exception:
                if at == start:
                    raise
                return at
            if not index or batch.builder.size >= batch.builder.limit:
                self._wake()
        return stop

    def _append_columns(self, topic: str, columns: ManyRecords, start: int, stop: int) -> int:
        """Append records given as columns, as :meth:`_append_many`; all without a timestamp get the same."""
        now = self._wall_ms()
        for at in range(start, stop):
            try:
                batch, index = self._append(topic, *columns.record(at, now))
            except Exception:
                if at == start:
                    raise
                return at
            if not index or batch.builder.size >= batch.builder.limit:
                self._wake()
        return stop

    def _choose(self, opened: OpenTopic, key: bytes | None, size: int) -> int:
        partitioning, sticky = self._partitioning, opened.sticky
        if sticky is not None and (key is None or partitioning.ignores_keys):
            sent = sticky.sent + size - RECORD_OVERHEAD
            if sent <= sticky.limit or (sent <= sticky.max_sent and _has_room(opened.batches[sticky.partition], size)):
                sticky.sent = sent
                return sticky.partition
        chosen = partitioning.choose(opened.name, key, opened.available, opened.count, size)
        if partitioning.sticky is not None:
            opened.sticky = partitioning.sticky.get(opened.name)
        return chosen

    # --- for the subclass --------------------------------------------------------------------------------

    def _open_topic(self, topic: str) -> OpenTopic:
        """Return the topic if its partitions are known; raise an error if the topic accepts no records."""
        raise NotImplementedError

    def _open_batch(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> tuple[OpenBatch, int]:
        """Append a record to the partition's last batch or a new one; return the batch and the record's index in it."""
        raise NotImplementedError

    def _add_to_transaction(self, topic: str, partition: int) -> None:
        """Add the partition of a record to the transaction; raise an error if the transaction accepts no record."""
        raise NotImplementedError

    def _no_partition(self, topic: str, partition: object, count: int) -> KafkaError:
        """Return the error for a partition that the topic, which has ``count`` partitions, does not have."""
        raise NotImplementedError

    def _no_space(self, topic: str, size: int) -> KafkaError:
        """Return the error for a record for which there is no space; the record has up to ``size`` bytes."""
        raise NotImplementedError

    async def _let_others_run(self) -> None:
        """Yield to other tasks."""
        raise NotImplementedError

    async def _wait_and_append(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[OpenBatch, int]:
        """Append a record once its topic is known and there is buffer space; raise an error after ``max_block_ms``."""
        raise NotImplementedError


def _note(batch: OpenBatch, index: int, trace: RecordTrace | None, context: object) -> None:
    """Note whether the record ``index`` is traced, and with it others of the same context."""
    if trace is not None:
        trace.appended(batch.result, index)
    elif context is not None:
        batch.untraced = context


def _has_room(batch: OpenBatch | None, size: int) -> bool:
    return batch is not None and not batch.closed and batch.builder.size + size <= batch.builder.limit


def _raw(given: Any, serialize: Callable[[Any], bytes] | None, part: str) -> bytes | None:
    if given is None:
        return None
    raw = serialize(given) if serialize is not None else given
    return raw if isinstance(raw, bytes) else copy_bytes(raw, part, serialized=serialize is not None)


def item_ends(text: bytes, delimiter: bytes) -> bytes:
    """Return where the items of a text end that have a delimiter after them, as int64 numbers.

    The first number is where the first item begins, less the size of the delimiter: each item begins that many bytes
    after the number before its end.

    Raises:
        ValueError: the delimiter is empty.
    """
    if not delimiter:
        raise ValueError("empty delimiter")
    size = len(delimiter)
    ends = array("q", [-size])
    at = text.find(delimiter)
    while at >= 0:
        ends.append(at)
        at = text.find(delimiter, at + size)
    return ends.tobytes()
