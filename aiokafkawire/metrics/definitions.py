"""The metrics that a client has: their names, groups and tags in the Java client, and how their values are made."""

from collections.abc import Iterator
from typing import Final, Literal

import attrs

__all__ = ("DEFINITIONS", "LEFT_OUT", "MetricDefinition", "Statistic")

Statistic = Literal["rate", "total", "avg", "max", "count-rate", "count", "rate-per-hour", "ratio", "live"]
"""How a value is made: of the sums or the number of sampled values, or read from the live client."""


@attrs.frozen
class MetricDefinition:
    """A metric: its name, what it belongs to, and where its value comes from."""

    group: str
    tags: tuple[str, ...]
    """The names of the attributes, besides ``client-id``."""
    name: str
    sensor: str
    """The attribute of the sensors of this group and these tags; "" for values of the live client."""
    statistic: Statistic
    description: str
    librdkafka: str = ""
    """The field of librdkafka's statistics with this meaning, or one close to it."""

    @property
    def kind(self) -> Literal["counter", "gauge"]:
        """Whether the value only grows."""
        return "counter" if self.statistic in ("total", "count") else "gauge"


def _meter(
    group: str, tags: tuple[str, ...], prefix: str, sensor: str, what: str, lib: str = ""
) -> Iterator[MetricDefinition]:
    """Define the rate and the total of the values' sum."""
    yield MetricDefinition(group, tags, f"{prefix}-rate", sensor, "rate", f"{what}, for each second")
    yield MetricDefinition(group, tags, f"{prefix}-total", sensor, "total", f"{what}, in all", lib)


def _counter(
    group: str, tags: tuple[str, ...], prefix: str, sensor: str, what: str, lib: str = ""
) -> Iterator[MetricDefinition]:
    """Define the rate and the total of the number of values."""
    yield MetricDefinition(group, tags, f"{prefix}-rate", sensor, "count-rate", f"{what}, for each second")
    yield MetricDefinition(group, tags, f"{prefix}-total", sensor, "count", f"{what}, in all", lib)


def _spread(
    group: str, tags: tuple[str, ...], prefix: str, sensor: str, what: str, lib: tuple[str, str] = ("", "")
) -> Iterator[MetricDefinition]:
    """Define the average and the maximum of the values."""
    yield MetricDefinition(group, tags, f"{prefix}-avg", sensor, "avg", f"{what}, on average", lib[0])
    yield MetricDefinition(group, tags, f"{prefix}-max", sensor, "max", f"{what}, at most", lib[1])


def _live(group: str, tags: tuple[str, ...], name: str, what: str, lib: str = "") -> MetricDefinition:
    return MetricDefinition(group, tags, name, "", "live", what, lib)


def _network(prefix: str) -> Iterator[MetricDefinition]:
    """Define the metrics of requests and connections, which producers, consumers and the admin have alike."""
    group, node_group, node = f"{prefix}-metrics", f"{prefix}-node-metrics", ("node-id",)
    yield from _counter(group, (), "connection-creation", "created", "connections opened", "brokers.connects")
    yield from _counter(group, (), "connection-close", "closed", "connections closed", "brokers.disconnects")
    yield _live(group, (), "connection-count", "open connections")
    yield from _counter(group, (), "successful-authentication", "authentication", "connections opened with SASL")
    yield from _counter(group, (), "failed-authentication", "failed_authentication", "connections refused at login")
    yield MetricDefinition(group, (), "network-io-rate", "io", "count-rate", "requests and responses, for each second")
    yield MetricDefinition(group, (), "network-io-total", "io", "count", "requests and responses, in all", "tx + rx")
    for where, tags, lib in ((group, (), ""), (node_group, node, "brokers.")):
        yield from _counter(where, tags, "request", "sent", "requests that were answered or have failed", f"{lib}tx")
        yield from _spread(where, tags, "request-size", "sent", "size of requests in bytes")
        yield from _meter(
            where, tags, "outgoing-byte", "sent", "bytes of requests", f"{lib}txbytes" if lib else "tx_bytes"
        )
        yield from _counter(where, tags, "response", "received", "responses", f"{lib}rx")
        yield from _meter(
            where, tags, "incoming-byte", "received", "bytes of responses", f"{lib}rxbytes" if lib else "rx_bytes"
        )
    latency = {"producer": "response to Produce", "consumer": "response to a fetch"}.get(prefix, "response")
    what = f"time until the {latency}, in ms"
    yield from _spread(node_group, node, "request-latency", "latency", what, ("brokers.rtt.avg", "brokers.rtt.max"))


