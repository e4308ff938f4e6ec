"""The conversion of Arrow arrays to the columns that the appender encodes; imported on demand: pyarrow is an extra."""

import sys
from bisect import bisect_right
from itertools import accumulate
from typing import Any, Final, Literal

try:
    import pyarrow as pa
except ImportError as _missing:
    raise ImportError("Arrow needs pyarrow: pip install aiokafkawire[arrow]") from _missing

from ..argument_checks import shown
from ..errors import UsageError
from .many_records import is_arrow
from .record_checks import YIELD_EVERY
from .record_columns import VIEW_SIZE, BinaryColumn, HeadersColumn, RecordColumns, ViewColumn

__all__ = ("ArrowRecords", "nulls")

_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class ArrowRecords:
    """Records as Arrow arrays; :meth:`rows` returns a part of them as columns.

    Each argument is an Arrow array, chunked or not, or an object with the Arrow PyCapsule interface; for all except
    ``values`` also what all records have in common.

    Args:
        values, keys: binary, string (as UTF-8) or null, also large, of fixed size, as views or with a dictionary.
        partition: an integer; a null leaves the choice to the partitioner.
        timestamp_ms: integers, in ms since the epoch, or times; a null is the time at which the record is accepted.
        headers: lists of structs of a name and bytes.

    Raises:
        UsageError: an array has another type, or another length.
    """

    def __init__(self, values: Any, keys: Any, partition: Any, timestamp_ms: Any, headers: Any) -> None:
        self._values = _binary("values", _chunked(values))
        count = len(self._values)
        self._keys = None if keys is None else _binary("keys", _of_length("keys", keys, count))
        self._partitions = self._timestamps = self._headers = None
        common: dict[str, Any] = {}
        if is_arrow(partition):
            self._partitions = _numbers("partition", _of_length("partition", partition, count))
        else:
            common["partition"] = partition
        if is_arrow(timestamp_ms):
            self._timestamps = _numbers("timestamp_ms", _times(_of_length("timestamp_ms", timestamp_ms, count)))
        else:
            common["timestamp_ms"] = timestamp_ms
        if is_arrow(headers):
            self._headers = _header_lists(_of_length("headers", headers, count))
        else:
            common["headers"] = headers
        self._common = common
        RecordColumns(0, **common)  # raises the errors of what is common

    def __len__(self) -> int:
        return len(self._values)

    def rows(self, first: int, count: int) -> RecordColumns:
        """Return up to ``count`` records from ``first`` on; fewer where a chunk ends, or where rows must be copied.

        Raises:
            UsageError: a partition or a timestamp is negative, or an array is damaged.
        """
        given = (self._values, self._keys, self._partitions, self._timestamps, self._headers)
        stop = min(first + count, *(column.stop(first) for column in given if column is not None))

        def part(column: "_Column | None") -> "pa.Array | None":
            return None if column is None else column.rows(first, stop)

        keys, partitions, timestamps, headers = map(part, given[1:])
        return RecordColumns(
            stop - first,
            _binary_column(self._values.rows(first, stop)),
            None if keys is None else _binary_column(keys),
            partitions=None if partitions is None else _number_column("partition", partitions),
            timestamps=None if timestamps is None else _number_column("timestamp_ms", timestamps),
            header_lists=None if headers is None else _headers_column(headers),
            **self._common,
        )


class _Column:
    """A column of rows, whose chunks are read one after the other.

    Args:
        column: the column.
        limit: the number of rows to read at a time, if reading copies them.
    """

    def __init__(self, column: "pa.ChunkedArray", limit: int = sys.maxsize) -> None:
        self._chunks = [chunk for chunk in column.chunks if len(chunk)]
        self._starts = [0, *accumulate(map(len, self._chunks))]
        self._limit = limit

    def __len__(self) -> int:
        return self._starts[-1]

    def stop(self, first: int) -> int:
        """Return the row before which to stop if reading begins at ``first``."""
        return min(first + self._limit, self._starts[bisect_right(self._starts, first)])

    def rows(self, first: int, stop: int) -> "pa.Array":
        """Return the rows from ``first`` to ``stop``, which are of one chunk."""
        index = bisect_right(self._starts, first) - 1
        return self._chunks[index].slice(first - self._starts[index], stop - first)


def nulls(count: int) -> "pa.Array":
    """Return an array of nulls."""
    return pa.nulls(count)


def _chunked(column: Any) -> "pa.ChunkedArray":
    """Return an Arrow array as a chunked array, without a copy.

    Raises:
        UsageError: the object gives no Arrow array.
    """
    if isinstance(column, pa.ChunkedArray):
        return column
    try:
        if hasattr(column, "__arrow_c_array__"):
            return pa.chunked_array([column if isinstance(column, pa.Array) else pa.array(column)])
        return pa.chunked_array(column)
    except (pa.ArrowException, TypeError) as error:
        raise UsageError(f"a column must be an Arrow array, got {shown(column)}: {error}") from error


def _of_length(name: str, column: Any, count: int) -> "pa.ChunkedArray":
    found = _chunked(column)
    if len(found) != count:
        raise UsageError(f"{count} values and {len(found)} {name}: there must be one for each value")
    return found


