"""Readers of a topic from a start to an end, for ``Client.read_records`` and ``Client.read_batches``.

1. Starts and ends are looked up once, when the iteration begins. Records that are appended later are not read.
2. A partition is finished when the consumer's position reaches the partition's end. The last offsets before an end may
   have no record: control records of transactions, aborted records, and records that compaction has removed.
3. ``fetch_max_bytes`` limits the buffered data, as for a consumer. Finished partitions have no buffered data.
"""

import asyncio
from abc import abstractmethod
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar

from .cluster.list_offsets import look_up_ends, look_up_offsets, look_up_starts
from .cluster.retry import Deadline
from .config import ConsumerOptions
from .consumer.consumer import Consumer, ConsumerBatch
from .errors import ConfigError, OffsetOutOfRange, UsageError
from .records.batch import ConsumerRecord
from .runtime import Owner, call_soon_threadsafe
from .types import IsolationLevel, OffsetSpec, TopicPartition, check_partition, check_start, check_topic_name

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("BoundedBatches", "BoundedReader", "Bounds", "BoundedRecords", "reader_options")

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

Bounds: TypeAlias = OffsetSpec | Mapping[TopicPartition, int | OffsetSpec]
"""The starts or the ends of a read: one OffsetSpec for all partitions, or an offset or OffsetSpec by partition."""

_Offsets: TypeAlias = dict[TopicPartition, int]

_RECORDS: Final = 500
"""The maximum number of records that one poll of the consumer returns."""
_ROWS: Final = 4_096
"""The number of rows at which an Arrow record batch, made of one or more Kafka batches, is complete."""

_BYTES: Final = 8 * 1024 * 1024
"""The size in bytes at which an Arrow record batch is complete even with fewer rows."""


class _EndReached(Exception):
    """The signal that all partitions were read up to their ends."""


class _Unfinished:
    """The partitions of a reader that were not read up to their ends yet."""

    def __init__(self, consumer: Consumer[Any, Any], starts: _Offsets, ends: _Offsets) -> None:
        self._consumer, self._starts, self._ends = consumer, starts, dict(ends)

    def left(self) -> int:
        """Return the number of offsets from the positions to the ends."""
        left = 0
        for partition, end in self._ends.items():
            position = self._position(partition)
            left += max(0, end - (self._starts[partition] if position is None else position))
        return left

    def check(self) -> None:
        """Remove the partitions whose end is reached, and unassign them.

        Raises:
            _EndReached: no partition is left.
        """
        ended = [partition for partition, end in self._ends.items() if (self._position(partition) or 0) >= end]
        for partition in ended:
            del self._ends[partition]
        if not self._ends:
            raise _EndReached
        if ended:
            self._consumer.assign(list(self._ends))

    def _position(self, partition: TopicPartition) -> int | None:
        return self._consumer.position(partition)


