"""Batches of about a megabyte that inflate to hundreds of times that, by each codec."""

from __future__ import annotations

import struct

import lz4.frame
import snappy
import zstandard

from aiokafkawire.records import layout
from aiokafkawire.records.checksum import crc32c
from aiokafkawire.records.compression import Codec, compress

from .message_sets import message

__all__ = ("MEGABYTE", "as_batch", "pieces", "single")

MEGABYTE = 1_000_000
_PIECE = 1 << 22
"""What one frame inflates to."""


def pieces(codec: Codec) -> bytes:
    """About a megabyte that inflates to as much as the codec can make of it: from 20 MB (snappy) to 30 GB (zstd)."""
    content = bytes(_PIECE)
    match codec:
        case Codec.GZIP:
            piece = compress(codec, content, 9)
        case Codec.LZ4:
            piece = bytes(lz4.frame.compress(content, block_size=lz4.frame.BLOCKSIZE_MAX4MB, store_size=False))
        case Codec.ZSTD:
            piece = zstandard.ZstdCompressor().compress(content)
        case _:
            block = bytes(snappy.compress(content))
            xerial = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
            return xerial + (struct.pack(">i", len(block)) + block) * (MEGABYTE // len(block) + 1)
    return piece * (MEGABYTE // len(piece) + 1)


def single(codec: Codec) -> bytes:
    """One frame or block of a megabyte at most, without an end of a frame to stop at."""
    size = 16 * MEGABYTE if codec is Codec.SNAPPY else 1 << 27
    return bytes(snappy.compress(bytes(size))) if codec is Codec.SNAPPY else compress(codec, bytes(size))


def as_batch(codec: Codec, packed: bytes, magic: int) -> bytes:
    """A batch or a message that holds these bytes, with a checksum that is right."""
    if magic < 2:
        return message(0, packed, magic=magic, attributes=codec)
    length = layout.HEADER_SIZE - layout.LOG_OVERHEAD + len(packed)
    fields = (0, length, 0, 2, 0, codec, 999, 0, 0, -1, -1, -1, 1000)
    batch = bytearray(layout.HEADER.pack(*fields) + packed)
    layout.UINT32.pack_into(batch, layout.CRC_AT, crc32c(bytes(batch[layout.ATTRIBUTES_AT :])))
    return bytes(batch)
