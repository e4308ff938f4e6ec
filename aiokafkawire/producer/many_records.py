"""The records of ``enqueue_many``, given as lists or as Arrow arrays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

import attrs

from ..argument_checks import refuse_list
from ..errors import UsageError
from .delimited_values import DelimitedRecords, DelimitedValues
from .record_checks import YIELD_EVERY
from .record_columns import ManyRecords, RecordColumns, RecordParts, RecordRows

__all__ = ("ArrowData", "RecordLists", "RecordsInParts", "check_column", "is_arrow", "many_records")


class _GivesArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> Any: ...


class _GivesStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> Any: ...


ArrowData: TypeAlias = _GivesArray | _GivesStream
"""Data with the Arrow PyCapsule interface: arrays, series and tables of pyarrow, Polars, pandas and others."""


class RecordsInParts(Protocol):
    """Many records, of which :meth:`rows` returns a part."""

    def __len__(self) -> int:
        """Return the number of records."""

    def rows(self, first: int, count: int) -> "RecordLists | ManyRecords":
        """Return up to ``count`` records from ``first`` on, and one at least if there is one."""


@attrs.frozen(eq=False)
class RecordLists:
    """Records as a sequence of values and one of keys, with all other parts in common."""

    values: Sequence[Any]
    keys: Sequence[Any] | None
    partition: Any
    timestamp_ms: Any
    headers: Any

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self.values)

    @property
    def arguments(self) -> tuple[Any, Any, Any, Any, Any]:
        """The arguments of ``Appender._append_many`` after the topic."""
        return self.values, self.keys, self.partition, self.timestamp_ms, self.headers

    def record(self, index: int) -> RecordParts:
        """Return one record."""
        key = None if self.keys is None else self.keys[index]
        return RecordParts(self.values[index], key, self.partition, self.timestamp_ms, self.headers)


@attrs.frozen(eq=False)
class _Sequences:
    """Records of which keys and values become Python objects."""

    values: Any
    keys: Any
    partition: Any
    timestamp_ms: Any
    headers: Any
    columns: RecordsInParts | None
    """The partitions, timestamps and headers, if one of them is a column."""

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, first: int, count: int) -> RecordLists | ManyRecords:
        """Return up to ``count`` records from ``first`` on, and not more than become Python objects at a time."""
        count = min(count, YIELD_EVERY)
        columns = None if self.columns is None else cast("RecordColumns", self.columns.rows(first, count))
        if columns is not None:
            count = columns.count
        values = _part(self.values, first, count)
        keys = None if self.keys is None else _part(self.keys, first, count)
        if columns is None:
            return RecordLists(values, keys, self.partition, self.timestamp_ms, self.headers)
        return RecordRows(values, keys, columns)


def many_records(
    values: Any, keys: Any, partition: Any, timestamp_ms: Any, headers: Any, *, raw: bool
) -> RecordsInParts:
    """Return the records of columns; with ``raw``, Arrow arrays of keys and values are read as they are.

    Raises:
        UsageError: a column is no sequence, the lengths of two differ, or an Arrow array has an unsuitable type.
    """
    if raw and is_arrow(values) and (keys is None or is_arrow(keys)):
        from .arrow_columns import ArrowRecords

        return ArrowRecords(values, keys, partition, timestamp_ms, headers)
    is_column = any(map(is_arrow, (partition, timestamp_ms, headers)))
    if raw and keys is None and not is_column and isinstance(values, DelimitedValues):
        return DelimitedRecords(values, partition, timestamp_ms, headers)
    count = _length("values", values)
    if keys is not None and _length("keys", keys) != count:
        raise UsageError(f"{count} values and {len(keys)} keys: there must be one key for each value")
    columns = None
    if is_column:
        from .arrow_columns import ArrowRecords, nulls

        columns = ArrowRecords(nulls(count), None, partition, timestamp_ms, headers)
    return _Sequences(values, keys, partition, timestamp_ms, headers, columns)


def is_arrow(column: object) -> bool:
    """Return whether the object is an Arrow array, or has the Arrow PyCapsule interface of one."""
    return hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__")


def check_column(name: str, column: object) -> None:
    """Raise UsageError unless ``column`` is an iterable of values; text, bytes and mappings are refused as well."""
    if isinstance(column, str | bytes | bytearray | memoryview | Mapping) or not isinstance(column, Iterable):
        raise refuse_list(name, column, "[b'one', b'two']")


def _length(name: str, column: Any) -> int:
    check_column(name, column)
    if not hasattr(column, "__len__") or not hasattr(column, "__getitem__"):
        raise refuse_list(name, column, "[b'one', b'two'], with a length (send_many() takes any iterable)")
    return len(column)


def _part(column: Any, first: int, count: int) -> Sequence[Any]:
    # A series of pandas finds items, and some slices, by their labels, and not by their places.
    part = getattr(column, "iloc", column)[first : first + count]
    if hasattr(part, "to_pylist"):
        return cast("Sequence[Any]", part.to_pylist())
    return part if isinstance(part, list | tuple) else list(part)