def _binary(name: str, column: "pa.ChunkedArray") -> _Column:
    kind = _stored(column.type)
    if _is_read_as_it_is(kind):
        return _Column(column)
    if pa.types.is_dictionary(kind):
        kind = _stored(kind.value_type)
    if not (_is_read_as_it_is(kind) or _needs_cast(kind)):
        raise UsageError(
            f"{name} must be binary or text, got an Arrow array of {column.type}: cast it, such as by "
            "array.cast(pyarrow.string()), or convert it with a serializer"
        )
    return _Column(column, YIELD_EVERY)


def _stored(kind: "pa.DataType") -> "pa.DataType":
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_read_as_it_is(kind: "pa.DataType") -> bool:
    types = pa.types
    short = types.is_binary(kind) or types.is_string(kind)
    return bool(short or types.is_large_binary(kind) or types.is_large_string(kind) or _is_view(kind))


def _is_view(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_binary_view(kind) or pa.types.is_string_view(kind))


def _needs_cast(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_fixed_size_binary(kind) or pa.types.is_null(kind))


def _binary_column(array: "pa.Array") -> BinaryColumn | ViewColumn:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        dictionary = array.dictionary
        if _is_view(dictionary.type):
            # Arrow cannot take from views, which Polars's categories are, and it casts text views to text only.
            is_text = pa.types.is_string_view(dictionary.type)
            dictionary = dictionary.cast(pa.large_string() if is_text else pa.large_binary())
        array = pa.DictionaryArray.from_arrays(array.indices, dictionary).dictionary_decode()
    if _needs_cast(array.type):
        array = array.cast(pa.large_binary())
    return _view_buffers(array) if _is_view(array.type) else _binary_buffers(array)


def _view_buffers(array: "pa.Array") -> ViewColumn:
    first = array.offset
    validity, views, *data = array.buffers()
    return ViewColumn(
        memoryview(views).cast("B")[first * VIEW_SIZE : (first + len(array)) * VIEW_SIZE],
        tuple(memoryview(buffer).cast("B") for buffer in data),
        None if validity is None else memoryview(validity).cast("B"),
        first,
    )


def _binary_buffers(array: "pa.Array") -> BinaryColumn:
    count, first = len(array), array.offset
    validity, ends, data = array.buffers()
    is_wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    return BinaryColumn(
        _part(ends, "q" if is_wide else "i", first, count + 1),
        memoryview(b"") if data is None else memoryview(data).cast("B"),
        None if validity is None else memoryview(validity).cast("B"),
        first,
    )


def _part(buffer: "pa.Buffer | None", code: Literal["i", "q"], first: int, count: int) -> memoryview:
    """Return ``count`` numbers of a buffer, or a 0 if it is empty, as for an array without items."""
    width = 8 if code == "q" else 4
    view = memoryview(b"" if buffer is None else buffer).cast("B")[first * width : (first + count) * width]
    return (view or memoryview(bytes(width))).cast(code)


# --- numbers -----------------------------------------------------------------------------------------------


def _times(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Convert times to ms since the epoch; parts of a ms are dropped."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column.cast(pa.timestamp("ms", tz=getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
    return column


def _numbers(name: str, column: "pa.ChunkedArray") -> _Column:
    if not pa.types.is_integer(column.type):
        times = " or times" if name == "timestamp_ms" else ""
        raise UsageError(f"{name} must be integers{times}, got an Arrow array of {column.type}")
    return _Column(column)


def _number_column(name: str, array: "pa.Array") -> memoryview:
    """Return int64 numbers, -1 for null."""
    import pyarrow.compute as pc  # makes hundreds of functions as it is imported

    try:
        array = array.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise UsageError(f"{name} must be integers of 64 bits: {error}") from error
    smallest = pc.min(array).as_py()
    if smallest is not None and smallest < 0:
        raise UsageError(f"{name} must not be negative, got {smallest}")
    if array.null_count:
        array = array.fill_null(-1)
    return _part(array.buffers()[1], "q", array.offset, len(array))


# --- headers -----------------------------------------------------------------------------------------------


def _header_lists(column: "pa.ChunkedArray") -> _Column:
    kind = column.type
    item = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else None
    if item is None or not pa.types.is_struct(item) or item.num_fields != 2:
        raise UsageError(f"headers must be an Arrow array of {_HEADERS}, got one of {kind}")
    return _Column(column, YIELD_EVERY)


def _headers_column(array: "pa.Array") -> HeadersColumn:
    kind, item = array.type, array.type.value_type
    to = pa.list_(pa.struct([(item.field(0).name, pa.string()), (item.field(1).name, pa.binary())]))
    try:
        array = array.cast(to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"headers must be an Arrow array of {_HEADERS}, got one of {kind}") from error
    structs = array.values
    names, contents = structs.field(0), structs.field(1)
    if names.null_count or structs.null_count:
        raise UsageError("headers must have a name each, got a null")
    validity, ends = array.buffers()[:2]
    return HeadersColumn(
        _part(ends, "i", array.offset, len(array) + 1),
        _binary_buffers(names),
        _binary_buffers(contents),
        len(structs),
        None if validity is None else memoryview(validity).cast("B"),
        array.offset,
    )
