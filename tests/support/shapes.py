"""Test messages with every shape of field that the compiler knows, and nothing of Kafka's own."""

from typing import Any, TypeVar

from aiokafkawire.protocol.primitives import (
    ZERO_UUID,
    Array,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    UInt16,
    Uuid,
)
from aiokafkawire.protocol.schema import Message, field, message, nested

__all__ = ("Item", "Names", "Point", "Shapes", "Tagged", "Tiny", "shapes", "with_tags")

T = TypeVar("T")


@nested
class Point:
    """A struct that may be null, and may hold another."""

    x: Int16 = field("0+")
    label: String | None = field("0+", nullable="0+", default=None)


@nested
class Names:
    """A struct whose last fields need their own lengths."""

    first: String = field("0+")
    others: Array[String] = field("0+", default=list)


@nested
class Item:
    """An element of an array, with an array in it."""

    number: Int32 = field("0+")
    name: String = field("0+", default="")
    inner: Array[Names] = field("0+", default=list)
    later: Int32 = field("1+", default=-1)


@message(versions="0-2", flexible="1+")
class Shapes(Message):
    """Plain forms in version 0, compact ones from 1 on."""

    flag: Bool = field("0+", default=False)
    tiny: Int8 = field("0+", default=0)
    short: Int16 = field("0+", default=0)
    port: UInt16 = field("0+", default=0)
    number: Int32 = field("0+", default=0)
    large: Int64 = field("0+", default=0)
    ratio: Float64 = field("0+", default=0.0)
    key: Uuid = field("0+", default=ZERO_UUID)
    text: String = field("0+", default="")
    maybe_text: String | None = field("0+", nullable="0+", default=None)
    data: Bytes = field("0+", default=b"")
    maybe_data: Bytes | None = field("0+", nullable="0+", default=None)
    records: Records | None = field("0+", nullable="0+", default=None)
    numbers: Array[Int32] = field("0+", default=list)
    maybe_numbers: Array[Int32] | None = field("0+", nullable="0+", default=None)
    flags: Array[Bool] = field("0+", default=list)
    strings: Array[String] = field("0+", default=list)
    blobs: Array[Bytes] = field("0+", default=list)
    keys: Array[Uuid] = field("0+", default=list)
    names: Names = field("0+", default=lambda: Names(first=""))
    point: Point | None = field("0+", nullable="0+", default=None)
    items: Array[Item] = field("0+", default=list)
    maybe_items: Array[Item] | None = field("0+", nullable="0+", default=None)
    newest: Int32 = field("2+", default=0)
    forgettable: Int32 = field("2+", default=0, ignorable=True)


@message(versions="0-0", flexible="0+")
class Tagged(Message):
    """Tags in an order that is not theirs, with gaps between them."""

    plain: Int8 = field("0+", default=7)
    fifth: Int32 = field("0+", tag=5, default=0)
    second: String | None = field("0+", nullable="0+", tag=2, default=None)
    point: Point | None = field("0+", nullable="0+", tag=300, default=None)
    names: Names = field("0+", tag=9, default=lambda: Names(first=""))


@message(versions="0-0")
class Tiny(Message):
    """Four bytes."""

    number: Int32 = field("0+")


def shapes(**fields: Any) -> Shapes:
    """A message with fields that no type checker would pass."""
    return Shapes(**fields)


def with_tags(struct: T, tags: Any) -> T:
    """The message or struct with unknown tagged fields, which no type checker sees in its class."""
    setattr(struct, "unknown_tagged_fields", tags)  # noqa: B010
    return struct
