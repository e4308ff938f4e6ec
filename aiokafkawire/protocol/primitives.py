"""The protocol's primitive types, and the variable-length integers of compact forms and tagged fields.

Fixed-width types are big-endian and map to :mod:`struct` codes; the compiler packs neighbours in one call.
Strings, byte arrays and arrays come in a plain form (int16 or int32 length, -1 is null) and, in flexible
versions (KIP-482), a compact form (unsigned varint of length + 1, 0 is null).
"""

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Final, TypeAlias, TypeVar
from uuid import UUID

__all__ = (
    "Array",
    "Bool",
    "Buffer",
    "Bytes",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Records",
    "String",
    "UInt16",
    "Uuid",
    "WireType",
    "ZERO_UUID",
    "as_bytes",
    "as_list",
    "decode_tags",
    "decode_uvarint",
    "encode_tags",
    "encode_uvarint",
    "finish_uvarint",
)


class WireType(Enum):
    """A primitive type of the protocol; the value is its name in Kafka's message definitions."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"


STRUCT_CODES: Final = {
    WireType.BOOL: "?",
    WireType.INT8: "b",
    WireType.INT16: "h",
    WireType.UINT16: "H",
    WireType.INT32: "i",
    WireType.INT64: "q",
    WireType.FLOAT64: "d",
}
"""The :mod:`struct` codes of fixed-width types."""

Buffer: TypeAlias = bytes | bytearray | memoryview
"""The type of byte fields. Decoded fields are memoryviews of the frame, which they keep alive."""

# Annotations of fields: a type for type checkers, and the wire type.
Bool = Annotated[bool, WireType.BOOL]
Int8 = Annotated[int, WireType.INT8]
Int16 = Annotated[int, WireType.INT16]
UInt16 = Annotated[int, WireType.UINT16]
Int32 = Annotated[int, WireType.INT32]
Int64 = Annotated[int, WireType.INT64]
Float64 = Annotated[float, WireType.FLOAT64]
Uuid = Annotated[UUID, WireType.UUID]
String = Annotated[str, WireType.STRING]
Bytes = Annotated[Buffer, WireType.BYTES]
Records = Annotated[Buffer, WireType.RECORDS]
Array = list

T = TypeVar("T")

ZERO_UUID: Final = UUID(int=0)
"""The topic id of a topic whose id is unknown."""


def as_bytes(value: Buffer) -> Buffer:
    """Return a byte field's value as a buffer whose ``len`` is in bytes; raise TypeError for other values."""
    return value if isinstance(value, bytes | bytearray) else memoryview(value).cast("B")


def as_list(value: T) -> T:
    """Return the value of an array of strings unchanged; raise TypeError if the value is a single string."""
    if isinstance(value, str):
        raise TypeError("an array of strings is needed, not one string")
    return value


_ONE_BYTE: Final = tuple(bytes((n,)) for n in range(128))


def encode_uvarint(number: int) -> bytes:
    """Encode an unsigned varint: seven bits per byte, the lowest first, the high bit set on all bytes but the last."""
    if number < 128:
        return _ONE_BYTE[number]
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def finish_uvarint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Decode an unsigned varint of several bytes from its second byte on; return the number and its end.

    ``first`` is the first byte, whose high bit is set; ``position`` is that of the second byte.

    Raises:
        ValueError: the varint is longer than five bytes, the maximum of a 32-bit number.
        IndexError: the data ends within the varint.
    """
    number, shift = first & 127, 7
    while shift < 35:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
        shift += 7
    raise ValueError("an unsigned varint of more than five bytes")


def encode_tags(tags: Mapping[int, bytes]) -> bytes:
    """Encode the tagged fields, in ascending order of tags, that end every struct of a flexible version."""
    parts = [encode_uvarint(len(tags))]
    for tag in sorted(tags):
        data = tags[tag]
        parts += (encode_uvarint(tag), encode_uvarint(len(data)), data)
    return b"".join(parts)


def decode_tags(data: bytes, position: int) -> tuple[dict[int, bytes], int]:
    """Decode unknown tagged fields at ``position``; return their bytes by tag, and the position after the fields.

    Raises:
        ValueError: a field ends beyond the data.
        IndexError: the data ends within a varint.
    """
    tags: dict[int, bytes] = {}
    count, position = decode_uvarint(data, position)
    for _ in range(count):
        tag, position = decode_uvarint(data, position)
        length, position = decode_uvarint(data, position)
        end = position + length
        if end > len(data):
            raise ValueError(f"tagged field {tag} ends at byte {end} of {len(data)}")
        tags[tag] = data[position:end]
        position = end
    return tags, position


def decode_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """Decode an unsigned varint at ``position``; return the number and its end. Raise as :func:`finish_uvarint`."""
    first = data[position]
    return (first, position + 1) if first < 128 else finish_uvarint(data, position + 1, first)
