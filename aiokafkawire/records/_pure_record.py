"""The consumed record in plain Python: the readable twin of the compiled one."""

from typing import Any, Generic, TypeVar, cast, final

from ..errors import DeserializationError
from ..types import Header, TimestampType, TopicPartition
from .pickling import RAW, restore_record

__all__ = ("ConsumerRecord", "Source", "shown", "undeserializable")

K = TypeVar("K")
V = TypeVar("V")

_SHOWN = 40  # the maximum number of bytes or characters of a key or value in a repr


class Source:
    """The fields that are equal for all records of a batch; ``view`` is the batch's decompressed body."""

    __slots__ = ("leader_epoch", "partition", "timestamp_type", "topic", "view")

    def __init__(
        self,
        topic: str,
        partition: int,
        leader_epoch: int | None,
        timestamp_type: TimestampType,
        view: memoryview | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.timestamp_type = timestamp_type
        self.view = view

    def copy(self, part: slice) -> bytes:
        """Return a copy of a slice of the decompressed body."""
        return b"" if self.view is None else bytes(self.view[part])


@final
class ConsumerRecord(Generic[K, V]):
    """One record of a topic: immutable, hashable, picklable.

    A record from a batch keeps the batch's bytes alive, and copies its key and value on first access. To keep a record
    for a long time, keep the copy that :meth:`detach` returns. ``key`` and ``value`` are the results of the consumer's
    deserializers, or the raw bytes if it has none.
    """

    __slots__ = ("_headers", "_key", "_offset", "_raw_key", "_raw_value", "_source", "_timestamp", "_value")

    _source: Source
    _offset: int
    _timestamp: int
    _raw_key: bytes | slice | None  # a slice of the source's view until the first access
    _raw_value: bytes | slice | None
    _key: K | None
    _value: V | None
    _headers: tuple[Header, ...]

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        key: K | None = RAW,
        value: V | None = RAW,
        raw_key: bytes | None = None,
        raw_value: bytes | None = None,
        headers: tuple[Header, ...] = (),
        timestamp: int = -1,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        leader_epoch: int | None = None,
    ) -> None:
        """Make a record for tests and pipelines; ``key`` and ``value`` default to ``raw_key`` and ``raw_value``."""
        self._source = Source(topic, partition, leader_epoch, timestamp_type)
        self._offset = offset
        self._timestamp = timestamp
        self._raw_key = raw_key
        self._raw_value = raw_value
        self._key = key
        self._value = value
        self._headers = tuple(headers)

    @property
    def topic(self) -> str:
        """The record's topic."""
        return self._source.topic

    @property
    def partition(self) -> int:
        """The record's partition."""
        return self._source.partition

    @property
    def offset(self) -> int:
        """The record's offset in the partition."""
        return self._offset

    @property
    def timestamp(self) -> int:
        """The timestamp in ms since the epoch; -1 if the record has none."""
        return self._timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the producer or the broker set the timestamp."""
        return self._source.timestamp_type

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the leader that appended the record; None if the broker did not return it."""
        return self._source.leader_epoch

    @property
    def headers(self) -> tuple[Header, ...]:
        """The headers' names and values, in the producer's order; a name may occur several times."""
        return self._headers

    @property
    def raw_key(self) -> bytes | None:
        """The key's bytes, or None for a null key."""
        raw = self._raw_key
        if isinstance(raw, slice):
            raw = self._raw_key = self._source.copy(raw)
        return raw

    @property
    def raw_value(self) -> bytes | None:
        """The value's bytes, or None for a null value (a tombstone, in a compacted topic)."""
        raw = self._raw_value
        if isinstance(raw, slice):
            raw = self._raw_value = self._source.copy(raw)
        return raw

    @property
    def key(self) -> K | None:
        """The deserialized key, or the raw key if there is no ``key_deserializer``; None for a null key."""
        return cast("K", self.raw_key) if self._key is RAW else self._key

    @property
    def value(self) -> V | None:
        """The deserialized value, or the raw value if there is no ``value_deserializer``; None for a null value."""
        return cast("V", self.raw_value) if self._value is RAW else self._value

    def detach(self) -> "ConsumerRecord[K, V]":
        """Return a copy of the record with its own bytes, which does not keep the batch alive."""
        if self._source.view is None:
            return self
        source = self._source
        return ConsumerRecord(
            source.topic,
            source.partition,
            self._offset,
            key=self._key,
            value=self._value,
            raw_key=self.raw_key,
            raw_value=self.raw_value,
            headers=self._headers,
            timestamp=self._timestamp,
            timestamp_type=source.timestamp_type,
            leader_epoch=source.leader_epoch,
        )

    def _location(self) -> tuple[str, int, int]:
        return self._source.topic, self._source.partition, self._offset

    def _rest(self) -> tuple[object, ...]:
        source = self._source
        return self.raw_key, self.raw_value, self._headers, self._timestamp, source.timestamp_type, source.leader_epoch

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        if self._location() != other._location() or self._rest() != other._rest():
            return False
        return bool(self.key == other.key and self.value == other.value)

    def __hash__(self) -> int:
        return hash((*self._location(), *self._rest()))

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_record, (*self._location(), self._key, self._value, *self._rest())

    def __repr__(self) -> str:
        headers = f", headers={self._headers!r}" if self._headers else ""
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self._offset}, "
            f"timestamp={self._timestamp}, key={shown(self.key)}, value={shown(self.value)}{headers})"
        )


def undeserializable(failed: str, record: "ConsumerRecord[Any, Any]") -> DeserializationError:
    """Return the error for a record whose ``failed`` field, "key" or "value", could not be deserialized."""
    partition = TopicPartition(record.topic, record.partition)
    error = DeserializationError(
        f"{partition}, offset {record.offset}: the {failed} could not be deserialized",
        failed,
        partition,
        record.offset,
        record.raw_key,
        record.raw_value,
        record.headers,
        record.timestamp,
    )
    error._record = record
    return error


def shown(content: object) -> str:
    """Return the repr of a key or value, shortened if it is long."""
    if isinstance(content, bytes | str) and len(content) > _SHOWN:
        unit = "bytes" if isinstance(content, bytes) else "characters"
        return f"{content[:_SHOWN]!r}... ({len(content)} {unit})"
    return repr(content)
