"""Clients that push their metrics to the in-process broker."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any
from uuid import UUID

import anyio
import pytest

from aiokafkawire import Client, blocking
from aiokafkawire.admin.config_resources import ConfigResource
from aiokafkawire.errors import ErrorCode, RequestTimeout, UnsupportedVersion, UsageError
from aiokafkawire.metrics import ApplicationMetric
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.telemetry import PushTelemetryResponse
from aiokafkawire.telemetry.payload import PayloadBuilder
from aiokafkawire.testing import Broker
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.testing.telemetry.client_metrics import PushedMetrics

PRODUCER, OPEN = "org.apache.kafka.producer.", "org.apache.kafka.application.open"
GET, PUSH = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY


async def subscribe(kafka: Client, metrics: str, name: str = "test", **more: str) -> None:
    """Subscribe to metrics, every 10 s unless told otherwise."""
    changes: dict[ConfigResource, Any] = {
        ConfigResource.client_metrics(name): {"metrics": metrics, "interval.ms": "10000", **more}
    }
    await kafka.admin.incremental_alter_configs(changes)


def total(pushes: list[PushedMetrics], name: str) -> float:
    """How much a counter without attributes grew in all pushes."""
    found = [one for push in pushes for one in push.metrics if one.name == PRODUCER + name and not one.attributes]
    assert {(one.kind, one.temporality) for one in found} == {("counter", "delta")}
    return sum(one.value for one in found)


# --- on every event loop -------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.every_loop
async def test_subscribed_metrics_are_pushed_and_once_more_when_the_client_closes() -> None:
    async with Broker(client_telemetry=True) as broker:
        broker.create_topic("flights")
        async with Client(broker.bootstrap) as operator:
            await subscribe(operator, f"{PRODUCER},{OPEN}", **{"interval.ms": "100"})
        async with Client(broker.bootstrap, client_id="shop", enable_metrics_push=True) as kafka:
            kafka.register_metric_for_subscription(ApplicationMetric("open", 7, {"queue": "a"}))
            instance_id = await kafka.client_instance_id()
            async with kafka.producer() as producer:
                await producer.send_many("flights", [b"x"] * 100)
                await broker.requests.wait_for(PUSH, 2)
                assert await producer.client_instance_id() == instance_id
                assert await kafka.admin.client_instance_id() == instance_id
        *others, last = pushes = broker.pushed_metrics
        assert not any(push.is_terminating for push in others)
        assert last.is_terminating
        assert {(push.client_id, push.client_instance_id) for push in pushes} == {("shop", instance_id)}
        assert {push.compression_type for push in pushes} == {"zstd"}
        assert total(pushes, "record.send.total") == 100
        names = {one.name for push in pushes for one in push.metrics}
        assert all(name.startswith(PRODUCER) or name == OPEN for name in names)
        assert [(one.value, one.attributes) for one in last.metrics if one.name == OPEN] == [(7, {"queue": "a"})]
        assert len({one.connection for one in broker.requests if one.api in (GET, PUSH)}) == 1


@pytest.mark.anyio
@pytest.mark.every_loop
async def test_a_client_pushes_nothing_unless_it_is_enabled() -> None:
    async with Broker(client_telemetry=True) as broker:
        broker.create_topic("flights")
        async with Client(broker.bootstrap) as kafka:
            await subscribe(kafka, "*", **{"interval.ms": "100"})
            kafka.register_metric_for_subscription(ApplicationMetric("open", 7))
            await kafka.admin.list_topics()
        assert broker.requests.of(GET) == []
        async with Client(broker.bootstrap) as kafka:
            instance_id = await kafka.client_instance_id()
            async with kafka.consumer("flights") as consumer:
                assert await consumer.client_instance_id() == instance_id
        assert len(broker.requests.of(GET)) == 1
        assert broker.requests.of(PUSH) == []


@pytest.mark.anyio
@pytest.mark.every_loop
async def test_brokers_without_a_plugin_get_no_request_and_no_connection() -> None:
    async with Broker() as broker:
        async with Client(broker.bootstrap, enable_metrics_push=True) as kafka:
            needs = "clients' metrics need brokers since 3.7 with a plugin that receives them"
            with pytest.raises(UnsupportedVersion, match=needs):
                await kafka.client_instance_id()
        assert {one.connection for one in broker.requests} == {1}


@pytest.mark.anyio
async def test_a_client_whose_last_push_fails_closes_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker() as broker:
        kafka = Client(broker.bootstrap, enable_metrics_push=True)
        await kafka.open()

        async def fail() -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(kafka._cluster.telemetry, "terminate", fail)
        with pytest.raises(ZeroDivisionError):
            await kafka.close()
        assert not kafka._cluster.brokers.in_use()


def test_the_blocking_client_pushes_too() -> None:
    with BackgroundBroker(client_telemetry=True) as broker:
        broker.create_topic("flights")
        with blocking.Client(broker.bootstrap, enable_metrics_push=True) as kafka:
            kafka.admin.incremental_alter_configs(
                {ConfigResource.client_metrics("test"): {"metrics": "*", "interval.ms": "100"}}
            )
            metric = ApplicationMetric("open", lambda: 5)
            kafka.register_metric_for_subscription(metric)
            instance_id = kafka.client_instance_id()
            with kafka.producer() as producer:
                producer.send("flights", b"x")
                producer.unregister_metric_from_subscription(metric)
                producer.register_metric_for_subscription(metric)
                assert producer.client_instance_id() == instance_id
            with kafka.consumer("flights", group_id="g") as consumer:
                assert consumer.client_instance_id() == kafka.admin.client_instance_id() == instance_id
            with pytest.raises(UsageError, match="metric must be an ApplicationMetric"):
                kafka.admin.register_metric_for_subscription("open")  # type: ignore[arg-type]
        asked = broker.requests.of(GET)
        assert [one.request.client_instance_id for one in asked][:1] == [UUID(int=0)]


# --- in virtual time -----------------------------------------------------------------------------------------------


def pushing(sim: Simulation, **options: Any) -> Client:
    return sim.client("pusher", enable_metrics_push=True, **options)


def times(sim: Simulation, api: ApiKey) -> list[float]:
    return [one.time for one in sim.broker.requests.of(api)]


def test_pushes_come_once_in_an_interval_the_first_one_after_half_of_it_or_more() -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, "*")
        async with pushing(sim):
            await sim.broker.requests.wait_for(PUSH, 4)
        (asked,), pushed = times(sim, GET), times(sim, PUSH)
        assert 5 <= pushed[0] - asked <= 15.1
        assert [round(later - earlier, 1) for earlier, later in pairwise(pushed[:4])] == [10.0] * 3
        assert [push.is_terminating for push in sim.broker.pushed_metrics] == [False] * 4 + [True]

    firsts = []
    for seed in range(3):
        run = simulate(main, seed=seed, nodes=1, client_telemetry=True)
        firsts.append(run.seconds)
    assert len(set(firsts)) == 3  # clients that start together do not push together


def test_without_a_subscription_the_client_asks_again_every_five_minutes_and_finds_a_new_one() -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator, pushing(sim):
            await sim.broker.requests.wait_for(GET, 3)
            assert sim.broker.requests.of(PUSH) == []
            assert [round(at / 300) for at in times(sim, GET)] == [0, 1, 2]
            await subscribe(operator, "*")
            await sim.broker.requests.wait_for(PUSH, 2)
        assert len({one.request.client_instance_id for one in sim.broker.requests.of(GET)[1:]}) == 1

    simulate(main, nodes=1, client_telemetry=True)


def test_a_subscription_that_has_changed_is_fetched_again() -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, PRODUCER)
            async with pushing(sim) as kafka:
                kafka.register_metric_for_subscription(ApplicationMetric("open", 7))
                await sim.broker.requests.wait_for(PUSH)
                await subscribe(operator, OPEN)
                await sim.broker.requests.wait_for(PUSH, 3)
        answers: list[Any] = [one.response for one in sim.broker.requests.of(PUSH)]
        codes = [one.error_code for one in answers]
        assert codes == [0, ErrorCode.UNKNOWN_SUBSCRIPTION_ID, 0, 0]
        assert {one.name for one in sim.broker.pushed_metrics[-1].metrics} == {OPEN}

    simulate(main, nodes=1, client_telemetry=True)


@pytest.mark.parametrize(
    ("match", "is_pushed"),
    [
        ("client_software_name=aiokafkawire,client_id=shop.*", True),
        ("client_software_name=apache-kafka-java", False),
        ("client_id=shop", False),
    ],
)
def test_subscriptions_select_clients(match: str, is_pushed: bool) -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, "*", match=match)
        async with pushing(sim, client_id="shop-1"):
            await anyio.sleep(30)
        assert bool(sim.broker.pushed_metrics) is is_pushed

    simulate(main, nodes=1, client_telemetry=True)


def test_a_refused_push_is_the_last_one_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, "*")
        refused = PushTelemetryResponse(error_code=ErrorCode.INVALID_RECORD)
        sim.broker.on(PUSH, answer=lambda *_: refused)
        async with pushing(sim):
            await anyio.sleep(600)
        assert len(sim.broker.requests.of(PUSH)) == 1

    with caplog.at_level(logging.WARNING, "aiokafkawire.telemetry"):
        simulate(main, nodes=1, client_telemetry=True)
    (record,) = caplog.records
    assert "this client pushes no more metrics: PushTelemetry: INVALID_RECORD" in record.getMessage()


@pytest.mark.parametrize("failure", [{"cut": True}, {"drop": "after"}, {"drop": "before"}])
def test_a_push_without_an_answer_waits_for_the_next_interval(failure: dict[str, Any]) -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, "*")
        sim.broker.on(PUSH, times=None, **failure)
        async with pushing(sim):
            await anyio.sleep(120)
        assert 2 <= len(sim.broker.requests.of(PUSH)) <= 13

    simulate(main, nodes=1, client_telemetry=True)


def test_when_the_broker_is_gone_another_one_gets_the_metrics_and_no_growth_is_lost() -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, "org.apache.kafka.application.")
        async with pushing(sim) as kafka:
            done = ApplicationMetric("done", 5, kind="counter")
            kafka.register_metric_for_subscription(done)
            await sim.broker.requests.wait_for(PUSH)
            await anyio.sleep(1)  # a push without an answer would be repeated
            done.value = 7
            await sim.crash(sim.broker.requests.of(PUSH)[0].node)
            await sim.broker.requests.wait_for(PUSH, 2)
        pushes = sim.broker.pushed_metrics
        assert len({push.node_id for push in pushes}) == 2
        assert len({push.client_instance_id for push in pushes}) == 1
        assert [one.value for push in pushes for one in push.metrics] == [5, 2, 0]

    simulate(main, nodes=3, client_telemetry=True)


def test_closing_waits_two_seconds_for_a_broker_that_does_not_answer() -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, "*")
        kafka = pushing(sim)
        await kafka.open()
        await sim.broker.requests.wait_for(PUSH)
        await anyio.sleep(1)
        async with sim.broker.hold(PUSH):
            began = sim.now()
            await kafka.close()
            assert 1.9 < sim.now() - began < 2.5
            assert len(sim.broker.requests.of(PUSH)) == 2

    simulate(main, nodes=1, client_telemetry=True)


def test_a_client_without_a_subscription_closes_at_once() -> None:
    async def main(sim: Simulation) -> None:
        async with sim.broker.hold(GET):
            kafka = pushing(sim)
            await kafka.open()
            await sim.broker.requests.wait_for(GET)
            with pytest.raises(RequestTimeout, match="no broker has chosen a client instance id within 1 s"):
                await kafka.client_instance_id(timeout=1)
            began = sim.now()
            await kafka.close()
            assert sim.now() - began < 0.5

    simulate(main, nodes=1, client_telemetry=True)


@pytest.mark.slow
def test_pushes_keep_to_the_brokers_limit(caplog: pytest.LogCaptureFixture) -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, "*")
        async with pushing(sim) as kafka, kafka.producer() as producer:
            await kafka.admin.create_topics({f"topic-{index}": 1 for index in range(100)})
            for index in range(100):
                await producer.send(f"topic-{index}", b"x")
            await sim.broker.requests.wait_for(PUSH, 2)
        assert all(0 < push.size <= 1_500 for push in sim.broker.pushed_metrics)

    with caplog.at_level(logging.WARNING, "aiokafkawire.telemetry"):
        simulate(main, nodes=1, client_telemetry=True, telemetry_max_bytes=1_500)
    (record,) = caplog.records
    assert "metrics are not pushed: brokers accept 1500 bytes (telemetry.max.bytes)" in record.getMessage()


def test_labels_name_the_group_if_the_client_has_one_only() -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, "*")
            await operator.admin.create_topics({"flights": 1})
        async with pushing(sim) as kafka:
            one: dict[str, Any] = {"client_rack": "r1", "group_instance_id": "i"}
            async with kafka.producer(transactional_id="t"), kafka.consumer("flights", group_id="g", **one) as first:
                await first.poll(timeout=0)
                await sim.broker.requests.wait_for(PUSH, 2)
                member_id = first.group_metadata().member_id
                async with kafka.consumer("flights", group_id="h", client_rack="r1"):
                    await sim.broker.requests.wait_for(PUSH, 4)
        resources = [push.metrics[0].resource for push in sim.broker.pushed_metrics]
        assert resources[1] == {
            "client_rack": "r1",
            "group_id": "g",
            "group_instance_id": "i",
            "group_member_id": member_id,
            "transactional_id": "t",
        }
        assert resources[3].keys() == {"client_rack", "group_instance_id", "transactional_id"}

    simulate(main, nodes=1, client_telemetry=True)


def test_metrics_that_cannot_be_read_do_not_end_the_pushes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as operator:
            await subscribe(operator, "*")
        async with pushing(sim) as kafka:
            with monkeypatch.context() as patched:
                patched.setattr(PayloadBuilder, "build", lambda *_: 1 / 0)
                await sim.broker.requests.wait_for(GET)
                await anyio.sleep(30)
            assert sim.broker.requests.of(PUSH) == []
            await sim.broker.requests.wait_for(PUSH)
            assert await kafka.client_instance_id() == sim.broker.pushed_metrics[0].client_instance_id

    simulate(main, nodes=1, client_telemetry=True)
    assert {record.getMessage() for record in caplog.records if record.exc_info} == {
        "the client's metrics could not be encoded; they are tried again with the next push"
    }
