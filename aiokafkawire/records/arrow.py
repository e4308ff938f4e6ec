"""The conversion of a batch's columns to Arrow's classes; imported on demand, since pyarrow is an extra."""

from itertools import accumulate
from typing import TYPE_CHECKING

try:
    import pyarrow as pa
except ImportError as _missing:
    raise ImportError("Arrow needs pyarrow: pip install aiokafkawire[arrow]") from _missing

from ..types import Header

if TYPE_CHECKING:
    from .columns import BytesColumn, Columns

__all__ = ("SCHEMA", "record_batch")

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.dictionary(pa.int32(), pa.string())),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("headers", _HEADERS),
    ]
)
"""The schema of the Arrow record batches that :func:`record_batch` returns."""


def record_batch(columns: "Columns", topic: str, partition: int) -> "pa.RecordBatch":
    """Convert one partition's records, given as columns, to an Arrow record batch for ``ConsumerBatch.to_arrow``."""
    count = columns.count
    timestamps = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(columns.timestamps)])
    arrays = [
        _binary(columns.keys, count),
        _binary(columns.values, count),
        pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([topic], pa.string())),
        pa.repeat(pa.scalar(partition, pa.int32()), count),
        pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(columns.offsets)]),
        _without_minus_one(timestamps).cast(SCHEMA.field("timestamp").type),
        _headers(columns.headers, count),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _binary(column: "BytesColumn", count: int) -> "pa.Array":
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.ends), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, null_count=column.nulls)


def _without_minus_one(timestamps: "pa.Array") -> "pa.Array":
    """Replace the timestamp -1 by null; messages from before Kafka 0.10 have no timestamp."""
    import pyarrow.compute as pc

    unknown = pc.equal(timestamps, -1)
    return pc.if_else(unknown, None, timestamps) if pc.any(unknown).as_py() else timestamps


def _headers(headers: list[tuple[Header, ...]] | None, count: int) -> "pa.Array":
    if headers is None:
        empty = pa.array([], SCHEMA.field("headers").type.value_type)
        return pa.ListArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count + 1), empty)
    pairs = [pair for record_headers in headers for pair in record_headers]
    names = pa.array([name for name, _ in pairs], pa.string())
    values = pa.array([value for _, value in pairs], pa.binary())
    ends = pa.array([0, *accumulate(map(len, headers))], pa.int32())
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays([names, values], ["key", "value"]))
