"""Reads values by the schemas that wrote them, and by a schema of the reader: Avro and JSON Schema."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from ..argument_checks import check_function
from ..serialization import SerializationContext
from .registry import SchemaRegistry
from .schema_ids import ReaderCache
from .schemas import Schema, SchemaType
from .wire_format import FramedData, read_frame

__all__ = ("SchemaReader",)

P = TypeVar("P")


class SchemaReader(Generic[P]):
    """Reads values.

    Args:
        registry: the schema registry.
        schema: the reader's schema; None for values as they were written.
        schema_type: the type of the schemas.
        parse: parses a schema, given those that it references.
        read: returns the value of bytes, by the writer's schema and the reader's.
        from_dict: converts a value to a user's; None for no conversion.
        parse_writer: parses the schemas that wrote values; by default ``parse``.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: Schema | None,
        schema_type: SchemaType,
        parse: Callable[[Schema, Mapping[str, Schema]], P],
        read: Callable[[bytes, P, P | None], Any],
        from_dict: Callable[[Any], Any] | None,
        parse_writer: Callable[[Schema, Mapping[str, Schema]], P] | None = None,
    ) -> None:
        self._writers: ReaderCache[P] = ReaderCache(registry, schema_type, self._parse_writer)
        if from_dict is not None:
            check_function("from_dict", from_dict)
        self._registry, self._schema = registry, schema
        self._parse, self._decode, self._from_dict = parse, read, from_dict
        self._parse_written = parse_writer or parse
        self._reader: P | None = None
        if schema is not None and not schema.references:
            self._reader = parse(schema, {})

    def read(self, data: bytes, context: SerializationContext) -> Any:
        """Return the value of bytes, or an awaitable of it if the registry must be asked first."""
        framed = read_frame(data, context)
        writer = self._writers.known(framed.schema_id)
        return self._fetch_and_read(framed) if writer is None else self._read(framed, writer)

    async def _fetch_and_read(self, framed: FramedData) -> Any:
        return self._read(framed, await self._writers.find(framed.schema_id))

    async def _parse_writer(self, schema: Schema) -> P:
        if self._schema is not None and self._reader is None:
            self._reader = self._parse(self._schema, await self._registry.get_references(self._schema))
        return self._parse_written(schema, await self._registry.get_references(schema))

    def _read(self, framed: FramedData, writer: P) -> Any:
        value = self._decode(framed.data, writer, self._reader)
        return value if self._from_dict is None else self._from_dict(value)
