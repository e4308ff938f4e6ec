"""The record reader of message sets (magic 0 and 1), without a compiled twin, since these formats are rare."""

import zlib
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar, final

from ..errors import CorruptBatch
from ..types import TimestampType
from . import layout
from ._pure_record import undeserializable
from .batch import ConsumerRecord
from .columns import Columns, columns_of, join_values
from .pickling import RAW

__all__ = ("MessageReader", "key_and_value")

K = TypeVar("K")
V = TypeVar("V")


class _Message(NamedTuple):
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None


@final
class MessageReader(Generic[K, V]):
    """An iterator over the records of one message set; the caller has validated the messages' lengths.

    Like RecordReader, it may be used after errors, and validates each message completely before it returns the record.
    ``wrapper`` is the timestamp type and timestamp of the message that wraps these messages; None without a wrapper.
    """

    __slots__ = (
        "_check_crcs",
        "_from_offset",
        "_key_deserializer",
        "_last_offset",
        "_next_offset",
        "_partition",
        "_place",
        "_position",
        "_shift",
        "_topic",
        "_value_deserializer",
        "_view",
        "_wrapper",
    )

    def __init__(
        self,
        messages: memoryview,
        *,
        first_offset: int,
        last_offset: int,
        shift: int,
        wrapper: tuple[TimestampType, int] | None,
        place: str,
        topic: str,
        partition: int,
        from_offset: int = 0,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        check_crcs: bool = True,
    ) -> None:
        self._view = messages
        self._next_offset = first_offset
        self._last_offset = last_offset
        self._shift = shift
        self._wrapper = wrapper
        self._place = place
        self._topic = topic
        self._partition = partition
        self._from_offset = from_offset
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._check_crcs = check_crcs
        self._position = 0

    @property
    def next_offset(self) -> int:
        """The next offset to read: the one after the last returned record or, after all records, after the set."""
        following = self._next_offset
        if self._position >= len(self._view):
            following = max(following, self._last_offset + 1)
        return max(self._from_offset, following)

    @property
    def met_headers(self) -> bool:
        """Always False: messages have no headers."""
        return False

    def columns(self, *, with_keys: bool = True, with_values: bool = True) -> Columns:
        """Return the remaining records as columns, with raw keys and values unless these are left out."""
        self._key_deserializer = self._value_deserializer = None
        return columns_of(self, with_keys=with_keys, with_values=with_values)

    def joined_values(self, delimiter: bytes, null: bytes) -> tuple[int, bytes]:
        """Return the number of the remaining records and their raw values, each with the delimiter after it."""
        self._key_deserializer = self._value_deserializer = None
        return join_values(self, delimiter, null)

    def __iter__(self) -> "MessageReader[K, V]":
        return self

    def __next__(self) -> ConsumerRecord[K, V]:
        message = self._step()
        key: K | None = RAW
        value: V | None = RAW
        if self._key_deserializer is not None and message.key is not None:
            try:
                key = self._key_deserializer(message.key)
            except Exception as cause:
                raise undeserializable("key", self._record(message, RAW, RAW)) from cause
        if self._value_deserializer is not None and message.value is not None:
            try:
                value = self._value_deserializer(message.value)
            except Exception as cause:
                raise undeserializable("value", self._record(message, RAW, RAW)) from cause
        return self._record(message, key, value)

    def _record(self, message: _Message, key: K | None, value: V | None) -> ConsumerRecord[K, V]:
        return ConsumerRecord(
            self._topic,
            self._partition,
            message.offset,
            key=key,
            value=value,
            raw_key=message.key,
            raw_value=message.value,
            timestamp=message.timestamp,
            timestamp_type=message.timestamp_type,
        )

    def _step(self) -> _Message:
        """Return the next message at or after ``from_offset``; raise CorruptBatch if it is damaged."""
        view = self._view
        while self._position < len(view):
            position = self._position
            offset, length, _ = layout.MESSAGE_FRAME.unpack_from(view, position)
            offset += self._shift
            end = position + layout.LOG_OVERHEAD + length
            message: _Message | None = None
            if offset >= self._from_offset:
                try:
                    message = self._message(offset, position, end)
                except ValueError as damage:
                    raise self._corrupt(offset, damage) from damage
            self._position = end
            self._next_offset = offset + 1
            if message is not None:
                return message
        raise StopIteration

    def _message(self, offset: int, position: int, end: int) -> _Message:
        """Parse the message at ``position``; raise ValueError if it is damaged."""
        view = self._view
        _, length, crc, magic, attributes, timestamp = layout.MESSAGE.unpack_from(view, position)
        if self._check_crcs:
            computed = zlib.crc32(view[position + layout.MAGIC_AT : end])
            if computed != crc:
                raise ValueError(f"CRC-32 is {computed:#010x}, it says {crc:#010x}")
        if magic >= layout.MAGIC:
            raise ValueError(f"unknown message format (magic {magic})")
        if length < layout.SHORTEST_MESSAGES[magic]:
            raise ValueError(f"a length of {length}, but the minimum is {layout.SHORTEST_MESSAGES[magic]}")
        if attributes & layout.CODEC_MASK:
            raise ValueError("compressed inside a compressed message")
        key, value = key_and_value(view, position + layout.MESSAGE_KEY_AT[magic], end)
        timestamp_type = TimestampType.NO_TIMESTAMP_TYPE
        if not magic:  # no timestamp, not even inside a wrapper of magic 1, as in Java's consumer
            timestamp = -1
        elif self._wrapper is None:
            timestamp_type = TimestampType(attributes >> 3 & 1)
        else:
            timestamp_type = self._wrapper[0]
            if timestamp_type is TimestampType.LOG_APPEND_TIME:
                timestamp = self._wrapper[1]
        return _Message(
            offset,
            timestamp,
            timestamp_type,
            None if key is None else bytes(key),
            None if value is None else bytes(value),
        )

    def _corrupt(self, offset: int, what: object) -> CorruptBatch:
        which = "message" if self._wrapper is None else "inner message"
        place = f"{self._topic}-{self._partition}: {self._place}, {which} at byte {self._position} (offset {offset})"
        return CorruptBatch(f"{place}: {what}")


def key_and_value(view: memoryview, position: int, end: int) -> tuple[memoryview | None, memoryview | None]:
    """Return the key at ``position`` and the value after it, each None if null; the value must end at ``end``.

    Raises:
        ValueError: the lengths contradict the message's length.
    """
    key, position = _field(view, position, end, "key")
    value, position = _field(view, position, end, "value")
    if position != end:
        raise ValueError(f"{end - position} bytes after the value")
    return key, value


def _field(view: memoryview, position: int, end: int, what: str) -> tuple[memoryview | None, int]:
    if end - position < layout.INT32.size:
        raise ValueError(f"cut short before its {what}")
    (length,) = layout.INT32.unpack_from(view, position)
    position += layout.INT32.size
    if length == -1:
        return None, position
    if not 0 <= length <= end - position:
        raise ValueError(f"a {what} of {length} bytes, with {end - position} left")
    return view[position : position + length], position + length