def _producer() -> Iterator[MetricDefinition]:
    group, topic_group, topic = "producer-metrics", "producer-topic-metrics", ("topic",)
    batch = "size of batches in bytes, as they were sent"
    yield from _spread(group, (), "batch-size", "batch_size", batch, ("topics.batchsize.avg", "topics.batchsize.max"))
    yield MetricDefinition(
        group, (), "compression-rate-avg", "compression", "avg", "compressed size of batches as part of the size before"
    )
    yield from _spread(
        group, (), "record-queue-time", "queue", "time of batches before they were sent, in ms",
        ("brokers.int_latency.avg", "brokers.int_latency.max"),
    )  # fmt: skip
    yield from _spread(group, (), "request-latency", "latency", "time until the response to Produce, in ms")
    yield from _meter(group, (), "record-send", "records", "records sent; again for each retry", "txmsgs")
    yield MetricDefinition(
        group, (), "records-per-request-avg", "per_request", "avg", "records in a request, on average"
    )
    yield from _meter(group, (), "record-retry", "retries", "records sent again", "brokers.txretries")
    yield from _meter(group, (), "record-error", "errors", "records that have failed for good", "brokers.txerrs")
    yield MetricDefinition(group, (), "record-size-avg", "record_size", "avg", "size of records in bytes, on average")
    yield from _spread(
        group, (), "produce-throttle-time", "throttle", "time in ms that brokers have throttled the client",
        ("brokers.throttle.avg", "brokers.throttle.max"),
    )  # fmt: skip
    yield _live(group, (), "requests-in-flight", "requests that wait for a response", "brokers.waitresp_cnt")
    yield _live(group, (), "metadata-age", "age of the metadata in seconds", "topics.metadata_age")
    yield _live(group, (), "buffer-total-bytes", "buffer_memory of the producers", "msg_size_max")
    yield _live(group, (), "buffer-available-bytes", "buffer_memory that is free", "msg_size")
    yield _live(group, (), "waiting-threads", "calls that wait for buffer_memory now")
    yield MetricDefinition(
        group, (), "bufferpool-wait-ratio", "buffer_wait", "ratio", "share of time that calls wait so"
    )
    yield MetricDefinition(
        group, (), "bufferpool-wait-time-ns-total", "buffer_wait", "total", "time that calls waited so, in ns"
    )
    yield from _meter(group, (), "buffer-exhausted", "exhausted", "records refused, without buffer_memory in time")
    what = "time that calls waited for the metadata of a topic, in ns"
    yield MetricDefinition(group, (), "metadata-wait-time-ns-total", "metadata_wait", "total", what)
    for name in ("init", "commit", "abort", "send-offsets"):
        what = f"time of the requests of txn-{name}, in ns"
        yield MetricDefinition(group, (), f"txn-{name}-time-ns-total", f"txn_{name.replace('-', '_')}", "total", what)
    yield from _meter(
        topic_group, topic, "record-send", "records", "records sent; again for each retry", "topics.partitions.txmsgs"
    )
    yield from _meter(
        topic_group, topic, "byte", "bytes", "bytes of batches, as they were sent", "topics.partitions.txbytes"
    )
    yield MetricDefinition(
        topic_group,
        topic,
        "compression-rate",
        "compression",
        "avg",
        "compressed size of batches as part of the size before",
    )
    yield from _meter(topic_group, topic, "record-retry", "retries", "records sent again")
    yield from _meter(topic_group, topic, "record-error", "errors", "records that have failed for good")


