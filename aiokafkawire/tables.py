"""Whole tables: written to a topic from Arrow data of any library, and read from one into a ``pyarrow.Table``."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

try:
    import pyarrow as pa
except ImportError as _missing:
    raise ImportError("Arrow needs pyarrow: pip install aiokafkawire[arrow]") from _missing

from .argument_checks import shown
from .bounded_reads import BoundedBatches
from .errors import UsageError
from .json_serialization import JsonSerializer

if TYPE_CHECKING:
    from .producer.producer import Producer

__all__ = ("TableColumns", "open_table", "read_whole_table", "rows_of", "write_batches")

_JSON_ROWS: Final = 1000
"""The number of rows that become JSON before other tasks run."""


class TableColumns:
    """The columns of a table that become a record's parts, checked against the table's schema.

    Args:
        schema: the table's schema.
        key, value, partition, timestamp, headers: names of columns, or None.
        value_format: "json" for a value with all columns except those of partition, timestamp and headers.

    Raises:
        UsageError: the table lacks a column or has several of its name, or not exactly one of ``value`` and
            ``value_format`` is given.
    """

    def __init__(
        self,
        schema: "pa.Schema",
        *,
        key: str | None,
        value: str | None,
        value_format: str | None,
        partition: str | None,
        timestamp: str | None,
        headers: str | None,
    ) -> None:
        if (value is None) == (value_format is None):
            raise UsageError("write_table() needs either value, the name of a column, or value_format='json'")
        if value_format not in (None, "json"):
            raise UsageError(f"value_format must be 'json', got {shown(value_format)}")
        parts = {"key": key, "value": value, "partition": partition, "timestamp": timestamp, "headers": headers}
        for part, name in parts.items():
            if name is not None and name not in schema.names:
                raise UsageError(f"{part}: the table has no column {shown(name)}, only {', '.join(schema.names)}")
        self._value = value
        self._others = {"keys": key, "partition": partition, "timestamp_ms": timestamp, "headers": headers}
        self._in_json = [name for name in schema.names if name not in (partition, timestamp, headers)]
        self._objects = _objects_of(pa.struct([field for field in schema if field.name in self._in_json])) or _unchanged
        used = [*self._in_json, *parts.values()] if value is None else parts.values()
        counts = Counter(schema.names)
        for name in used:
            if name is not None and counts[name] > 1:
                raise UsageError(f"the table has {counts[name]} columns {shown(name)}: rename all but one")

    def arguments(self, batch: "pa.RecordBatch") -> Iterator[dict[str, Any]]:
        """Return the arguments of ``Producer.enqueue_many`` after the topic, for the batch or for parts of it.

        Raises:
            UsageError: a value has no JSON.
        """
        step = batch.num_rows if self._value is not None else _JSON_ROWS
        for first in range(0, batch.num_rows, max(1, step)):
            part = batch.slice(first, step)
            others = {name: part[column] for name, column in self._others.items() if column is not None}
            yield {"values": self._values(part), **others}

    def _values(self, part: "pa.RecordBatch") -> "pa.Array":
        if self._value is not None:
            return part[self._value]
        try:
            return pa.array(map(_json, map(self._objects, part.select(self._in_json).to_pylist())), pa.binary())
        except ValueError as error:
            raise UsageError(f"a row of the table has no JSON: {error}") from error


def open_table(table: Any) -> "pa.RecordBatchReader":
    """Return a reader of the record batches of a table, or of another object with the Arrow PyCapsule interface.

    Raises:
        UsageError: the object has no such interface.
    """
    if hasattr(table, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(table)
    if hasattr(table, "__arrow_c_array__"):
        batch = pa.record_batch(table)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    raise UsageError(
        f"a table must be Arrow data, such as a frame of Polars or pandas (2.2 and later) or a relation of DuckDB, "
        f"got {shown(table)}"
    )


def rows_of(table: object) -> int | None:
    """Return the number of a table's rows, or None if it is known only at the end, as of a stream.

    The length of a relation of DuckDB is not asked for, since that is a query of its own.
    """
    for name in ("num_rows", "height"):  # of pyarrow, and of Polars
        count = getattr(table, name, None)
        if isinstance(count, int):
            return count
    return None


async def write_batches(
    producer: "Producer[Any, Any]",
    topic: str,
    batches: "pa.RecordBatchReader",
    columns: TableColumns,
    show: Callable[[int], object],
) -> int:
    """Send the rows of all batches, and wait until they are acknowledged; return their number.

    ``show`` gets the number of rows so far.

    Raises:
        DeliveryFailed: records were not delivered.
        KafkaError: as ``Producer.enqueue_many``.
    """
    count = 0
    async with producer:
        for batch in batches:
            for arguments in columns.arguments(batch):
                count += await producer.enqueue_many(topic, **arguments)
                show(count)
    return count


async def read_whole_table(reader: BoundedBatches, show: Callable[[int, int], object]) -> "pa.Table":
    """Return all that the reader reads as one table. ``show`` gets the reader's progress."""
    batches = []
    async with reader:
        async for batch in reader:
            batches.append(batch)
            show(*reader.progress)
    return pa.Table.from_batches(batches, schema=reader.schema)


def _objects_of(kind: "pa.DataType") -> Callable[[Any], Any] | None:
    """Return a function that makes dicts of a value's maps, if their keys are text; None for a type without maps.

    The function raises ValueError for a map that has a key twice.
    """
    types = pa.types
    if types.is_map(kind) and (types.is_string(kind.key_type) or types.is_large_string(kind.key_type)):
        convert = _objects_of(kind.item_type) or _unchanged
        return lambda pairs: None if pairs is None else _object(pairs, convert)
    if types.is_struct(kind):
        found = {field.name: converter for field in kind if (converter := _objects_of(field.type)) is not None}
        if not found:
            return None
        return lambda row: None if row is None else row | {name: found[name](row[name]) for name in found}
    if types.is_list(kind) or types.is_large_list(kind):
        convert_item = _objects_of(kind.value_type)
        if convert_item is not None:
            return lambda items: None if items is None else list(map(convert_item, items))
    return None


def _object(pairs: list[tuple[str, Any]], convert: Callable[[Any], Any]) -> dict[str, Any]:
    found = {key: convert(item) for key, item in pairs}
    if len(found) < len(pairs):
        raise ValueError("a map has a key twice")
    return found


def _unchanged(value: Any) -> Any:
    return value


def _plain(value: object) -> object:
    """Convert a value that JSON does not have: times to ISO 8601, decimals to text."""
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise ValueError(f"a {type(value).__name__} cannot be converted: cast its column, or leave it out")


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


_json: Final = JsonSerializer(_dumps)
