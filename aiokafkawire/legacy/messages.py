"""Message sets of Kafka 0.6 (magic 0) and 0.7 (magic 1), which are messages one after another, without a header.

A message has no key and no timestamp. Its offset is not stored: it is the byte of the log at which the message begins.
The checksum covers only the payload. The payload of a compressed message, a wrapper, is a message set. Only the wrapper
has an offset, so reading can begin at a wrapper, but not inside it.
"""

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

import attrs

from ..errors import CorruptBatch, UsageError
from ..records.compression import Buffer, Codec, compress, decompress
from ..records.interfaces import DEFAULT_INFLATE_LIMIT
from .errors import MisalignedOffset

__all__ = ("Entry", "LegacyMessage", "LegacyMessageSet", "encode_entry", "encode_messages")

_SIZE: Final = Struct(">i")
_HEADERS: Final = (Struct(">iBI"), Struct(">iBBI"))
"""The headers of magic 0 and 1: size, magic, attributes (magic 1 only), and the payload's checksum."""
_CODEC_MASK: Final = 3
_DEEPEST: Final = 8
"""The maximal depth of nested wrappers. Brokers accept any depth; clients write one wrapper."""


@attrs.frozen
class LegacyMessage:
    """A message, decompressed.

    Attributes:
        value: the payload.
        offset: the byte of the log at which the message begins or, if it was compressed, at which its wrapper begins.
        next_offset: the offset from which to read on after this message. It is the end of the message or, for the last
            message of a wrapper, the wrapper's end. For the earlier messages of a wrapper it is the wrapper's
            beginning, so reading from there returns these messages again.
        magic: 0 (Kafka 0.6) or 1 (Kafka 0.7).
    """

    value: bytes
    offset: int
    next_offset: int
    magic: int


@attrs.frozen
class Entry:
    """A message as it is stored in the log. If it has a codec, it is a wrapper."""

    offset: int
    magic: int
    attributes: int
    """The lowest two bits are the codec; the other bits have no meaning, and are kept. Always 0 for magic 0."""
    crc: int
    payload: Buffer = attrs.field(repr=False)

    @property
    def codec(self) -> int:
        """The number of the message's codec; 0 for none. Kafka 0.7 has no codec 3."""
        return self.attributes & _CODEC_MASK

    @property
    def size(self) -> int:
        """The size of the message in the log, in bytes."""
        return _HEADERS[self.magic].size + len(self.payload)

    @property
    def next_offset(self) -> int:
        """The offset at which the message ends."""
        return self.offset + self.size

    @property
    def crc_ok(self) -> bool:
        """Whether the payload has the stored checksum."""
        return zlib.crc32(self.payload) == self.crc

    def check(self, where: str = "") -> None:
        """Verify the checksum of the payload; errors begin with ``where``.

        Raises:
            CorruptBatch: the checksum does not match.
        """
        if not self.crc_ok:
            computed = zlib.crc32(self.payload)
            raise CorruptBatch(f"{where}message at byte {self.offset}: checksum {computed:08x}, not {self.crc:08x}")


class LegacyMessageSet:
    """The messages in the answer to a fetch. The last message may be incomplete, since ``fetch_size`` cuts the answer.

    Args:
        data: the bytes of the answer.
        offset: the offset of the first byte in the log.
        where: a text, such as the partition, with which error messages begin.

    Attributes:
        cut: the number of bytes of the incomplete last message.
        needed: the complete size of the incomplete last message; None if its size is not known.
        next_offset: the offset after the last complete message.

    ``len`` is the number of complete messages, where a wrapper counts as one message.

    Raises:
        MisalignedOffset: no message begins at ``offset``.
        CorruptBatch: a later message is damaged.
    """

    __slots__ = ("_count", "_view", "cut", "needed", "next_offset", "offset", "size", "where")

    def __init__(self, data: Buffer, offset: int = 0, where: str = "") -> None:
        self.where: str = f"{where}: " if where else ""
        self.offset: int = offset
        self.size: int = len(data)
        self._view, self._count, position = memoryview(data), 0, 0
        self.needed: int | None = None
        while position < len(data):
            whole = _size_at(self._view, position, offset, self.where)
            if whole is None or position + whole > len(data):
                self.needed = whole
                break
            self._count += 1
            position += whole
        self.cut: int = len(data) - position
        self.next_offset: int = offset + position

    def __len__(self) -> int:
        return self._count

    def entries(self) -> Iterator[Entry]:
        """Yield the complete messages as they are stored in the log, without verifying checksums."""
        position, end = 0, self.next_offset - self.offset
        while position < end:
            entry = _at(self._view, position, self.offset)
            yield entry
            position += entry.size

    def messages(self, *, limit: int = DEFAULT_INFLATE_LIMIT) -> Iterator[LegacyMessage]:
        """Yield the messages, including those in wrappers; verify their checksums.

        ``limit`` is the maximum number of bytes to which a wrapper, with its nested wrappers, may be decompressed. An
        incomplete message at the end of a wrapper is ignored, as by Java's clients.

        Raises:
            MisalignedOffset: the checksum of the first message is wrong.
            CorruptBatch: another message is damaged, or a decompressed wrapper is larger than ``limit``.
        """
        for entry in self.entries():
            if entry.offset == self.offset and not entry.crc_ok:
                raise _misaligned(entry.offset, "its checksum is wrong", self.where)
            entry.check(self.where)
            if not entry.codec:
                yield LegacyMessage(bytes(entry.payload), entry.offset, entry.next_offset, entry.magic)
                continue
            # Yield each message one step later, since the last message of a wrapper has another next_offset.
            held: Entry | None = None
            for inner in _inflated(entry, limit, f"{self.where}message at byte {entry.offset}: "):
                if held is not None:
                    yield LegacyMessage(bytes(held.payload), entry.offset, entry.offset, held.magic)
                held = inner
            if held is not None:
                yield LegacyMessage(bytes(held.payload), entry.offset, entry.next_offset, held.magic)


