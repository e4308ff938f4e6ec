"""What a consumer says of itself, and when a stall is an error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest
from support.clusters import QUICK

from aiokafkawire import Client, ConsumerStalled, TopicPartition
from aiokafkawire.consumer.health import PartitionHealth, why_idle
from aiokafkawire.errors import ErrorCode
from aiokafkawire.group.member_health import MemberHealth
from aiokafkawire.group.membership import GroupState
from aiokafkawire.observe import Observer, PartitionStalled
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.types import Address, GroupMetadata

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
AT = Address("kafka-1", 9092)
WELL = PartitionHealth(
    position=5,
    high_watermark=5,
    broker=AT,
    unread=False,
    paused=False,
    being_given_up=False,
    answered=0.1,
    silent=False,
    trouble=None,
)
MEMBER = MemberHealth(
    state=GroupState.STABLE,
    group=GroupMetadata("g", 3, "m"),
    protocol="range",
    coordinator=AT,
    last_heartbeat=1.0,
    rebalances=1,
    trouble=None,
    overdue=False,
)


def with_(**changes: Any) -> PartitionHealth:
    return attrs.evolve(WELL, **changes)


@pytest.mark.parametrize(
    ("member", "partitions", "why", "stalled"),
    [
        (None, {A0: WELL}, "it has read everything there is", False),
        (MEMBER, {A0: WELL}, "it has read everything there is", False),
        (None, {A0: with_(unread=True), A1: with_(trouble="X")}, None, False),
        (None, {A0: with_(unread=True, paused=True)}, "all of its partitions are paused, or are being revoked", False),
        (None, {}, "it has no partitions: the other members have them, or the topics have none", False),
        (None, {A0: with_(position=None)}, "a-0: where to begin is being looked up", True),
        (None, {A0: with_(broker=None)}, "a-0: it has no leader", True),
        (None, {A0: with_(high_watermark=9)}, "a-0: 4 records are being fetched from kafka-1:9092", True),
        (None, {A0: with_(answered=31.2, silent=True)}, "a-0: kafka-1:9092 has not answered for 31 s", True),
        (None, {A0: with_(trouble="NotLeader: x"), A1: WELL}, "a-0: NotLeader: x", True),
        (None, {A0: with_(trouble="X", paused=True), A1: WELL}, "it has read everything there is", False),
        (
            attrs.evolve(MEMBER, state=GroupState.JOINING),
            {},
            "in 'g' it is waiting for the other members to join",
            True,
        ),
        (
            attrs.evolve(MEMBER, state=GroupState.SYNCING, trouble="ConnectionLost: x"),
            {A0: WELL},
            "in 'g' it is waiting for its assignment; its coordinator: ConnectionLost: x",
            True,
        ),
        (
            None,
            {TopicPartition("a", index): with_(trouble=f"X{index}") for index in range(7)},
            "; ".join(f"a-{index}: X{index}" for index in range(5)) + "; and 2 more",
            True,
        ),
        (
            None,
            {TopicPartition("a", index): with_(broker=None) for index in range(7)} | {A1: with_(high_watermark=9)},
            "a-0 and 5 other partitions: it has no leader; a-1: 4 records are being fetched from kafka-1:9092",
            True,
        ),
        (
            None,
            {A0: with_(high_watermark=9), A1: with_(position=0, high_watermark=2)},
            "a-0 and 1 other partition: 6 records are being fetched from kafka-1:9092",
            True,
        ),
        (
            None,
            {A0: with_(trouble="X: a-0 is lost"), A1: with_(trouble="X: a-1 is lost")},
            "a-0 and 1 other partition: X: a-0 is lost",
            True,
        ),
    ],
)
def test_why_nothing_arrives(
    member: MemberHealth | None, partitions: dict[TopicPartition, PartitionHealth], why: str | None, stalled: bool
) -> None:
    assert why_idle(member, partitions) == (why, stalled)


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[tuple[Broker, Client]]:
    async with Broker(port=None) as broker:
        broker.create_topic("a", partitions=2)
        async with Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options}) as client:
            yield broker, client


@pytest.mark.anyio
async def test_a_member_that_reads_is_well() -> None:
    async with running() as (_, client), client.producer() as producer:
        await producer.send("a", b"1", partition=0)
        async with client.consumer("a", group_id="g", auto_offset_reset="earliest") as consumer:
            assert consumer.health().membership is not None
            await anext(consumer)
            health = consumer.health()
            member = health.membership
            assert member is not None
            assert (member.state, member.rebalances, member.trouble) == (GroupState.STABLE, 1, None)
            assert (member.group.group_id, member.group.generation_id, member.protocol) == ("g", 1, "range")
            assert member.coordinator is not None
            assert member.last_heartbeat is not None
            assert health.last_record is not None
            assert set(health.partitions) == {A0, A1}
            assert (health.partitions[A0].position, health.partitions[A0].lag) == (1, 0)
            assert health.partitions[A0].answered is not None
            assert health.lag == 0


@pytest.mark.anyio
async def test_a_partition_in_trouble_says_which() -> None:
    async with running() as (broker, client), client.consumer() as consumer:
        order = broker.on(ApiKey.FETCH, answer=ErrorCode.KAFKA_STORAGE_ERROR, topic="a", times=None)
        consumer.assign({A0: 0})
        with anyio.fail_after(5):
            await order.met(2)
            while consumer.health().partitions[A0].trouble is None:
                await anyio.lowlevel.checkpoint()
        assert (consumer.health().why_idle or "").startswith("a-0: KafkaStorageError: ")
        assert consumer.health().membership is None


async def _idle_and_stalled(sim: Simulation) -> None:
    sim.broker.create_topic("a", partitions=1)
    async with sim.client() as client, client.consumer(stall_timeout_ms=20_000) as consumer:
        consumer.assign({A0: 0})
        with anyio.move_on_after(300) as idle:
            await anext(consumer)
        assert idle.cancelled_caught
        began = sim.now()
        sim.network.block(1)
        sim.network.cut(1)
        with pytest.raises(
            ConsumerStalled, match=r"^no records for 20 s \(stall_timeout_ms\): a-0: .* has not answered for 20 s"
        ):
            await anext(consumer)
        assert sim.now() - began == pytest.approx(20)


def test_a_stall_is_an_error_for_who_wants_that_and_reading_everything_is_none() -> None:
    simulate(_idle_and_stalled, seed=1, nodes=1)


async def _a_first_fetch_without_an_answer(sim: Simulation) -> None:
    sim.broker.create_topic("a", partitions=1)
    async with sim.client() as client, client.consumer(stall_timeout_ms=20_000) as consumer:
        async with sim.broker.hold(ApiKey.FETCH):
            consumer.assign({A0: 0})
            began = sim.now()
            with pytest.raises(
                ConsumerStalled, match=r"20 s \(stall_timeout_ms\): a-0: .* has not answered any fetch$"
            ):
                await anext(consumer)
            assert sim.now() - began == pytest.approx(20)
            assert consumer.health().partitions[A0].answered is None
        with anyio.move_on_after(60):
            await anext(consumer)
        assert consumer.health().why_idle == "it has read everything there is"


def test_a_broker_that_never_answers_the_first_fetch_is_a_stall() -> None:
    simulate(_a_first_fetch_without_an_answer, seed=1, nodes=1)


class _Stalls(Observer):
    """Keeps the stalls that are reported."""

    def __init__(self) -> None:
        self.events: list[PartitionStalled] = []

    def partition_stalled(self, event: PartitionStalled) -> None:
        self.events.append(event)


async def _a_user_who_takes_long(sim: Simulation) -> None:
    """Meanwhile the broker of both partitions gets no fetch, since records of one are unread."""
    sim.broker.create_topic("a", partitions=2)
    stalls = _Stalls()
    async with sim.client(observers=[stalls], stall_report_ms=10_000) as client, client.producer() as producer:
        await producer.send_many("a", [b"1"] * 10, partition=0)
        async with client.consumer() as consumer:
            consumer.assign({A0: 0, A1: 0})
            await anext(consumer)
            await anyio.sleep(60)
            health = consumer.health()
            assert (health.partitions[A0].unread, health.partitions[A1].waits_for) == (True, None)
    assert stalls.events == []


def test_a_broker_that_gets_no_fetch_while_the_user_takes_long_is_not_silent() -> None:
    simulate(_a_user_who_takes_long, seed=1, nodes=1)


async def _paused_for_long(sim: Simulation) -> None:
    sim.broker.create_topic("a", partitions=1)
    async with sim.client() as client, client.consumer() as consumer:
        consumer.assign({A0: 0})
        with anyio.move_on_after(10):
            await anext(consumer)
        consumer.pause(A0)
        await anyio.sleep(60)
        consumer.resume(A0)
        assert (consumer.health().why_idle, consumer.health().stalled) == ("it has read everything there is", False)


def test_a_broker_is_not_silent_when_a_partition_is_resumed_after_long() -> None:
    simulate(_paused_for_long, seed=1, nodes=1)


async def _behind_an_open_transaction(sim: Simulation) -> None:
    sim.broker.create_topic("a", partitions=1)
    stalls = _Stalls()
    async with (
        sim.client(observers=[stalls], stall_report_ms=10_000) as client,
        client.producer(transactional_id="t") as producer,
        client.consumer(isolation_level="read_committed") as consumer,
    ):
        async with producer.transaction():
            await producer.send("a", b"1")
            consumer.assign({A0: 0})
            with anyio.move_on_after(40):
                await anext(consumer)
            health = consumer.health()
            assert (health.stalled, health.lag, health.partitions[A0].high_watermark) == (False, 0, 1)
            assert health.why_idle == "a-0: it has read everything up to a transaction that is open"
        await anext(consumer)
    assert stalls.events == []


def test_a_reader_of_committed_records_is_well_behind_an_open_transaction() -> None:
    simulate(_behind_an_open_transaction, seed=1, nodes=1)
