"""Finds messages in Protobuf schemas by their indexes, and makes their classes."""

import base64
import binascii
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import attrs

try:
    from google.protobuf import descriptor_pool, message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError, EncodeError
except ImportError as _missing:
    raise ImportError("Protobuf needs protobuf: pip install 'aiokafkawire[protobuf]'") from _missing

from .._printable import printable
from ..errors import SchemaMismatch
from .proto_messages import ProtoMessage, ProtoMessages, messages_in_text
from .proto_text import proto_text
from .schemas import Schema, SchemaReference, SchemaType

__all__ = (
    "ProtobufFile",
    "is_known_file",
    "messages_in",
    "messages_of",
    "parse_protobuf",
    "proto_of",
    "read_protobuf",
    "schema_of",
    "write_protobuf",
)

_KNOWN: Final = ("google/protobuf/", "google/type/", "confluent/")
_MODULE: Final = re.compile(r"google/(?:protobuf|type)/[a-z_]+\.proto")


def is_known_file(name: str) -> bool:
    """Return whether every registry has this file, so that it is not registered."""
    return name.startswith(_KNOWN)


def proto_of(file: Any) -> Any:
    """Return the FileDescriptorProto of a FileDescriptor."""
    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    return proto


def schema_of(file: Any, references: tuple[SchemaReference, ...]) -> Schema:
    """Return the schema of a FileDescriptor: its text, or the serialized descriptor if the text cannot express it."""
    proto = proto_of(file)
    text = proto_text(proto) or base64.b64encode(proto.SerializeToString()).decode()
    return Schema(text, SchemaType.PROTOBUF, references)


def messages_of(proto: Any) -> ProtoMessages:
    """Return the messages of a FileDescriptorProto, as Java counts: entries of maps are messages that do not count."""
    return ProtoMessages(proto.package, _declared(proto.message_type))


def _declared(messages: Any) -> list[ProtoMessage]:
    return [
        ProtoMessage(message.name, _declared(message.nested_type))
        for message in messages
        if not message.options.map_entry
    ]


def messages_in(schema: Schema) -> ProtoMessages:
    """Return the messages of a schema, which is text or serialized.

    Raises:
        SchemaMismatch: the schema is neither.
    """
    proto = _parse(schema)
    return messages_in_text(schema.text) if proto is None else messages_of(proto)


@attrs.frozen
class ProtobufFile:
    """A parsed schema.

    Attributes:
        messages: the messages that it declares.
        pool: a pool with the file and those that it imports; None if the classes of messages are the program's.
    """

    messages: ProtoMessages
    pool: Any = None

    def class_of(self, name: str) -> Any:
        """Return the class of a message by its full name."""
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))


def parse_protobuf(schema: Schema, references: Mapping[str, Schema]) -> ProtobufFile:
    """Parse a schema that the registry has serialized.

    Args:
        schema: the schema.
        references: the files that it imports, each after those that it imports itself.

    Raises:
        SchemaMismatch: one of them is not valid.
    """
    proto = _parse(schema)
    if proto is None:
        raise SchemaMismatch(
            "the registry returns Protobuf schemas as text alone: give the deserializer a message_type"
        )
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()
    for name, reference in references.items():
        file = _parse(reference)
        if file is None:
            raise SchemaMismatch(f"the registry returns the imported schema {name!r} as text alone")
        file.name = name
        _add(pool, file, added)
    proto.name = "schema.proto"
    while proto.name in added:  # it imports a file of that name
        proto.name = f"_{proto.name}"
    _add(pool, proto, added)
    return ProtobufFile(messages_of(proto), pool)


def _parse(schema: Schema) -> Any:
    proto = FileDescriptorProto()
    try:
        proto.ParseFromString(base64.b64decode(schema.text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return proto


def _add(pool: Any, file: Any, added: set[str]) -> None:
    for name in file.dependency:
        if name not in added:
            _add(pool, proto_of(_known_file(name)), added)
    try:
        pool.Add(file)
        pool.FindFileByName(file.name)
    except (TypeError, KeyError, DecodeError) as error:
        raise SchemaMismatch(f"the Protobuf schema {file.name!r} is not valid: {printable(str(error))}") from error
    added.add(file.name)


def _known_file(name: str) -> Any:
    """Return the FileDescriptor of one of Google's files."""
    if _MODULE.fullmatch(name):
        try:
            return import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2").DESCRIPTOR
        except ImportError:
            pass
    raise SchemaMismatch(f"the Protobuf schema imports {name!r}, which is neither referenced nor installed")


def write_protobuf(message: Any) -> bytes:
    """Return the bytes of a message. Raise SchemaMismatch if a required field is missing."""
    try:
        data: bytes = message.SerializeToString()
    except EncodeError as error:
        raise SchemaMismatch(f"the message cannot be written: {error}") from error
    return data


def read_protobuf(message_type: Any, data: bytes) -> Any:
    """Return the message in bytes. Raise SchemaMismatch if they are truncated or something else."""
    try:
        return message_type.FromString(data)
    except DecodeError as error:
        name = message_type.DESCRIPTOR.full_name
        raise SchemaMismatch(f"{len(data)} bytes are not a message {name}: {error}") from error