def _consumer() -> Iterator[MetricDefinition]:
    group, topic, partition = "consumer-fetch-manager-metrics", ("topic",), ("topic", "partition")
    for tags in ((), topic):
        lib = "topics.partitions." if tags else ""
        yield from _spread(group, tags, "fetch-size", "bytes", "bytes of records in a fetch, as they were sent")
        yield from _meter(
            group,
            tags,
            "bytes-consumed",
            "bytes",
            "bytes of fetched records, as they were sent",
            f"{lib}rxbytes" if lib else "rxmsg_bytes",
        )
        yield MetricDefinition(
            group, tags, "records-per-request-avg", "records", "avg", "records in a fetch, on average"
        )
        yield from _meter(group, tags, "records-consumed", "records", "fetched records", f"{lib}rxmsgs")
    yield from _spread(group, (), "fetch-latency", "latency", "time until the response to Fetch, in ms")
    yield from _counter(group, (), "fetch", "latency", "fetches", "brokers.req.Fetch")
    yield from _spread(
        group, (), "fetch-throttle-time", "throttle", "time in ms that brokers have throttled the client"
    )
    yield _live(group, (), "records-lag-max", "largest lag of a partition now")
    yield _live(group, (), "records-lead-min", "smallest lead of a partition now")
    yield _live(
        group,
        partition,
        "records-lag",
        "records between the position and the end of the log",
        "topics.partitions.consumer_lag",
    )
    yield _live(group, partition, "records-lead", "records between the beginning of the log and the position")
    yield _live(
        group, partition, "preferred-read-replica", "the replica that is read instead of the leader, -1 for none"
    )
    yield _live(
        "consumer-metrics", (), "last-poll-seconds-ago", "time since a consumer last received records; -1 if none has"
    )
    group = "consumer-coordinator-metrics"
    yield from _spread(group, (), "commit-latency", "commit", "time of commits in ms, with retries")
    yield from _counter(group, (), "commit", "commit", "commits")
    yield from _heartbeats(group)
    for name in ("join", "sync"):
        yield from _spread(group, (), f"{name}-time", name, f"time until the response to {name.title()}Group, in ms")
        yield from _counter(group, (), name, name, f"responses to {name.title()}Group")
    yield from _spread(group, (), "rebalance-latency", "rebalance", "time of rebalances in ms")
    yield MetricDefinition(group, (), "rebalance-latency-total", "rebalance", "total", "time of all rebalances in ms")
    yield from _rebalances(group)
    yield _live(
        group, (), "last-rebalance-seconds-ago", "time since the last rebalance; -1 without any", "cgrp.rebalance_age"
    )
    yield _live(group, (), "assigned-partitions", "partitions that the consumers have", "cgrp.assignment_size")


def _heartbeats(group: str) -> Iterator[MetricDefinition]:
    what = "time until the response to a heartbeat in ms, at most"
    yield MetricDefinition(group, (), "heartbeat-response-time-max", "heartbeat", "max", what)
    yield from _counter(group, (), "heartbeat", "heartbeat", "heartbeats")
    yield _live(group, (), "last-heartbeat-seconds-ago", "time since the last heartbeat was sent; -1 if none was")


def _rebalances(group: str) -> Iterator[MetricDefinition]:
    yield MetricDefinition(
        group, (), "rebalance-total", "rebalance", "count", "rebalances, in all", "cgrp.rebalance_cnt"
    )
    yield MetricDefinition(
        group, (), "rebalance-rate-per-hour", "rebalance", "rate-per-hour", "rebalances, for each hour"
    )


def _share_consumer() -> Iterator[MetricDefinition]:
    group = "consumer-share-fetch-manager-metrics"
    yield from _spread(group, (), "fetch-size", "bytes", "bytes of records in a fetch, as they were sent")
    yield from _meter(group, (), "bytes-consumed", "bytes", "bytes of fetched records, as they were sent")
    yield from _spread(group, (), "records-per-request", "records", "acquired records in a fetch")
    yield from _meter(group, (), "records-consumed", "records", "acquired records")
    yield from _spread(group, (), "fetch-latency", "latency", "time until the response to ShareFetch, in ms")
    yield from _counter(group, (), "fetch", "latency", "fetches")
    yield from _spread(
        group, (), "fetch-throttle-time", "throttle", "time in ms that brokers have throttled the client"
    )
    yield from _meter(group, (), "acknowledgements-send", "acknowledgements", "records acknowledged")
    what = "records whose acknowledgements a broker has refused"
    yield from _meter(group, (), "acknowledgements-error", "acknowledgement_errors", what)
    what = "time since a share consumer was last called for records; -1 if none was"
    yield _live("consumer-share-metrics", (), "last-poll-seconds-ago", what)
    yield from _heartbeats("consumer-share-coordinator-metrics")
    yield from _rebalances("consumer-share-coordinator-metrics")


