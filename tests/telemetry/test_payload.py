"""The payload of a push: KIP-714's names, OpenTelemetry's message, counters' growth, and the size."""

from __future__ import annotations

import gzip
import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData, NumberDataPoint

from aiokafkawire.metrics import Metric
from aiokafkawire.records.compression import Codec
from aiokafkawire.telemetry.exchange import TelemetrySubscription
from aiokafkawire.telemetry.otlp import Point, encode_metrics_data
from aiokafkawire.telemetry.payload import PayloadBuilder, attribute_name, telemetry_name

START, DELTA, TOTAL = 1_000, AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA, 2


def metric(name: str, value: float, kind: Any = "counter", group: str = "producer-metrics", **tags: str) -> Metric:
    return Metric(name, tags, value, group=group, kind=kind, description="")


def requesting(
    *names: str, max_bytes: int = 0, is_delta: bool = True, codecs: tuple[int, ...] = ()
) -> TelemetrySubscription:
    return TelemetrySubscription(1, 1.0, codecs, max_bytes, is_delta, names or ("*",))


def decoded(data: bytes) -> MetricsData:
    found = MetricsData()
    found.ParseFromString(data)
    return found


def points(data: bytes) -> dict[str, list[NumberDataPoint]]:
    found: dict[str, list[NumberDataPoint]] = {}
    for resource in decoded(data).resource_metrics:
        for scope in resource.scope_metrics:
            for one in scope.metrics:
                found.setdefault(one.name, []).extend((one.sum if one.HasField("sum") else one.gauge).data_points)
    return found


@pytest.mark.parametrize(
    ("group", "name", "expected"),
    [
        ("producer-metrics", "record-queue-time-avg", "org.apache.kafka.producer.record.queue.time.avg"),
        ("consumer-fetch-manager-metrics", "fetch-rate", "org.apache.kafka.consumer.fetch.manager.fetch.rate"),
        ("Producer-Topic-Metrics", "Byte-Rate", "org.apache.kafka.producer.topic.byte.rate"),
        ("application", "metrics", "org.apache.kafka.application.metrics"),
    ],
)
def test_names_are_those_of_kip_714(group: str, name: str, expected: str) -> None:
    assert telemetry_name(group, name) == expected


def test_attributes_have_underscores() -> None:
    assert attribute_name("Node-Id") == "node_id"


def test_opentelemetry_reads_gauges_and_counters() -> None:
    data = encode_metrics_data(
        [
            Point("b", {"topic": "flüge"}, 5, 20, 10, is_counter=True, is_delta=True),
            Point("a", {}, 2.5, 20),
            Point("a", {"x": "1", "y": ""}, -3, 21),
            Point("c", {}, 2**63, 20, 10, is_counter=True),
        ],
        {"group_id": "g", "client_rack": "r"},
    )
    (resource,) = decoded(data).resource_metrics
    assert {pair.key: pair.value.string_value for pair in resource.resource.attributes} == {
        "group_id": "g",
        "client_rack": "r",
    }
    gauge, counter, large = resource.scope_metrics[0].metrics
    assert [(point.as_double, point.as_int, point.time_unix_nano) for point in gauge.gauge.data_points] == [
        (2.5, 0, 20),
        (0, -3, 21),
    ]
    assert {pair.key: pair.value.string_value for pair in gauge.gauge.data_points[1].attributes} == {"x": "1", "y": ""}
    assert counter.sum.is_monotonic
    assert counter.sum.aggregation_temporality == DELTA
    (point,) = counter.sum.data_points
    assert (point.as_int, point.start_time_unix_nano, point.attributes[0].value.string_value) == (5, 10, "flüge")
    assert large.sum.aggregation_temporality == TOTAL
    assert large.sum.data_points[0].as_double == 2**63  # more than an integer of 64 bits


def test_nothing_is_an_empty_message() -> None:
    assert encode_metrics_data([], {"group_id": "g"}) == b""


_POINTS = st.builds(
    Point,
    name=st.sampled_from(["a", "b", "ü" * 100]),
    attributes=st.dictionaries(st.text(max_size=200), st.text(max_size=200), max_size=3),
    value=st.floats(allow_nan=False) | st.integers(-(2**63), 2**63 - 1),
    time_ns=st.integers(0, 2**64 - 1),
    start_ns=st.integers(0, 2**64 - 1),
    is_counter=st.booleans(),
)


@given(st.lists(_POINTS, max_size=10))
def test_opentelemetry_reads_whatever_is_encoded(sent: list[Point]) -> None:
    def plain(name: str, attributes: Mapping[str, str], value: float, time_ns: int) -> str:
        return str((name, sorted(attributes.items()), value, time_ns))

    read = [
        plain(
            name,
            {pair.key: pair.value.string_value for pair in point.attributes},
            point.as_int if point.WhichOneof("value") == "as_int" else point.as_double,
            point.time_unix_nano,
        )
        for name, found in points(encode_metrics_data(sent, {})).items()
        for point in found
    ]
    assert sorted(read) == sorted(plain(point.name, point.attributes, point.value, point.time_ns) for point in sent)


