"""Decodes binary values as JSON, Avro or Protobuf into an Arrow array of structs."""

import base64
import io
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from importlib import import_module
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from ..errors import ConfigError, DeserializationError
from ..serialization import SerializationContext
from ..types import TopicPartition
from .value_format import ValueFormat

__all__ = ("ValueDecoder", "value_decoder")

_REFUSED = (pa.ArrowException, TypeError, ValueError, ArithmeticError)
"""The errors of Arrow for a value that does not fit its type."""


def value_decoder(given: ValueFormat, struct: "pa.StructType", topic: str) -> "ValueDecoder":
    """Return the decoder of a topic's values.

    Raises:
        ConfigError: a library is missing, or a schema or a class is wrong.
    """
    context = SerializationContext(topic, [], is_key=False)
    try:
        read = _reader(given, context)
    except ImportError as error:
        raise ConfigError(f"valueFormat={given.kind}: {error}") from error
    return ValueDecoder(read, struct, keeps_errors=given.keeps_errors)


def _unreadable(where: TopicPartition, offset: int, data: bytes | None, cause: Exception) -> DeserializationError:
    why = f"the value of {where} at offset {offset} cannot be decoded: {cause}"
    return DeserializationError(why, "value", where, offset, raw_value=data)


_Read = Callable[[bytes], Any]
"""Returns a dict, or an awaitable of one."""


class ValueDecoder:
    """Decodes values into structs, one after the other."""

    def __init__(self, read: _Read, struct: "pa.StructType", *, keeps_errors: bool) -> None:
        self._read, self._struct, self._keeps_errors = read, struct, keeps_errors
        self._fit = fitter(struct)

    async def decode(self, values: "pa.Array", offsets: Sequence[int], where: TopicPartition) -> "pa.Array":
        """Return the structs of binary values; a null remains a null.

        Args:
            values: the values.
            offsets: their offsets, for errors.
            where: their partition, for errors.

        Raises:
            DeserializationError: a value cannot be decoded, unless such values become null.
            SchemaRegistryError: the registry does not answer.
        """
        rows: list[Any] = []
        for data, offset in zip(values.to_pylist(), offsets, strict=True):
            try:
                row = None if data is None else self._read(data)
                if isinstance(row, Awaitable):
                    row = await row
                rows.append(self._fit(row))
            except Exception as error:
                self._failed(error, where, offset, data)
                rows.append(None)
        try:
            return pa.array(rows, self._struct)
        except _REFUSED:  # find the values that do not fit, one by one
            each = zip(rows, offsets, values.to_pylist(), strict=True)
            return pa.concat_arrays([self._array(row, where, offset, data) for row, offset, data in each])

    def _array(self, row: Any, where: TopicPartition, offset: int, data: bytes | None) -> "pa.Array":
        try:
            return pa.array([row], self._struct)
        except _REFUSED as error:
            self._failed(error, where, offset, data)
            return pa.nulls(1, self._struct)

    def _failed(self, error: Exception, where: TopicPartition, offset: int, data: bytes | None) -> None:
        if getattr(error, "retriable", False):
            raise error
        if not self._keeps_errors:
            raise _unreadable(where, offset, data, error) from error


_SCALARS: Final[tuple[tuple[Callable[[Any], bool], type, Mapping[type, Callable[[Any], Any]]], ...]] = (
    (pa.types.is_boolean, bool, {}),
    (pa.types.is_integer, int, {}),
    (pa.types.is_floating, float, {int: float}),
    (pa.types.is_decimal, Decimal, {int: Decimal, float: lambda value: Decimal(str(value)), str: Decimal}),
    (pa.types.is_string, str, {UUID: str}),
    (pa.types.is_binary, bytes, {str: partial(base64.b64decode, validate=True)}),
    (pa.types.is_date, date, {str: date.fromisoformat}),
    (pa.types.is_timestamp, datetime, {str: datetime.fromisoformat}),
)
"""Of each kind of Arrow's types the Python type, and how values of other types become one of it."""


