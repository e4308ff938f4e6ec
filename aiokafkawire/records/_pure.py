"""The record reader in plain Python: the readable twin of the compiled one, with the same names and behaviour."""

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar, final

from ..errors import CorruptBatch
from ..types import Header, RecordMetadata, TimestampType
from . import layout
from ._pure_builder import BatchBuilder, record_size_bound
from ._pure_record import ConsumerRecord, Source, undeserializable
from .columns import Columns, columns_of, join_values
from .delivery_result import DeliveryCallback, DeliveryResult
from .pickling import RAW
from .varint import UNZIGZAG, read_varint

__all__ = ("BatchBuilder", "ConsumerRecord", "Delivery", "RecordReader", "record_size_bound")

K = TypeVar("K")
V = TypeVar("V")


@final
class RecordReader(Generic[K, V]):
    """An iterator that decodes the records of one batch from the batch's decompressed body.

    Errors do not end the iteration: after a DeserializationError, ``next`` returns the next record; after a
    CorruptBatch, ``next`` raises the same error again. Each record is validated completely before it is returned.
    """

    __slots__ = (
        "_base_offset",
        "_base_timestamp",
        "_delta",
        "_from_offset",
        "_key_deserializer",
        "_last_delta",
        "_left",
        "_log_append_time",
        "_position",
        "_source",
        "_value_deserializer",
        "_view",
        "met_headers",
    )

    def __init__(
        self,
        body: memoryview,
        *,
        count: int,
        base_offset: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        timestamp_type: TimestampType,
        topic: str,
        partition: int,
        leader_epoch: int | None = None,
        from_offset: int = 0,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
    ) -> None:
        self._view = body
        self._left = count
        self._base_offset = base_offset
        self._last_delta = last_offset_delta
        self._base_timestamp = base_timestamp
        self._log_append_time = max_timestamp if timestamp_type is TimestampType.LOG_APPEND_TIME else None
        self._from_offset = from_offset
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._position = 0
        self._delta = -1
        self.met_headers: bool = False
        """Whether a record that was read had headers."""
        self._source = Source(topic, partition, leader_epoch, timestamp_type, body)
        if not 0 <= count * layout.SHORTEST_RECORD <= len(body):
            raise self._corrupt(f"{count} records in {len(body)} bytes")

    @property
    def next_offset(self) -> int:
        """The next offset to read: the one after the last returned record or, after all records, after the batch.

        A batch may extend beyond its last record, if compaction has removed later records.
        """
        delta = self._delta if self._left else self._last_delta
        return max(self._from_offset, self._base_offset + delta + 1)

    def columns(self, *, with_keys: bool = True, with_values: bool = True) -> Columns:
        """Return the remaining records as columns, with raw keys and values unless these are left out."""
        self._key_deserializer = self._value_deserializer = None
        return columns_of(self, with_keys=with_keys, with_values=with_values)

    def joined_values(self, delimiter: bytes, null: bytes) -> tuple[int, bytes]:
        """Return the number of the remaining records and their raw values, each with the delimiter after it."""
        self._key_deserializer = self._value_deserializer = None
        return join_values(self, delimiter, null)

    def __iter__(self) -> "RecordReader[K, V]":
        return self

    def __next__(self) -> ConsumerRecord[K, V]:
        try:
            record = self._step()
        except (IndexError, ValueError) as damage:
            what = "cut short" if isinstance(damage, IndexError) else str(damage)
            raise self._corrupt(what) from damage
        if self._key_deserializer is not None and (raw_key := record.raw_key) is not None:
            try:
                record._key = self._key_deserializer(raw_key)
            except Exception as cause:
                raise undeserializable("key", record) from cause
        if self._value_deserializer is not None and (raw_value := record.raw_value) is not None:
            try:
                record._value = self._value_deserializer(raw_value)
            except Exception as cause:
                raise undeserializable("value", record) from cause
        return record

    def _step(self) -> ConsumerRecord[K, V]:
        """Return the next record at or after ``from_offset``; raise ValueError or IndexError for invalid bytes."""
        view = self._view
        while self._left:
            position = self._position
            n = view[position]
            length, position = (UNZIGZAG[n], position + 1) if n < 128 else read_varint(view, position)
            end = position + length
            if not position < end <= len(view):
                raise ValueError(f"a record of {length} bytes, with {len(view) - position} left")
            position += 1  # attributes, unused
            n = view[position]
            elapsed, position = (UNZIGZAG[n], position + 1) if n < 128 else read_varint(view, position, 64)
            n = view[position]
            delta, position = (UNZIGZAG[n], position + 1) if n < 128 else read_varint(view, position)
            if not self._delta < delta <= self._last_delta:
                raise ValueError(f"offset delta {delta} after {self._delta}, with {self._last_delta} the last")
            offset = self._base_offset + delta
            record = None if offset < self._from_offset else self._record(offset, elapsed, position, end)
            self._position = end
            self._delta = delta
            self._left -= 1
            if record is not None:
                return record
        if self._position != len(view):
            raise ValueError(f"{len(view) - self._position} bytes after the last record")
        raise StopIteration

    def _record(self, offset: int, elapsed: int, position: int, end: int) -> ConsumerRecord[K, V]:
        view = self._view
        key: slice | None = None
        value: slice | None = None
        headers: tuple[Header, ...] = ()
        n = view[position]
        length, position = (UNZIGZAG[n], position + 1) if n < 128 else read_varint(view, position)
        if length >= 0:
            key = slice(position, position := position + length)
        elif length != -1:
            raise ValueError(f"a key of {length} bytes")
        n = view[position]
        length, position = (UNZIGZAG[n], position + 1) if n < 128 else read_varint(view, position)
        if length >= 0:
            value = slice(position, position := position + length)
        elif length != -1:
            raise ValueError(f"a value of {length} bytes")
        if view[position]:
            headers, position = _read_headers(view, position, end)
            self.met_headers = True
        else:
            position += 1
        if position != end:  # also detects lengths beyond the record
            raise ValueError(f"a record that says it ends at byte {end}, with fields that end at {position}")
        timestamp = self._log_append_time
        if timestamp is None:
            timestamp = self._base_timestamp + elapsed
            if not -0x8000_0000_0000_0000 <= timestamp <= 0x7FFF_FFFF_FFFF_FFFF:
                raise ValueError(f"a timestamp of {timestamp}")
        record: ConsumerRecord[K, V] = ConsumerRecord.__new__(ConsumerRecord)
        record._source = self._source
        record._offset = offset
        record._timestamp = timestamp
        record._raw_key = key
        record._raw_value = value
        record._headers = headers
        record._key = record._value = RAW
        return record

    def _corrupt(self, what: str) -> CorruptBatch:
        source = self._source
        offset = self._base_offset + self._delta + 1
        return CorruptBatch(
            f"{source.topic}-{source.partition}: batch at offset {self._base_offset}, record at byte {self._position}"
            f" (offset {offset} or later): {what}"
        )


