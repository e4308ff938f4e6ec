"""Converts raw records with deserializers that know the record, and reads what they made."""

import inspect
from collections import deque
from collections.abc import Awaitable, Generator, Iterable
from typing import Any, Protocol, TypeAlias

from ..errors import DeserializationError
from ..serialization import AnyDeserializer, SerializationContext, knows_record
from ..types import Header
from ._pure_record import undeserializable
from .batch import ConsumerRecord
from .columns import Columns, columns_of, join_values
from .pickling import RAW

__all__ = ("DeserializedReader", "FailureHandler", "RecordDeserializer")

AnyRecord: TypeAlias = ConsumerRecord[Any, Any]


class FailureHandler(Protocol):
    """Takes the records that cannot be deserialized, so that the consumer leaves them out (``on_error``)."""

    @property
    def count(self) -> int:
        """The number of records that it has taken."""

    def handle(self, error: DeserializationError) -> Awaitable[None] | None:
        """Take a record, or return an awaitable that does, and that raises KafkaError if it cannot."""

    async def close(self) -> None:
        """Release what the handler holds; records that it has not taken yet are read again."""


class RecordDeserializer:
    """The deserializers of one consumer.

    Args:
        key_deserializer, value_deserializer: functions, or objects that know the record; None leaves the bytes.
    """

    def __init__(
        self, key_deserializer: AnyDeserializer[Any] | None, value_deserializer: AnyDeserializer[Any] | None
    ) -> None:
        self._key, self._value = key_deserializer, value_deserializer

    def steps(self, record: AnyRecord) -> Generator[Awaitable[Any], Any, AnyRecord]:
        """Return a record with deserialized key and value, in steps for :func:`~.serialization.run_steps`.

        Raises:
            DeserializationError: a deserializer has raised an Exception.
        """
        raw_key, raw_value, headers = record.raw_key, record.raw_value, record.headers
        failed = "key"
        try:
            key = yield from _converted(self._key, raw_key, record.topic, headers, is_key=True)
            failed = "value"
            value = yield from _converted(self._value, raw_value, record.topic, headers, is_key=False)
        except Exception as cause:
            raise undeserializable(failed, record) from cause
        return ConsumerRecord(
            record.topic,
            record.partition,
            record.offset,
            key=key,
            value=value,
            raw_key=raw_key,
            raw_value=raw_value,
            headers=headers,
            timestamp=record.timestamp,
            timestamp_type=record.timestamp_type,
            leader_epoch=record.leader_epoch,
        )


def _converted(
    deserializer: AnyDeserializer[Any] | None,
    raw: bytes | None,
    topic: str,
    headers: tuple[Header, ...],
    *,
    is_key: bool,
) -> Generator[Awaitable[Any], Any, Any]:
    if raw is None or deserializer is None:
        return RAW
    if not knows_record(deserializer, "deserialize"):
        return deserializer(raw)  # type: ignore[operator]
    context = SerializationContext(topic, list(headers), is_key)
    found = deserializer.deserialize(raw, context)  # type: ignore[union-attr]
    if inspect.isawaitable(found):
        found = yield found
    return found


class DeserializedReader:
    """A reader of records that are deserialized already; it has the interface of a batch's reader.

    Args:
        raw: all records that were read, also those that were left out.
        entries: the deserialized records, and errors in the place of records that could not be deserialized.
        start: the offset from which ``raw`` was read.
        end: the offset after ``raw``.
    """

    def __init__(
        self, raw: Iterable[AnyRecord], entries: Iterable[AnyRecord | DeserializationError], start: int, end: int
    ) -> None:
        self._raw, self._entries, self._end = list(raw), deque(entries), end
        self.next_offset: int = start
        """The next offset to read."""
        self.met_headers: bool = False
        """Whether a record that was read had headers."""

    @property
    def is_empty(self) -> bool:
        """Whether no record was read, as after the last one of a batch."""
        return not self._raw

    def __iter__(self) -> "DeserializedReader":
        return self

    def __next__(self) -> AnyRecord:
        if not self._entries:
            self.next_offset = self._end
            raise StopIteration
        entry = self._entries.popleft()
        self.next_offset = entry.offset + 1 if self._entries else self._end
        self.met_headers = self.met_headers or bool(entry.headers)
        if isinstance(entry, DeserializationError):
            raise entry
        return entry

    def columns(self, *, with_keys: bool = True, with_values: bool = True) -> Columns:
        """Return the remaining records as columns, with raw keys and values unless these are left out."""
        return columns_of(self._remaining(), with_keys=with_keys, with_values=with_values)

    def joined_values(self, delimiter: bytes, null: bytes) -> tuple[int, bytes]:
        """Return the number of the remaining records and their raw values, each with the delimiter after it."""
        return join_values(self._remaining(), delimiter, null)

    def _remaining(self) -> list[AnyRecord]:
        remaining = [record for record in self._raw if record.offset >= self.next_offset]
        self._entries.clear()
        self.next_offset = self._end
        return remaining
