"""The codecs of record batches, with compression levels and limits of decompressed sizes."""

import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

from ..errors import ConfigError, CorruptBatch
from .layout import INT32
from .zstd_frames import zstd_blocks

# lz4, snappy and zstandard are imported on first use: most programs need at most one of them.

__all__ = ("Buffer", "Codec", "check_level", "compress", "decompress")

Buffer: TypeAlias = bytes | bytearray | memoryview


class Codec(IntEnum):
    """A compression codec (``compression.type``); its value is its number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def parse(cls, name: str) -> "Codec":
        """Return the codec with this name in Kafka's settings, such as ``zstd``.

        Raises:
            ConfigError: the name is unknown.
        """
        for codec in cls:
            if codec.name.lower() == name:
                return codec
        raise ConfigError(f"unknown compression type {name!r}: one of {', '.join(c.name.lower() for c in cls)}")


_LEVELS: dict[Codec, tuple[range, str]] = {
    Codec.GZIP: (range(1, 10), "1 to 9, or -1 for zlib's default"),
    Codec.LZ4: (range(1, 18), "1 to 17"),
    Codec.ZSTD: (range(-131072, 23), "-131072 to 22"),
}
_LZ4_DEFAULT = 9  # KIP-390; as in Kafka's classes, 9 selects LZ4's fast compressor instead of its high compressor
_ZSTD_DEFAULT = 3


def check_level(codec: Codec, level: int | None) -> None:
    """Check a codec's compression level; None is the default.

    Raises:
        ConfigError: the level is out of range, or the codec has no levels.
    """
    if level is None or (codec is Codec.GZIP and level == -1):
        return
    if codec not in _LEVELS:
        raise ConfigError(f"compression type {codec.name.lower()} has no levels, got {level}")
    legal, described = _LEVELS[codec]
    if level not in legal:
        raise ConfigError(f"compression level of {codec.name.lower()} must be {described}, got {level}")


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress ``data`` with the framing of Kafka's classes, so that every client can read the result.

    Raises:
        ConfigError: see :func:`check_level`.
    """
    check_level(codec, level)
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return zlib.compress(data, -1 if level is None else level, wbits=_GZIP_WINDOW)
        case Codec.SNAPPY:
            return _compress_snappy(data)
        case Codec.LZ4:
            return _compress_lz4(data, _LZ4_DEFAULT if level is None else level)
        case Codec.ZSTD:
            from zstandard import ZstdCompressor

            return ZstdCompressor(level=_ZSTD_DEFAULT if level is None else level).compress(data)


def decompress(codec: int, data: memoryview, *, limit: int) -> bytes | memoryview:
    """Decompress ``data`` with the codec of a batch's attributes, using at most about ``limit`` bytes of output memory.

    Raises:
        CorruptBatch: the data is damaged or truncated, the codec is unknown, or the output exceeds ``limit`` bytes.
    """
    if codec == Codec.NONE:
        if len(data) > limit:
            raise CorruptBatch(f"{len(data)} bytes of records, more than the limit of {limit}")
        return data
    inflate = _INFLATERS.get(codec)
    if inflate is None:
        raise CorruptBatch(f"unknown compression codec {codec}")
    output = _Output(Codec(codec).name.lower(), limit)
    if not data:
        raise output.corrupt("no bytes")
    try:
        inflate(data, output)
    except CorruptBatch:
        output.discard()  # or the traceback of a stored error would hold it
        raise
    return output.result()


class _Output:
    """The decompressed output of a codec, limited in size."""

    __slots__ = ("_parts", "codec", "limit", "size")

    def __init__(self, codec: str, limit: int) -> None:
        self.codec = codec
        self.limit = limit
        self.size = 0
        self._parts: bytes | bytearray = b""

    @property
    def remaining(self) -> int:
        """The number of bytes to request from a codec: one more than allowed, to detect excess output."""
        return self.limit - self.size + 1

    def add(self, part: bytes) -> None:
        if not self.size:
            self._parts = part  # usually the only part
        elif part:
            if isinstance(self._parts, bytes):
                self._parts = bytearray(self._parts)
            self._parts += part
        self.claim(len(part))

    def claim(self, size: int) -> None:
        """Add ``size`` to the output's size; raise CorruptBatch if the sum exceeds the limit."""
        self.size += size
        if self.size > self.limit:
            raise self.corrupt(f"inflates to more than the limit of {self.limit} bytes")

    def corrupt(self, why: object) -> CorruptBatch:
        return CorruptBatch(f"{self.codec} data: {why}")

    def discard(self) -> None:
        """Free the memory of the output."""
        self._parts = b""

    def result(self) -> bytes | memoryview:
        return self._parts if isinstance(self._parts, bytes) else memoryview(self._parts)


# --- gzip --------------------------------------------------------------------------------------------------

