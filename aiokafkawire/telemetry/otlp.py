"""Encodes metrics as OpenTelemetry's protobuf message MetricsData."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final

import attrs

__all__ = ("Point", "encode_metrics_data")

_INT64: Final = 2**63
_DELTA, _CUMULATIVE = 1, 2
# A protobuf field begins with its number and wire type: 1 for 8 bytes, 2 for bytes with their length, 0 for a varint.
_NUMBERS: Final = struct.Struct("<BQBQ")  # start_time_unix_nano, time_unix_nano
_DOUBLE: Final = struct.Struct("<Bd")
_INTEGER: Final = struct.Struct("<Bq")


@attrs.frozen
class Point:
    """One value of a metric at one time."""

    name: str
    attributes: Mapping[str, str]
    value: float
    """An integer is encoded as an integer, and any other number as a double."""
    time_ns: int
    """When it was measured, in ns since the epoch."""
    start_ns: int = 0
    """Of a counter, the time since which it counts; 0 for a gauge."""
    is_counter: bool = False
    is_delta: bool = False
    """Of a counter, whether the value is the growth since ``start_ns``."""


def encode_metrics_data(points: Iterable[Point], resource: Mapping[str, str]) -> bytes:
    """Encode points, all of one resource; the points of a name are one metric."""
    ordered = sorted(points, key=lambda point: (point.name, point.is_counter))
    metrics = b"".join(
        _nested(2, _metric(name, [*found]))
        for (name, _), found in groupby(ordered, key=lambda point: (point.name, point.is_counter))
    )
    if not metrics:
        return b""
    attributes = b"".join(_nested(1, _key_value(*pair)) for pair in resource.items())
    return _nested(1, _nested(1, attributes) + _nested(2, metrics))


def _metric(name: str, points: Sequence[Point]) -> bytes:
    data = b"".join([_nested(1, _number_data_point(point)) for point in points])
    if not points[0].is_counter:
        return _text(1, name) + _nested(5, data)
    temporality = _DELTA if points[0].is_delta else _CUMULATIVE
    return _text(1, name) + _nested(7, data + bytes((2 << 3, temporality, 3 << 3, True)))


def _number_data_point(point: Point) -> bytes:
    times = _NUMBERS.pack(2 << 3 | 1, point.start_ns, 3 << 3 | 1, point.time_ns)
    if isinstance(point.value, int) and -_INT64 <= point.value < _INT64:
        value = _INTEGER.pack(6 << 3 | 1, point.value)
    else:
        value = _DOUBLE.pack(4 << 3 | 1, point.value)
    return times + value + b"".join([_attribute(*pair) for pair in point.attributes.items()])


@lru_cache(maxsize=4096)
def _attribute(key: str, value: str) -> bytes:
    return _nested(7, _key_value(key, value))


def _key_value(key: str, value: str) -> bytes:
    return _text(1, key) + _nested(2, _text(1, value))


def _text(field: int, text: str) -> bytes:
    return _nested(field, text.encode(errors="replace"))


def _nested(field: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((field << 3 | 2, size)) + content
    return bytes((field << 3 | 2,)) + _varint(size) + content


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
