"""Finds the blocks of zstd frames (RFC 8878, section 3.1) without decompressing them."""

from collections.abc import Iterator
from struct import Struct

__all__ = ("zstd_blocks",)

_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A5  # the upper 28 bits of the sixteen magic numbers of skippable frames
_RLE, _RESERVED = 1, 3
_UINT32 = Struct("<I")
_CUT_SHORT = "cut short"


def zstd_blocks(data: memoryview) -> Iterator[tuple[memoryview, bool]]:
    """Yield the bytes of consecutive frames block by block, each with a flag that marks the last block of a frame.

    The caller decompresses one block at a time. A block has at most 128 KiB of output, so the output of each call is
    bounded. The library's own bounded call is no alternative: it does not report whether the frame was complete.

    Raises:
        ValueError: the data is not a sequence of whole frames.
    """
    position = 0
    while position < len(data):
        if len(data) - position < 8:
            raise ValueError(_CUT_SHORT)
        (magic,) = _UINT32.unpack_from(data, position)
        if magic == _MAGIC:
            for piece, last in _frame_blocks(data, position):
                position += len(piece)
                yield piece, last
        elif magic >> 4 == _SKIPPABLE:
            position += 8 + _UINT32.unpack_from(data, position + 4)[0]
        else:
            raise ValueError("not a frame")
    if position > len(data):
        raise ValueError(_CUT_SHORT)


def _frame_blocks(data: memoryview, start: int) -> Iterator[tuple[memoryview, bool]]:
    descriptor = data[start + 4]
    single_segment = descriptor >> 5 & 1  # a single segment has no window byte, but always a content size
    content_size = (single_segment, 2, 4, 8)[descriptor >> 6]
    dictionary_id = (0, 1, 2, 4)[descriptor & 3]
    checksum = 4 * (descriptor >> 2 & 1)
    position = start + 5 + (1 - single_segment) + dictionary_id + content_size
    last = False
    while not last:
        header = int.from_bytes(data[position : position + 3], "little")
        last, block_type = bool(header & 1), header >> 1 & 3
        if block_type == _RESERVED:
            raise ValueError("a block of a reserved type")
        position += 3 + (1 if block_type == _RLE else header >> 3) + (checksum if last else 0)
        if position > len(data):
            raise ValueError(_CUT_SHORT)
        yield data[start:position], last
        start = position
