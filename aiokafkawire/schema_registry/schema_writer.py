"""Writes values by a schema that the program has, or by the latest version of a subject: Avro and JSON Schema."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from ..argument_checks import check_function, shown
from ..errors import UsageError
from ..serialization import SerializationContext
from .bounded_cache import BoundedCache
from .schema_ids import SchemaIds
from .schemas import RegisteredSchema, Schema, SchemaType

__all__ = ("NamedSchema", "SchemaWriter", "as_schema")

_CAPACITY: Final = 1000


class NamedSchema(Protocol):
    """A parsed schema of any format."""

    @property
    def name(self) -> str | None:
        """The name of the schema's type; None if it has none."""


P = TypeVar("P", bound=NamedSchema)


class SchemaWriter(Generic[P]):
    """Writes values by schemas, and finds the ids of the schemas.

    Args:
        ids: finds the ids.
        schema: the schema; None for the latest version of the subject.
        schema_type: the type of the schema.
        parse: parses a schema, given those that it references.
        write: returns the bytes of a value.
        to_dict: converts a user's value before it is written; None for no conversion.
    """

    def __init__(
        self,
        ids: SchemaIds,
        schema: Schema | None,
        schema_type: SchemaType,
        parse: Callable[[Schema, Mapping[str, Schema]], P],
        write: Callable[[P, Any], bytes],
        to_dict: Callable[[Any], Any] | None,
    ) -> None:
        if schema is None and not ids.use_latest_version:
            raise UsageError("schema is None: give a schema, or set use_latest_version=True")
        if to_dict is not None:
            check_function("to_dict", to_dict)
        self._ids, self._schema, self._type = ids, schema, schema_type
        self._parse, self._encode, self._to_dict = parse, write, to_dict
        self._own: P | None = None
        if schema is not None and not schema.references:
            self._own = parse(schema, {})
        self._parsed: BoundedCache[int, P] = BoundedCache(_CAPACITY)

    def write(self, value: Any, context: SerializationContext) -> bytes | Awaitable[bytes]:
        """Return the bytes of a value, or an awaitable of them if the registry must be asked first."""
        if self._own is not None or self._schema is None:
            registered = self._ids.known(self._subject(context))
            schema = None if registered is None else self._schema_of(registered)
            if registered is not None and schema is not None:
                return self._write(value, schema, registered, context)
        return self._find_and_write(value, context)

    def _subject(self, context: SerializationContext) -> str:
        return self._ids.subject(context, None if self._own is None else self._own.name)

    def _schema_of(self, registered: RegisteredSchema) -> P | None:
        return self._parsed.get(registered.schema_id) if self._ids.use_latest_version else self._own

    async def _find_and_write(self, value: Any, context: SerializationContext) -> bytes:
        if self._schema is not None and self._own is None:
            self._own = self._parse(self._schema, await self._ids.registry.get_references(self._schema))
        registered = await self._ids.find(self._subject(context), self._schema, self._type)
        schema = self._schema_of(registered)
        if schema is None:
            references = await self._ids.registry.get_references(registered.schema)
            schema = self._parse(registered.schema, references)
            self._parsed.put(registered.schema_id, schema)
        return self._write(value, schema, registered, context)

    def _write(self, value: Any, schema: P, registered: RegisteredSchema, context: SerializationContext) -> bytes:
        plain = value if self._to_dict is None else self._to_dict(value)
        return self._ids.frame(self._encode(schema, plain), registered, context)


def as_schema(schema: object, schema_type: SchemaType) -> Schema | None:
    """Return a user's schema: a Schema, text, the objects of its JSON, or None."""
    if schema is None:
        return None
    if isinstance(schema, Schema):
        if schema.schema_type is not schema_type:
            raise UsageError(f"schema must be of type {schema_type.value}, got one of type {schema.schema_type.value}")
        return schema
    if isinstance(schema, str):
        return Schema(schema, schema_type)
    if isinstance(schema, Mapping | list):
        try:
            return Schema(json.dumps(schema), schema_type)
        except (TypeError, ValueError) as error:
            raise UsageError(f"schema cannot be written as JSON: {error}") from None
    raise UsageError(f"schema must be JSON text, its objects or a Schema, got {shown(schema)}")
