"""Consumers of topics that do not exist: what they log, what they say of themselves, and when they fail."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from aiokafkawire import Client, Consumer, ConsumerStalled, TopicNotReady, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.group.membership import GroupState
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation, simulate

MISSING = "topic 'oders' does not exist in the cluster"
PATIENT: dict[str, Any] = {"max_poll_interval_ms": 7_200_000}
"""For a test that only looks at a member, and takes no records of it."""


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    ours = [one for one in caplog.records if one.levelno >= logging.WARNING and one.name.startswith("aiokafkawire.")]
    return [f"{one.name}: {one.getMessage()}" for one in ours if "testing" not in one.name]


async def _joined(consumer: Consumer[Any, Any]) -> None:
    while (member := consumer.health().membership) is None or member.state is not GroupState.STABLE:
        assert await consumer.poll(timeout=0.1) == []


def run(main: Any, **options: Any) -> None:
    simulate(main, seed=1, nodes=3, auto_create_topics_enable=False, **options)


def test_a_member_of_a_topic_that_does_not_exist_warns_once_and_stalls(caplog: pytest.LogCaptureFixture) -> None:
    async def main(sim: Simulation) -> None:
        async with (
            sim.client() as kafka,
            kafka.consumer("oders", group_id="g", stall_timeout_ms=20_000, **PATIENT) as consumer,
        ):
            began = sim.now()
            with pytest.raises(ConsumerStalled, match=rf"^no records for 20 s \(stall_timeout_ms\): {MISSING}$"):
                await anext(consumer)
            assert sim.now() - began == pytest.approx(20, abs=1)
            health = consumer.health()
            assert (health.why_idle, health.stalled, health.missing_topics) == (MISSING, True, ("oders",))
            await anyio.sleep(600)

    run(main)
    (told,) = warnings(caplog)
    assert told.startswith(f"aiokafkawire.cluster: {MISSING} (UNKNOWN_TOPIC_OR_PARTITION): check the spelling, ")
    assert "allow_auto_create_topics" in told


def test_every_member_knows_it_and_reads_the_topic_soon_after_it_is_created(caplog: pytest.LogCaptureFixture) -> None:
    async def main(sim: Simulation) -> None:
        clients = [sim.client() for _ in range(2)]
        async with (
            clients[0] as one,
            clients[1] as other,
            one.consumer("oders", group_id="g", **PATIENT) as leads,
            other.consumer("oders", group_id="g", **PATIENT) as follows,
        ):
            await _joined(leads)
            await _joined(follows)
            for pause in (5, 400, 800):  # longer than an unused topic stays in the metadata
                await anyio.sleep(pause)
                assert leads.health().why_idle == follows.health().why_idle == MISSING
            sim.broker.create_topic("oders", partitions=2)
            await anyio.sleep(25)
            assert len(leads.assignment) == len(follows.assignment) == 1
            assert leads.health().missing_topics == follows.health().missing_topics == ()

    run(main)
    assert len(warnings(caplog)) == 2


def test_a_member_of_several_topics_reads_those_that_exist_and_names_the_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a", partitions=1)
        async with sim.client() as kafka, kafka.consumer("a", "oders", group_id="g") as consumer:
            await _joined(consumer)
            await anyio.sleep(30)
            assert consumer.assignment == (TopicPartition("a", 0),)
            assert consumer.health().why_idle == MISSING

    run(main)
    assert len(warnings(caplog)) == 1


def test_a_pattern_that_matches_nothing_is_no_stall_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as kafka, kafka.consumer(group_id="g", stall_timeout_ms=20_000, **PATIENT) as consumer:
            consumer.subscribe(pattern="oders-.*")
            with anyio.move_on_after(100) as idle:
                await anext(consumer)
            assert idle.cancelled_caught
            health = consumer.health()
            told = "no topic matches the pattern 'oders-.*' of its subscription"
            assert (health.why_idle, health.stalled, health.missing_topics) == (told, False, ())
            sim.broker.create_topic("oders-1", partitions=1)
            await anyio.sleep(310)
            assert consumer.assignment == (TopicPartition("oders-1", 0),)
            assert consumer.health().why_idle == "it has read everything there is"

    run(main)
    assert warnings(caplog) == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_reads_a_new_topic_as_soon_as_its_partitions_have_leaders(protocol: Any) -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("orders", partitions=1)
        async with sim.client() as writer, writer.producer() as producer:
            await producer.send("orders", b"1")
        sim.broker.on(ApiKey.METADATA, answer=ErrorCode.LEADER_NOT_AVAILABLE, times=3)
        async with (
            sim.client() as kafka,
            kafka.consumer("orders", group_id="g", group_protocol=protocol, auto_offset_reset="earliest") as consumer,
        ):
            began = sim.now()
            assert (await anext(consumer)).value == b"1"
            assert sim.now() - began < 20

    run(main)


def test_a_consumer_without_a_group_waits_for_a_topic_but_not_for_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as kafka:
            began = sim.now()
            told = (
                r"^topic 'oders' does not exist: .* for 10 s \(topic_metadata_propagation_max_ms\); .*allow_auto_create"
            )
            with pytest.raises(TopicNotReady, match=told):
                async with kafka.consumer("oders"):
                    raise AssertionError("opened")
            assert 10 <= sim.now() - began < 13

    run(main)
    assert [one.partition(" (")[0] for one in warnings(caplog)] == [f"aiokafkawire.cluster: {MISSING}"]


def test_a_topic_that_is_deleted_under_a_consumer_of_all_of_it_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("oders", partitions=1)
        async with sim.client() as kafka, kafka.consumer("oders", stall_timeout_ms=5_000) as consumer:
            sim.broker.delete_topic("oders")
            with pytest.raises(ConsumerStalled, match=MISSING):
                await anext(consumer)
            assert consumer.health().missing_topics == ("oders",)

    run(main)
    assert any(MISSING in one for one in warnings(caplog))


def test_partitions_of_a_topic_that_does_not_exist_fail_before_a_minute_is_over() -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as kafka, kafka.consumer() as consumer:
            consumer.assign([TopicPartition("oders", 0)])
            began = sim.now()
            with pytest.raises(TopicNotReady, match=r"^topic 'oders' does not exist: .*allow_auto_create_topics"):
                await anext(consumer)
            assert 10 <= sim.now() - began < 13

    run(main)


@pytest.mark.parametrize("how", ["send", "send_many", "enqueue"])
def test_a_producer_waits_for_a_topic_but_not_for_a_minute(how: str) -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as kafka, kafka.producer() as producer:
            began = sim.now()
            with pytest.raises(TopicNotReady, match=r"^topic 'oders' does not exist: .*allow_auto_create_topics"):
                await getattr(producer, how)("oders", [b"1"] if how == "send_many" else b"1")
            assert 10 <= sim.now() - began < 13
            why = r"^topic 'oders' does not exist in the cluster: .*allow_auto_create_topics"
            with pytest.raises(TopicNotReady, match=why):
                producer.send_nowait("oders", b"1")

    run(main)


def test_a_topic_that_is_created_while_a_producer_waits_gets_its_record() -> None:
    async def main(sim: Simulation) -> None:
        async with sim.client() as kafka, kafka.producer() as producer, anyio.create_task_group() as tasks:
            tasks.start_soon(_create, sim, kafka)
            assert (await producer.send("oders", b"1")).offset == 0

    async def _create(sim: Simulation, kafka: Client) -> None:
        await anyio.sleep(8)
        await kafka.admin.create_topics({"oders": 1})

    run(main)


def test_a_consumer_without_topics_says_once_that_it_waits(caplog: pytest.LogCaptureFixture) -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("orders")
        async with sim.client() as kafka, kafka.consumer() as consumer:
            for _ in range(2):
                assert await consumer.poll(timeout=1) == []
            consumer.assign([TopicPartition("orders", 0)])
            assert await consumer.poll(timeout=1) == []
        async with sim.client() as kafka, kafka.consumer("orders", group_id="g") as consumer:
            assert await consumer.poll(timeout=1) == []

    run(main)
    told = "a consumer without topics waits for records: name some in consumer(), or subscribe() or assign()"
    assert warnings(caplog) == [f"aiokafkawire.consumer: {told}"]
