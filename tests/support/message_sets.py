"""Messages of magic 0 and 1 made by hand, well or ill, without the package's writer."""

import struct
import zlib

from aiokafkawire.records.compression import Codec, compress

__all__ = ("message", "wrapper")


def message(
    offset: int,
    value: bytes | None = b"value",
    key: bytes | None = None,
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1000,
    tail: bytes = b"",
) -> bytes:
    """One whole message with a checksum that is right; ``tail`` stands behind the value."""
    covered = struct.pack(">BB", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for field in (key, value):
        covered += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    covered += tail
    return struct.pack(">qiI", offset, 4 + len(covered), zlib.crc32(covered)) + covered


def wrapper(
    offset: int,
    *inner: bytes,
    codec: Codec = Codec.GZIP,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1000,
) -> bytes:
    """A message that wraps others, with LZ4 in frames as they should be."""
    packed = compress(codec, b"".join(inner))
    return message(offset, packed, magic=magic, attributes=attributes | codec, timestamp=timestamp)
