"""Message sets, the formats before Kafka 0.11 (magic 0, and 1 with timestamps: KIP-32), with the interface of batches.

A set is a sequence of messages. A compressed message is a wrapper: its value is a compressed set. Sets that Java's
classes read are valid here too, except for damage that Java does not detect, such as a truncated end of a wrapper's
set.
"""

import zlib
from collections.abc import Callable
from typing import TypeVar

import attrs

from ..errors import CorruptBatch
from ..types import TimestampType
from . import layout
from .compression import Codec, decompress
from .interfaces import DEFAULT_INFLATE_LIMIT
from .lz4_frames import with_right_checksum
from .message_reader import MessageReader, key_and_value

__all__ = ("MessageSet", "MessageSetHeader")

K = TypeVar("K")
V = TypeVar("V")

_RUN = 1 << 20
"""The approximate maximum size of a set of uncompressed messages in bytes: the default maximum of a batch, so that
processing a set takes no longer than processing a batch."""


@attrs.frozen
class MessageSetHeader:
    """The common fields of a set's outer messages, with the field names of a batch's header."""

    magic: int
    attributes: int
    """The first message's attributes; those of the other messages differ only in unused bits."""
    size: int
    base_offset: int
    """The first offset; -1 for a compressed set, whose first offset is inside the compressed data."""
    last_offset: int
    max_timestamp: int
    """The newest timestamp; -1 in magic 0, which has no timestamps."""
    crc: int | None
    """The message's checksum; None for several messages, since each has its own."""
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False
    delete_horizon: int | None = None

    @property
    def codec(self) -> int:
        """The number of the compression codec, which this client may not know."""
        return self.attributes & layout.CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the producer or the broker set the records' timestamps."""
        if not self.magic:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def next_offset(self) -> int:
        """The offset after the set."""
        return self.last_offset + 1


class MessageSet:
    """One compressed message with its inner messages, or consecutive uncompressed messages with the same attributes.

    The class has the interface of RecordBatch. An uncompressed message's checksum is verified when the message is read.
    """

    __slots__ = ("_body", "_checked", "_first", "_place", "_shift", "_where", "header", "view")

    def __init__(self, header: MessageSetHeader, view: memoryview, place: str = "message set", where: str = "") -> None:
        self.header: MessageSetHeader = header
        self.view: memoryview = view
        self._place = place
        self._where = f"{where}, {place}" if where else place
        self._checked = False
        self._body: memoryview | None = None
        self._first = header.base_offset
        self._shift = 0  # the number to add to inner offsets

    @classmethod
    def parse(cls, view: memoryview, position: int = 0, where: str = "") -> "MessageSet":
        """Parse the set that begins at ``position``; ``where`` begins the message of every error.

        Raises:
            CorruptBatch: the bytes are not a whole message of magic 0 or 1.
        """
        place, left = f"message set at byte {position}", len(view) - position
        named = f"{where}, {place}" if where else place
        if not (position >= 0 and left >= layout.MESSAGE.size):
            raise CorruptBatch(f"{named}: {left} bytes, less than a message has")
        offset, length, crc, magic, attributes, timestamp = layout.MESSAGE.unpack_from(view, position)
        place, named = f"{place} (offset {offset})", f"{named} (offset {offset})"
        if magic >= layout.MAGIC:
            raise CorruptBatch(f"{named}: magic {magic} is not message format v0 or v1")
        if not layout.SHORTEST_MESSAGES[magic] <= length <= left - layout.LOG_OVERHEAD:
            raise CorruptBatch(f"{named}: a length of {length}, with {left - layout.LOG_OVERHEAD} left for it")
        if not 0 <= offset < layout.LAST_OFFSET:
            raise CorruptBatch(f"{named}: the offset is out of range")
        size, newest = layout.LOG_OVERHEAD + length, timestamp if magic else -1
        if attributes & layout.CODEC_MASK:
            header = MessageSetHeader(magic, attributes, size, -1, offset, newest, crc)
        else:
            run, last, newest = _run(view, position, newest)
            header = MessageSetHeader(magic, attributes, run, offset, last, newest, crc if run == size else None)
        return cls(header, view[position : position + header.size], place, where)

    def check(self) -> None:
        """Verify the checksums of the outer messages, unless they were verified before.

        Raises:
            CorruptBatch: a checksum is wrong; the error names the message.
        """
        if self._checked:
            return
        position = 0
        while position < len(self.view):
            offset, length, crc = layout.MESSAGE_FRAME.unpack_from(self.view, position)
            end = position + layout.LOG_OVERHEAD + length
            computed = zlib.crc32(self.view[position + layout.MAGIC_AT : end])
            if computed != crc:
                which = f"message at byte {position} (offset {offset})"
                raise CorruptBatch(f"{self._where}, {which}: CRC-32 is {computed:#010x}, it says {crc:#010x}")
            position = end
        self._checked = True

    def prepare(self, *, limit: int = DEFAULT_INFLATE_LIMIT, check_crcs: bool = True) -> memoryview:
        """Return the messages' bytes; the first call verifies, decompresses and validates a compressed set.

        Raises:
            CorruptBatch: see :meth:`check` and :func:`~aiokafkawire.records.compression.decompress`; also for a codec
                that the format does not support, for truncated inner messages, and for inconsistent offsets.
        """
        if check_crcs and self.header.codec:
            self.check()
        if self._body is None:
            try:
                self._body = self._inflated(limit)
            except (CorruptBatch, ValueError) as error:
                raise CorruptBatch(f"{self._where}: {error}") from error
        return self._body

    def _inflated(self, limit: int) -> memoryview:
        header = self.header
        if header.codec == Codec.NONE:
            return memoryview(decompress(header.codec, self.view, limit=limit))
        if header.codec == Codec.ZSTD:
            raise CorruptBatch(f"zstd, which message format v{header.magic} does not have (KIP-110)")
        _, packed = key_and_value(self.view, layout.MESSAGE_KEY_AT[header.magic], len(self.view))
        if packed is None:
            raise CorruptBatch("a compressed message with a null value")
        if header.codec == Codec.LZ4 and not header.magic:
            packed = with_right_checksum(packed)
        body = memoryview(decompress(header.codec, packed, limit=limit))
        first, last = _inner_offsets(body, unset=not header.last_offset)
        self._shift = _shift(header, last)
        self._first = first + self._shift
        return body

    def records(
        self,
        topic: str,
        partition: int,
        *,
        from_offset: int = 0,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        check_crcs: bool = True,
        limit: int = DEFAULT_INFLATE_LIMIT,
    ) -> MessageReader[K, V]:
        """Return an iterator over the records from ``from_offset`` on.

        Raises:
            CorruptBatch: see :meth:`prepare`. The iterator also raises this error, at a damaged record.
        """
        header = self.header
        body = self.prepare(limit=limit, check_crcs=check_crcs)
        return MessageReader(
            body,
            first_offset=self._first,
            last_offset=header.last_offset,
            shift=self._shift,
            wrapper=(header.timestamp_type, header.max_timestamp) if header.codec else None,
            place=self._place,
            topic=topic,
            partition=partition,
            from_offset=from_offset,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            # Java's consumer also verifies the inner checksums, and brokers do not change the bytes that these cover.
            check_crcs=check_crcs and (bool(header.codec) or not self._checked),
        )

    def __repr__(self) -> str:
        header = self.header
        return f"<MessageSet v{header.magic} up to {header.last_offset}, codec {header.codec}, {header.size} bytes>"


