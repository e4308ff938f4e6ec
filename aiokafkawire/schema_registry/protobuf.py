"""Serializes keys and values as Protobuf, with the ids of their schemas and the indexes of their messages."""

from collections.abc import Awaitable
from typing import Any, Final, Generic, TypeVar, cast, overload

from ..argument_checks import shown
from ..errors import SchemaMismatch, UsageError
from ..serialization import SerializationContext
from .bounded_cache import BoundedCache
from .protobuf_codec import (
    ProtobufFile,
    is_known_file,
    messages_in,
    messages_of,
    parse_protobuf,
    proto_of,
    read_protobuf,
    schema_of,
    write_protobuf,
)
from .registry import SchemaRegistry
from .schema_ids import ReaderCache, SchemaIdLocation, SchemaIds, check_registry
from .schemas import RegisteredSchema, Schema, SchemaReference, SchemaType
from .subjects import SubjectNameStrategy
from .wire_format import FramedData, encode_message_indexes, read_frame

__all__ = ("ProtobufDeserializer", "ProtobufSerializer")

M = TypeVar("M")

_CAPACITY: Final = 1000


class ProtobufSerializer(Generic[M]):
    """Serializes messages of a generated class; registers its .proto file, and those it imports, at the first record.

    Args:
        registry: the schema registry.
        message_type: the class.
        auto_register: whether to register the schemas; otherwise they must be registered.
        use_latest_version: whether records name the latest version of the subject instead of the class's own schema.
        normalize: whether the registry compares normal forms of schemas.
        subject_name_strategy: ``"topic"``, ``"record"``, ``"topic-record"``, or a function of the context and the
            message's full name.
        schema_id_location: ``"prefix"`` for the id before the data, ``"header"`` for the GUID in a header.

    Raises:
        UsageError: an argument is wrong.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        message_type: type[M],
        *,
        auto_register: bool = True,
        use_latest_version: bool = False,
        normalize: bool = False,
        subject_name_strategy: SubjectNameStrategy = "topic",
        schema_id_location: SchemaIdLocation = "prefix",
    ) -> None:
        self._ids = SchemaIds(
            registry,
            auto_register=auto_register,
            use_latest_version=use_latest_version,
            normalize=normalize,
            subject_name_strategy=subject_name_strategy,
            schema_id_location=schema_id_location,
        )
        self._type = message_type
        self._descriptor = _descriptor_of(message_type)
        self._schema: Schema | None = None
        self._indexes: BoundedCache[int, bytes] = BoundedCache(_CAPACITY)

    def serialize(self, value: M, context: SerializationContext) -> bytes | Awaitable[bytes]:
        """Return the bytes of a message, or an awaitable of them if the registry must be asked first.

        Raises:
            SchemaMismatch: the value is not a message of the class, or a required field is missing.
            SchemaRegistryError: the registry refused the schema, or failed.
        """
        if not isinstance(value, self._type):
            raise SchemaMismatch(f"the value must be a message {self._descriptor.full_name}, got {shown(value)}")
        data = write_protobuf(value)
        registered = self._ids.known(self._ids.subject(context, self._descriptor.full_name))
        indexes = None if registered is None else self._indexes.get(registered.schema_id)
        if registered is not None and indexes is not None:
            return self._ids.frame(data, registered, context, indexes)
        return self._find_and_frame(data, context)

    async def _find_and_frame(self, data: bytes, context: SerializationContext) -> bytes:
        ids = self._ids
        if self._schema is None and not ids.use_latest_version:
            self._schema = schema_of(self._descriptor.file, await self._register_imports(self._descriptor.file))
        subject = ids.subject(context, self._descriptor.full_name)
        registered = await ids.find(subject, self._schema, SchemaType.PROTOBUF)
        indexes = self._indexes.get(registered.schema_id)
        if indexes is None:
            indexes = self._find_indexes(registered)
            self._indexes.put(registered.schema_id, indexes)
        return ids.frame(data, registered, context, indexes)

    async def _register_imports(self, file: Any) -> tuple[SchemaReference, ...]:
        """Register the files that a file imports, and return the references to them."""
        references = []
        for imported in file.dependencies:
            if is_known_file(imported.name):
                continue
            schema = schema_of(imported, await self._register_imports(imported))
            registry, normalize = self._ids.registry, self._ids.normalize
            if self._ids.auto_register:
                await registry.register_schema(imported.name, schema, normalize=normalize)
            found = await registry.lookup_schema(imported.name, schema, normalize=normalize)  # it has the version
            references.append(SchemaReference(imported.name, imported.name, found.version or -1))
        return tuple(references)

    def _find_indexes(self, registered: RegisteredSchema) -> bytes:
        name = self._descriptor.full_name
        if self._ids.use_latest_version:
            indexes = messages_in(registered.schema).indexes_of(name)
        else:
            indexes = messages_of(proto_of(self._descriptor.file)).indexes_of(name)
        if indexes is None:
            raise SchemaMismatch(f"the latest version of subject {registered.subject!r} has no message {name}")
        return encode_message_indexes(indexes)


class ProtobufDeserializer(Generic[M]):
    """Deserializes messages that were written with the id of their schema, by any client.

    Args:
        registry: the schema registry.
        message_type: the generated class of the messages; None for classes that are made of the schemas, which the
            registry must return serialized, as Confluent's does.

    Raises:
        UsageError: an argument is wrong.
    """

    @overload
    def __init__(self: "ProtobufDeserializer[Any]", registry: SchemaRegistry) -> None: ...

    @overload
    def __init__(self, registry: SchemaRegistry, message_type: type[M]) -> None: ...

    def __init__(self, registry: SchemaRegistry, message_type: type[M] | None = None) -> None:
        check_registry(registry)
        self._registry, self._type = registry, message_type
        self._name: str | None = None if message_type is None else _descriptor_of(message_type).full_name
        # A class needs the names of messages alone, which are in the text, and registries fail less often to return it.
        self._files: ReaderCache[ProtobufFile] = ReaderCache(
            registry, SchemaType.PROTOBUF, self._parse, schema_format="serialized" if message_type is None else ""
        )
        self._classes: BoundedCache[tuple[int | str, tuple[int, ...]], Any] = BoundedCache(_CAPACITY)

    def deserialize(self, data: bytes, context: SerializationContext) -> M | Awaitable[M]:
        """Return the message in bytes, or an awaitable of it if the registry must be asked first.

        Raises:
            SchemaMismatch: the bytes have no schema id, are no message, or a message of another type, or the schema
                is no Protobuf schema that can be read.
            SchemaRegistryError: the schema is unknown, or the registry failed.
        """
        framed = read_frame(data, context, has_message_indexes=True)
        known = self._classes.get((framed.schema_id, framed.message_indexes))
        if known is not None:
            return cast("M", read_protobuf(known, framed.data))
        return self._fetch_and_read(framed)

    async def _fetch_and_read(self, framed: FramedData) -> M:
        file = await self._files.find(framed.schema_id)
        found = self._class_in(file, framed.message_indexes)
        self._classes.put((framed.schema_id, framed.message_indexes), found)
        return cast("M", read_protobuf(found, framed.data))

    def _class_in(self, file: ProtobufFile, indexes: tuple[int, ...]) -> Any:
        name = file.messages.name_of(indexes)
        if self._type is None:
            return file.class_of(name)
        if name != self._name:
            raise SchemaMismatch(f"the data is a message {name}, and this deserializer reads messages {self._name}")
        return self._type

    async def _parse(self, schema: Schema) -> ProtobufFile:
        if self._type is not None:
            return ProtobufFile(messages_in(schema))
        return parse_protobuf(schema, await self._registry.get_references(schema, schema_format="serialized"))


def _descriptor_of(message_type: Any) -> Any:
    descriptor = getattr(message_type, "DESCRIPTOR", None)
    if not isinstance(message_type, type) or not hasattr(descriptor, "full_name"):
        raise UsageError(f"message_type must be a class that protoc has generated, got {shown(message_type)}")
    return descriptor
