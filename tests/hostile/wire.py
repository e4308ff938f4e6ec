"""Alterations of a whole frame: sizes, correlation ids, pieces, tails, and bytes that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct

__all__ = ("END", "WIRE_ALTERATIONS", "Pieces")

_SIZE = Struct(">i")
_IDS = 4
END = None
"""The connection ends."""

Pieces = Iterator[bytes | float | None]
"""What is sent instead of a frame: bytes, pauses in seconds, and END."""


def _resized(size: int) -> Callable[[bytes], Pieces]:
    def alter(frame: bytes) -> Pieces:
        yield _SIZE.pack(size) + frame[4:]

    return alter


def _with_id(make: Callable[[int], int]) -> Callable[[bytes], Pieces]:
    def alter(frame: bytes) -> Pieces:
        (number,) = _SIZE.unpack_from(frame, _IDS)
        yield frame[:4] + _SIZE.pack(make(number)) + frame[8:]

    return alter


def _cut(frame: bytes) -> Pieces:
    yield frame[: len(frame) // 2]
    yield END


def _short_body(frame: bytes) -> Pieces:
    body = frame[4 : 4 + (len(frame) - 4) // 2]
    yield _SIZE.pack(len(body)) + body


def _long_body(frame: bytes) -> Pieces:
    yield _SIZE.pack(len(frame) - 4 + 50) + frame[4:] + b"\xff" * 50


def _only_header(frame: bytes) -> Pieces:
    yield _SIZE.pack(4) + frame[4:8]


def _byte_by_byte(frame: bytes) -> Pieces:
    for at in range(min(len(frame), 400)):
        yield frame[at : at + 1]
    yield frame[400:]


def _drip(frame: bytes) -> Pieces:
    yield _SIZE.pack(100_000_000) + frame[4:8]
    for _ in range(10_000):
        yield 0.5
        yield b"\0"


def _stalled(frame: bytes) -> Pieces:
    yield frame[: len(frame) // 2]
    yield 100_000.0


def _silence(frame: bytes) -> Pieces:
    del frame
    yield 100_000.0


def _zeros(frame: bytes) -> Pieces:
    yield frame[:8] + bytes(len(frame) - 8)


def _ones(frame: bytes) -> Pieces:
    yield frame[:8] + b"\xff" * (len(frame) - 8)


def _end(_: bytes) -> Pieces:
    yield END


def _twice(frame: bytes) -> Pieces:
    yield frame * 2


def _unasked(frame: bytes) -> Pieces:
    yield frame
    yield _SIZE.pack(8) + _SIZE.pack(12345) * 2


def _http(_: bytes) -> Pieces:
    yield b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
    yield END


def _tls(_: bytes) -> Pieces:
    yield b"\x15\x03\x03\x00\x02\x02\x46"
    yield END


WIRE_ALTERATIONS: dict[str, Callable[[bytes], Pieces]] = {
    "size 0": _resized(0),
    "size 3": _resized(3),
    "size -1": _resized(-1),
    "size min": _resized(-(2**31)),
    "size max": _resized(2**31 - 1),
    "size 100 MB": _resized(100_000_000),
    "next correlation id": _with_id(lambda number: number + 1 if number < 2**31 - 1 else 0),
    "correlation id -1": _with_id(lambda _: -1),
    "correlation id before": _with_id(lambda number: number - 1),
    "cut": _cut,
    "short body": _short_body,
    "long body": _long_body,
    "header alone": _only_header,
    "byte by byte": _byte_by_byte,
    "endless drip": _drip,
    "stalled": _stalled,
    "silence": _silence,
    "zeros": _zeros,
    "ones": _ones,
    "end of the stream": _end,
    "twice": _twice,
    "answer to no request": _unasked,
    "http": _http,
    "tls alert": _tls,
}