def _size_at(view: memoryview, position: int, base: int, where: str) -> int | None:
    """Return the size of the message at ``position``, including its size field; None if that field is incomplete."""
    offset, left = base + position, len(view) - position
    if left < _SIZE.size:
        return None
    (size,) = _SIZE.unpack_from(view, position)
    magic = view[position + _SIZE.size] if left > _SIZE.size else 0
    wrong = None
    if magic >= len(_HEADERS):
        wrong = f"magic {magic}, where 0 and 1 are known"
    elif size < _HEADERS[magic].size - _SIZE.size:
        wrong = f"a size of {size} bytes, less than a message has"
    if wrong is None:
        return int(_SIZE.size + size)
    if not position:
        raise _misaligned(offset, wrong, where)
    raise CorruptBatch(f"{where}message at byte {offset}: {wrong}")


def _at(view: memoryview, position: int, base: int) -> Entry:
    """Return the message at ``position``, which must be complete."""
    header = _HEADERS[view[position + _SIZE.size]]
    size, magic, *attributes, crc = header.unpack_from(view, position)
    payload = view[position + header.size : position + _SIZE.size + size]
    return Entry(base + position, magic, attributes[0] if attributes else 0, crc, payload)


def _misaligned(offset: int, wrong: str, where: str) -> MisalignedOffset:
    return MisalignedOffset(
        f"{where}no message begins at offset {offset} ({wrong}): it lies inside of one, or the log is damaged;"
        " read from an offset that a message or offsets() has given"
    )


def _inflated(wrapper: Entry, limit: int, where: str) -> Iterator[Entry]:
    """Yield the messages in a wrapper and its nested wrappers; ``limit`` bounds the sum of their decompressed sizes."""
    room = limit
    waiting: list[Iterator[Entry]] = [iter((wrapper,))]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
            continue
        if entry is not wrapper:
            entry.check(f"{where}inner ")
        if not entry.codec:
            yield entry
            continue
        if len(waiting) > _DEEPEST:
            raise CorruptBatch(f"{where}more than {_DEEPEST} nested compressed messages")
        inside = _unpacked(entry, room, where)
        room -= len(inside)
        waiting.append(_inner(inside, where))


def _unpacked(entry: Entry, room: int, where: str) -> memoryview:
    if entry.codec not in (Codec.GZIP, Codec.SNAPPY):
        raise CorruptBatch(f"{where}unknown compression codec {entry.codec}")
    try:
        return memoryview(decompress(entry.codec, memoryview(entry.payload), limit=room))
    except CorruptBatch as error:
        raise CorruptBatch(f"{where}{error}") from error.__cause__


def _inner(data: memoryview, where: str) -> Iterator[Entry]:
    try:
        return LegacyMessageSet(data).entries()
    except CorruptBatch as error:
        raise CorruptBatch(f"{where}inside the compressed data: {error}") from None


def encode_entry(payload: Buffer, *, magic: int = 1, attributes: int = 0) -> bytes:
    """Encode a message as it is stored in the log.

    Raises:
        UsageError: the magic is neither 0 nor 1, or attributes are given for magic 0, which has none.
    """
    if magic not in (0, 1):
        raise UsageError(f"a message of Kafka 0.6 or 0.7 has magic 0 or 1, not {magic}")
    if attributes and not magic:
        raise UsageError("magic 0, of Kafka 0.6, has no attributes, and so no compression: take magic 1")
    fields = (magic, attributes, zlib.crc32(payload)) if magic else (magic, zlib.crc32(payload))
    header = _HEADERS[magic]
    return header.pack(header.size - _SIZE.size + len(payload), *fields) + payload


def encode_messages(
    values: Iterable[bytes], *, codec: Codec = Codec.NONE, magic: int = 1, level: int | None = None
) -> bytes:
    """Encode values as a message set, which a codec compresses to one wrapper; return ``b""`` without values.

    Snappy data has the framing of snappy-java.

    Raises:
        UsageError: Kafka 0.7 or the format does not support the codec, or a value is not bytes.
        ConfigError: the codec has no such level.
    """
    if codec not in (Codec.NONE, Codec.GZIP, Codec.SNAPPY):
        raise UsageError(f"Kafka 0.7 knows gzip and snappy, not {codec.name.lower()}")
    parts: list[bytes] = []
    for value in values:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise UsageError(f"a message of Kafka 0.7 is bytes, without a null; got {type(value).__name__}")
        # A view may have items of several bytes, and may lie in pieces.
        parts.append(encode_entry(bytes(value) if isinstance(value, memoryview) else value, magic=magic))
    body = b"".join(parts)
    if codec is Codec.NONE or not body:
        return body
    return encode_entry(compress(codec, body, level), magic=magic, attributes=codec)
