"""The push of clients' metrics (KIP-714): the in-process broker, and Apache Kafka with a plug-in that receives them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from itertools import pairwise
from secrets import token_hex
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

import anyio
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData
from support.dialling import over_tcp
from support.patience import PATIENCE
from support.raw_client import RawClient
from support.telemetry_plugin import CONTENT_TYPE, ReceivedPush, TelemetryPlugin

from aiokafkawire import Client
from aiokafkawire.admin.config_resources import ConfigResource
from aiokafkawire.errors import ErrorCode
from aiokafkawire.metrics import ApplicationMetric
from aiokafkawire.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
)
from aiokafkawire.records.compression import Codec, compress
from aiokafkawire.telemetry.otlp import Point, encode_metrics_data
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.telemetry.client_metrics import PushedMetrics

pytestmark = pytest.mark.anyio

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
T = TypeVar("T")

NOBODY = UUID(int=0)
PREFIX = "org.apache.kafka."


class Value(NamedTuple):
    """One value of one push."""

    name: str
    attributes: dict[str, str]
    value: float
    kind: str
    start_ns: int
    time_ns: int


class Push(NamedTuple):
    """One push, whoever has received it."""

    instance_id: UUID
    is_terminating: bool
    values: list[Value]
    resource: dict[str, str]

    def named(self, name: str) -> list[Value]:
        return [one for one in self.values if one.name == PREFIX + name]


def total(pushes: list[Push], name: str) -> float:
    """Return the sum of an application metric over pushes."""
    return sum(one.value for push in pushes for one in push.named(f"application.{name.replace('-', '.')}"))


def by_plugin(push: ReceivedPush) -> Push:
    assert push.content_type == CONTENT_TYPE
    return Push(push.instance_id, push.is_terminating, *values_of(push.data))


def values_of(data: MetricsData) -> tuple[list[Value], dict[str, str]]:
    found: list[Value] = []
    resource: dict[str, str] = {}
    for of_resource in data.resource_metrics:
        resource = {one.key: one.value.string_value for one in of_resource.resource.attributes}
        for metric in (one for scope in of_resource.scope_metrics for one in scope.metrics):
            is_counter = metric.HasField("sum")
            assert not is_counter or (metric.sum.is_monotonic and metric.sum.aggregation_temporality == DELTA)
            for point in (metric.sum if is_counter else metric.gauge).data_points:
                attributes = {one.key: one.value.string_value for one in point.attributes}
                value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
                times = point.start_time_unix_nano, point.time_unix_nano
                found.append(Value(metric.name, attributes, value, "counter" if is_counter else "gauge", *times))
    return found, resource


def in_process(push: PushedMetrics) -> Push:
    values = [
        Value(one.name, dict(one.attributes), one.value, one.kind, one.start_ns, one.time_ns) for one in push.metrics
    ]
    assert {one.temporality for one in push.metrics} <= {None, "delta"}
    return Push(
        push.client_instance_id, push.is_terminating, values, dict(push.metrics[0].resource) if push.metrics else {}
    )


async def until(ask: Callable[[], Awaitable[T]], is_settled: Callable[[T], bool]) -> T:
    """Ask again and again: nothing tells when a broker knows a new subscription, or when the plug-in has written."""
    with anyio.fail_after(PATIENCE):
        while True:
            answer = await ask()
            if is_settled(answer):
                return answer
            await anyio.sleep(0.05)


class Receiving(NamedTuple):
    """A cluster that receives clients' metrics."""

    bootstrap: str
    pushes: Callable[[str], list[Push]]

    async def pushed(self, client_id: str, is_enough: Callable[[list[Push]], bool]) -> list[Push]:
        async def ask() -> list[Push]:
            return self.pushes(client_id)

        return await until(ask, is_enough)


