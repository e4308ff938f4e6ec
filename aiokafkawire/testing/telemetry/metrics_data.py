"""Decodes OpenTelemetry's protobuf message MetricsData, as far as Kafka's clients use it."""

import struct
from collections.abc import Iterator, Mapping
from typing import Literal

import attrs

__all__ = ("MalformedMetrics", "PushedMetric", "decode_metrics_data")

_TEMPORALITIES: dict[int, Literal["delta", "cumulative"]] = {1: "delta", 2: "cumulative"}


class MalformedMetrics(ValueError):
    """The bytes are no MetricsData message, or one with kinds of metrics that Kafka's clients do not have."""


@attrs.frozen
class PushedMetric:
    """One value of a metric that a client has pushed."""

    name: str
    """The name, such as ``"org.apache.kafka.producer.record.send.total"``."""
    attributes: Mapping[str, str]
    """What the value belongs to, such as ``{"topic": "flights"}``."""
    value: float
    kind: Literal["gauge", "counter"]
    temporality: Literal["delta", "cumulative"] | None
    """Of a counter: whether the value is the growth since ``start_ns`` or since the counter's beginning."""
    start_ns: int
    """Of a counter: the time since which it counts, in ns since the epoch; 0 for a gauge."""
    time_ns: int
    """When the value was measured, in ns since the epoch."""
    resource: Mapping[str, str]
    """The labels of the client, such as ``{"group_id": "billing"}``."""


def decode_metrics_data(data: bytes) -> list[PushedMetric]:
    """Return the values in a MetricsData message.

    Raises:
        MalformedMetrics: the bytes are no such message.
    """
    try:
        return [*_metrics_data(memoryview(data))]
    except (IndexError, TypeError, struct.error, UnicodeDecodeError) as error:
        raise MalformedMetrics(f"no MetricsData message: {error}") from error


_Value = int | memoryview


def _metrics_data(data: memoryview) -> Iterator[PushedMetric]:
    for resource_metrics in _all(data, 1):
        resource = {}
        for described in _all(resource_metrics, 1):
            resource = _key_values(described, 1)
        for scope_metrics in _all(resource_metrics, 2):
            for metric in _all(scope_metrics, 2):
                yield from _metric(metric, resource)


def _metric(metric: memoryview, resource: Mapping[str, str]) -> Iterator[PushedMetric]:
    name = "".join(_text(text) for text in _all(metric, 1))
    for field, content in _fields(metric):
        if field not in (5, 7):
            if field > 4:
                raise MalformedMetrics(f"{name} is neither a gauge nor a sum")
            continue
        data, temporality = _nested(content), 0
        for number, value in _fields(data):
            if number == 2 and isinstance(value, int):
                temporality = value
        for point in _all(data, 1):
            yield _point(name, point, _TEMPORALITIES.get(temporality) if field == 7 else None, resource)


def _point(
    name: str, point: memoryview, temporality: Literal["delta", "cumulative"] | None, resource: Mapping[str, str]
) -> PushedMetric:
    times, number = {2: 0, 3: 0}, 0.0
    for field, value in _fields(point):
        if field in times:
            times[field] = struct.unpack("<Q", _nested(value))[0]
        elif field == 4:
            number = struct.unpack("<d", _nested(value))[0]
        elif field == 6:
            number = struct.unpack("<q", _nested(value))[0]
    kind: Literal["gauge", "counter"] = "gauge" if temporality is None else "counter"
    return PushedMetric(name, _key_values(point, 7), number, kind, temporality, times[2], times[3], resource)


def _key_values(data: memoryview, field: int) -> dict[str, str]:
    found = {}
    for pair in _all(data, field):
        key = "".join(_text(text) for text in _all(pair, 1))
        found[key] = "".join(_text(text) for value in _all(pair, 2) for text in _all(value, 1))
    return found


def _all(data: memoryview, wanted: int) -> Iterator[memoryview]:
    return (_nested(value) for field, value in _fields(data) if field == wanted)


def _nested(value: _Value) -> memoryview:
    if isinstance(value, int):
        raise MalformedMetrics("a number in the place of a message")
    return value


def _text(value: memoryview) -> str:
    return bytes(value).decode()


def _fields(data: memoryview) -> Iterator[tuple[int, _Value]]:
    """Return the fields of a message: varints as integers, all others as their bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        match tag & 7:
            case 0:
                value, position = _varint(data, position)
                yield tag >> 3, value
                continue
            case 1:
                size = 8
            case 2:
                size, position = _varint(data, position)
            case 5:
                size = 4
            case wire_type:
                raise MalformedMetrics(f"unknown wire type {wire_type}")
        if position + size > len(data):
            raise MalformedMetrics(f"{size} bytes at {position} of {len(data)}")
        yield tag >> 3, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 64, 7):
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise MalformedMetrics("a varint of more than 10 bytes")
