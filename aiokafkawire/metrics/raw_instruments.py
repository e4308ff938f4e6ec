"""A client's measurements as instruments for exporters: counters since the start, gauges and histograms."""

from collections.abc import Iterator, Mapping
from typing import Literal

from .instrument import Buckets, Instrument
from .live import LiveClient
from .measurements import Measurements
from .windows import Histogram

__all__ = ("raw_instruments",)


class _Maker:
    """Makes instruments of one client."""

    def __init__(self, client_id: str) -> None:
        self._client = {"client_id": client_id}

    def _make(
        self,
        kind: Literal["counter", "gauge", "histogram"],
        name: str,
        unit: str,
        description: str,
        value: float | Buckets,
        attributes: Mapping[str, str],
    ) -> Instrument:
        return Instrument(name, unit, kind, {**self._client, **attributes}, value, description)

    def counter(self, name: str, unit: str, description: str, value: float, **attributes: str) -> Instrument:
        return self._make("counter", name, unit, description, value, attributes)

    def gauge(self, name: str, unit: str, description: str, value: float, **attributes: str) -> Instrument:
        return self._make("gauge", name, unit, description, value, attributes)

    def histogram(self, name: str, unit: str, description: str, value: Histogram, **attributes: str) -> Instrument:
        buckets = Buckets(value.bounds, tuple(value.counts), value.sum)
        return self._make("histogram", name, unit, description, buckets, attributes)


def raw_instruments(measured: Measurements, live: LiveClient, now: float) -> Iterator[Instrument]:
    """Return all instruments; ``now`` is the time, by the clock of the measurements."""
    make = _Maker(live.cluster.config.client_id)
    yield from _requests(make, measured, live)
    yield make.gauge("metadata.age", "s", "The time since a broker last sent metadata", live.metadata_age(now))
    refreshes, failed = measured.metadata_refreshes, measured.failed_metadata_refreshes
    yield make.counter("metadata.refreshes", "{refresh}", "Refreshes of the metadata", refreshes)
    yield make.counter("metadata.failed_refreshes", "{refresh}", "Refreshes that no broker answered", failed)
    if live.has_producers or measured.produced:
        yield from _producers(make, measured, live)
    if live.has_consumers or measured.fetched:
        yield from _consumers(make, measured, live)


def _requests(make: _Maker, measured: Measurements, live: LiveClient) -> Iterator[Instrument]:
    what = "The time until the response to a request"
    for api, seconds in list(measured.request_seconds.items()):
        yield make.histogram("request.duration", "s", what, seconds, api=api)
    for api, failed in list(measured.failed_requests.items()):
        yield make.counter("request.failures", "{request}", "Requests without a response", failed, api=api)
    for api, time in list(measured.throttled_seconds.items()):
        yield make.counter(
            "request.throttled", "s", "The time for which brokers have throttled the client", time, api=api
        )
    node_ids = live.node_ids()
    for (part, address), sensors in list(measured.node_requests.items()):
        tags = {"part": part, "node_id": node_ids.get(address, "-1")}
        yield make.counter("network.sent", "By", "The size of requests", sensors.sent.total, **tags)
        yield make.counter("network.received", "By", "The size of responses", sensors.received.total, **tags)
    open_now = dict.fromkeys(("producer", "consumer", "admin-client"), 0)
    in_flight = dict(open_now)
    for part, _, requests in live.connections():
        open_now[part] += 1
        in_flight[part] += requests
    for part, count in open_now.items():
        yield make.gauge("connections", "{connection}", "Open connections", count, part=part)
        yield make.gauge(
            "requests.in_flight", "{request}", "Requests that wait for responses", in_flight[part], part=part
        )
    for part, made in list(measured.connections.items()):
        yield make.counter("connections.opened", "{connection}", "Connections opened", made.created.count, part=part)
        yield make.counter(
            "connections.closed", "{connection}", "Connections that have ended", made.closed.count, part=part
        )
    for part, failed in list(measured.failed_connections.items()):
        yield make.counter(
            "connections.failed", "{connection}", "Connections that could not be opened", failed, part=part
        )


def _producers(make: _Maker, measured: Measurements, live: LiveClient) -> Iterator[Instrument]:
    for topic, sent in list(measured.produced.items()):
        what = "Records sent; again for each retry"
        yield make.counter("producer.records_sent", "{record}", what, sent.records.total, topic=topic)
        what = "The size of batches as they were sent"
        yield make.counter("producer.sent", "By", what, sent.bytes.total, topic=topic)
        yield make.counter("producer.batches", "{batch}", "Batches sent", sent.records.count, topic=topic)
        retried = sent.retries.total
        yield make.counter("producer.records_retried", "{record}", "Records sent again", retried, topic=topic)
        what = "Records that have failed for good"
        yield make.counter("producer.records_failed", "{record}", what, sent.errors.total, topic=topic)
    what = "The time of a batch from its first record until it is acknowledged"
    yield make.histogram("producer.batch.duration", "s", what, measured.batch_seconds)
    yield make.histogram("producer.batch.size", "By", "The size of a batch as it was sent", measured.batch_bytes)
    buffers = list(live.producers())
    total, used = sum(one.buffer_total for one in buffers), sum(one.buffer_used for one in buffers)
    yield make.gauge("producer.buffer.limit", "By", "buffer_memory of the open producers", total)
    yield make.gauge("producer.buffer.used", "By", "The size of records that are not acknowledged yet", used)
    for result, seconds in list(measured.transaction_seconds.items()):
        what = "The time of a transaction from its beginning to its end"
        yield make.histogram("producer.transaction.duration", "s", what, seconds, result=result)


def _consumers(make: _Maker, measured: Measurements, live: LiveClient) -> Iterator[Instrument]:
    for topic, fetched in list(measured.fetched.items()):
        yield make.counter("consumer.records", "{record}", "Records fetched", fetched.records.total, topic=topic)
        what = "The size of fetched records as they were sent"
        yield make.counter("consumer.received", "By", what, fetched.bytes.total, topic=topic)
    what = "The time until the response to a fetch"
    yield make.histogram("consumer.fetch.duration", "s", what, measured.fetch_seconds)
    for each in live.partitions():
        tags = {"group": each.group, "topic": each.partition.topic, "partition": str(each.partition.partition)}
        if each.lag is not None:
            what = "Records between the position and the end of the log"
            yield make.gauge("consumer.lag", "{record}", what, each.lag, **tags)
    for group, count in live.assigned_partitions().items():
        yield make.gauge("consumer.partitions", "{partition}", "Partitions assigned now", count, group=group)
    for group, seconds in list(measured.commit_seconds.items()):
        yield make.histogram(
            "consumer.commit.duration", "s", "The time of a commit, with retries", seconds, group=group
        )
    for group, failed in list(measured.failed_commits.items()):
        yield make.counter("consumer.commit.failures", "{commit}", "Commits that have failed", failed, group=group)
    for group, seconds in list(measured.rebalance_seconds.items()):
        yield make.histogram("consumer.rebalance.duration", "s", "The time of a rebalance", seconds, group=group)
    for group, lost in list(measured.lost_partitions.items()):
        yield make.counter("consumer.partitions_lost", "{partition}", "Partitions lost", lost, group=group)