@pytest.fixture(params=["in-process", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
async def cluster(request: pytest.FixtureRequest, kafka_release: str | None) -> AsyncIterator[Receiving]:
    if request.param == "apache-kafka":
        plugin: TelemetryPlugin = request.getfixturevalue("apache_kafka_with_telemetry")
        yield Receiving(plugin.kafka.bootstrap, lambda client_id: [*map(by_plugin, plugin.pushes(client_id))])
        return
    async with Broker(client_telemetry=True, max_versions=kafka_release) as broker:
        yield Receiving(
            broker.bootstrap,
            lambda client_id: [in_process(one) for one in broker.pushed_metrics if one.client_id == client_id],
        )


@pytest.fixture
async def operator(cluster: Receiving) -> AsyncIterator[Client]:
    async with Client(cluster.bootstrap) as kafka:
        yield kafka


@pytest.fixture
def client_id() -> str:
    return f"client-{token_hex(4)}"


async def subscribe(cluster: Receiving, operator: Client, client_id: str, metrics: str, interval_ms: int = 200) -> None:
    """Subscribe to metrics of this client alone, and wait until the broker knows it."""
    settings = {"metrics": metrics, "interval.ms": str(interval_ms), "match": f"client_id={client_id}"}
    changes: dict[ConfigResource, Any] = {ConfigResource.client_metrics(client_id): settings}
    await operator.admin.incremental_alter_configs(changes)
    async with Client(cluster.bootstrap, client_id=client_id) as probe:
        await until(
            partial(probe.request, GetTelemetrySubscriptionsRequest(client_instance_id=NOBODY)),
            lambda told: sorted(told.requested_metrics) == sorted(metrics.split(",")),
        )


# --- this client ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.every_loop
async def test_a_client_pushes_what_is_subscribed(cluster: Receiving, operator: Client, client_id: str) -> None:
    await operator.admin.create_topics({client_id: 1})
    await subscribe(cluster, operator, client_id, f"{PREFIX}producer.,{PREFIX}consumer.,{PREFIX}application.")
    async with Client(cluster.bootstrap, client_id=client_id, enable_metrics_push=True) as kafka:
        done = ApplicationMetric("flights-done", 0, {"airline": "xx"}, kind="counter")
        kafka.register_metric_for_subscription(done)
        options: dict[str, Any] = {"group_id": client_id, "auto_offset_reset": "earliest"}
        async with kafka.producer() as producer, kafka.consumer(client_id, **options) as consumer:
            await producer.send_many(client_id, [b"x"] * 50)
            done.value = len(await consumer.poll(50))
            await cluster.pushed(client_id, lambda found: len(found) >= 3 and total(found, done.name) == done.value)
        instance_id = await kafka.client_instance_id()
        producer.unregister_metric_from_subscription(done)
    pushes = await cluster.pushed(client_id, lambda found: found[-1].is_terminating)
    assert [push.is_terminating for push in pushes] == [False] * (len(pushes) - 1) + [True]
    assert {push.instance_id for push in pushes} == {instance_id}
    assert total(pushes, done.name) == done.value > 0
    sent = [one for push in pushes for one in push.named("producer.record.send.total") if not one.attributes]
    assert sum(one.value for one in sent) == 50
    assert [later.start_ns for later in sent[1:]] == [earlier.time_ns for earlier, _ in pairwise(sent)]
    last = next(push for push in reversed(pushes) if push.named("consumer.fetch.manager.records.lag"))
    assert last.resource["group_id"] == client_id
    (lag,) = last.named("consumer.fetch.manager.records.lag")
    assert lag.kind == "gauge"
    assert lag.attributes == {"topic": client_id, "partition": "0"}


async def test_a_changed_subscription_takes_effect(cluster: Receiving, operator: Client, client_id: str) -> None:
    await subscribe(cluster, operator, client_id, f"{PREFIX}producer.")
    async with Client(cluster.bootstrap, client_id=client_id, enable_metrics_push=True) as kafka, kafka.producer():
        await cluster.pushed(client_id, bool)
        await subscribe(cluster, operator, client_id, f"{PREFIX}admin.client.")
        await cluster.pushed(client_id, lambda found: found[-1].values[0].name.startswith(f"{PREFIX}admin."))
    assert len({push.instance_id for push in cluster.pushes(client_id)}) == 1


# --- the requests alone --------------------------------------------------------------------------------------------


@pytest.fixture
async def raw(cluster: Receiving) -> AsyncIterator[RawClient]:
    async with RawClient(await over_tcp(cluster.bootstrap)) as client:
        yield client


async def get(raw: RawClient, instance_id: UUID = NOBODY) -> GetTelemetrySubscriptionsResponse:
    return await raw.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


async def push(raw: RawClient, told: GetTelemetrySubscriptionsResponse, **changes: Any) -> int:
    values: dict[str, Any] = {
        "client_instance_id": told.client_instance_id,
        "subscription_id": told.subscription_id,
        "terminating": False,
        "compression_type": 0,
        "metrics": encode_metrics_data([Point("a", {}, 1.0, 1)], {}),
    }
    return (await raw.ask(PushTelemetryRequest(**values | changes), 0)).error_code


async def test_without_a_subscription_no_metrics_are_requested(raw: RawClient) -> None:
    told = await get(raw)
    assert told.error_code == 0
    assert told.client_instance_id != NOBODY
    assert told.accepted_compression_types == [Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY]
    assert (told.push_interval_ms, told.telemetry_max_bytes, told.delta_temporality) == (300_000, 1_048_576, True)
    assert told.requested_metrics == []


async def test_an_id_of_the_clients_own_is_kept(raw: RawClient) -> None:
    mine = uuid4()
    assert (await get(raw, mine)).client_instance_id == mine


async def test_requests_that_come_too_early_are_throttled(raw: RawClient) -> None:
    told = await get(raw)
    again = await get(raw, told.client_instance_id)
    assert again.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert again.client_instance_id == NOBODY
    assert await push(raw, told) == 0  # the first one may come early
    assert await push(raw, told) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert await push(raw, told, terminating=True) == 0
    assert await push(raw, told, terminating=True) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"subscription_id": 5}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * 1_048_577}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"client_instance_id": NOBODY}, ErrorCode.INVALID_REQUEST),
        ({"client_instance_id": UUID(int=1)}, ErrorCode.INVALID_REQUEST),
        ({"compression_type": 1, "metrics": b"not gzip"}, ErrorCode.INVALID_RECORD),
        ({"metrics": b""}, ErrorCode.NONE),
    ],
)
async def test_wrong_pushes(raw: RawClient, changes: dict[str, Any], code: int) -> None:
    assert await push(raw, await get(raw), **changes) == code


