"""Converts between the right header checksum of LZ4 frames and the wrong one in message sets of magic 0 (KAFKA-3160).

The right checksum is one byte of an xxh32 over the frame's descriptor. Kafka's first clients computed it over the four
magic bytes before the descriptor as well, and reject other checksums. So Kafka still writes the wrong checksum for
magic 0, and verifies none.
"""

from .compression import Buffer

__all__ = ("with_old_checksum", "with_right_checksum", "xxh32_short")

_MAGIC = b"\x04\x22\x4d\x18"
_MASK = 0xFFFFFFFF
_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)


def xxh32_short(data: Buffer) -> int:
    """Compute the xxHash32 with seed 0 of fewer than 16 bytes; a frame's descriptor has at most 14."""
    _, second, third, fourth, fifth = _PRIMES
    value = fifth + len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        value += int.from_bytes(data[position : position + 4], "little") * third
        value = _rotated(value, 17) * fourth
    for byte in data[whole:]:
        value = _rotated(value + byte * fifth, 11) * _PRIMES[0]
    value &= _MASK
    value = (value ^ value >> 15) * second & _MASK
    value = (value ^ value >> 13) * third & _MASK
    return value ^ value >> 16


def _rotated(value: int, by: int) -> int:
    value &= _MASK
    return (value << by | value >> 32 - by) & _MASK


def _checksum_at(frame: Buffer) -> int | None:
    """Return the header checksum's position; None if the bytes are not a frame, which the decompressor will report."""
    if frame[:4] != _MAGIC or len(frame) < 7:
        return None
    flags = frame[4]
    position = 4 + 2 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)  # flags, block size, content size, dictionary id
    return position if position < len(frame) else None


def with_right_checksum(frame: memoryview) -> memoryview:
    """Return the frame with the right checksum, for LZ4 libraries.

    The message's CRC-32 must be verified before, since it covers the wrong checksum.
    """
    position = _checksum_at(frame)
    if position is None:
        return frame
    right = xxh32_short(frame[4:position]) >> 8 & 0xFF
    if frame[position] == right:
        return frame
    corrected = bytearray(frame)
    corrected[position] = right
    return memoryview(corrected)


def with_old_checksum(frame: bytes) -> bytes:
    """Return the frame with the wrong checksum of magic 0."""
    position = 4 + 2  # this client's frames have neither a content size nor a dictionary
    wrong = xxh32_short(frame[:position]) >> 8 & 0xFF
    return b"".join((frame[:position], bytes((wrong,)), frame[position + 1 :]))
