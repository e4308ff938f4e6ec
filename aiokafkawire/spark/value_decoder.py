"""The decoders of the values of a source with the option ``valueFormat``."""

from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, KafkaError
from ..records.typed_values import ReadValue, TypedValues, fields_of, has_decimals, read_exact_json, read_json
from ..serialization import SerializationContext
from ..types import Header
from .value_format import ValueFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from ..schema_registry import JsonSchemaDeserializer

__all__ = ("value_decoder",)


def value_decoder(given: ValueFormat, struct: "pa.StructType", topic: str) -> TypedValues:
    """Return the decoder of a topic's values.

    Raises:
        ConfigError: a library is missing, or a schema or a class is wrong.
    """
    context = SerializationContext(topic, [], is_key=False)
    try:
        read = _reader(given, context, exact=has_decimals(struct))
    except ImportError as error:
        raise ConfigError(f"valueFormat={given.kind}: {error}") from error
    return TypedValues(read, struct, keeps_errors=given.keeps_errors)


def _reader(given: ValueFormat, context: SerializationContext, *, exact: bool) -> ReadValue:
    if given.registry is None:
        if given.kind == "json":
            return read_json
        return _avro(given.avro_schema) if given.kind == "avro" else _protobuf(given.protobuf_class)
    from ..schema_registry import SchemaRegistry

    registry = SchemaRegistry(given.registry)
    deserializer: Any
    convert: Callable[[Any], Any] | None = None
    if given.kind == "avro":
        from ..schema_registry import AvroDeserializer

        deserializer = AvroDeserializer(registry)
    elif given.kind == "json":
        from ..schema_registry import JsonSchemaDeserializer

        deserializer = JsonSchemaDeserializer(registry)
        if exact:
            return _exact(deserializer, context)
    else:
        from ..schema_registry import ProtobufDeserializer

        name = given.protobuf_class
        deserializer = ProtobufDeserializer(registry) if name is None else ProtobufDeserializer(registry, _class(name))
        convert = fields_of

    async def read(data: bytes, headers: Sequence[Header]) -> Any:
        found = deserializer.deserialize(data, context)
        value = await found if isinstance(found, Awaitable) else found
        return value if convert is None else convert(value)

    return read


def _exact(deserializer: "JsonSchemaDeserializer", context: SerializationContext) -> ReadValue:
    """Return a reader of JSON that the deserializer has validated, with its decimals as they are written."""
    from ..schema_registry.wire_format import read_frame

    async def read(data: bytes, headers: Sequence[Header]) -> Any:
        found = deserializer.deserialize(data, context)
        if isinstance(found, Awaitable):
            await found
        return read_exact_json(read_frame(data, context).data)

    return read


def _avro(schema: str | None) -> ReadValue:
    from ..schema_registry.avro_codec import parse_avro, read_avro
    from ..schema_registry.schemas import Schema

    try:
        parsed = parse_avro(Schema(schema or ""), {})
    except KafkaError as error:
        raise ConfigError(f"avroSchema is not an Avro schema: {error}") from error
    return lambda data, headers: read_avro(data, parsed, None)


def _protobuf(name: str | None) -> ReadValue:
    message_type = _class(name or "")

    def read(data: bytes, headers: Sequence[Header]) -> Any:
        return fields_of(message_type.FromString(data))

    return read


def _class(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        why = f"protobufClass must be a module and a class that executors can import, such as orders_pb2:Order: {error}"
        raise ConfigError(why) from error
