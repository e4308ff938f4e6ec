"""Splits streams into frames, with or without the length prefixes that frames have in TCP streams."""

from collections.abc import Callable
from struct import unpack_from
from typing import Final

import attrs

from ...protocol.message_registry import FAMILIES

__all__ = ("CapturedFrame", "split_frames")

_PREFIX: Final = 4
_SHORTEST: Final = 4  # a response with only a correlation id
_SHORTEST_REQUEST: Final = 14  # a request header with a short client id
_LARGEST: Final = 100 * 1024 * 1024  # socket.request.max.bytes of brokers
_NEWEST: Final = 64  # more than the highest version of every API


@attrs.frozen
class CapturedFrame:
    """A frame cut out of a stream; the last frame of a stream may be incomplete or invalid."""

    start: int
    """The byte position in the stream of the length prefix or, without a prefix, of the frame."""
    length: int | None
    """The length in the prefix; None if the frame has no prefix."""
    data: bytes
    """The available bytes, without the prefix."""
    problem: str = ""
    """The reason why the frame is not whole; empty for a whole frame."""
    missing: int = 0
    """The number of bytes that are missing at the end."""

    @property
    def end(self) -> int:
        """The position after the frame's available bytes in the stream."""
        return self.start + (0 if self.length is None else _PREFIX) + len(self.data)


def split_frames(data: bytes, prefixed: bool | None, reads: Callable[[bytes], bool]) -> list[CapturedFrame]:
    """Split a stream into frames, in order; the last one may be truncated or invalid.

    Args:
        data: the stream.
        prefixed: whether every frame has a length prefix; None to detect it.
        reads: a function that returns whether bytes are one whole message; the detection calls it.
    """
    if prefixed is None:
        prefixed = _is_prefixed(data, reads)
    if not prefixed:
        return [CapturedFrame(0, None, data, "" if data else "no bytes at all")]
    frames: list[CapturedFrame] = []
    position = 0
    while position < len(data):
        frame = _frame_at(data, position)
        frames.append(frame)
        position = len(data) if frame.problem else frame.end
    return frames or [CapturedFrame(0, None, b"", "no bytes at all")]


def _starts_like_a_request(data: bytes, position: int = 0) -> bool:
    """Return whether a known API key and a plausible version are at ``position``."""
    if len(data) - position < 4:
        return False
    key, version = unpack_from(">hh", data, position)
    return bool(key in FAMILIES and 0 <= version < _NEWEST)


def _frame_at(data: bytes, position: int) -> CapturedFrame:
    left = len(data) - position
    if left < _PREFIX:
        missing = _PREFIX - left
        return CapturedFrame(
            position, None, data[position:], f"cut short within its length prefix, {missing} missing", missing
        )
    (length,) = unpack_from(">i", data, position)
    begin = position + _PREFIX
    body = data[begin : begin + max(length, 0)]
    if length < _SHORTEST:
        return CapturedFrame(position, length, data[begin:], f"no frame: its length prefix says {length}")
    if len(body) < length:
        missing = length - len(body)
        problem = f"cut short: its length prefix says {length}, {len(body)} are here, {missing} are missing"
        return CapturedFrame(position, length, body, problem, missing)
    return CapturedFrame(position, length, body)


def _is_prefixed(data: bytes, reads: Callable[[bytes], bool]) -> bool:
    if len(data) <= _PREFIX:
        return False
    (length,) = unpack_from(">i", data)
    if _ends_with_a_frame(data):
        return True
    if reads(data):
        return False
    if not _SHORTEST <= length <= _LARGEST:
        return False
    if reads(data[_PREFIX : _PREFIX + length]):
        return True
    with_prefix, without = _starts_like_a_request(data, _PREFIX), _starts_like_a_request(data)
    if with_prefix != without:
        return with_prefix
    # The frame is truncated, or its first four bytes are not a length but an API key and a version, or the correlation
    # id of a response. API key and version would be unlikely lengths: a few bytes for Produce, and slightly more than a
    # multiple of 64 kB for other APIs.
    cut = length > len(data) - _PREFIX
    return cut and not (without and (length < _SHORTEST_REQUEST or length >= 0x10000))


def _ends_with_a_frame(data: bytes) -> bool:
    position = 0
    while position < len(data):
        frame = _frame_at(data, position)
        if frame.problem:
            return False
        position = frame.end
    return True