def test_counters_grow_from_the_last_accepted_push() -> None:
    builder = PayloadBuilder(START)
    first = builder.build([metric("sent-total", 5.0)], requesting(), {}, 2_000)
    refused = builder.build([metric("sent-total", 6.0)], requesting(), {}, 3_000)  # the first was not accepted
    for payload, growth, until in ((first, 5, 2_000), (refused, 6, 3_000)):
        (point,) = points(payload.metrics)["org.apache.kafka.producer.sent.total"]
        assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (growth, START, until)
    builder.accepted(refused)
    (point,) = points(builder.build([metric("sent-total", 9.0)], requesting(), {}, 4_000).metrics).popitem()[1]
    assert (point.as_double, point.start_time_unix_nano) == (3, 3_000)


def test_cumulative_counters_keep_their_start() -> None:
    builder = PayloadBuilder(START)
    for value, now in ((5.0, 2_000), (9.0, 3_000)):
        payload = builder.build([metric("sent-total", value)], requesting(is_delta=False), {}, now)
        builder.accepted(payload)
        (point,) = points(payload.metrics).popitem()[1]
        assert (point.as_double, point.start_time_unix_nano) == (value, START)


@pytest.mark.parametrize("is_delta", [True, False])
def test_a_counter_that_began_anew_counts_from_there(is_delta: bool) -> None:
    builder = PayloadBuilder(START)
    builder.accepted(builder.build([metric("sent-total", 5.0)], requesting(is_delta=is_delta), {}, 2_000))
    payload = builder.build([metric("sent-total", 2.0)], requesting(is_delta=is_delta), {}, 3_000)
    (point,) = points(payload.metrics).popitem()[1]
    assert (point.as_double, point.start_time_unix_nano) == (2, 2_000)


def test_counters_that_are_gone_are_forgotten() -> None:
    builder = PayloadBuilder(START)
    builder.accepted(builder.build([metric("a", 5.0), metric("b", 1.0)], requesting(), {}, 2_000))
    payload = builder.build([metric("b", 1.0)], requesting(), {}, 3_000)
    assert len(payload.counters) == 1


def test_a_counter_that_was_not_requested_for_a_while_grows_from_its_last_push() -> None:
    builder = PayloadBuilder(START)
    for requested, value, now in (("*", 5.0, 2_000), ("org.apache.kafka.consumer", 6.0, 3_000), ("*", 9.0, 4_000)):
        payload = builder.build([metric("sent-total", value)], requesting(requested), {}, now)
        builder.accepted(payload)
    (point,) = points(payload.metrics)["org.apache.kafka.producer.sent.total"]
    assert (point.as_double, point.start_time_unix_nano) == (4, 2_000)


def test_gauges_have_no_growth_and_no_start() -> None:
    builder = PayloadBuilder(START)
    for _ in range(2):
        payload = builder.build([metric("rate", math.nan, "gauge")], requesting(), {}, 2_000)
        builder.accepted(payload)
        (point,) = points(payload.metrics).popitem()[1]
        assert math.isnan(point.as_double)
        assert point.start_time_unix_nano == 0


def test_the_client_id_is_left_out_and_the_first_of_two_metrics_with_one_name_is_sent() -> None:
    metrics = [
        metric("a", 1.0, "gauge", **{"client-id": "c", "node-id": "n"}),
        metric("a", 2.0, "gauge", **{"client-id": "c", "node-id": "n"}),
        metric("b", 3.0, "gauge", group="consumer-metrics"),
    ]
    found = points(PayloadBuilder(START).build(metrics, requesting("org.apache.kafka.producer"), {}, 1).metrics)
    ((name, (point,)),) = found.items()
    assert (name, point.as_double) == ("org.apache.kafka.producer.a", 1)
    assert [(pair.key, pair.value.string_value) for pair in point.attributes] == [("node_id", "n")]


def test_the_brokers_first_codec_that_is_known_compresses() -> None:
    payload = PayloadBuilder(START).build([metric("a", 1.0)], requesting(codecs=(99, 1, 4)), {}, 1)
    assert payload.codec is Codec.GZIP
    assert len(points(gzip.decompress(payload.metrics))) == 1
    assert PayloadBuilder(START).build([metric("a", 1.0)], requesting(codecs=(99,)), {}, 1).codec is Codec.NONE


def test_what_has_no_room_is_left_out_the_finest_first_and_its_growth_comes_later() -> None:
    partitions = [metric("lag", 1.0, topic="t", partition=str(index)) for index in range(1_000)]
    metrics = [*partitions, metric("total", 5.0)]
    builder = PayloadBuilder(START)
    small = builder.build(metrics, requesting(max_bytes=2_000), {}, 2_000)
    assert len(small.metrics) <= 2_000
    assert small.sent + small.left_out == 1_001
    assert 1 < small.sent < 100
    assert "org.apache.kafka.producer.total" in points(small.metrics)
    builder.accepted(small)
    whole = builder.build(metrics, requesting(), {}, 3_000)
    growth = [point.as_double for point in points(whole.metrics)["org.apache.kafka.producer.lag"]]
    assert sorted(growth) == [0.0] * (small.sent - 1) + [1.0] * small.left_out


def test_metrics_that_never_fit_are_an_empty_push() -> None:
    payload = PayloadBuilder(START).build([metric("a", 1.0)], requesting(max_bytes=3), {}, 1)
    assert (payload.metrics, payload.sent, payload.left_out) == (b"", 0, 1)