class BoundedReader(AsyncIterator[T]):
    """An asynchronous iterator over the records of a topic from a start to an end, which a client makes.

    Reading starts with the iteration. The reader closes itself at the end, after an OffsetOutOfRange error, and when it
    is garbage-collected. If a loop may be left early, use the reader as ``async with`` to close it at once. After any
    error except OffsetOutOfRange, the iteration can be continued.
    """

    def __init__(self, consumer: Consumer[Any, Any], topic: str, start: Bounds, end: Bounds | None) -> None:
        check_topic_name(topic)
        self._consumer, self._topic, self._cluster = consumer, topic, consumer._cluster
        self._isolation = consumer._config.isolation
        self._start, self._end = _checked(topic, "start", start), _checked(topic, "end", end)
        self._ends: dict[int, int] = {}
        self._unfinished: _Unfinished | None = None
        self._total = 0
        self._state = "new"
        self._call_soon: Callable[[Callable[[], object]], object] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def progress(self) -> tuple[int, int]:
        """The number of offsets that were read, and of those from the start to the end; zeros before the first item.

        Some offsets may have no record, as after transactions or compaction.
        """
        left = 0 if self._unfinished is None else self._unfinished.left()
        return self._total - left, self._total

    async def aclose(self) -> None:
        """Stop reading, and close the consumer. Repeated calls have no effect."""
        if self._state == "open":
            self._state = "closed"
            await self._consumer.close()
        self._state = "closed"

    def __del__(self) -> None:
        # An ``async for`` that is left early does not close its iterator. The garbage collector may run on any thread.
        if getattr(self, "_state", "new") == "open" and self._call_soon is not None:
            owner, consumer = self._cluster.owner, self._consumer
            with suppress(RuntimeError):  # the event loop has ended, and so has the consumer
                self._call_soon(lambda: _close_in_background(owner, consumer))

    async def __anext__(self) -> T:
        """Return the next item; wait until there is one.

        Raises:
            OffsetOutOfRange: records between start and end were deleted.
            KafkaError: fetching fails permanently, or fails after ``default_api_timeout_ms`` of retries.
        """
        if self._state == "new":
            await self._open()
        if self._state == "open":
            try:
                return await self._next()
            except _EndReached:
                await self.aclose()
            except OffsetOutOfRange as error:
                await self.aclose()
                raise OffsetOutOfRange(
                    f"cannot read all of topic {self._topic!r}: records were deleted before they were read "
                    "(auto_offset_reset='earliest' reads the remaining records)"
                ) from error
        raise StopAsyncIteration

    @abstractmethod
    async def _next(self) -> T:
        """Return the next item; raise _EndReached at the end. A cancelled call loses no records."""

    async def _open(self) -> None:
        starts, ends = await self._resolve()
        if self._state != "new":
            raise UsageError("this reader is closed, or another task iterates it: make another reader")
        if not starts:
            self._state = "closed"
            return
        await self._consumer.__aenter__()
        self._state, self._call_soon = "open", call_soon_threadsafe()
        self._consumer.assign(starts)
        for partition in starts:
            self._consumer._fetch_until(partition, ends[partition])
        self._ends = {partition.partition: ends[partition] for partition in starts}
        # A reference from the consumer to the reader would delay the garbage collection, which closes the reader.
        self._unfinished = _Unfinished(self._consumer, starts, {partition: ends[partition] for partition in starts})
        self._total = self._unfinished.left()
        self._consumer._iteration.before_waiting = self._unfinished.check

    async def _resolve(self) -> tuple[_Offsets, _Offsets]:
        """Return the starts and the ends by partition; leave out a start that is not before the partition's end."""
        deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
        partitions = await self._partitions(deadline)
        ends = await self._resolve_ends(
            {partition: _bound(self._end, partition, OffsetSpec.LATEST) for partition in partitions}, deadline
        )
        starts = {partition: _bound(self._start, partition, OffsetSpec.EARLIEST) for partition in partitions}
        found = await self._look_up(_specs(starts), deadline)
        # A partition without a record at or after the start time is not read.
        resolved = {
            partition: start if isinstance(start, int) else found.get(partition, ends[partition])
            for partition, start in starts.items()
        }
        return {partition: start for partition, start in resolved.items() if start < ends[partition]}, ends

    async def _partitions(self, deadline: Deadline) -> list[TopicPartition]:
        named = [*(bound for bound in (self._start, self._end) if isinstance(bound, Mapping))]
        if named:
            return sorted({partition for bound in named for partition in bound})
        known = await self._cluster.metadata.topic(self._topic, deadline)
        return [TopicPartition(self._topic, partition.index) for partition in known.partitions]

    async def _resolve_ends(self, bounds: Mapping[TopicPartition, int | OffsetSpec], deadline: Deadline) -> _Offsets:
        ends = await look_up_starts(self._cluster, _specs(bounds), deadline, self._isolation)
        given = {partition: bound for partition, bound in bounds.items() if isinstance(bound, int)}
        # Compare a given end with the log's end, not with an open transaction: the reader waits until that has ended.
        logs = await look_up_ends(self._cluster, given, deadline, IsolationLevel.READ_UNCOMMITTED)
        for partition, end in given.items():
            if end > logs[partition]:
                raise UsageError(f"cannot read {partition} up to offset {end}: its log ends at {logs[partition]}")
        return ends | given

    async def _look_up(self, specs: Mapping[TopicPartition, OffsetSpec], deadline: Deadline) -> _Offsets:
        found = await look_up_offsets(self._cluster, specs, deadline, self._isolation)
        return {partition: offset.offset for partition, offset in found.items() if offset is not None}


class BoundedRecords(BoundedReader[ConsumerRecord[K, V]]):
    """A reader whose items are records. An iteration continued after DeserializationError skips the invalid record."""

    def __init__(self, consumer: Consumer[K, V], topic: str, start: Bounds, end: Bounds | None) -> None:
        super().__init__(consumer, topic, start, end)
        self._records: deque[ConsumerRecord[K, V]] = deque()

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """Return the next record; wait until there is one. Raises as :meth:`BoundedReader.__anext__`."""
        return self._records.popleft() if self._records else await super().__anext__()

    async def take(self) -> list[ConsumerRecord[K, V]]:
        """Wait for a record, and return all buffered records. At the end of the read, return an empty list."""
        first = await anext(self, None)
        if first is None:
            return []
        records = [first, *self._records]
        self._records.clear()
        return records

    async def _next(self) -> ConsumerRecord[K, V]:
        ends = self._ends
        while not self._records:
            records = await self._consumer.poll(_RECORDS)
            if not records:  # another task has closed the reader
                raise StopAsyncIteration
            self._records.extend(record for record in records if record.offset < ends[record.partition])
        return self._records.popleft()


