"""Converts the keys and values of records with serializers that know the record."""

import inspect
from collections.abc import Awaitable, Generator
from typing import Any, NamedTuple, TypeAlias

from ..errors import UsageError
from ..serialization import AnySerializer, SerializationContext, discard_awaitable, knows_record, run_steps
from ..types import Header, Headers
from .record_checks import copy_bytes, header_pairs, invalid_topic

__all__ = ("RecordSerializer", "SerializedRecord")


class SerializedRecord(NamedTuple):
    """A record's key and value as the appender takes them, and its headers with those that serializers have added."""

    value: Any
    key: Any
    headers: tuple[Header, ...]


_Steps: TypeAlias = Generator[Awaitable[Any], Any, SerializedRecord]


class RecordSerializer:
    """The serializers of one producer: the key is converted first, and the value's serializer sees its headers.

    Args:
        key_serializer, value_serializer: functions, or objects that know the record; None leaves values as they are.
    """

    def __init__(self, key_serializer: AnySerializer[Any] | None, value_serializer: AnySerializer[Any] | None) -> None:
        self._key, self._value = key_serializer, value_serializer

    async def serialize(self, topic: str, value: object, key: object, headers: Headers) -> SerializedRecord:
        """Convert the key and the value of a record; await serializers that are asynchronous.

        Raises:
            UsageError: a serializer has returned no bytes, or added an invalid header; or an argument is invalid.
        """
        return await run_steps(self._steps(topic, value, key, headers))

    def serialize_now(self, topic: str, value: object, key: object, headers: Headers) -> SerializedRecord:
        """Convert the key and the value of a record without waiting.

        Raises:
            UsageError: as :meth:`serialize`, or a serializer is asynchronous.
        """
        steps = self._steps(topic, value, key, headers)
        try:
            discard_awaitable(next(steps))
        except StopIteration as end:
            record: SerializedRecord = end.value
            return record
        finally:
            steps.close()
        raise UsageError("send_nowait() cannot wait for an asynchronous serializer: use send() or enqueue()")

    def _steps(self, topic: str, value: object, key: object, headers: Headers) -> _Steps:
        if not isinstance(topic, str):
            raise invalid_topic(topic)
        pairs = list(header_pairs(() if headers is None else headers))
        raw_key, pairs = yield from _converted(self._key, key, topic, pairs, is_key=True)
        raw_value, pairs = yield from _converted(self._value, value, topic, pairs, is_key=False)
        return SerializedRecord(raw_value, raw_key, tuple(pairs))


def _converted(
    serializer: AnySerializer[Any] | None, given: object, topic: str, headers: list[Header], *, is_key: bool
) -> Generator[Awaitable[Any], Any, tuple[Any, list[Header]]]:
    """Return a key or value as bytes, and a copy of the headers: the serializer may keep and change its own list."""
    if given is None or serializer is None:
        return given, headers
    part = "key" if is_key else "value"
    if not knows_record(serializer, "serialize"):
        found = serializer(given)  # type: ignore[operator]
    else:
        context = SerializationContext(topic, headers, is_key)
        found = serializer.serialize(given, context)  # type: ignore[union-attr]
        if inspect.isawaitable(found):
            found = yield found
        headers = list(header_pairs(context.headers))
    return found if type(found) is bytes else copy_bytes(found, part, serialized=True), headers
