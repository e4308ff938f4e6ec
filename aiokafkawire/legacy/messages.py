"""Message sets of Kafka 0.6 (magic 0) and 0.7 (magic 1): messages one after another, nothing in front of them.

A message has no key, no timestamp and no offset of its own: its offset is the byte of the log at which it begins. Its
checksum covers the payload alone. The payload of a compressed message, a wrapper, is a set again; only the wrapper has
an offset, so reading begins at wrappers, never inside.
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
"""Size, magic, attributes from magic 1 on, and the payload's checksum."""
_CODEC_MASK: Final = 3
_DEEPEST: Final = 8
"""How deep wrappers may be nested. Brokers take any depth; clients write one wrapper."""


@attrs.frozen
class LegacyMessage:
    """A message as users see it.

    Attributes:
        value: the payload.
        offset: where it begins, in bytes; of a compressed one, where its wrapper begins.
        next_offset: where to read on after it. Of a compressed one this is its wrapper's begin again, except for the
            last, which has the wrapper's end: who begins there reads the whole wrapper again, and misses nothing.
        magic: 0 as in Kafka 0.6, or 1.
    """

    value: bytes
    offset: int
    next_offset: int
    magic: int


@attrs.frozen
class Entry:
    """A message as the log has it: a wrapper, if it has a codec."""

    offset: int
    magic: int
    attributes: int
    """0 in magic 0. Bits above the lowest two have no meaning, and are kept."""
    crc: int
    payload: Buffer = attrs.field(repr=False)

    @property
    def codec(self) -> int:
        """The number of its codec; Kafka had no 3."""
        return self.attributes & _CODEC_MASK

    @property
    def size(self) -> int:
        """Its size in the log, in bytes."""
        return _HEADERS[self.magic].size + len(self.payload)

    @property
    def next_offset(self) -> int:
        """The offset after it."""
        return self.offset + self.size

    @property
    def crc_ok(self) -> bool:
        """Whether the checksum is that of the payload."""
        return zlib.crc32(self.payload) == self.crc

    def check(self, where: str = "") -> None:
        """Compare the checksum.

        Raises:
            CorruptBatch: it does not match.
        """
        if not self.crc_ok:
            computed = zlib.crc32(self.payload)
            raise CorruptBatch(f"{where}message at byte {self.offset}: checksum {computed:08x}, not {self.crc:08x}")


class LegacyMessageSet:
    """The messages of a fetch: whole ones, and perhaps a piece of the next, where the answer was cut.

    Args:
        data: the bytes.
        offset: which byte of the log the first one is.
        where: begins the message of every error, if given.

    Attributes:
        cut: how many bytes of a further message came.
        needed: the size of that message, if its size field came; else None.
        next_offset: the offset after the last whole message.

    ``len`` is the number of whole messages, wrappers counted as one.

    Raises:
        MisalignedOffset: there is no message at ``offset``.
        CorruptBatch: there is one, but another is damaged.
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
        """Yield the whole messages as the log has them, unchecked; a set may hold very many."""
        position, end = 0, self.next_offset - self.offset
        while position < end:
            entry = _at(self._view, position, self.offset)
            yield entry
            position += entry.size

    def messages(self, *, limit: int = DEFAULT_INFLATE_LIMIT) -> Iterator[LegacyMessage]:
        """Yield the messages, those in wrappers included, each checked.

        ``limit`` is the largest size of one decompressed wrapper. Like Java's classes, this leaves out a piece of a
        message at the end of a wrapper.

        Raises:
            MisalignedOffset: the first one's checksum is wrong.
            CorruptBatch: damaged data, or more than ``limit`` bytes.
        """
        for entry in self.entries():
            if entry.offset == self.offset and not entry.crc_ok:
                raise _misaligned(entry.offset, "its checksum is wrong", self.where)
            entry.check(self.where)
            if not entry.codec:
                yield LegacyMessage(bytes(entry.payload), entry.offset, entry.next_offset, entry.magic)
                continue
            # Hold one message back: the last of a wrapper has another next_offset.
            held: Entry | None = None
            for inner in _inflated(entry, limit, f"{self.where}message at byte {entry.offset}: "):
                if held is not None:
                    yield LegacyMessage(bytes(held.payload), entry.offset, entry.offset, held.magic)
                held = inner
            if held is not None:
                yield LegacyMessage(bytes(held.payload), entry.offset, entry.next_offset, held.magic)


def _size_at(view: memoryview, position: int, base: int, where: str) -> int | None:
    """Return the size of the message at ``position``, its size field included; None if that is cut."""
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
    """Return the message at ``position``, which is whole."""
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
    """Yield the messages in a wrapper, and in wrappers in it, which share the limit."""
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
    """Return a message as the log has it.

    Raises:
        UsageError: no such format exists, or magic 0, which has no attributes, is given some.
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
    """Return values as a message set; with a codec as one wrapper of all. No values give ``b""``.

    Snappy has the framing of Java's classes.

    Raises:
        UsageError: the format, or Kafka 0.7, does not know the codec; or a value is not bytes.
        ConfigError: the codec has no such level.
    """
    if codec not in (Codec.NONE, Codec.GZIP, Codec.SNAPPY):
        raise UsageError(f"Kafka 0.7 knows gzip and snappy, not {codec.name.lower()}")
    parts: list[bytes] = []
    for value in values:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise UsageError(f"a message of Kafka 0.7 is bytes, without a null; got {type(value).__name__}")
        parts.append(encode_entry(value, magic=magic))
    body = b"".join(parts)
    if codec is Codec.NONE or not body:
        return body
    return encode_entry(compress(codec, body, level), magic=magic, attributes=codec)
