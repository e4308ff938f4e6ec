"""What a client says of itself: when it is ready, when it is live, and why not."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import attrs
import pytest
from support.log_watch import watched_log
from support.virtual_time import virtual_time

from aiokafkawire import Client, NoBrokerReachable, ProducerFenced, TopicPartition, UsageError, health_monitor
from aiokafkawire.client_health import BrokerHealth, client_health
from aiokafkawire.consumer.health import ConsumerHealth
from aiokafkawire.group.member_health import MemberHealth
from aiokafkawire.group.membership import GroupState
from aiokafkawire.observe import Observer, PartitionStalled, StallEnded
from aiokafkawire.producer.health import ProducerHealth
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.share.health import ShareConsumerHealth
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address, GroupMetadata

MEMBER = MemberHealth(
    state=GroupState.STABLE,
    group=GroupMetadata("g", 3, "m"),
    protocol="range",
    coordinator=None,
    last_heartbeat=1.0,
    rebalances=1,
    trouble=None,
    overdue=False,
)
CONSUMER = ConsumerHealth(
    membership=MEMBER, last_record=None, partitions={}, why_idle="it has read everything there is", stalled=False
)
SHARE = ShareConsumerHealth(
    name="share-3",
    state="open",
    membership=MEMBER,
    partitions={},
    unread=0,
    in_hand=0,
    why_idle="no records",
    stalled=False,
)
PRODUCER = ProducerHealth(
    name="produce-1",
    state="open",
    oldest=None,
    records=0,
    buffered=0,
    buffer_memory=10,
    blocked=0,
    waiting_for_topics={},
    in_flight=0,
    partitions={},
    transaction=None,
    why=None,
    stalled=False,
    failed=None,
)


def producing(**changes: Any) -> dict[str, Any]:
    return {"producers": {"produce-1": attrs.evolve(PRODUCER, **changes)}}


def consuming(**changes: Any) -> dict[str, Any]:
    return {"consumers": {"fetch-2": attrs.evolve(CONSUMER, **changes)}}


def member(**changes: Any) -> dict[str, Any]:
    return consuming(membership=attrs.evolve(MEMBER, **changes))


def broker(connections: int) -> list[BrokerHealth]:
    return [BrokerHealth(Address("b", 1), 1, connections, None, None)]


@pytest.mark.parametrize(
    ("state", "parts", "ready", "live", "why"),
    [
        ("open", {}, True, True, None),
        ("new", {}, False, True, "the client is not open yet"),
        ("new", {"metadata_error": "X"}, False, True, "the client is not open yet; no broker is reachable: X"),
        ("closed", {}, False, True, "the client is closed"),
        ("closed", {"metadata_error": "X"}, False, True, "the client is closed"),
        ("open", {"fault": "it broke"}, False, False, "it broke"),
        ("open", {"metadata_error": "X", "brokers": broker(0)}, False, True, "no broker is reachable: X"),
        ("open", {"metadata_error": "X", "brokers": broker(1)}, True, True, None),
        ("open", producing(), True, True, None),
        ("open", producing(why="t-0: X", stalled=True), True, True, "produce-1: t-0: X"),
        ("open", producing(why="t-0: X"), True, True, None),
        ("open", producing(why="t-0: X", stalled=True, blocked=1), False, True, "produce-1: t-0: X"),
        ("open", producing(why="X", stalled=True, failed="X"), False, False, "produce-1 has failed: X"),
        ("open", consuming(), True, True, None),
        ("open", consuming(membership=None), True, True, None),
        ("open", consuming(stalled=True, why_idle="X"), True, True, "fetch-2: X"),
        ("open", consuming(failed="X", stalled=True), False, False, "fetch-2 has failed: X"),
        (
            "open",
            member(state=GroupState.JOINING, rebalances=0),
            False,
            True,
            "fetch-2 is not in 'g' yet: it is waiting for the other members to join",
        ),
        ("open", member(state=GroupState.JOINING), True, True, None),
        (
            "open",
            member(state=GroupState.FAILED, trouble="X"),
            False,
            True,
            "fetch-2 is not in 'g' yet: it is refused; fetch-2 has trouble with its coordinator: X",
        ),
        ("open", member(state=GroupState.OUTSIDE, subscribed=False), True, True, None),
        (
            "open",
            member(state=GroupState.OUTSIDE, overdue=True),
            False,
            False,
            "fetch-2 has left 'g', since poll() was not called in time (max_poll_interval_ms)",
        ),
        ("open", {"share_consumers": {"share-3": SHARE}}, True, True, None),
        (
            "open",
            {"share_consumers": {"share-3": attrs.evolve(SHARE, failed="X")}},
            False,
            False,
            "share-3 has failed: X",
        ),
    ],
)
def test_ready_and_live(state: str, parts: dict[str, Any], ready: bool, live: bool, why: str | None) -> None:
    health = client_health(state, **parts)
    assert (health.ready, health.live, health.why) == (ready, live, why)
    json.dumps(health.to_dict())


async def until(reached: Callable[[], bool], within: float = 60) -> None:
    with anyio.fail_after(within):
        while not reached():  # noqa: ASYNC110  # no event announces a change of the health
            await anyio.sleep(0.01)


@pytest.mark.anyio
@virtual_time
async def test_a_client_with_its_parts() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t", 2)
        client = Client(broker.bootstrap, connector=broker.connect)
        assert (client.health().state, client.health().why) == ("new", "the client is not open yet")
        async with client as kafka:
            assert (kafka.health().ready, kafka.health().why) == (True, None)
            assert [(one.node_id, one.connections > 0, one.error) for one in kafka.health().brokers] == [
                (1, True, None)
            ]
            async with (
                kafka.producer() as producer,
                kafka.consumer("t", group_id="g", auto_offset_reset="earliest") as consumer,
                kafka.share_consumer("t", group_id="s") as share,
            ):
                assert not kafka.health().ready
                assert "fetch-2 is not in 'g' yet: " in (kafka.health().why or "")
                assert "share-3 is not in 's' yet: " in (kafka.health().why or "")
                await producer.send("t", b"1")
                await anext(consumer)
                await share.poll(timeout=10)
                health = kafka.health()
                assert (health.ready, health.live, health.why) == (True, True, None)
                assert (list(health.producers), list(health.consumers), list(health.share_consumers)) == (
                    [producer.name],
                    [consumer.name],
                    [share.name],
                )
                assert list(health.share_consumers["share-3"].partitions) == [
                    TopicPartition("t", 0),
                    TopicPartition("t", 1),
                ]
                plain = json.loads(json.dumps(health.to_dict()))
                assert plain["consumers"]["fetch-2"]["partitions"]["t-0"]["trouble"] is None
                assert plain["consumers"]["fetch-2"]["membership"]["state"] == "STABLE"
            after = kafka.health()
            assert (after.ready, dict(after.producers), dict(after.consumers), dict(after.share_consumers)) == (
                True,
                {},
                {},
                {},
            )
        assert (client.health().ready, client.health().live, client.health().why) == (
            False,
            True,
            "the client is closed",
        )


@pytest.mark.anyio
@virtual_time
async def test_a_cluster_that_is_away_makes_the_client_unready_and_not_dead() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        assert kafka.health().ready
        await broker.stop_node(1)
        await until(lambda: not kafka.health().ready)
        await until(lambda: bool(kafka.health().brokers[0].failing))
        health = kafka.health()
        assert health.live
        assert (health.why or "").startswith(f"no broker is reachable: {health.brokers[0].address}: ")
        assert health.brokers[0].connections == 0
        assert (health.brokers[0].error or "").startswith("ConnectionLost: ")
        await broker.start_node(1)
        await until(lambda: kafka.health().ready)
        assert kafka.health().why is None
        assert kafka.health().metadata_error is None
        assert kafka.health().brokers[0].error is None


@pytest.mark.anyio
async def test_a_client_that_could_not_open() -> None:
    client = Client("127.0.0.1:1", bootstrap_timeout_ms=1)
    with pytest.raises(NoBrokerReachable):
        await client.open()
    assert (client.health().ready, client.health().live, client.health().state) == (False, True, "closed")


@pytest.mark.anyio
async def test_a_fenced_producer_needs_another_process() -> None:
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect) as kafka,
        kafka.producer(transactional_id="x") as fenced,
        kafka.producer(transactional_id="x"),
    ):
        broker.create_topic("t")
        with pytest.raises(ProducerFenced):
            async with fenced.transaction() as transaction:
                await transaction.send("t", b"1")
        assert (kafka.health().ready, kafka.health().live) == (False, False)
        assert (kafka.health().why or "").startswith("produce-1 has failed: ProducerFenced: ")
        await fenced.close()
        assert (kafka.health().ready, kafka.health().live) == (True, True)


@pytest.mark.anyio
@virtual_time
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_consumer_that_does_not_poll_is_not_live(protocol: Any) -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("t")
        async with kafka.consumer("t", group_id="g", max_poll_interval_ms=60_000, group_protocol=protocol) as consumer:
            await consumer.poll(timeout=10)
            assert kafka.health().live
            await anyio.sleep(50)
            assert kafka.health().live
            await anyio.sleep(20)
            assert not kafka.health().live
            assert kafka.health().why == (
                "fetch-2 has left 'g', since poll() was not called in time (max_poll_interval_ms)"
            ).replace("fetch-2", consumer.name)
            await consumer.poll(timeout=10)
            await until(lambda: kafka.health().ready)
            assert kafka.health().live


@pytest.mark.anyio
async def test_a_consumer_that_has_unsubscribed_is_ready() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("t")
        async with kafka.consumer("t", group_id="g") as consumer:
            await until(lambda: kafka.health().ready)
            await consumer.unsubscribe()
            assert kafka.health().ready


@pytest.mark.anyio
@virtual_time
async def test_a_broker_that_does_not_answer_a_share_consumer_is_told() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("t")
        async with kafka.share_consumer("t", group_id="s") as share:
            assert await share.poll(timeout=20) == []
            assert (share.health().stalled, kafka.health().why) == (False, None)
            async with broker.hold(ApiKey.SHARE_FETCH):
                assert await share.poll(timeout=20) == []
                health = share.health()
                assert (health.why_idle or "").startswith("t-0: ")
                assert " has not answered for " in (health.why_idle or "")
                assert (health.stalled, kafka.health().ready) == (True, True)
            assert await share.poll(timeout=20) == []
            assert (share.health().stalled, kafka.health().why) == (False, None)


@pytest.mark.anyio
@virtual_time
async def test_a_consumer_that_has_unsubscribed_since_it_did_not_poll_is_live() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("t")
        async with kafka.consumer("t", group_id="g", max_poll_interval_ms=60_000) as consumer:
            await consumer.poll(timeout=10)
            await anyio.sleep(70)
            assert not kafka.health().live
            await consumer.unsubscribe()
            assert (kafka.health().live, kafka.health().ready) == (True, True)
            consumer.subscribe("t")
            await consumer.poll(timeout=10)
            await until(lambda: kafka.health().ready)


@pytest.mark.anyio
async def test_another_thread_gets_an_error_and_no_wrong_answer() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        with pytest.raises(UsageError, match="outside of the event loop"):
            await anyio.to_thread.run_sync(kafka.health)


def test_a_lost_event_loop_is_the_end() -> None:
    async def open_only() -> Client:
        async with Broker() as broker:
            client = Client(broker.bootstrap)
            await client.open()
            return client

    client = asyncio.run(open_only())
    health = client.health()
    assert (health.ready, health.live) == (False, False)
    assert health.why == "the event loop on which the client was opened has ended"
    with pytest.raises(UsageError):
        asyncio.run(client.close())
    assert client.health().why == "the client is closed"


@pytest.mark.slow
@pytest.mark.anyio
async def test_parts_that_are_gone_are_not_kept() -> None:
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("t")
        for _ in range(20):
            async with kafka.producer() as producer:
                await producer.send("t", b"1")
            kafka.health()
        del producer
        gc.collect()
        assert kafka._live._producers.all() == []


@pytest.mark.anyio
@virtual_time
async def test_a_broker_that_answers_nothing_takes_no_longer_than_a_request() -> None:
    async with Broker(port=None) as broker:
        kafka = Client(
            broker.bootstrap, connector=broker.connect, bootstrap_timeout_ms=2**31 - 1, request_timeout_ms=2_000
        )
        async with broker.hold(ApiKey.METADATA) as held, anyio.create_task_group() as tasks:
            tasks.start_soon(kafka.open)
            await anyio.sleep(30)
            health = kafka.health()
            assert (health.ready, health.live) == (False, True)
            assert (health.why or "").startswith("the client is not open yet; no broker is reachable: ")
            held.release()
        assert kafka.health().ready
        await kafka.close()


# --- stalls -----------------------------------------------------------------------------------------------


class Stalls(Observer):
    def __init__(self) -> None:
        self.events: list[PartitionStalled | StallEnded] = []

    def partition_stalled(self, event: PartitionStalled) -> None:
        self.events.append(event)

    def stall_ended(self, event: StallEnded) -> None:
        self.events.append(event)


@pytest.mark.anyio
@virtual_time
async def test_records_that_wait_too_long_are_reported_once_and_so_is_their_end() -> None:
    stalls = Stalls()
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect, observers=[stalls], request_timeout_ms=300_000) as kafka,
        kafka.producer(delivery_timeout_ms=400_000) as producer,
    ):
        broker.create_topic("t")
        await producer.send("t", b"1")
        with watched_log(logging.INFO, "aiokafkawire.health") as log:
            async with broker.hold(ApiKey.PRODUCE) as held:
                for _ in range(3):
                    producer.send_nowait("t", b"2", partition=0)
                await anyio.sleep(25)
                assert stalls.events == []
                await anyio.sleep(100)
                held.release()
            await producer.flush()
            await anyio.sleep(25)
        began, ended = stalls.events
        assert isinstance(began, PartitionStalled)
        assert (began.lane, began.topic, began.partition, began.records) == ("produce-1", "t", 0, 3)
        assert 30 <= began.seconds <= 41
        assert "has not acknowledged it for" in began.reason
        assert isinstance(ended, StallEnded)
        assert (ended.lane, ended.topic, ended.partition) == ("produce-1", "t", 0)
        assert 100 <= ended.seconds <= 150
        assert [line.split()[0] for line in log.lines] == ["WARNING", "INFO"]
        assert "produce-1: a partition has made no progress for" in log.lines[0]
        assert "produce-1: all partitions make progress again" in log.lines[1]


@pytest.mark.anyio
@virtual_time
async def test_a_partition_that_brings_no_records_is_reported_and_its_end() -> None:
    stalls = Stalls()
    async with (
        Broker(nodes=2, port=None, default_replication_factor=1) as broker,
        Client(broker.bootstrap, connector=broker.connect, observers=[stalls], stall_report_ms=10_000) as kafka,
        kafka.consumer() as consumer,
    ):
        broker.create_topic("t", 2)
        consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
        assert await consumer.poll(timeout=30) == []
        assert stalls.events == []
        node = broker.leader("t", 1)
        await broker.stop_node(node)
        with anyio.move_on_after(60):
            await consumer.poll(timeout=50)
        await anyio.sleep(5)
        (began,) = stalls.events
        assert isinstance(began, PartitionStalled)
        assert (began.lane, began.topic, began.partition) == (consumer.name, "t", 1)
        assert "leader" in began.reason.lower()
        await broker.start_node(node)
        await anyio.sleep(20)
        assert isinstance(stalls.events[-1], StallEnded)
        assert len(stalls.events) == 2


@pytest.mark.anyio
@virtual_time
async def test_nobody_looks_for_stalls_while_no_observer_has_methods_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        await anyio.sleep(seconds)

    monkeypatch.setattr(health_monitor, "anyio", SimpleNamespace(sleep=sleep, Event=anyio.Event))
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        monkeypatch.setattr(kafka._health, "health", looks.append)
        observers, stalls = kafka._cluster.observers, Stalls()
        await anyio.sleep(1000)
        assert (sleeps, looks) == ([], [])
        observers.add(stalls)
        await anyio.sleep(35)
        assert len(looks) == 3
        observers.remove(stalls)
        await anyio.sleep(1000)
        assert len(sleeps) <= 5


@pytest.mark.anyio
@pytest.mark.every_loop
async def test_another_thread_may_add_observers_of_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = anyio.Event()
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect, stall_report_ms=3) as kafka,
    ):
        monkeypatch.setattr(kafka._health, "health", lambda _: looked.set())
        observers = kafka._cluster.observers
        await anyio.to_thread.run_sync(observers.add, Stalls())
        await looked.wait()
    await anyio.to_thread.run_sync(observers.add, Stalls())  # the client is closed


@pytest.mark.anyio
@virtual_time
async def test_health_reports_stalls_even_without_an_observer() -> None:
    async with (
        Broker(port=None) as broker,
        Client(broker.bootstrap, connector=broker.connect, request_timeout_ms=300_000) as kafka,
        kafka.producer() as producer,
    ):
        broker.create_topic("t")
        await producer.send("t", b"1")
        with watched_log(logging.INFO, "aiokafkawire.health") as log:
            async with broker.hold(ApiKey.PRODUCE) as held:
                producer.send_nowait("t", b"2", partition=0)
                await anyio.sleep(100)
                assert log.lines == []
                assert kafka.health().producers["produce-1"].stalled
                kafka.health()
                assert len(log.lines) == 1
                held.release()
            await producer.flush()
            assert kafka.health().why is None
            assert len(log.lines) == 2