def _read_headers(view: memoryview, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(view, position)
    if not 0 <= count <= (end - position) // 2:  # a header takes two bytes at least
        raise ValueError(f"{count} headers, with {end - position} bytes left")
    headers: list[Header] = []
    for _ in range(count):
        length, position = read_varint(view, position)
        if not 0 <= length <= end - position:
            raise ValueError(f"a header name of {length} bytes, with {end - position} left")
        # Kafka's classes replace invalid UTF-8 in names, so such a record must be readable here, too.
        name = str(view[position : position + length], "utf-8", "replace")
        length, position = read_varint(view, position + length)
        if not -1 <= length <= end - position:
            raise ValueError(f"a header of {length} bytes, with {end - position} left")
        if length < 0:
            headers.append((name, None))
        else:
            headers.append((name, bytes(view[position : position + length])))
            position += length
    return tuple(headers), position


@final
class Delivery:
    """An awaitable for the outcome of sending one record; it may be awaited several times.

    A delivery refers to the shared result of its batch: it has no event of its own, and does not keep the batch alive.
    """

    __slots__ = ("_index", "_result")

    def __init__(self, result: DeliveryResult, index: int) -> None:
        self._result = result
        self._index = index

    def __await__(self) -> Generator[Any, Any, RecordMetadata]:
        return self._result.wait(self._index).__await__()

    @property
    def done(self) -> bool:
        """Whether the outcome is known, so that awaiting returns or raises at once."""
        return self._result.is_done(self._index)

    def add_callback(self, callback: DeliveryCallback) -> None:
        """Call a function once when the outcome is known; at once if it is known already.

        It is called in the thread of the event loop, as soon as the broker's response arrives, so it must not wait. An
        exception that it raises is logged. A failure that a callback is given is not reported by ``flush()`` again.

        Args:
            callback: takes the record's metadata and the error of its batch, one of which is None.
        """
        self._result.add_callback(self._index, callback)

    def __repr__(self) -> str:
        return f"<Delivery {self._index}, {'done' if self.done else 'pending'}>"
