"""The ids of schemas in records, before the data or in a header, and Protobuf's message indexes."""

from collections.abc import Sequence
from struct import Struct
from typing import Final
from uuid import UUID

import attrs

from ..errors import SchemaMismatch
from ..serialization import SerializationContext

__all__ = (
    "KEY_HEADER",
    "VALUE_HEADER",
    "FramedData",
    "encode_guid",
    "encode_id",
    "encode_message_indexes",
    "header_name",
    "read_frame",
    "read_message_indexes",
)

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"

_ID: Final = Struct(">BI")
_GUID_SIZE: Final = 16
_MAX_INDEXES: Final = 1_000
"""The limit of message indexes; more would mean messages that are nested as deeply."""
_MAX_SHIFT: Final = 28
"""The shift of the last byte of a varint of 32 bits."""


@attrs.frozen
class FramedData:
    """The bytes of a key or value, apart from its schema's id.

    Attributes:
        schema_id: the schema's id, or its GUID.
        data: the bytes after the id and the message indexes.
        message_indexes: for Protobuf, the place of the message's type in its file.
    """

    schema_id: int | str
    data: bytes
    message_indexes: tuple[int, ...] = ()


def header_name(context: SerializationContext) -> str:
    """Return the name of the header with the id of a key's or value's schema."""
    return KEY_HEADER if context.is_key else VALUE_HEADER


def encode_id(schema_id: int) -> bytes:
    """Return the bytes of an id: magic byte 0, and four bytes."""
    return _ID.pack(0, schema_id)


def encode_guid(guid: str) -> bytes:
    """Return the bytes of a GUID: magic byte 1, and 16 bytes."""
    return b"\x01" + UUID(guid).bytes


def encode_message_indexes(indexes: Sequence[int]) -> bytes:
    """Return the bytes of message indexes: their number and each of them as zigzag varints; ``[0]`` is one byte 0."""
    if list(indexes) == [0]:
        return b"\x00"
    encoded = bytearray()
    for number in (len(indexes), *indexes):
        zigzag = number << 1
        while zigzag > 0x7F:
            encoded.append(zigzag & 0x7F | 0x80)
            zigzag >>= 7
        encoded.append(zigzag)
    return bytes(encoded)


def read_message_indexes(data: bytes, position: int) -> tuple[tuple[int, ...], int]:
    """Return message indexes, and the position after them.

    Raises:
        SchemaMismatch: the bytes are truncated, or a number is negative or too large.
    """
    count, position = _read_varint(data, position)
    if count == 0:
        return (0,), position
    if count > _MAX_INDEXES:
        raise SchemaMismatch(f"there are {count} message indexes, and at most {_MAX_INDEXES} are plausible")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(data, position)
        indexes.append(index)
    return tuple(indexes), position


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise SchemaMismatch("the data ends within the message indexes")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > _MAX_SHIFT:
            raise SchemaMismatch("a message index has more than 32 bits")
    if value & 1:
        raise SchemaMismatch("a message index is negative")
    return value >> 1, position


def read_frame(data: bytes, context: SerializationContext, *, has_message_indexes: bool = False) -> FramedData:
    """Find the id of a schema: in the last header for it if there is one, otherwise before the data.

    Args:
        data: the bytes of a key or value.
        context: the record.
        has_message_indexes: whether message indexes follow the id, as for Protobuf.

    Raises:
        SchemaMismatch: there is no id, or it is truncated.
    """
    name = header_name(context)
    value = next((value for header, value in reversed(context.headers) if header == name), None)
    if value is not None:
        return attrs.evolve(_read_id(bytes(value), f"header {name}", has_message_indexes), data=bytes(data))
    part = "key" if context.is_key else "value"
    return _read_id(bytes(data), part, has_message_indexes)


def _read_id(data: bytes, source: str, has_message_indexes: bool) -> FramedData:
    if not data:
        raise SchemaMismatch(f"the {source} is empty: it has no schema id")
    schema_id: int | str
    if data[0] == 0:
        if len(data) < _ID.size:
            raise SchemaMismatch(f"the {source} of {len(data)} bytes is too short for a schema id")
        schema_id, position = _ID.unpack_from(data)[1], _ID.size
    elif data[0] == 1:
        position = 1 + _GUID_SIZE
        if len(data) < position:
            raise SchemaMismatch(f"the {source} of {len(data)} bytes is too short for a schema GUID")
        schema_id = str(UUID(bytes=data[1:position]))
    else:
        raise SchemaMismatch(
            f"the {source} begins with byte {data[0]}, and data with a schema id begins with 0 or 1: it was written "
            "without a schema registry"
        )
    indexes: tuple[int, ...] = ()
    if has_message_indexes:
        indexes, position = read_message_indexes(data, position)
    return FramedData(schema_id, data[position:], indexes)