class BoundedBatches(BoundedReader["pa.RecordBatch"]):
    """A reader whose items are Arrow record batches, with some or all of the columns of ``ConsumerBatch.to_arrow``.

    A record batch has records of one or more partitions. An iteration continued after CorruptBatch skips the damaged
    Kafka batch.
    """

    def __init__(
        self,
        consumer: Consumer[Any, Any],
        topic: str,
        start: Bounds,
        end: Bounds | None,
        columns: Sequence[str] | None,
    ) -> None:
        super().__init__(consumer, topic, start, end)
        self._columns = _checked_columns(columns)
        self._error: Exception | None = None

    @property
    def schema(self) -> "pa.Schema":
        """The schema of the record batches."""
        from .records.arrow import schema_of

        return schema_of(self._columns)

    async def _next(self) -> "pa.RecordBatch":
        while True:
            error, self._error = self._error, None
            if error is not None:
                raise error
            gathered = self._gather(await self._consumer._iteration.next_batch())
            if gathered:
                return _joined(gathered)

    def _gather(self, batch: ConsumerBatch[Any, Any] | None) -> "list[pa.RecordBatch]":
        """Return ``batch`` and the batches buffered after it as non-empty Arrow batches; an empty list for None."""
        gathered: list[pa.RecordBatch] = []
        rows = size = 0
        while batch is not None:
            try:
                converted = self._to_arrow(batch)
            except Exception as error:
                # Return the batches before the error; the next call raises the error.
                self._error = error
                break
            if converted.num_rows:
                gathered.append(converted)
                rows, size = rows + converted.num_rows, size + converted.nbytes
            batch = self._consumer._iteration.ready_batch() if rows < _ROWS and size < _BYTES else None
        return gathered

    def _to_arrow(self, batch: ConsumerBatch[Any, Any]) -> "pa.RecordBatch":
        from .records.arrow import record_batch

        columns = batch.columns(with_keys="key" in self._columns, with_values="value" in self._columns)
        end = self._ends[batch.partition]
        converted = record_batch(columns, batch.topic, batch.partition, self._columns)
        if batch.next_offset > end:
            # Offsets ascend, but may have gaps after compaction, so search for the end.
            converted = converted.slice(0, bisect_left(memoryview(columns.offsets).cast("q"), end))
        return converted


def reader_options(options: ConsumerOptions) -> ConsumerOptions:
    """Return a consumer's options with the defaults of a bounded read.

    Raises:
        ConfigError: the options name a group.
    """
    for name in ("group_id", "group_instance_id"):
        if options.get(name) is not None:
            raise ConfigError(f"{name} must be left out: a bounded read joins no group and commits no offsets")
    defaults = ConsumerOptions(isolation_level="read_committed", auto_offset_reset="none")
    return {**defaults, **options}


def _checked(topic: str, name: str, bounds: object) -> Bounds | None:
    if bounds is None and name == "end":
        return None
    if isinstance(bounds, OffsetSpec):
        check_start(TopicPartition(topic, 0), bounds)
        return bounds
    if not isinstance(bounds, Mapping):
        raise UsageError(
            f"{name} must be an OffsetSpec, or a mapping of TopicPartition to offsets, got {bounds!r:.200}"
        )
    checked: dict[TopicPartition, int | OffsetSpec] = {}
    for given, bound in bounds.items():
        if not isinstance(given, tuple) or len(given) != 2:
            raise UsageError(f"the keys of {name} must be TopicPartition, got {given!r:.200}")
        partition = check_partition(given)
        if partition.topic != topic:
            raise UsageError(f"{name} has partition {partition}, which is not of topic {topic!r}")
        check_start(partition, bound)
        checked[partition] = bound
    return checked


def _checked_columns(columns: object) -> tuple[str, ...]:
    from .records.arrow import SCHEMA

    if columns is None:
        return tuple(SCHEMA.names)
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise UsageError(f"columns must be a list of names such as ['key', 'value'], got {columns!r:.200}")
    for name in columns:
        if name not in SCHEMA.names:
            raise UsageError(f"unknown column {name!r:.200}; known: {', '.join(SCHEMA.names)}")
    return tuple(columns)


def _bound(bounds: Bounds | None, partition: TopicPartition, otherwise: OffsetSpec) -> int | OffsetSpec:
    if isinstance(bounds, Mapping):
        return bounds.get(partition, otherwise)
    return otherwise if bounds is None else bounds


def _specs(bounds: Mapping[TopicPartition, int | OffsetSpec]) -> dict[TopicPartition, OffsetSpec]:
    return {partition: bound for partition, bound in bounds.items() if isinstance(bound, OffsetSpec)}


def _joined(batches: "list[pa.RecordBatch]") -> "pa.RecordBatch":
    if len(batches) == 1:
        return batches[0]
    import pyarrow as pa

    # The combined table has one record batch, since its rows and bytes are limited.
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _close_in_background(owner: Owner, consumer: Consumer[Any, Any]) -> None:
    loop = asyncio._get_running_loop()
    if loop is None:
        _spawn_close(owner, consumer)
    else:  # anyio knows the loop of a task, and not that of a callback
        loop.create_task(_spawn_close_in_a_task(owner, consumer))


async def _spawn_close_in_a_task(owner: Owner, consumer: Consumer[Any, Any]) -> None:
    _spawn_close(owner, consumer)


def _spawn_close(owner: Owner, consumer: Consumer[Any, Any]) -> None:
    with suppress(UsageError):  # the client is closed, and so is the consumer
        owner.spawn(consumer.close)