_LOOP = "the program's event loop does the I/O, and other things; its own tools measure it"
_THREADS = "the client has no thread of its own between the program and the network"
_LOGIN = "logins that are repeated on open connections are not reported"
_HISTORY = "of each partition: a history would take much memory; read the current value regularly"
_PYTHON = "the program can measure it around its own call"
LEFT_OUT: Final = {
    **dict.fromkeys(("io-ratio", "io-time-ns-avg", "io-time-ns-total", "io-wait-ratio"), _LOOP),
    **dict.fromkeys(("io-wait-time-ns-avg", "io-wait-time-ns-total", "select-rate", "select-total"), _LOOP),
    **dict.fromkeys(
        (
            *(f"application-event-queue-{what}" for what in ("processing-time-avg", "processing-time-max", "size")),
            *(f"application-event-queue-{what}" for what in ("time-avg", "time-max")),
            "application-events-expired-count",
            *(f"background-event-queue-{what}" for what in ("processing-time-avg", "processing-time-max", "size")),
            *(f"background-event-queue-{what}" for what in ("time-avg", "time-max")),
            "time-between-network-thread-poll-avg",
            "time-between-network-thread-poll-max",
            *(f"unsent-requests-queue-{what}" for what in ("size", "time-avg", "time-max")),
        ),
        _THREADS,
    ),
    **dict.fromkeys(("reauthentication-latency-avg", "reauthentication-latency-max"), _LOGIN),
    **dict.fromkeys(("failed-reauthentication-rate", "failed-reauthentication-total"), _LOGIN),
    **dict.fromkeys(("successful-reauthentication-rate", "successful-reauthentication-total"), _LOGIN),
    "successful-authentication-no-reauth-total": _LOGIN,
    **dict.fromkeys(("records-lag-avg", "records-lag-max", "records-lead-avg", "records-lead-min"), _HISTORY),
    **dict.fromkeys(("commit-sync-time-ns-total", "committed-time-ns-total", "flush-time-ns-total"), _PYTHON),
    **dict.fromkeys(
        (f"partition-{what}-latency-{of}" for what in ("assigned", "lost", "revoked") for of in ("avg", "max")),
        "the program can measure its own listener",
    ),
    **dict.fromkeys(
        ("poll-idle-ratio-avg", "time-between-poll-avg", "time-between-poll-max"),
        "iterations take records without polls",
    ),
    **dict.fromkeys(
        ("failed-rebalance-rate-per-hour", "failed-rebalance-total"),
        "a rebalance ends only when the member has its partitions; consumer.health() has the trouble until then",
    ),
    **dict.fromkeys(("batch-split-rate", "batch-split-total"), "batches that were split are not reported"),
    "record-size-max": "it would take work for each record",
    **dict.fromkeys(("txn-begin-time-ns-total", "txn-prepare-time-ns-total"), "this step sends no request"),
    **dict.fromkeys(("commit-id", "start-time-ms", "version"), "these are texts, of the group app-info"),
    "count": "the number of metrics, of the group kafka-metrics-count: take len(kafka.metrics())",
}
"""Java's metrics that this client does not have, by name, and why. Partitions lack ``records-lag-max`` and
``records-lead-min``; the client as a whole has them."""

DEFINITIONS: Final = (
    *_producer(),
    *_network("producer"),
    *_consumer(),
    *_network("consumer"),
    *_share_consumer(),
    *_network("admin-client"),
)
"""All metrics. Every one also has the attribute ``client-id``."""
