"""The instruments that a client may have, for exporters."""

from typing import Final

from .instrument import InstrumentDefinition

__all__ = ("INSTRUMENTS",)

_PART, _BROKER, _TOPIC, _GROUP = ("part",), ("part", "node_id"), ("topic",), ("group",)

_D = InstrumentDefinition
INSTRUMENTS: Final = {
    each.name: each
    for each in (
        _D("request.duration", "histogram", "s", ("api",), "The time until the response to a request"),
        _D("request.failures", "counter", "{request}", ("api",), "Requests without a response"),
        _D("request.throttled", "counter", "s", ("api",), "The time for which brokers have throttled the client"),
        _D("requests.in_flight", "gauge", "{request}", _PART, "Requests that wait for responses"),
        _D("network.bytes_sent", "counter", "By", _BROKER, "The size of requests"),
        _D("network.bytes_received", "counter", "By", _BROKER, "The size of responses"),
        _D(
            "network.latency",
            "histogram",
            "s",
            _BROKER,
            "The time until responses to Produce and Fetch, without buckets",
        ),
        _D("connections", "gauge", "{connection}", _PART, "Open connections"),
        _D("connections.opened", "counter", "{connection}", _PART, "Connections opened"),
        _D("connections.closed", "counter", "{connection}", _PART, "Connections that have ended"),
        _D("connections.failed", "counter", "{connection}", _PART, "Connections that could not be opened"),
        _D("metadata.age", "gauge", "s", (), "The time since a broker last sent metadata"),
        _D("metadata.refreshes", "counter", "{refresh}", (), "Refreshes of the metadata"),
        _D("metadata.failed_refreshes", "counter", "{refresh}", (), "Refreshes that no broker answered"),
        _D("producer.records_sent", "counter", "{record}", _TOPIC, "Records sent; again for each retry"),
        _D("producer.bytes_sent", "counter", "By", _TOPIC, "The size of batches as they were sent"),
        _D("producer.batches", "counter", "{batch}", _TOPIC, "Batches sent"),
        _D("producer.records_retried", "counter", "{record}", _TOPIC, "Records sent again"),
        _D("producer.records_failed", "counter", "{record}", _TOPIC, "Records that have failed for good"),
        _D(
            "producer.batch.duration",
            "histogram",
            "s",
            (),
            "The time of a batch from its first record until it is acknowledged",
        ),
        _D(
            "producer.batch.queue_duration",
            "histogram",
            "s",
            (),
            "The time of a batch from its first record until it was first sent",
        ),
        _D("producer.batch.size", "histogram", "By", (), "The size of a batch as it was sent"),
        _D("producer.buffer.limit", "gauge", "By", (), "buffer_memory of the open producers"),
        _D("producer.buffer.used", "gauge", "By", (), "The size of records that are not acknowledged yet"),
        _D(
            "producer.transaction.duration",
            "histogram",
            "s",
            ("result",),
            "The time of a transaction from its beginning to its end",
        ),
        _D("consumer.records_fetched", "counter", "{record}", _TOPIC, "Records fetched"),
        _D("consumer.bytes_fetched", "counter", "By", _TOPIC, "The size of fetched records as they were sent"),
        _D("consumer.fetch.duration", "histogram", "s", (), "The time until the response to a fetch"),
        _D(
            "consumer.lag",
            "gauge",
            "{record}",
            ("group", "topic", "partition"),
            "Records between the position and the end of the log",
        ),
        _D("consumer.partitions", "gauge", "{partition}", _GROUP, "Partitions assigned now"),
        _D("consumer.partitions_lost", "counter", "{partition}", _GROUP, "Partitions lost"),
        _D("consumer.commit.duration", "histogram", "s", _GROUP, "The time of a commit, with retries"),
        _D("consumer.commit.failures", "counter", "{commit}", _GROUP, "Commits that have failed"),
        _D("consumer.acknowledgements", "counter", "{record}", _GROUP, "Records acknowledged"),
        _D(
            "consumer.acknowledgement.failures",
            "counter",
            "{record}",
            _GROUP,
            "Records whose acknowledgements a broker has refused",
        ),
        _D("consumer.rebalance.duration", "histogram", "s", _GROUP, "The time of a rebalance"),
    )
}
"""The definitions by name. Every instrument also has the attribute ``client_id``."""
