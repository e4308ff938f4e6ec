"""A batch in the making in plain Python: part of the readable twin."""

from collections.abc import Sequence
from typing import final

from ..errors import UsageError
from ..types import Header
from . import layout
from .checksum import crc32c
from .compression import Codec, compress
from .varint import SMALL_VARINTS, encode_varint, varint_size

__all__ = ("BatchBuilder", "record_size_bound")

_SMALL = len(SMALL_VARINTS)
_LEAST, _MOST = -(2**63), 2**63 - 1
_NULL = encode_varint(-1)
_NO_HEADERS = encode_varint(0)
_RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5  # length, attributes, two deltas, three lengths: each at its longest


def record_size_bound(key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()) -> int:
    """The most bytes that a record can take in a batch, whatever the records before it; the batch adds 61."""
    size = _RECORD_OVERHEAD + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += 10 + len(name.encode()) + len(content or b"")
    return size


@final
class BatchBuilder:
    """Gathers the records of one batch, encoded as they come.

    ``count``, ``base_timestamp`` (the first record's) and ``max_timestamp`` are there to be read; both are -1 in an
    empty batch. ``limit`` bounds the size before compression, header included, and lets a first record always in.
    """

    __slots__ = ("_buffer", "_built", "base_timestamp", "codec", "count", "level", "limit", "max_timestamp")

    def __init__(self, *, limit: int, codec: Codec = Codec.NONE, level: int | None = None) -> None:
        self.limit: int = limit
        self.codec: Codec = codec
        self.count: int = 0
        self.base_timestamp: int = -1
        self.max_timestamp: int = -1
        self.level: int | None = level
        self._buffer = bytearray(layout.HEADER_SIZE)  # the header's room, then records
        self._built: tuple[int, bytes] | None = None  # count then, records compressed

    @property
    def size(self) -> int:
        """Bytes so far, before compression and with the header."""
        return len(self._buffer)

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()) -> int:
        """Encode one record; give its offset in the batch, or -1 if it does not fit any more.

        An argument of another type raises what Python raises for it, and leaves the batch as it was; so do timestamps
        of more than 64 bits, and those that are further apart.
        """
        index = self.count
        delta = timestamp - self.base_timestamp if index else 0
        if not (_LEAST <= timestamp <= _MOST and _LEAST <= delta <= _MOST):
            raise OverflowError(f"a timestamp of {timestamp}, in a batch that begins at {self.base_timestamp}")
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        record = b"".join(
            (
                b"\0",  # attributes: no bit has a meaning yet
                SMALL_VARINTS[delta] if 0 <= delta < _SMALL else encode_varint(delta),
                SMALL_VARINTS[index] if index < _SMALL else encode_varint(index),
                SMALL_VARINTS[key_size] if 0 <= key_size < _SMALL else encode_varint(key_size),
                key or b"",
                SMALL_VARINTS[value_size] if 0 <= value_size < _SMALL else encode_varint(value_size),
                value or b"",
                _encode_headers(headers) if headers else _NO_HEADERS,
            )
        )
        size = len(record)
        buffer = self._buffer
        if index and len(buffer) + size + varint_size(size) > self.limit:
            return -1
        buffer += SMALL_VARINTS[size] if size < _SMALL else encode_varint(size)
        buffer += record
        self.count = index + 1
        if not index:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return index

    def build(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
    ) -> bytes:
        """The batch as a producer sends it: base offset 0, no leader epoch, checksum set.

        May be called again, with other producer state too; records are compressed again only if more came.

        Raises:
            UsageError: there are no records.
        """
        if not self.count:
            raise UsageError("a batch without records cannot be built")
        attributes = self.codec | transactional * layout.TRANSACTIONAL | control * layout.CONTROL
        state = (producer_id, producer_epoch, base_sequence)
        with memoryview(self._buffer) as whole, whole[layout.HEADER_SIZE :] as records:
            packed = records if self.codec is Codec.NONE else self._compressed(records)
            return b"".join((self._header(attributes, state, packed), packed))

    def compress(self) -> None:
        """Do the slow part of :meth:`build` now, on another thread if need be; nothing may be appended meanwhile."""
        if self.codec is not Codec.NONE:
            with memoryview(self._buffer) as whole, whole[layout.HEADER_SIZE :] as records:
                self._compressed(records)

    def _header(self, attributes: int, state: tuple[int, int, int], records: bytes | memoryview) -> bytearray:
        header = bytearray(layout.HEADER_SIZE)
        layout.HEADER.pack_into(
            header,
            0,
            0,
            layout.HEADER_SIZE - layout.LOG_OVERHEAD + len(records),
            -1,
            layout.MAGIC,
            0,
            attributes,
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            *state,
            self.count,
        )
        checksum = crc32c(records, crc32c(header[layout.ATTRIBUTES_AT :]))
        layout.UINT32.pack_into(header, layout.CRC_AT, checksum)
        return header

    def _compressed(self, records: memoryview) -> bytes:
        if self._built is None or self._built[0] != self.count:
            self._built = self.count, compress(self.codec, records, self.level)
        return self._built[1]


def _encode_headers(headers: Sequence[Header]) -> bytes:
    parts = [encode_varint(len(headers))]
    for name, content in headers:
        encoded = name.encode()
        parts += (encode_varint(len(encoded)), encoded)
        parts += (_NULL,) if content is None else (encode_varint(len(content)), content)
    return b"".join(parts)
