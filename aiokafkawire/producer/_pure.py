"""The appender, which encodes records into their batches, in plain Python: the readable twin of the compiled one."""

from array import array
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context
from typing import Any, Final, Generic, Protocol, TypeVar, final

from ..errors import BufferFull, KafkaError, TopicNotReady
from ..records._pure import Delivery
from ..records.batch import BatchBuilder, record_size_bound
from ..records.delivery_result import DeliveryResult
from ..types import Header, Headers, RecordMetadata
from .record_checks import (
    RECORD_OVERHEAD,
    YIELD_EVERY,
    copy_bytes,
    header_pairs,
    invalid_partition,
    invalid_timestamp,
    invalid_topic,
    wrong_thread,
)

__all__ = ("Appender", "BatchEvent", "BufferSpace", "OpenBatch", "OpenTopic", "StickyPartition")

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)

_NO_HEADERS: Final[Headers] = ()


class Loop(Protocol):
    """The part of asyncio's event loop that :class:`BatchEvent` uses."""

    def create_future(self) -> Any:
        """Return a new future."""

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> object:
        """Call back in the loop's next iteration."""


class Sends(Protocol):
    """The part of the sender that the appender uses."""

    def wake(self) -> None:
        """Send a new or full batch soon."""

    def send_immediately(self) -> Coroutine[Any, Any, None] | None:
        """Send a new batch in this call if nothing is in flight; the caller must await a returned coroutine at once."""


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
    """The bytes that batches occupy, and their limit (``buffer_memory``)."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.used: int = 0


@final
class StickyPartition:
    """The partition that a topic's records without a key go to, and the bytes that went to it so far."""

    __slots__ = ("available", "limit", "max_sent", "partition", "sent")

    def __init__(self, partition: int, available: Sequence[int], sent: int, limit: int, max_sent: int) -> None:
        self.partition: int = partition
        self.available: Sequence[int] = available
        self.sent: int = sent
        self.limit: int = limit
        """The partition stays up to this number of bytes."""
        self.max_sent: int = max_sent
        """The partition stays up to this number of bytes while the open batch has room."""


@final
class OpenBatch:
    """A batch that takes records: its builder, and the result that their deliveries wait for.

    ``timestamps`` (an array of ms) gets the timestamp of each record.
    """

    __slots__ = ("builder", "closed", "result", "timestamps")

    def __init__(self, builder: BatchBuilder, result: DeliveryResult, timestamps: "array[int]") -> None:
        self.builder: BatchBuilder = builder
        self.result: DeliveryResult = result
        self.timestamps: array[int] = timestamps
        self.closed: bool = False
        """Whether the batch takes no more records: it is full, was sent once, or will not be sent."""

    def append(
        self,
        space: BufferSpace,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header],
    ) -> int:
        """Append a record and return its index; -1 if the batch is closed or full."""
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
    """A topic with its open batches, valid until the metadata changes.

    Args:
        name: the topic.
        count: the number of its partitions.
        available: the partitions with a leader.
        sticky: the partition for records without a key, if the partitioner is sticky.
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
    """The event of a batch on asyncio's ``loop``, for tasks only. Each task awaits a future without a coroutine."""

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
        """Return an awaitable that ends once the event is set; only one task may await it."""
        future = self._loop.create_future()
        if self._is_set:
            future.set_result(None)
        else:
            self._futures.append(future)
        awaited: Awaitable[None] = future
        return awaited