def fitter(kind: "pa.DataType") -> Callable[[Any], Any]:
    """Return a function that converts a value to the form in which Arrow takes it for a type.

    Texts are read as times in ISO 8601, and as bytes in base64, where the type is one of these. The function raises
    ValueError for a value of another type: Arrow itself would convert some of them to something else.
    """
    if pa.types.is_struct(kind):
        return _struct_fitter(kind)
    if pa.types.is_map(kind):
        fit_key, fit_item = fitter(kind.key_type), fitter(kind.item_type)
        return _checked(lambda value: [(fit_key(key), fit_item(item)) for key, item in value.items()], kind, dict)
    if pa.types.is_list(kind):
        fit_item = fitter(kind.value_type)
        return _checked(lambda value: list(map(fit_item, value)), kind, list, tuple)
    for is_kind, accepted, converted in _SCALARS:
        if is_kind(kind):
            return _scalar_fitter(kind, accepted, converted)
    return lambda value: value


def _struct_fitter(kind: "pa.DataType") -> Callable[[Any], Any]:
    fields = [(field.name, fitter(field.type)) for field in kind]

    def fit(value: Any) -> Any:
        get = value.get
        return {name: fit_field(get(name)) for name, fit_field in fields}

    return _checked(fit, kind, dict)


def _scalar_fitter(
    kind: "pa.DataType", accepted: type, converted: Mapping[type, Callable[[Any], Any]]
) -> Callable[[Any], Any]:
    def fit(value: Any) -> Any:
        given = type(value)
        if given is accepted or value is None:
            return value
        if given not in converted:
            raise _misfit(value, kind)
        return converted[given](value)

    return fit


def _checked(fit: Callable[[Any], Any], kind: "pa.DataType", *types: type) -> Callable[[Any], Any]:
    """Return the function for values of some types, with None for None."""

    def checked(value: Any) -> Any:
        if isinstance(value, types):
            return fit(value)
        if value is None:
            return None
        raise _misfit(value, kind)

    return checked


def _misfit(value: Any, kind: "pa.DataType") -> ValueError:
    return ValueError(f"a {type(value).__name__} instead of {kind}")


def _reader(given: ValueFormat, context: SerializationContext) -> _Read:
    if given.registry is None:
        if given.kind == "json":
            return _json
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
    else:
        from ..schema_registry import ProtobufDeserializer

        name = given.protobuf_class
        deserializer = ProtobufDeserializer(registry) if name is None else ProtobufDeserializer(registry, _class(name))
        convert = fields_of

    async def read(data: bytes) -> Any:
        found = deserializer.deserialize(data, context)
        value = await found if isinstance(found, Awaitable) else found
        return value if convert is None else convert(value)

    return read


def _json(data: bytes) -> Any:
    return json.loads(data.decode())


def _avro(schema: str | None) -> _Read:
    from fastavro import parse_schema, schemaless_reader

    try:
        parsed = parse_schema(json.loads(schema or ""))
    except Exception as error:
        raise ConfigError(f"avroSchema is not an Avro schema: {error}") from error

    def read(data: bytes) -> Any:
        stream = io.BytesIO(data)
        value = schemaless_reader(stream, parsed, None)
        if stream.tell() != len(data):
            raise ValueError(f"{len(data) - stream.tell()} bytes after the value")
        return value

    return read


def _protobuf(name: str | None) -> _Read:
    message_type = _class(name or "")

    def read(data: bytes) -> Any:
        return fields_of(message_type.FromString(data))

    return read


def _class(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        why = f"protobufClass must be a module and a class that executors can import, such as orders_pb2:Order: {error}"
        raise ConfigError(why) from error


def fields_of(message: Any) -> dict[str, Any]:
    """Return the fields of a Protobuf message; enums by name, and None for a field that is absent."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            item = field.message_type.fields_by_name["value"]
            found[field.name] = {key: _plain(value[key], item) for key in value}
        elif _is_repeated(field):
            found[field.name] = [_plain(each, field) for each in value]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _plain(value, field)
    return found


def _is_repeated(field: Any) -> bool:
    repeated = getattr(field, "is_repeated", None)  # in Protobuf 6.31 and later, where `label` is deprecated
    return bool(field.label == field.LABEL_REPEATED if repeated is None else repeated)


def _plain(value: Any, field: Any) -> Any:
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    return fields_of(value) if field.message_type is not None else value
