"""Where frames begin and end: with the length prefix that TCP streams have, or without."""

from collections.abc import Callable
from struct import unpack_from
from typing import Final

import attrs

from ...protocol.message_registry import FAMILIES

__all__ = ("CapturedFrame", "split_frames")

_PREFIX: Final = 4
_SHORTEST: Final = 4  # a response of nothing but its correlation id
_SHORTEST_REQUEST: Final = 14  # a header with a name of some letters
_LARGEST: Final = 100 * 1024 * 1024  # socket.request.max.bytes of brokers
_NEWEST: Final = 64  # no API has as many versions


@attrs.frozen
class CapturedFrame:
    """One frame of a stream."""

    start: int
    """Where it begins in the stream, in bytes, its length prefix included."""
    length: int | None
    """What its length prefix says; None if it has none."""
    data: bytes
    """What is there of it, without the prefix."""
    problem: str = ""
    """Why there is no whole frame here."""
    missing: int = 0
    """How many bytes are cut off its end."""

    @property
    def end(self) -> int:
        """Where it ends in the stream, or where the stream does."""
        return self.start + (0 if self.length is None else _PREFIX) + len(self.data)


def split_frames(data: bytes, prefixed: bool | None, reads: Callable[[bytes], bool]) -> list[CapturedFrame]:
    """The frames of a stream, in order; the last one may be cut short, or be what is no frame.

    Args:
        data: the stream.
        prefixed: whether every frame has its length before it; None to find that out.
        reads: whether bytes are one whole message, for finding it out.
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
    """Whether an API key that we know stands there, and a version that can be."""
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
    # Now it is cut short, or its first four bytes are no length at all: an API key and a version, or the correlation
    # id of a response. As lengths those of requests are hardly ever seen: some bytes for Produce, exact multiples of
    # 64 kB and a bit for the others.
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
