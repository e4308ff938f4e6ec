"""A serializer that stores large values as objects, and a deserializer that loads them."""

import inspect
from collections.abc import Awaitable
from functools import partial
from hashlib import sha256
from typing import Any, Generic, TypeVar, overload
from uuid import uuid4

from ..argument_checks import INT64, check_integer, check_seconds
from ..errors import ClaimCheckError, UsageError
from ..runtime import system_wall_ms
from ..serialization import AnyDeserializer, AnySerializer, SerializationContext, check_converters, knows_record
from ..types import BytesLike, check_topic_name
from .object_store import ATTEMPTS, ObjectStore, StoreCalls
from .references import (
    MAX_EXPIRES_MS,
    ObjectReference,
    check_object,
    decode_reference,
    encode_reference,
    gone_error,
    has_reference,
    object_key,
    without_reference,
)

__all__ = ("ClaimCheckDeserializer", "ClaimCheckSerializer")

T = TypeVar("T")


class ClaimCheckSerializer(Generic[T]):
    """Serializes values, and stores large ones as objects: their records have references, and a header that says so.

    An object is stored before its record is sent. If sending fails, the object stays: let objects expire, and delete
    expired ones with :func:`delete_expired`.

    Args:
        store: the store, such as :class:`FsspecStore`.
        serializer: converts values to bytes: a function, or an object that knows the record; None for values that are
            bytes.
        threshold: the size in bytes above which a value is stored.
        expires_after: the seconds after which an object may be deleted; more than the topic's retention. None for
            never.
        concurrency: the largest number of values that an event loop stores at the same time, each on a thread.
        timeout: how long an attempt to store a value may take, in seconds; there are three attempts.

    Raises:
        UsageError, ConfigError: an argument is wrong.
    """

    @overload
    def __init__(
        self: "ClaimCheckSerializer[BytesLike]",
        store: ObjectStore,
        *,
        threshold: int = 512 * 1024,
        expires_after: float | None = None,
        concurrency: int = 8,
        timeout: float = 60.0,
    ) -> None: ...
    @overload
    def __init__(
        self,
        store: ObjectStore,
        serializer: AnySerializer[T],
        *,
        threshold: int = 512 * 1024,
        expires_after: float | None = None,
        concurrency: int = 8,
        timeout: float = 60.0,
    ) -> None: ...
    def __init__(
        self,
        store: ObjectStore,
        serializer: AnySerializer[Any] | None = None,
        *,
        threshold: int = 512 * 1024,
        expires_after: float | None = None,
        concurrency: int = 8,
        timeout: float = 60.0,
    ) -> None:
        self._calls = StoreCalls(store, concurrency, timeout)
        check_converters("serialize", serializer=serializer)
        check_integer("threshold", threshold)
        check_seconds("expires_after", expires_after)
        self._serializer, self._threshold, self._expires_after = serializer, threshold, expires_after
        self._wall_ms = system_wall_ms

    def serialize(self, value: T, context: SerializationContext) -> bytes | Awaitable[bytes]:
        """Return the bytes of a value, or an awaitable of them or of the reference to them.

        Raises:
            ClaimCheckError: the value could not be stored.
            UsageError: it is a record's key.
        """
        if context.is_key:
            raise UsageError("a record's key cannot be stored as an object: use the claim check as value_serializer")
        # The header of another record whose headers were copied would make consumers take the value for a reference.
        context.headers[:] = without_reference(context.headers)
        data: Any = value
        if self._serializer is not None:
            data = (
                self._serializer.serialize(value, context)  # type: ignore[union-attr]
                if knows_record(self._serializer, "serialize")
                else self._serializer(value)  # type: ignore[operator]
            )
        if inspect.isawaitable(data):
            return self._serialize_later(data, context)
        return self._store(bytes(data), context) if self._is_large(data) else data

    def _is_large(self, data: object) -> bool:
        """Return whether it is bytes above the threshold; the producer refuses anything else."""
        return isinstance(data, bytes | bytearray | memoryview) and memoryview(data).nbytes > self._threshold

    async def _serialize_later(self, awaitable: Awaitable[bytes], context: SerializationContext) -> bytes:
        data = await awaitable
        return await self._store(bytes(data), context) if self._is_large(data) else data

    async def _store(self, data: bytes, context: SerializationContext) -> bytes:
        check_topic_name(context.topic)
        expires_ms = None
        if self._expires_after is not None:
            expires_ms = min(self._wall_ms() + round(min(self._expires_after, MAX_EXPIRES_MS) * 1000), MAX_EXPIRES_MS)
        keys = [object_key(context.topic, expires_ms, uuid4().hex) for _ in range(ATTEMPTS)]
        first = keys[-1]
        try:
            key, digest = await self._calls.run("write", first, partial(self._write, keys, data))
        except FileNotFoundError as error:
            raise ClaimCheckError(f"the store could not write the object {first}: {error}", first) from error
        value, header = encode_reference(ObjectReference(key, len(data), digest, expires_ms))
        context.headers.append(header)
        return value

    def _write(self, keys: list[str], data: bytes) -> tuple[str, str]:
        key = keys.pop()  # of this attempt alone: one before it that took too long may go on, and damage its object
        self._calls.store.write(key, data)
        return key, sha256(data).hexdigest()


