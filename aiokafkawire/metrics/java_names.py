"""A client's measurements under the names, groups and tags of the Java client's metrics."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..cluster.live_values import PartitionValues
from ..types import TopicPartition
from .definitions import DEFINITIONS, MetricDefinition, Statistic
from .live import LiveClient
from .measurements import Measurements
from .metric import Metric
from .parts import ADMIN, CONSUMER, PARTS, PRODUCER
from .sensors import ConnectionSensors, RequestSensors
from .windows import SampledValue

__all__ = ("java_metrics",)

_VALUES: Final[Mapping[Statistic, Callable[[Any, float], float]]] = {
    "rate": lambda values, now: values.rate(now),
    "total": lambda values, now: values.total,
    "avg": lambda values, now: values.average(now),
    "max": lambda values, now: values.maximum(now),
    "count-rate": lambda values, now: values.count_rate(now),
    "count": lambda values, now: values.count,
    "ratio": lambda values, now: values.rate(now) / 1e9,  # of nanoseconds
    "rate-per-hour": lambda values, now: values.count_rate(now) * 3600,
}
_Scope = tuple[str, tuple[str, ...]]
"""A group and the names of its tags."""


def _by_scope() -> dict[_Scope, list[MetricDefinition]]:
    found: dict[_Scope, list[MetricDefinition]] = {}
    for definition in DEFINITIONS:
        found.setdefault((definition.group, definition.tags), []).append(definition)
    return found


_BY_SCOPE: Final = _by_scope()
_FETCH: Final = "consumer-fetch-manager-metrics"
_COORDINATOR: Final = "consumer-coordinator-metrics"
_SHARE_FETCH: Final = "consumer-share-fetch-manager-metrics"
_SHARE_COORDINATOR: Final = "consumer-share-coordinator-metrics"


class _Traffic:
    """Requests and responses together."""

    def __init__(self, sensors: RequestSensors) -> None:
        self._sensors = sensors

    @property
    def count(self) -> int:
        return self._sensors.sent.count + self._sensors.received.count

    def count_rate(self, now: float) -> float:
        return self._sensors.sent.count_rate(now) + self._sensors.received.count_rate(now)


class _PerRequest:
    """The records of each Produce request."""

    def __init__(self, records: SampledValue, requests: SampledValue) -> None:
        self._records, self._requests = records, requests

    def average(self, now: float) -> float:
        requests = self._requests.count_rate(now)
        return self._records.rate(now) / requests if requests else math.nan


def java_metrics(measured: Measurements, live: LiveClient, now: float) -> Iterator[Metric]:
    """Return all metrics; ``now`` is the time, by the clock of the measurements."""
    client = {"client-id": live.cluster.config.client_id}
    values = _live_values(live, measured, now)
    for part in _parts(measured, live):
        yield from _part(part, measured, values, client, now)
    for (part, node_id), sensors in list(measured.node_requests.items()):
        tags = {**client, "node-id": f"node-{-1 if node_id is None else node_id}"}
        yield from _scope(f"{part}-node-metrics", ("node-id",), _named(sensors), {}, tags, now)
    for topic, produced in list(measured.produced.items()):
        tags = {**client, "topic": topic}
        yield from _scope("producer-topic-metrics", ("topic",), _named(produced), {}, tags, now)
    if live.has_consumers or measured.fetches.latency.count:
        yield from _scope(_FETCH, (), _named(measured.fetches), values, client, now)
        yield from _scope(_COORDINATOR, (), _named(measured.coordinator), values, client, now)
        for topic, fetched in list(measured.fetched.items()):
            tags = {**client, "topic": topic}
            yield from _scope(_FETCH, ("topic",), _named(fetched), {}, tags, now)
        yield from _partitions(live, client, now)
    if live.has_share_consumers or measured.share_fetches.latency.count:
        yield from _scope(_SHARE_FETCH, (), _named(measured.share_fetches), values, client, now)
        values["last-heartbeat-seconds-ago"] = _seconds_ago(measured.last_share_heartbeat, now)
        values["last-poll-seconds-ago"] = _seconds_ago(live.last_share_poll(), now)
        yield from _scope("consumer-share-metrics", (), {}, values, client, now)
        yield from _scope(_SHARE_COORDINATOR, (), _named(measured.share_coordinator), values, client, now)


def _parts(measured: Measurements, live: LiveClient) -> list[str]:
    """Return the parts that the client has or had; every client has its admin."""
    has = {
        PRODUCER: live.has_producers or bool(measured.produced),
        CONSUMER: live.has_consumers or live.has_share_consumers,
        ADMIN: True,
    }
    return [part for part in PARTS if has[part] or part in measured.requests]


def _part(
    part: str, measured: Measurements, values: Mapping[str, float], client: Mapping[str, str], now: float
) -> Iterator[Metric]:
    requests = measured.requests.get(part) or RequestSensors()
    sensors = _named(requests) | _named(measured.connections.get(part) or ConnectionSensors())
    sensors["io"] = _Traffic(requests)
    if part == PRODUCER:
        sensors |= _named(measured.producer)
        sensors["per_request"] = _PerRequest(measured.producer.records, requests.latency)
    of_part = {name.removeprefix(f"{part}:"): value for name, value in values.items()}
    yield from _scope(f"{part}-metrics", (), sensors, of_part, client, now)


def _scope(
    group: str,
    tags: tuple[str, ...],
    sensors: Mapping[str, Any],
    values: Mapping[str, float],
    attributes: Mapping[str, str],
    now: float,
) -> Iterator[Metric]:
    """Return the metrics that are defined for a group and tags."""
    for definition in _BY_SCOPE[group, tags]:
        if definition.statistic != "live":
            value = _VALUES[definition.statistic](sensors[definition.sensor], now)
        elif definition.name in values:
            value = values[definition.name]
        else:
            continue
        yield Metric(
            definition.name,
            attributes,
            float(value),
            group=group,
            kind=definition.kind,
            description=definition.description,
        )


def _named(sensors: object) -> dict[str, Any]:
    return {name: getattr(sensors, name) for name in type(sensors).__slots__}  # type: ignore[attr-defined]


def _live_values(live: LiveClient, measured: Measurements, now: float) -> dict[str, float]:
    """Return the values of the client now by name; those that parts have alike after the part and a colon."""
    found: dict[str, float] = dict.fromkeys((f"{part}:connection-count" for part in PARTS), 0.0)
    in_flight = 0
    for part, requests in live.connections():
        found[f"{part}:connection-count"] += 1
        in_flight += requests if part == PRODUCER else 0
    producers, partitions = live.open_producers(), list(live.partitions())
    total = sum(producer.buffer_total for producer in producers)
    if live.has_consumers:
        found["last-poll-seconds-ago"] = _seconds_ago(live.last_poll(), now)
    return found | {
        "requests-in-flight": in_flight,
        "metadata-age": live.metadata_age(now),
        "buffer-total-bytes": total,
        "buffer-available-bytes": total - sum(producer.buffer_used for producer in producers),
        "records-lag-max": max((each.lag for each in partitions if each.lag is not None), default=math.nan),
        "records-lead-min": min((each.lead for each in partitions if each.lead is not None), default=math.nan),
        "waiting-threads": live.cluster.producer_waits.callers,
        "last-heartbeat-seconds-ago": _seconds_ago(measured.last_heartbeat, now),
        "last-rebalance-seconds-ago": _seconds_ago(measured.last_rebalance, now),
        "assigned-partitions": sum(live.assigned_partitions().values()),
    }


def _seconds_ago(at: float | None, now: float) -> float:
    return -1.0 if at is None else float(int(now - at))


def _partitions(live: LiveClient, client: Mapping[str, str], now: float) -> Iterator[Metric]:
    """Return the metrics of the assigned partitions; of the consumer with the most to read if several have one."""
    found: dict[TopicPartition, PartitionValues] = {}
    for each in live.partitions():
        before = found.get(each.partition)
        if before is None or before.lag is None or (each.lag is not None and each.lag > before.lag):
            found[each.partition] = each
    for partition, each in found.items():
        tags = {**client, "topic": partition.topic, "partition": str(partition.partition)}
        values = {
            "records-lag": math.nan if each.lag is None else each.lag,
            "records-lead": math.nan if each.lead is None else each.lead,
            "preferred-read-replica": each.replica,
        }
        yield from _scope(_FETCH, ("topic", "partition"), {}, values, tags, now)
