"""Message sets, the formats before Kafka 0.11 (magic 0, and 1 with timestamps: KIP-32), read as batches are.

A set is messages one after another. A compressed message is a wrapper: its value is a set again, deflated. What Java's
classes read is read here too; what they read by not looking, such as a wrapper's cut tail, is damage.
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
"""About how many bytes of uncompressed messages make one set: what a batch may have by default, so that no step of a
loop takes longer than with batches."""


@attrs.frozen
class MessageSetHeader:
    """What the outer messages of a set say; the names are those of a batch's header."""

    magic: int
    attributes: int
    """Those of every message of a run: only bits without a meaning differ."""
    size: int
    base_offset: int
    """-1 for a compressed set, where only the messages inside tell it."""
    last_offset: int
    max_timestamp: int
    """-1 in magic 0."""
    crc: int | None
    """None for a run of several messages, each of which has its own."""
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False
    delete_horizon: int | None = None

    @property
    def codec(self) -> int:
        """The number of the compression codec; numbers that no codec has can come."""
        return self.attributes & layout.CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Whose the records' timestamps are."""
        if not self.magic:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def next_offset(self) -> int:
        """The offset after it."""
        return self.last_offset + 1


class MessageSet:
    """One compressed message with what it wraps, or a run of uncompressed messages that are alike.

    Used as a RecordBatch is. The messages of a run have a checksum each; they are compared when they are reached.
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
        self._shift = 0  # what makes inner offsets absolute

    @classmethod
    def parse(cls, view: memoryview, position: int = 0, where: str = "") -> "MessageSet":
        """The set that begins at ``position``; ``where`` begins the message of every error.

        Raises:
            CorruptBatch: the bytes there are not a whole message of magic 0 or 1.
        """
        place, left = f"message set at byte {position}", len(view) - position
        named = f"{where}, {place}" if where else place
        if not (position >= 0 and left >= layout.MESSAGE.size):
            raise CorruptBatch(f"{named}: {left} bytes, less than a message has")
        offset, length, crc, magic, attributes, timestamp = layout.MESSAGE.unpack_from(view, position)
        place, named = f"{place} (offset {offset})", f"{named} (offset {offset})"
        if magic >= layout.MAGIC:
            raise CorruptBatch(f"{named}: magic {magic} is no message format v0 or v1")
        if not layout.SHORTEST_MESSAGES[magic] <= length <= left - layout.LOG_OVERHEAD:
            raise CorruptBatch(f"{named}: a length of {length}, with {left - layout.LOG_OVERHEAD} left for it")
        if not 0 <= offset < layout.LAST_OFFSET:
            raise CorruptBatch(f"{named}: no offset that a log has")
        size, newest = layout.LOG_OVERHEAD + length, timestamp if magic else -1
        if attributes & layout.CODEC_MASK:
            header = MessageSetHeader(magic, attributes, size, -1, offset, newest, crc)
        else:
            run, last, newest = _run(view, position, newest)
            header = MessageSetHeader(magic, attributes, run, offset, last, newest, crc if run == size else None)
        return cls(header, view[position : position + header.size], place, where)

    def check(self) -> None:
        """Compare the checksums of the outer messages, once.

        Raises:
            CorruptBatch: one is another; the message says whose.
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
        """Give the messages' bytes: of a compressed set checked, inflated and walked, once.

        Raises:
            CorruptBatch: see :meth:`check` and :func:`~aiokafkawire.records.compression.decompress`; a codec that the
                format does not have; inner messages that are cut, or whose offsets contradict the wrapper's.
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
        """Iterate the records from ``from_offset`` on.

        Raises:
            CorruptBatch: see :meth:`prepare`; also while iterating.
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
            # Java's consumer compares the inner ones too, and no broker changes what they cover.
            check_crcs=check_crcs and (bool(header.codec) or not self._checked),
        )

    def __repr__(self) -> str:
        header = self.header
        return f"<MessageSet v{header.magic} up to {header.last_offset}, codec {header.codec}, {header.size} bytes>"


def _run(view: memoryview, position: int, newest: int) -> tuple[int, int, int]:
    """Size, last offset and newest timestamp of the uncompressed messages at ``position`` that are like the first."""
    last, length, _, magic, attributes, _ = layout.MESSAGE.unpack_from(view, position)
    end = position + layout.LOG_OVERHEAD + length
    alike = layout.CODEC_MASK | layout.LOG_APPEND_TIME if magic else layout.CODEC_MASK
    kind, shortest = (magic, attributes & alike), layout.SHORTEST_MESSAGES[magic]
    bound = min(len(view), position + _RUN)
    while bound - end >= layout.MESSAGE.size:
        offset, length, _, magic, attributes, timestamp = layout.MESSAGE.unpack_from(view, end)
        after = end + layout.LOG_OVERHEAD + length
        if (
            (magic, attributes & alike) != kind
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
    """The first and the last offset inside, as they are written there, once all messages are known to be whole.

    They ascend, except where they are ``unset``: some producers wrote 0 everywhere, and left the rest to the broker.
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
    """What to add to inner offsets.

    A wrapper has the offset of its last message. In magic 1 inner offsets are relative (KIP-31); where a client wrote
    absolute ones, the difference is 0 and the same sum is right. In magic 0 they are absolute. A wrapper at offset 0
    is one that no broker has given offsets to, as old producers sent them: what is inside stands.
    """
    if not header.last_offset:
        return 0
    if last > header.last_offset:
        raise CorruptBatch(f"its offset is below that of its last message, {last}")
    return header.last_offset - last if header.magic else 0
