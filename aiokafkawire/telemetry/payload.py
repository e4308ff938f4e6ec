"""PayloadBuilder makes the payloads of pushes from a client's metrics: names, counters' growth, compression, size."""

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, Protocol

import attrs

from ..records.compression import Codec, compress
from .exchange import TelemetrySubscription
from .otlp import Point, encode_metrics_data

__all__ = ("Measured", "Payload", "PayloadBuilder", "attribute_name", "telemetry_name")

_PREFIX: Final = "org.apache.kafka"
_EXCLUDED: Final = frozenset({"client_id"})  # brokers know it from the request


class Measured(Protocol):
    """A metric with its current value, such as :class:`~aiokafkawire.metrics.Metric`."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def attributes(self) -> Mapping[str, str]: ...
    @property
    def value(self) -> float: ...


@lru_cache(maxsize=4096)
def telemetry_name(group: str, name: str) -> str:
    """Return the name that KIP-714 gives to the Java client's metric of this group and name."""
    cleaned = re.sub(r"\.metrics", "", group.lower().replace("-", "."))
    return f"{_PREFIX}.{cleaned}.{name.lower().replace('-', '.')}"


@lru_cache(maxsize=4096)
def attribute_name(tag: str) -> str:
    """Return the name that KIP-714 gives to the Java client's tag."""
    return tag.lower().replace("-", "_")


@attrs.frozen
class Payload:
    """The metrics of one push."""

    metrics: bytes
    """The encoded and compressed metrics."""
    codec: Codec
    sent: int
    """The number of values in the payload."""
    left_out: int
    """The number of values that had no room."""
    counters: "Mapping[_Key, _Counter]" = attrs.field(repr=False)
    """What :meth:`PayloadBuilder.accepted` is to remember."""


@attrs.frozen
class _Counter:
    """A counter's value at the last push that brokers have accepted."""

    value: float
    start_ns: int
    """The time since which the value counts."""
    time_ns: int


_Key = tuple[str, tuple[tuple[str, str], ...]]


class PayloadBuilder:
    """Makes payloads, and remembers the counters' values that brokers have got.

    Args:
        started_ns: when the client began to count, in ns since the epoch.
    """

    def __init__(self, started_ns: int) -> None:
        self._started_ns = started_ns
        self._counters: Mapping[_Key, _Counter] = {}

    def build(
        self, metrics: Iterable[Measured], subscription: TelemetrySubscription, resource: Mapping[str, str], now_ns: int
    ) -> Payload:
        """Return the payload of those metrics that the subscription requests, at most ``max_bytes`` long.

        If the metrics have no room, those with the most attributes are left out first: they have the finest detail.
        """
        found = dict[_Key, tuple[Point, _Counter | None]]()
        selected, kept = dict[str, bool](), dict[_Key, _Counter]()
        for metric in metrics:
            name = telemetry_name(metric.group, metric.name)
            is_selected = selected.get(name)
            if is_selected is None:
                is_selected = selected[name] = subscription.selects(name)
            if not is_selected and (metric.kind != "counter" or not self._counters):
                continue
            tags = [(attribute_name(tag), value) for tag, value in metric.attributes.items()]
            key = name, tuple(tags)
            if not is_selected or (metric.kind == "counter" and math.isnan(metric.value)):
                # Once it is requested or known again, it grows from the last push that had it.
                if key in self._counters:
                    kept[key] = self._counters[key]
            elif key not in found:
                attributes = {tag: value for tag, value in tags if tag not in _EXCLUDED}
                found[key] = self._point(key, attributes, metric, subscription.is_delta, now_ns)
        codec = _codec(subscription)
        order = sorted(found, key=lambda key: len(key[1]))
        room = len(order)
        while True:
            encoded = encode_metrics_data((found[key][0] for key in order[:room]), resource)
            compressed = compress(codec, encoded) if encoded else b""
            if not subscription.max_bytes or len(compressed) <= subscription.max_bytes or not room:
                break
            room = min(room - 1, int(room * subscription.max_bytes / len(compressed) * 0.9))
        counters = kept | {key: counter for key, (_, counter) in found.items() if counter is not None}
        for key in order[room:]:
            if key in self._counters:
                counters[key] = self._counters[key]
            else:
                counters.pop(key, None)
        return Payload(compressed, codec, room, len(order) - room, counters)

    def accepted(self, payload: Payload) -> None:
        """Take notice that a broker has accepted a payload: counters in the next one grow from here."""
        self._counters = payload.counters

    def _point(
        self, key: _Key, attributes: Mapping[str, str], metric: Measured, is_delta: bool, now_ns: int
    ) -> tuple[Point, _Counter | None]:
        name, value = key[0], metric.value
        if metric.kind != "counter":
            return Point(name, attributes, value, now_ns), None
        last = self._counters.get(key)
        if last is None:
            last = _Counter(0, self._started_ns, self._started_ns)
        elif value < last.value:  # another counter of this name has begun at 0
            last = _Counter(0, last.time_ns, last.time_ns)
        counter = _Counter(value, last.start_ns, now_ns)
        growth, since = (value - last.value, last.time_ns) if is_delta else (value, last.start_ns)
        return Point(name, attributes, growth, now_ns, since, True, is_delta), counter


def _codec(subscription: TelemetrySubscription) -> Codec:
    """Return the first accepted codec that this client knows."""
    known = (Codec(codec) for codec in subscription.compression_types if codec in [*Codec])
    return next(known, Codec.NONE)