_GZIP_WINDOW = 31  # zlib's largest window, +16 for gzip's header and checksum

_INPUT_STEP = 1 << 16
"""The size in bytes of input slices: at the end of each member or frame, libraries copy the slice's remaining input."""


def _inflate_gzip(data: memoryview, output: _Output) -> None:
    position = 0
    member = zlib.decompressobj(_GZIP_WINDOW)
    while position < len(data):
        if member.eof:  # members may follow one another
            member = zlib.decompressobj(_GZIP_WINDOW)
        piece = data[position : position + _INPUT_STEP]
        try:
            output.add(member.decompress(piece, output.remaining))
        except zlib.error as error:
            raise output.corrupt(error) from error
        position += len(piece) - len(member.unused_data)
    if not member.eof:
        raise output.corrupt("cut short")


# --- lz4 ---------------------------------------------------------------------------------------------------

_LZ4_STEP = 1 << 18  # the library allocates the size of output that is requested


def _compress_lz4(data: Buffer, level: int) -> bytes:
    import lz4.frame

    # Kafka's reader rejects linked blocks, and its writer omits the content's size.
    frame = lz4.frame.compress(
        data,
        compression_level=0 if level == _LZ4_DEFAULT else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return bytes(frame)


def _inflate_lz4(data: memoryview, output: _Output) -> None:
    from lz4.frame import LZ4FrameDecompressor

    position = 0
    frame = LZ4FrameDecompressor()
    while position < len(data):
        if frame.eof:  # frames may follow one another
            frame = LZ4FrameDecompressor()
        piece = data[position : position + _INPUT_STEP]
        try:
            output.add(frame.decompress(piece, max_length=min(output.remaining, _LZ4_STEP)))
            while not frame.needs_input and not frame.eof:
                output.add(frame.decompress(b"", max_length=min(output.remaining, _LZ4_STEP)))
        except (RuntimeError, EOFError) as error:
            raise output.corrupt(error) from error
        position += len(piece) - len(frame.unused_data or b"")
    if not frame.eof:
        raise output.corrupt("cut short")


# --- snappy, in the framing of snappy-java (xerial) ----------------------------------------------------------

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + bytes((0, 0, 0, 1, 0, 0, 0, 1))  # format version, oldest compatible version
_XERIAL_BLOCK = 1 << 15


def _compress_snappy(data: Buffer) -> bytes:
    import snappy

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = snappy.compress(view[start : start + _XERIAL_BLOCK])
        parts += (INT32.pack(len(block)), block)
    return b"".join(parts)


def _inflate_snappy(data: memoryview, output: _Output) -> None:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        _inflate_snappy_block(data, output)  # other clients write one bare block
        return
    position = 0
    while position < len(data):
        if data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:  # streams may follow one another
            position += len(_XERIAL_HEADER)
            if position > len(data):
                raise output.corrupt("cut short in its header")
            continue
        if len(data) - position < INT32.size:
            raise output.corrupt("cut short between blocks")
        (length,) = INT32.unpack_from(data, position)
        position += INT32.size
        if not 0 < length <= len(data) - position:
            raise output.corrupt(f"a block of {length} bytes, with {len(data) - position} left")
        _inflate_snappy_block(data[position : position + length], output)
        position += length


def _inflate_snappy_block(block: memoryview, output: _Output) -> None:
    import snappy

    size = _snappy_size(block)
    if size is None:
        raise output.corrupt("a block without a size")
    if size >= output.remaining:  # the library allocates the size that the block declares
        raise output.corrupt(f"inflates to more than the limit of {output.limit} bytes")
    try:
        output.add(snappy.uncompress(block))
    except snappy.UncompressError as error:
        raise output.corrupt(f"a damaged block of {len(block)} bytes") from error


def _snappy_size(block: memoryview) -> int | None:
    """Return the uncompressed size that the varint at the block's beginning declares; None if the varint is invalid."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return size
    return None


# --- zstd --------------------------------------------------------------------------------------------------

_ZSTD_MAX_WINDOW = 1 << 27  # the window of level 22, Kafka's maximum; memory is used only as the window fills


def _inflate_zstd(data: memoryview, output: _Output) -> None:
    from zstandard import ZstdDecompressor, ZstdError

    decompressor = ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
    frame = decompressor.decompressobj()
    try:
        for piece, last in zstd_blocks(data):
            output.add(frame.decompress(piece))
            if last:
                if not frame.eof:
                    raise output.corrupt("cut short")
                frame = decompressor.decompressobj()
    except (ZstdError, ValueError) as error:
        raise output.corrupt(error) from error


_INFLATERS: dict[int, Callable[[memoryview, _Output], None]] = {
    Codec.GZIP: _inflate_gzip,
    Codec.SNAPPY: _inflate_snappy,
    Codec.LZ4: _inflate_lz4,
    Codec.ZSTD: _inflate_zstd,
}
