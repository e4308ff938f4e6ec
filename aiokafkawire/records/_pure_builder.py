"""The batch builder in plain Python: the readable twin of the compiled one."""

import operator
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
_MIN, _MAX = -(2**63), 2**63 - 1
_NULL = encode_varint(-1)
_NO_HEADERS = encode_varint(0)
_RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5  # length, attributes, two deltas, three lengths: each at its longest


def record_size_bound(key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()) -> int:
    """Return the maximum encoded size of a record in any batch, without the batch header of 61 bytes."""
    size = _RECORD_OVERHEAD + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += 10 + len(name.encode()) + len(content or b"")
    return size


@final
class BatchBuilder:
    """The builder of one record batch; :meth:`append` encodes a record immediately.

    ``count``, ``base_timestamp`` (the first record's) and ``max_timestamp`` may be read; both timestamps are -1 in an
    empty batch. ``limit`` bounds the size in bytes with the header, before compression; a first record may exceed it.
    """

    __slots__ = ("_buffer", "_built", "base_timestamp", "codec", "count", "level", "limit", "max_timestamp")

    def __init__(self, *, limit: int, codec: Codec = Codec.NONE, level: int | None = None) -> None:
        self.limit: int = limit
        self.codec: Codec = codec
        self.count: int = 0
        self.base_timestamp: int = -1
        self.max_timestamp: int = -1
        self.level: int | None = level
        self._buffer = bytearray(layout.HEADER_SIZE)  # space for the header, then records
        self._built: tuple[int, bytes] | None = None  # the count at the last compression, and the compressed records

    @property
    def size(self) -> int:
        """The current size in bytes, with the header and before compression."""
        return len(self._buffer)

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()) -> int:
        """Encode one record; return its offset in the batch, or -1 if the batch is full.

        If an argument has a wrong type, or if a timestamp or its difference to the first timestamp exceeds 64 bits, the
        method raises Python's own error and leaves the batch unchanged.
        """
        if type(timestamp) is not int:
            timestamp = operator.index(timestamp)
        if key is not None and type(key) is not bytes:
            key = bytes(memoryview(key))  # its items may have several bytes
        if value is not None and type(value) is not bytes:
            value = bytes(memoryview(value))
        index = self.count
        delta = timestamp - self.base_timestamp if index else 0
        if not (_MIN <= timestamp <= _MAX and _MIN <= delta <= _MAX):
            raise OverflowError(f"a timestamp of {timestamp}, in a batch that begins at {self.base_timestamp}")
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        record = b"".join(
            (
                b"\0",  # attributes, unused
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
        """Return the batch for a Produce request: with base offset 0, without a leader epoch, with the checksum.

        The method may be called again, also with other arguments; it compresses the records again only after an append.

        Raises:
            UsageError: the batch is empty.
        """
        if not self.count:
            raise UsageError("a batch without records cannot be built")
        attributes = self.codec | transactional * layout.TRANSACTIONAL | control * layout.CONTROL
        state = (producer_id, producer_epoch, base_sequence)
        with memoryview(self._buffer) as whole, whole[layout.HEADER_SIZE :] as records:
            packed = records if self.codec is Codec.NONE else self._compressed(records)
            return b"".join((self._header(attributes, state, packed), packed))

    def compress(self) -> None:
        """Compress the records in advance for :meth:`build`, also on another thread; no append may run meanwhile."""
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
