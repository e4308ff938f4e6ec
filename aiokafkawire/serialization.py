"""The interfaces of serializers and deserializers, which convert keys and values to bytes and back."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, TypeVar

import attrs

from .types import Header

__all__ = ("AnyDeserializer", "AnySerializer", "Deserializer", "SerializationContext", "Serializer")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


@attrs.frozen
class SerializationContext:
    """The record whose key or value is converted."""

    topic: str
    headers: list[Header]
    """The record's headers; a serializer may add some, and a deserializer changes nothing by that."""
    is_key: bool
    """Whether it is the key that is converted; otherwise it is the value."""


class Serializer(Protocol[T_contra]):
    """An object that converts keys or values to bytes."""

    def serialize(self, value: T_contra, context: SerializationContext, /) -> bytes | Awaitable[bytes]:
        """Return the bytes of a key or value that is not None, or an awaitable of them."""


class Deserializer(Protocol[T_co]):
    """An object that converts bytes to keys or values."""

    def deserialize(self, data: bytes, context: SerializationContext, /) -> T_co | Awaitable[T_co]:
        """Return the key or value of bytes that are not null, or an awaitable of it."""


AnySerializer: TypeAlias = Callable[[T], bytes] | Serializer[T]
"""What producers take: a function, or an object that knows the record."""
AnyDeserializer: TypeAlias = Callable[[bytes], T] | Deserializer[T]
"""What consumers take: a function, or an object that knows the record."""
