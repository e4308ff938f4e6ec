"""The reader of a topic whose values become a column of a type, such as structs of JSON."""

from collections.abc import Awaitable, Sequence
from typing import Any, Final

import anyio.lowlevel
import pyarrow as pa

from .argument_checks import shown
from .bounded_reads import BoundedBatches, Bounds
from .consumer.consumer import Consumer
from .errors import DeserializationError, UsageError
from .records.typed_values import ReadValue, TypedValues, fields_of, read_json
from .serialization import AnyDeserializer, SerializationContext, knows_record
from .types import Header, TopicPartition

__all__ = ("TypedBatches", "typed_values")


def typed_values(
    topic: str, value_format: object, value_type: object, deserializer: AnyDeserializer[Any] | None
) -> TypedValues:
    """Return what decodes a topic's values, by the arguments of ``Client.read_batches``.

    Raises:
        UsageError: an argument is wrong, or lacks another.
    """
    if value_format not in (None, "json"):
        raise UsageError(f"value_format must be 'json', got {shown(value_format)}")
    if (value_format is None) == (deserializer is None):
        raise UsageError("typed values need either value_format='json' or a value_deserializer")
    kind = pa.struct(list(value_type)) if isinstance(value_type, pa.Schema) else value_type
    if not isinstance(kind, pa.DataType):
        raise UsageError(
            "value_type must be the type of the values, such as pyarrow.schema({'carrier': pyarrow.string()}), "
            f"got {shown(value_type)}"
        )
    read = read_json if deserializer is None else _reader(topic, deserializer)
    return TypedValues(read, kind, pause=anyio.lowlevel.checkpoint)


def _reader(topic: str, deserializer: Any) -> ReadValue:
    knows = knows_record(deserializer, "deserialize")

    def read(data: bytes, headers: Sequence[Header]) -> Any:
        if not knows:
            return _plain(deserializer(data))
        found = deserializer.deserialize(data, SerializationContext(topic, list(headers), is_key=False))
        return _later(found) if isinstance(found, Awaitable) else _plain(found)

    return read


async def _later(found: Awaitable[Any]) -> Any:
    return _plain(await found)


def _plain(value: Any) -> Any:
    return fields_of(value) if hasattr(type(value), "DESCRIPTOR") else value


class TypedBatches(BoundedBatches):
    """A reader whose items are Arrow record batches with values of a type.

    An iteration continued after DeserializationError skips the invalid record, unless the error is retriable.
    """

    def __init__(
        self,
        consumer: Consumer[Any, Any],
        topic: str,
        start: Bounds,
        end: Bounds | None,
        columns: Sequence[str] | None,
        values: TypedValues,
    ) -> None:
        super().__init__(consumer, topic, start, end, columns)
        self._values: Final = values
        self._returned: Final = self._columns
        # Errors have the record, and deserializers know its headers.
        self._columns = ("key", "value", "partition", "offset", "timestamp", "headers", *self._columns)
        self._columns = tuple(dict.fromkeys(self._columns))
        self._undecoded: list[pa.RecordBatch] = []
        self._has_refused = False
        self._is_reading = False

    @property
    def schema(self) -> "pa.Schema":
        """The schema of the record batches."""
        full, value = super().schema, pa.field("value", self._values.kind)
        return pa.schema([value if name == "value" else full.field(name) for name in self._returned])

    async def _next(self) -> "pa.RecordBatch":
        if self._is_reading:
            await anyio.lowlevel.checkpoint()
            raise UsageError("another task is reading the next record batch: use a reader for each task")
        self._is_reading = True
        try:
            return await self._next_decoded()
        finally:
            self._is_reading = False

    async def _next_decoded(self) -> "pa.RecordBatch":
        waiting = self._undecoded  # until it is decoded, since a call may be cancelled meanwhile
        while True:
            if not waiting:
                waiting.append(await super()._next())
                self._has_refused = False
            batch = waiting[0]
            try:
                decoded = await self._decoded(batch)
            except DeserializationError as error:
                if error.retriable:
                    raise
                self._has_refused = True
                row = _row_of(batch, error)
                parts = batch.slice(0, row), batch.slice(row, 1), batch.slice(row + 1)
                # The rows before the record are returned first. Then the record alone raises the error again.
                waiting[:1] = [part for part in (parts if row else parts[2:]) if part.num_rows]
                if not row:
                    raise _with_record(error, batch) from error.__cause__
            else:
                del waiting[0]
                return decoded

    async def _decoded(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        columns = [batch.column(name) for name in self._returned]
        if "value" in self._returned:
            headers = batch.column("headers")
            known = None if self._values.is_json or not len(headers.flatten()) else _pairs(headers)
            values = await self._values.decode(
                batch.column("value"), lambda row: self._place(batch, row), known, at_once=not self._has_refused
            )
            columns = [
                values if name == "value" else column for name, column in zip(self._returned, columns, strict=True)
            ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _place(self, batch: "pa.RecordBatch", row: int) -> tuple[TopicPartition, int]:
        partition = TopicPartition(self._topic, batch.column("partition")[row].as_py())
        return partition, batch.column("offset")[row].as_py()


def _pairs(headers: "pa.Array") -> list[list[Header]]:
    return [[(one["key"], one["value"]) for one in row or ()] for row in headers.to_pylist()]


def _row_of(batch: "pa.RecordBatch", error: DeserializationError) -> int:
    places = zip(batch.column("partition").to_pylist(), batch.column("offset").to_pylist(), strict=True)
    assert error.partition is not None
    wanted = (error.partition[1], error.offset)
    return next(row for row, place in enumerate(places) if place == wanted)


def _with_record(error: DeserializationError, batch: "pa.RecordBatch") -> DeserializationError:
    """Return the error about a batch's first record with all that it documents."""
    timestamp = batch.column("timestamp").cast(pa.int64())[0].as_py()
    return DeserializationError(
        str(error),
        "value",
        error.partition,
        error.offset,
        raw_key=batch.column("key")[0].as_py(),
        raw_value=batch.column("value")[0].as_py(),
        headers=tuple(_pairs(batch.column("headers").slice(0, 1))[0]),
        timestamp=-1 if timestamp is None else timestamp,
    )
