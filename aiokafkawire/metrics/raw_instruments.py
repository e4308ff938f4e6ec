"""A client's measurements as instruments for exporters: counters since the start, gauges and histograms."""

from collections.abc import Iterator
from typing import Final

from .instrument import Buckets, Instrument
from .instrument_list import INSTRUMENTS
from .live import LiveClient
from .measurements import Measurements
from .parts import PARTS
from .windows import LATENCY_BUCKETS, Histogram

__all__ = ("raw_instruments",)

_NONE: Final = Histogram(LATENCY_BUCKETS)
"""Times that were not measured yet."""


class _Maker:
    """Makes instruments of one client."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id

    def __call__(self, name: str, value: float | Histogram | Buckets, *attributes: str) -> Instrument:
        """Return an instrument with this name; the attributes are in the order of its definition."""
        known = INSTRUMENTS[name]
        if isinstance(value, Histogram):
            value = Buckets(value.bounds, tuple(value.counts), value.sum)
        named = {"client_id": self._client_id, **dict(zip(known.labels, attributes, strict=True))}
        return Instrument(name, known.unit, known.kind, named, value, known.description)


def raw_instruments(measured: Measurements, live: LiveClient, now: float) -> Iterator[Instrument]:
    """Return all instruments; ``now`` is the time, by the clock of the measurements."""
    make = _Maker(live.cluster.config.client_id)
    yield from _requests(make, measured, live)
    yield make("metadata.age", live.metadata_age(now))
    yield make("metadata.refreshes", measured.metadata_refreshes)
    yield make("metadata.failed_refreshes", measured.failed_metadata_refreshes)
    if live.has_producers or measured.produced:
        yield from _producers(make, measured, live)
    if live.has_consumers or live.has_share_consumers or measured.fetch_seconds.count:
        yield from _consumers(make, measured, live)


def _requests(make: _Maker, measured: Measurements, live: LiveClient) -> Iterator[Instrument]:
    for api, seconds in list(measured.request_seconds.items()):
        yield make("request.duration", seconds, api)
    for api in [*measured.request_seconds, *(measured.failed_requests.keys() - measured.request_seconds.keys())]:
        # With zeros from the beginning, a monitor sees the first failure as an increase.
        yield make("request.failures", measured.failed_requests.get(api, 0), api)
        yield make("request.throttled", measured.throttled_seconds.get(api, 0.0), api)
    for (part, node_id), sensors in list(measured.node_requests.items()):
        broker = part, str(-1 if node_id is None else node_id)
        yield make("network.bytes_sent", sensors.sent.total, *broker)
        yield make("network.bytes_received", sensors.received.total, *broker)
        if count := sensors.latency.count:
            yield make("network.latency", Buckets((), (count,), sensors.latency.total / 1000), *broker)
    open_now, in_flight = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0)
    for part, requests in live.connections():
        open_now[part] += 1
        in_flight[part] += requests
    for part, count in open_now.items():
        yield make("connections", count, part)
        yield make("requests.in_flight", in_flight[part], part)
    for part, made in list(measured.connections.items()):
        yield make("connections.opened", made.created.count, part)
        yield make("connections.closed", made.closed.count, part)
    for part in PARTS:
        yield make("connections.failed", measured.failed_connections.get(part, 0), part)


def _producers(make: _Maker, measured: Measurements, live: LiveClient) -> Iterator[Instrument]:
    for topic, sent in list(measured.produced.items()):
        yield make("producer.records_sent", sent.records.total, topic)
        yield make("producer.bytes_sent", sent.bytes.total, topic)
        yield make("producer.batches", sent.records.count, topic)
        yield make("producer.records_retried", sent.retries.total, topic)
        yield make("producer.records_failed", sent.errors.total, topic)
    yield make("producer.batch.duration", measured.batch_seconds)
    yield make("producer.batch.queue_duration", measured.batch_queue_seconds)
    yield make("producer.batch.size", measured.batch_bytes)
    buffers = live.open_producers()
    yield make("producer.buffer.limit", sum(one.buffer_total for one in buffers))
    yield make("producer.buffer.used", sum(one.buffer_used for one in buffers))
    yield make("producer.buffer.wait", measured.producer.buffer_wait.total / 1e9)
    for result, seconds in list(measured.transaction_seconds.items()):
        yield make("producer.transaction.duration", seconds, result)


def _consumers(make: _Maker, measured: Measurements, live: LiveClient) -> Iterator[Instrument]:
    for topic, fetched in list(measured.fetched.items()):
        yield make("consumer.records_fetched", fetched.records.total, topic)
        yield make("consumer.bytes_fetched", fetched.bytes.total, topic)
    yield make("consumer.fetch.duration", measured.fetch_seconds)
    for each in live.partitions():
        if each.lag is not None:
            yield make("consumer.lag", each.lag, each.group, each.partition.topic, str(each.partition.partition))
    assigned = live.assigned_partitions()
    for group, count in assigned.items():
        yield make("consumer.partitions", count, group)
    # Consumers with assign() commit without a rebalance.
    counted = {*measured.commit_seconds} | {*measured.failed_commits} | {*measured.lost_partitions}
    for group in {*assigned, *measured.rebalance_seconds, *counted} - {""}:
        yield make("consumer.commit.duration", measured.commit_seconds.get(group) or _NONE, group)
        yield make("consumer.commit.failures", measured.failed_commits.get(group, 0), group)
        yield make("consumer.rebalance.duration", measured.rebalance_seconds.get(group) or _NONE, group)
        yield make("consumer.partitions_lost", measured.lost_partitions.get(group, 0), group)
    for group, records in list(measured.acknowledged.items()):
        yield make("consumer.acknowledgements", records, group)
    for group, failed in list(measured.failed_acknowledgements.items()):
        yield make("consumer.acknowledgement.failures", failed, group)
