"""aiokafka's builder of batches, which :meth:`AIOKafkaProducer.create_batch` returns."""

import time
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from numbers import Real
from typing import Any, Final, NamedTuple

from ... import errors as own
from ...producer.record_checks import bytes_needed, copy_bytes, header_pairs
from ...records.batch import BatchBuilder as RecordBatchBuilder
from ...records.compression import Codec

__all__ = ("BatchBuilder", "RecordInBatch", "not_bytes", "whole_timestamp")

_new_tuple: Final = tuple.__new__


class RecordInBatch(NamedTuple):
    """A record's place in its batch. ``crc`` is always None; ``size`` is in bytes, before compression."""

    offset: int
    crc: int | None
    size: int
    timestamp: int


class BatchBuilder:
    """A batch that a program fills and then gives to :meth:`AIOKafkaProducer.send_batch`."""

    def __init__(
        self,
        batch_size: int,
        compression_type: Codec,
        *,
        is_transactional: int = 0,
        key_serializer: Callable[[Any], Any] | None = None,
        value_serializer: Callable[[Any], Any] | None = None,
    ) -> None:
        self.builder: RecordBatchBuilder = RecordBatchBuilder(limit=batch_size, codec=compression_type)
        self.timestamps: list[int] = []
        self._key_serializer, self._value_serializer = key_serializer, value_serializer
        self._closed = False

    def append(
        self,
        *,
        timestamp: float | None,
        key: Any,
        value: Any,
        headers: Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None] | None = (),
    ) -> RecordInBatch | None:
        """Add a record; return its place, or None if the batch is full or closed. A first record always has room.

        Args:
            timestamp: in ms since the epoch, of which a fraction is cut off; None for the present time.
            key: bytes, or an object for the producer's ``key_serializer``; None for no key.
            value: bytes, or an object for the producer's ``value_serializer``.
            headers: pairs of a name and bytes.

        Raises:
            TypeError: the key or value is not bytes, or the headers are no pairs.
        """
        if self._closed:
            return None
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        moment: Any = timestamp
        if moment is None:
            moment = time.time_ns() // 1_000_000
        elif type(moment) is not int:
            moment = whole_timestamp(moment)
        builder = self.builder
        before = builder.size
        try:
            pairs = header_pairs(headers if isinstance(headers, Mapping) else list(headers)) if headers else ()
            raw_key = _raw(key, "key", self._key_serializer)
            raw_value = _raw(value, "value", self._value_serializer)
            index = builder.append(moment, raw_key, raw_value, pairs)
        except own.UsageError as error:
            raise TypeError(str(error)) from error
        if index < 0:
            self.close()
            return None
        self.timestamps.append(moment)
        # The same as RecordInBatch(...), but without a function call for each record.
        return _new_tuple(RecordInBatch, (index, None, builder.size - before, moment))

    def close(self) -> None:
        """Take no more records."""
        self._closed = True

    def closed(self) -> bool:
        """Return whether the batch takes no more records."""
        return self._closed

    def size(self) -> int:
        """Return the batch's size in bytes, before compression."""
        return self.builder.size

    def record_count(self) -> int:
        """Return the number of the batch's records."""
        return self.builder.count


def whole_timestamp(number: Any) -> Any:
    """Return a number as an int, without its fraction, as aiokafka takes ``time.time() * 1000``; all else as it is."""
    if type(number) is int or not isinstance(number, Real) or not isfinite(number):
        return number
    real: Any = number
    return int(real)


def not_bytes(given: object, part: str, serializer: object) -> TypeError:
    """Return the error for a record's key or value that is not bytes.

    Args:
        given: the key or the value, as the serializer returned it.
        part: "key" or "value".
        serializer: the producer's serializer of that part, or None.
    """
    text = bytes_needed(given, part, serialized=serializer is not None)
    hint = f"; pass a {part}_serializer to AIOKafkaProducer() to convert other values"
    return TypeError(text if serializer is not None else text + hint)


def _raw(given: Any, part: str, serializer: object) -> bytes | None:
    if given is None or type(given) is bytes:
        return given
    if not isinstance(given, bytearray | memoryview):
        raise not_bytes(given, part, serializer)
    return copy_bytes(given, part, serialized=serializer is not None)
