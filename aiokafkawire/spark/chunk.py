"""The conversion of many small Kafka batches of one partition to one Arrow record batch of the source's schema."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from sys import byteorder
from typing import Any, Final

import pyarrow as pa

from ..records.columns import BytesColumn, Columns
from ..types import Header, TimestampType
from .schema import HEADERS, arrow_schema

__all__ = ("Chunk",)

_MS: Final = pa.timestamp("ms", tz="UTC")
_WIDTH: Final = 8
_INT32: Final = 4


class Chunk:
    """A buffer of one partition's records for the next Arrow record batch."""

    def __init__(self, topic: str, partition: int, *, headers: bool, value: "pa.DataType | None" = None) -> None:
        self._topic, self._partition, self._with_headers = topic, partition, headers
        self._schema = arrow_schema(headers=headers, value=value)
        self.rows: int = 0
        self.size: int = 0
        """The number of bytes of all keys and values."""
        self._keys: list[pa.Array] = []
        self._values: list[pa.Array] = []
        # Columns of fixed width are joined as bytes: an Arrow array for each batch would cost more than its records.
        self._offsets: list[bytes] = []
        self._timestamps: list[bytes] = []
        self._types: list[tuple[TimestampType, int]] = []
        self._headers: list[pa.Array] = []

    def add(self, columns: Columns, timestamp_type: TimestampType, end: int) -> None:
        """Add the records of a Kafka batch that are before offset ``end``."""
        # Offsets ascend, with gaps in compacted batches.
        count = bisect_left(memoryview(columns.offsets).cast("q"), end)
        if not count:
            return
        self.rows += count
        self.size += len(columns.keys.data) + len(columns.values.data)
        if self._with_headers:
            self._headers.append(_headers(columns.headers, count))
        self._keys.append(_binary(columns.keys, count))
        self._values.append(_binary(columns.values, count))
        self._offsets.append(columns.offsets[: count * _WIDTH])
        self._timestamps.append(columns.timestamps[: count * _WIDTH])
        if self._types and self._types[-1][0] is timestamp_type:
            count += self._types.pop()[1]
        self._types.append((timestamp_type, count))

    @property
    def values(self) -> "pa.Array":
        """The binary values of all records. There must be at least one record."""
        return pa.concat_arrays(self._values)

    @property
    def offsets(self) -> Sequence[int]:
        """The offsets of all records."""
        return memoryview(b"".join(self._offsets)).cast("q")

    def record_batch(self, decoded: "pa.Array | None" = None) -> "pa.RecordBatch":
        """Return all records as one Arrow record batch; ``decoded`` are the values if they are not binary.

        There must be at least one record.
        """
        arrays = [
            pa.concat_arrays(self._keys),
            self.values if decoded is None else decoded,
            self._topics(),
            self._fixed(pa.int32(), [_int32(self._partition) * self.rows]),
            self._fixed(pa.int64(), self._offsets),
            # An unsafe cast, because a timestamp that overflows in us must not fail the query.
            self._fixed(_MS, self._timestamps).cast(self._schema.field("timestamp").type, safe=False),
            self._fixed(pa.int32(), [_int32(timestamp_type) * count for timestamp_type, count in self._types]),
        ]
        if self._with_headers:
            arrays.append(pa.concat_arrays(self._headers))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    # Build the array from buffers: from scalars or lists Arrow would import pandas, which takes longer than a task.
    def _topics(self) -> "pa.Array":
        name = self._topic.encode()
        ends = pa.py_buffer(_int32(0) + _int32(len(name)))
        once = pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(name)])
        zeros = self._fixed(pa.int32(), [bytes(_INT32 * self.rows)])
        return pa.DictionaryArray.from_arrays(zeros, once).dictionary_decode()

    def _fixed(self, data_type: "pa.DataType", parts: list[bytes]) -> "pa.Array":
        return pa.Array.from_buffers(data_type, self.rows, [None, pa.py_buffer(b"".join(parts))])


def _int32(number: int) -> bytes:
    return number.to_bytes(_INT32, byteorder, signed=True)


def _binary(column: BytesColumn, count: int) -> "pa.Array":
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    # The buffers have more than `count` entries, so column.nulls does not apply.
    return pa.Array.from_buffers(pa.binary(), count, [validity, pa.py_buffer(column.ends), pa.py_buffer(column.data)])


def _headers(headers: list[tuple[Header, ...]] | None, count: int) -> "pa.Array":
    """Return a list of headers for each record; null for records without headers, as in the JVM source."""
    if headers is None:
        return pa.nulls(count, HEADERS)
    kept = headers[:count]
    pairs = [pair for record_headers in kept for pair in record_headers]
    names = pa.array([name for name, _ in pairs], pa.string())
    values = pa.array([value for _, value in pairs], pa.binary())
    ends: list[Any] = [0, *accumulate(map(len, kept))]
    # A null offset makes the list null.
    begins = [end if record_headers else None for end, record_headers in zip(ends, kept, strict=False)]
    structs = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array([*begins, ends[-1]], pa.int32()), structs, type=HEADERS)
