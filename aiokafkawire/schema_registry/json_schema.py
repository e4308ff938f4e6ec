"""Serializes keys and values as JSON that fits a JSON schema, with the ids of their schemas."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from ..argument_checks import check_flag
from ..serialization import SerializationContext
from .json_codec import JsonSchema, parse_json_schema, read_json, write_json
from .registry import SchemaRegistry
from .schema_ids import SchemaIdLocation, SchemaIds, check_registry
from .schema_reader import SchemaReader
from .schema_writer import SchemaWriter, as_schema
from .schemas import Schema, SchemaType
from .subjects import SubjectNameStrategy

__all__ = ("JsonSchemaDeserializer", "JsonSchemaSerializer")


class JsonSchemaSerializer:
    """Serializes values as JSON, after validating them by a JSON schema; registers it at the first record of a topic.

    Args:
        registry: the schema registry.
        schema: the schema: JSON text, its objects (a dict), or a :class:`~aiokafkawire.schema_registry.Schema` with
            references; None with ``use_latest_version``.
        auto_register: whether to register the schema; otherwise it must be registered.
        use_latest_version: whether to validate by the latest version of the subject instead of by ``schema``.
        normalize: whether the registry compares normal forms of schemas.
        subject_name_strategy: ``"topic"``, ``"record"``, ``"topic-record"`` (by the schema's title), or a function of
            the context and the title.
        schema_id_location: ``"prefix"`` for the id before the data, ``"header"`` for the GUID in a header.
        to_dict: a function that makes a value for JSON of a value of your own.
        validate: whether values must fit the schema.

    Raises:
        UsageError: an argument is wrong.
        SchemaMismatch: the schema is not valid.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: str | Mapping[str, Any] | Schema | None = None,
        *,
        auto_register: bool = True,
        use_latest_version: bool = False,
        normalize: bool = False,
        subject_name_strategy: SubjectNameStrategy = "topic",
        schema_id_location: SchemaIdLocation = "prefix",
        to_dict: Callable[[Any], Any] | None = None,
        validate: bool = True,
    ) -> None:
        ids = SchemaIds(
            registry,
            auto_register=auto_register,
            use_latest_version=use_latest_version,
            normalize=normalize,
            subject_name_strategy=subject_name_strategy,
            schema_id_location=schema_id_location,
        )
        check_flag("validate", validate)
        own = as_schema(schema, SchemaType.JSON)
        self._writer = SchemaWriter(
            ids, own, SchemaType.JSON, parse_json_schema, partial(_write, validates=validate), to_dict
        )

    def serialize(self, value: Any, context: SerializationContext) -> bytes | Awaitable[bytes]:
        """Return the bytes of a value, or an awaitable of them if the registry must be asked first.

        Raises:
            SchemaMismatch: the value does not fit the schema.
            SchemaRegistryError: the registry refused the schema, or failed.
        """
        return self._writer.write(value, context)


class JsonSchemaDeserializer:
    """Deserializes JSON that was written with the id of its schema, by any client, and validates it.

    Args:
        registry: the schema registry.
        schema: a schema that values must fit, instead of the one by which they were written.
        from_dict: a function that makes a value of your own of JSON's.
        validate: whether values must fit the schema.

    Raises:
        UsageError: an argument is wrong.
        SchemaMismatch: the schema is not valid.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: str | Mapping[str, Any] | Schema | None = None,
        *,
        from_dict: Callable[[Any], Any] | None = None,
        validate: bool = True,
    ) -> None:
        check_registry(registry)
        check_flag("validate", validate)
        own = as_schema(schema, SchemaType.JSON)
        read = partial(_read, validates=validate)
        parse_writer = _unparsed if own is not None or not validate else None
        self._reader = SchemaReader(registry, own, SchemaType.JSON, parse_json_schema, read, from_dict, parse_writer)

    def deserialize(self, data: bytes, context: SerializationContext) -> Any:
        """Return the value of bytes, or an awaitable of it if the registry must be asked first.

        Raises:
            SchemaMismatch: the bytes have no schema id, are not JSON, or do not fit the schema.
            SchemaRegistryError: the schema is unknown, or the registry failed.
        """
        return self._reader.read(data, context)


def _unparsed(schema: Schema, references: Mapping[str, Schema]) -> JsonSchema:
    """Return what stands for a schema that no value must fit, so that it may be wrong."""
    return JsonSchema(None, None)


def _write(schema: JsonSchema, value: Any, *, validates: bool) -> bytes:
    data = write_json(value)
    if validates:
        schema.validate(value)
    return data


def _read(data: bytes, writer: JsonSchema, reader: JsonSchema | None, *, validates: bool) -> Any:
    value = read_json(data)
    if validates:
        (reader or writer).validate(value)
    return value
