"""Decodes binary values as JSON, Avro or Protobuf into an Arrow array of structs."""

import io
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.json as pj

from ..errors import ConfigError, DeserializationError
from ..serialization import SerializationContext
from ..types import TopicPartition
from .value_format import ValueFormat

__all__ = ("ValueDecoder", "value_decoder")

_BLOCK = 1 << 20


class ValueDecoder(Protocol):
    """A decoder of the values of one topic."""

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


def value_decoder(given: ValueFormat, struct: "pa.StructType", topic: str) -> ValueDecoder:
    """Return the decoder of a topic's values.

    Raises:
        ConfigError: a library is missing, or a schema or a class is wrong.
    """
    if given.kind == "json" and given.registry is None:
        return _JsonDecoder(struct, keeps_errors=given.keeps_errors)
    context = SerializationContext(topic, [], is_key=False)
    try:
        read = _reader(given, context)
    except ImportError as error:
        raise ConfigError(f"valueFormat={given.kind}: {error}") from error
    return _RecordDecoder(read, struct, keeps_errors=given.keeps_errors)


def _unreadable(where: TopicPartition, offset: int, data: bytes | None, cause: Exception) -> DeserializationError:
    why = f"the value of {where} at offset {offset} cannot be decoded: {cause}"
    return DeserializationError(why, "value", where, offset, raw_value=data)


class _JsonDecoder:
    """Decodes JSON objects by Arrow's reader, all values at once."""

    def __init__(self, struct: "pa.StructType", *, keeps_errors: bool) -> None:
        self._struct, self._keeps_errors = struct, keeps_errors
        self._options = pj.ParseOptions(explicit_schema=pa.schema(list(struct)), unexpected_field_behavior="ignore")

    async def decode(self, values: "pa.Array", offsets: Sequence[int], where: TopicPartition) -> "pa.Array":
        """Decode values as :meth:`ValueDecoder.decode`."""
        nulls: set[int] = set()
        texts = []
        for index, text in enumerate(values.to_pylist()):
            if text is None or text.strip() == b"null":
                nulls.add(index)
                text = b"{}"
            texts.append(text.replace(b"\n", b" "))
        bad: dict[int, Exception] = {}
        parts = list(self._parts(texts, 0, bad))
        if bad and not self._keeps_errors:
            index, error = min(bad.items())
            raise _unreadable(where, offsets[index], values[index].as_py(), error) from error
        rows = pa.concat_arrays(parts)
        nulls.update(bad)
        if nulls:
            mask = pa.array([index in nulls for index in range(len(rows))])
            rows = pa.StructArray.from_arrays(rows.flatten(), fields=list(self._struct), mask=mask)
        return rows

    def _parts(self, texts: list[bytes], first: int, bad: dict[int, Exception]) -> Iterator["pa.Array"]:
        """Yield the rows of texts; halve texts that Arrow refuses until those that are bad stand alone."""
        try:
            yield self._rows(texts)
        except ValueError as error:
            if len(texts) == 1:
                bad[first] = error
                yield self._rows([b"{}"])
                return
            middle = len(texts) // 2
            yield from self._parts(texts[:middle], first, bad)
            yield from self._parts(texts[middle:], first + middle, bad)

    def _rows(self, texts: list[bytes]) -> "pa.Array":
        data = b"\n".join(texts)
        read = pj.ReadOptions(block_size=max(_BLOCK, len(data) + 1), use_threads=False)
        table = pj.read_json(io.BytesIO(data), read, self._options)
        if table.num_rows != len(texts):
            raise ValueError(f"{table.num_rows} objects instead of {len(texts)}")
        columns = [table.column(field.name).combine_chunks().cast(field.type) for field in self._struct]
        return pa.StructArray.from_arrays(columns, fields=list(self._struct))


_Read = Callable[[bytes], Any]
"""Returns a dict, or an awaitable of one."""


class _RecordDecoder:
    """Decodes one value after the other into a dict."""

    def __init__(self, read: _Read, struct: "pa.StructType", *, keeps_errors: bool) -> None:
        self._read, self._struct, self._keeps_errors = read, struct, keeps_errors

    async def decode(self, values: "pa.Array", offsets: Sequence[int], where: TopicPartition) -> "pa.Array":
        """Decode values as :meth:`ValueDecoder.decode`."""
        rows: list[Any] = []
        for data, offset in zip(values.to_pylist(), offsets, strict=True):
            try:
                row = None if data is None else self._read(data)
                if isinstance(row, Awaitable):
                    row = await row
                rows.append(None if row is None else fitting(row, self._struct))
            except Exception as error:
                self._failed(error, where, offset, data)
                rows.append(None)
        try:
            return pa.array(rows, self._struct)
        except (pa.ArrowException, TypeError, ValueError):  # find the values that do not fit, one by one
            each = zip(rows, offsets, values.to_pylist(), strict=True)
            return pa.concat_arrays([self._array(row, where, offset, data) for row, offset, data in each])

    def _array(self, row: Any, where: TopicPartition, offset: int, data: bytes | None) -> "pa.Array":
        try:
            return pa.array([row], self._struct)
        except (pa.ArrowException, TypeError, ValueError) as error:
            self._failed(error, where, offset, data)
            return pa.nulls(1, self._struct)

    def _failed(self, error: Exception, where: TopicPartition, offset: int, data: bytes | None) -> None:
        if getattr(error, "retriable", False):
            raise error
        if not self._keeps_errors:
            raise _unreadable(where, offset, data, error) from error


def fitting(value: Any, kind: "pa.DataType") -> Any:
    """Return a value in the form in which Arrow takes it: a dict as pairs where the type is a map."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            raise ValueError(f"a {type(value).__name__} instead of an object")
        return {field.name: fitting(value.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(key, fitting(item, kind.item_type)) for key, item in dict(value).items()]
    if pa.types.is_list(kind):
        return [fitting(item, kind.value_type) for item in value]
    return value


def _reader(given: ValueFormat, context: SerializationContext) -> _Read:
    if given.registry is None:
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
