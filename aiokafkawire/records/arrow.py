"""The conversion of a batch's columns to Arrow's classes; imported on demand, since pyarrow is an extra."""

from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final

try:
    import pyarrow as pa
except ImportError as _missing:
    raise ImportError("Arrow needs pyarrow: pip install aiokafkawire[arrow]") from _missing

from ..types import Header

if TYPE_CHECKING:
    from collections.abc import Callable

    from .columns import BytesColumn, Columns

__all__ = ("SCHEMA", "record_batch", "schema_of")

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
_NO_TIMESTAMP: Final = b"\xff" * 8


def record_batch(
    columns: "Columns", topic: str, partition: int, names: tuple[str, ...] = tuple(SCHEMA.names)
) -> "pa.RecordBatch":
    """Convert one partition's records, given as columns, to an Arrow record batch for ``ConsumerBatch.to_arrow``.

    Only the columns of ``names`` are made, in their order.
    """
    count = columns.count
    make: dict[str, Callable[[], pa.Array]] = {
        "key": lambda: _binary(columns.keys, count),
        "value": lambda: _binary(columns.values, count),
        "topic": lambda: pa.DictionaryArray.from_arrays(_repeated(0, count), pa.array([topic], pa.string())),
        "partition": lambda: _repeated(partition, count),
        "offset": lambda: pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(columns.offsets)]),
        "timestamp": lambda: _timestamps(columns.timestamps, count),
        "headers": lambda: _headers(columns.headers, count),
    }
    return pa.RecordBatch.from_arrays([make[name]() for name in names], schema=schema_of(names))


@cache
def schema_of(names: tuple[str, ...]) -> "pa.Schema":
    """Return the schema of the columns with these names, in their order."""
    return pa.schema([SCHEMA.field(name) for name in names])


def _repeated(value: int, count: int) -> "pa.Array":
    return pa.repeat(pa.scalar(value, pa.int32()), count)


def _binary(column: "BytesColumn", count: int) -> "pa.Array":
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.ends), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, null_count=column.nulls)


def _timestamps(timestamps: bytes, count: int) -> "pa.Array":
    """Make times of milliseconds; -1 becomes null, since messages from before Kafka 0.10 have no timestamp."""
    kind, buffers = SCHEMA.field("timestamp").type, [None, pa.py_buffer(timestamps)]
    if _NO_TIMESTAMP not in timestamps:
        return pa.Array.from_buffers(kind, count, buffers)
    import pyarrow.compute as pc  # makes hundreds of functions as it is imported

    found = pa.Array.from_buffers(pa.int64(), count, buffers)
    return pc.if_else(pc.equal(found, -1), None, found).cast(kind)


def _headers(headers: list[tuple[Header, ...]] | None, count: int) -> "pa.Array":
    if headers is None:
        empty = pa.array([], SCHEMA.field("headers").type.value_type)
        return pa.ListArray.from_arrays(_repeated(0, count + 1), empty)
    pairs = [pair for record_headers in headers for pair in record_headers]
    names = pa.array([name for name, _ in pairs], pa.string())
    values = pa.array([value for _, value in pairs], pa.binary())
    ends = pa.array([0, *accumulate(map(len, headers))], pa.int32())
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays([names, values], ["key", "value"]))