class ClaimCheckDeserializer(Generic[T]):
    """Deserializes values, and loads those that a ClaimCheckSerializer has stored; their size and SHA-256 are checked.

    Args:
        store: the store of the producer.
        deserializer: converts bytes to values: a function, or an object that knows the record; None for values that
            are bytes.
        max_size: the largest value to load, in bytes: a reference to a larger one is an error.
        concurrency: the largest number of values that an event loop loads at the same time, each on a thread.
        timeout: how long an attempt to load a value may take, in seconds; there are three attempts.

    Raises:
        UsageError, ConfigError: an argument is wrong.
    """

    @overload
    def __init__(
        self: "ClaimCheckDeserializer[bytes]",
        store: ObjectStore,
        *,
        max_size: int = 1024**3,
        concurrency: int = 8,
        timeout: float = 60.0,
    ) -> None: ...
    @overload
    def __init__(
        self,
        store: ObjectStore,
        deserializer: AnyDeserializer[T],
        *,
        max_size: int = 1024**3,
        concurrency: int = 8,
        timeout: float = 60.0,
    ) -> None: ...
    def __init__(
        self,
        store: ObjectStore,
        deserializer: AnyDeserializer[Any] | None = None,
        *,
        max_size: int = 1024**3,
        concurrency: int = 8,
        timeout: float = 60.0,
    ) -> None:
        self._calls = StoreCalls(store, concurrency, timeout)
        check_converters("deserialize", deserializer=deserializer)
        check_integer("max_size", max_size, 1, INT64)
        self._deserializer, self._max_size = deserializer, max_size
        self._wall_ms = system_wall_ms

    def deserialize(self, data: bytes, context: SerializationContext) -> T | Awaitable[T]:
        """Return the value of bytes, or an awaitable of it.

        Raises:
            ClaimCheckObjectGone: the object is no longer in the store.
            ClaimCheckObjectDamaged: the object is not what was written.
            ClaimCheckError: the record's reference is wrong, or the store has failed.
        """
        if context.is_key or not has_reference(context.headers):
            return self._converted(data, context)
        return self._load(decode_reference(data), context)

    def _converted(self, data: bytes, context: SerializationContext) -> T | Awaitable[T]:
        found: Any = data
        if self._deserializer is not None:
            found = (
                self._deserializer.deserialize(data, context)  # type: ignore[union-attr]
                if knows_record(self._deserializer, "deserialize")
                else self._deserializer(data)  # type: ignore[operator]
            )
        return found  # type: ignore[no-any-return]

    async def _load(self, reference: ObjectReference, context: SerializationContext) -> T:
        key = reference.key
        if reference.size > self._max_size:
            raise ClaimCheckError(
                f"the object {key} has {reference.size} bytes, more than {self._max_size} (max_size)",
                key,
                reference.expires_ms,
            )
        try:
            data = await self._calls.run("read", key, partial(self._read, reference))
        except FileNotFoundError as error:
            raise gone_error(reference, self._wall_ms()) from error
        found = self._converted(data, context)
        return await found if inspect.isawaitable(found) else found

    def _read(self, reference: ObjectReference) -> bytes:
        data = self._calls.store.read(reference.key, reference.size + 1)
        check_object(reference, data)
        return data
