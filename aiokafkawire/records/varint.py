"""Zigzag varints, the encoding of integers in a batch's records."""

from collections.abc import Sequence

__all__ = ("SMALL_VARINTS", "UNZIGZAG", "encode_varint", "read_varint", "varint_size")

UNZIGZAG: Sequence[int] = tuple((raw >> 1) ^ -(raw & 1) for raw in range(128))
"""The decoded value of each one-byte varint, by the byte."""


def encode_varint(value: int) -> bytes:
    """Encode a varint or varlong, which have the same encoding."""
    raw = value << 1 if value >= 0 else ~(value << 1)
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


SMALL_VARINTS: Sequence[bytes] = tuple(encode_varint(value) for value in range(2048))
"""The encodings of 0 to 2047, which include most deltas and lengths: indexing is cheaper than a call."""


def varint_size(value: int) -> int:
    """Return the number of bytes to which :func:`encode_varint` encodes ``value``."""
    raw = value << 1 if value >= 0 else ~(value << 1)
    return (raw.bit_length() + 6) // 7 or 1


def read_varint(view: memoryview, position: int, bits: int = 32) -> tuple[int, int]:
    """Decode the varint at ``position``; return the value and the position after it.

    Raises:
        IndexError: the view ends within the varint.
        ValueError: the number has more than ``bits`` bits.
    """
    raw = view[position]
    if raw < 0x80:
        return UNZIGZAG[raw], position + 1
    byte = view[position + 1]
    raw = raw & 0x7F | (byte & 0x7F) << 7
    position += 2
    shift = 14
    while byte > 0x7F:
        if shift > bits:
            raise ValueError(f"a varint of more than {bits} bits")
        byte = view[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    if raw >> bits:
        raise ValueError(f"a varint of more than {bits} bits")
    return (raw >> 1) ^ -(raw & 1), position