class Appender(Generic[K, V]):
    """The base of the producer: its methods encode records into the open batches of their partitions.

    A subclass opens topics and batches, and waits for metadata and buffer space; see the last methods.

    Args:
        sender: sends the batches.
        space: counts the bytes that all batches occupy.
        max_record_size: the maximum size of a record, in bytes.
        partitioning: chooses partitions.
        wall_ms: returns the time, in ms since the epoch.
        key_serializer: converts keys to bytes; None if keys are bytes already.
        value_serializer: the same for values.
        transactional: whether :meth:`_add_to_transaction` must allow each record.
        thread_id: returns the calling thread's id; after :meth:`_bind_thread` calls from other threads are refused.
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
            topic: its topic.
            value: bytes, or what the ``value_serializer`` takes; None is a tombstone.
            key: as ``value``; records with equal keys go to the same partition, as with Kafka's Java client.
            partition: overrides the choice by key.
            timestamp_ms: ms since the epoch; now if not given.
            headers: names and bytes.

        A call that is cancelled before it accepts the record sends nothing; an accepted record is still sent.

        Raises:
            BufferFull, TopicNotReady: no buffer space, or no such topic, within ``max_block_ms``.
            RecordTooLarge: the record exceeds ``max_request_size``.
            RequestTimeout: no acknowledgement within ``delivery_timeout_ms``; a broker may have written the record.
            BrokerError: the broker refuses the record.
            UsageError: the topic's name is not allowed, or it has no such partition.
        """
        try:
            batch, index = self._append(topic, value, key, partition, timestamp_ms, headers)
        except (TopicNotReady, BufferFull):
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

        Arguments and errors are those of :meth:`send`; await the delivery for the record's result.
        """
        self._unyielded += 1
        if self._unyielded >= YIELD_EVERY:
            self._unyielded = 0
            # Yield before the record is accepted: a caller cancelled here knows that it was not.
            await self._let_others_run()
        try:
            batch, index = self._append(topic, value, key, partition, timestamp_ms, headers)
        except (TopicNotReady, BufferFull):
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
        """Accept one record without waiting for anything. Arguments are those of :meth:`send`.

        Raises:
            BufferFull: ``buffer_memory`` is used up.
            TopicNotReady: the topic's partitions are not known yet; the client requests its metadata.
            RecordTooLarge, UsageError: as :meth:`send`.
        """
        batch, index = self._append(topic, value, key, partition, timestamp_ms, headers)
        if not index or batch.builder.size >= batch.builder.limit:
            self._wake()
        return Delivery(batch.result, index)

    def _bind_thread(self) -> None:
        """Refuse records from other threads from now on."""
        self._thread = self._thread_id()

    def _invalidate_topics(self) -> None:
        """Open every topic again at its next record: the metadata or the producer's state has changed."""
        self._topics.clear()

    def _append(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[OpenBatch, int]:
        """Append one record to a batch; return the batch and the record's index in it."""
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
            raise invalid_partition(topic, partition, opened.count)
        if self._transactional:
            self._add_to_transaction(topic, partition)
        timestamp = self._wall_ms() if timestamp_ms is None else timestamp_ms
        batch = opened.batches[partition]
        index = -1 if batch is None else batch.append(self._space, timestamp, raw_key, raw_value, pairs)
        if batch is None or index < 0:
            batch, index = self._open_batch(topic, partition, timestamp, raw_key, raw_value, pairs)
            opened.batches[partition] = batch
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
        """Append records ``start`` to ``stop``; return the index of the first that was not appended.

        Raises if record ``start`` fails; the error of a later record is raised by the next call, which starts with it.
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
        """Return the topic if its partitions are known, or raise why no record can be sent to it."""
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
        """Append a record to the partition's last batch or a new one; return the batch and the index in it."""
        raise NotImplementedError

    def _add_to_transaction(self, topic: str, partition: int) -> None:
        """Raise if the transaction takes no record for this partition."""
        raise NotImplementedError

    def _no_space(self, topic: str, size: int) -> KafkaError:
        """Return why there is no space for a record of up to ``size`` bytes."""
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
        """Append a record as soon as its topic is known and there is space; raise after ``max_block_ms``."""
        raise NotImplementedError


def _has_room(batch: OpenBatch | None, size: int) -> bool:
    return batch is not None and not batch.closed and batch.builder.size + size <= batch.builder.limit


def _raw(given: Any, serialize: Callable[[Any], bytes] | None, part: str) -> bytes | None:
    if given is None:
        return None
    raw = serialize(given) if serialize is not None else given
    return raw if isinstance(raw, bytes) else copy_bytes(raw, part, serialized=serialize is not None)