@pytest.mark.parametrize("codec", [*Codec])
async def test_every_codec_is_accepted(raw: RawClient, codec: Codec) -> None:
    data = compress(codec, encode_metrics_data([Point("a", {}, 1.0, 1)], {}))
    assert await push(raw, await get(raw), compression_type=codec, metrics=data) == 0


async def test_a_connection_that_ends_takes_the_state_of_its_client_along(cluster: Receiving, raw: RawClient) -> None:
    told = await get(raw)
    await raw.stream.aclose()

    async def ask() -> GetTelemetrySubscriptionsResponse:
        async with RawClient(await over_tcp(cluster.bootstrap)) as other:
            return await get(other, told.client_instance_id)

    again = await until(ask, lambda again: not again.error_code)
    assert again.subscription_id == told.subscription_id


async def test_several_subscriptions_add_up(operator: Client, raw: RawClient) -> None:
    names = [f"sum-{token_hex(4)}" for _ in range(3)]
    settings = [
        {"metrics": "b,a", "interval.ms": "500", "match": "client_id=ra.*"},
        {"metrics": "b,c", "interval.ms": "100", "match": "client_id=raw,client_source_address=127.0.0.1"},
        {"metrics": "*", "match": "client_id=ra"},
    ]
    changes: dict[ConfigResource, Any] = {
        ConfigResource.client_metrics(name): one for name, one in zip(names, settings, strict=True)
    }
    await operator.admin.incremental_alter_configs(changes)
    try:
        told = await until(partial(get, raw), lambda told: len(told.requested_metrics) == 3)
        assert sorted(told.requested_metrics) == ["a", "b", "c"]
        assert told.push_interval_ms == 100
    finally:
        gone: dict[ConfigResource, Any] = {
            ConfigResource.client_metrics(name): dict.fromkeys(one) for name, one in zip(names, settings, strict=True)
        }
        await operator.admin.incremental_alter_configs(gone)
        await until(partial(get, raw), lambda told: not told.requested_metrics)