def _run(view: memoryview, position: int, newest: int) -> tuple[int, int, int]:
    """Return the size, last offset and newest timestamp of the set of uncompressed messages at ``position``."""
    last, length, _, magic, attributes, _ = layout.MESSAGE.unpack_from(view, position)
    end = position + layout.LOG_OVERHEAD + length
    mask = layout.CODEC_MASK | layout.LOG_APPEND_TIME if magic else layout.CODEC_MASK
    expected, shortest = (magic, attributes & mask), layout.SHORTEST_MESSAGES[magic]
    bound = min(len(view), position + _RUN)
    while bound - end >= layout.MESSAGE.size:
        offset, length, _, magic, attributes, timestamp = layout.MESSAGE.unpack_from(view, end)
        after = end + layout.LOG_OVERHEAD + length
        if (
            (magic, attributes & mask) != expected
            or length < shortest
            or after > bound
            or not last < offset < layout.LAST_OFFSET
        ):
            break
        end, last = after, offset
        if magic and timestamp > newest:
            newest = timestamp
    return end - position, last, newest


def _inner_offsets(body: memoryview, *, unset: bool) -> tuple[int, int]:
    """Validate the inner messages' lengths and offsets, and return the first and last inner offset as encoded.

    Offsets must ascend unless they are ``unset``: some producers wrote 0 for every message, and the broker assigned the
    offsets.
    """
    position, first, last = 0, -1, -1
    while position < len(body):
        place, left = f"inner message at byte {position}", len(body) - position
        if left < layout.MESSAGE.size:
            raise CorruptBatch(f"{place}: cut short, {left} bytes are left")
        offset, length, _ = layout.MESSAGE_FRAME.unpack_from(body, position)
        if not layout.SHORTEST_MESSAGE <= length <= left - layout.LOG_OVERHEAD:
            raise CorruptBatch(f"{place}: a length of {length}, with {left - layout.LOG_OVERHEAD} left for it")
        if not (last < offset or unset) or not 0 <= offset < layout.LAST_OFFSET:
            raise CorruptBatch(f"{place}: offset {offset} after {last}")
        first, last = first if position else offset, offset
        position += layout.LOG_OVERHEAD + length
    if last < 0:
        raise CorruptBatch("a compressed message without messages inside")
    return first, last


def _shift(header: MessageSetHeader, last: int) -> int:
    """Return the number to add to inner offsets; ``last`` is the last of them.

    A wrapper has the offset of its last inner message. In magic 1 inner offsets are relative (KIP-31), so the number is
    the difference between the wrapper's offset and ``last``; this is 0 if a client wrote absolute offsets. In magic 0
    inner offsets are absolute, and the number is 0. It is also 0 if the wrapper's offset is 0, as before a broker
    assigns offsets.
    """
    if not header.last_offset:
        return 0
    if last > header.last_offset:
        raise CorruptBatch(f"its offset is below that of its last message, {last}")
    return header.last_offset - last if header.magic else 0
