"""A topic that does not exist, as producers, members of groups, and consumers without a group meet it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from contract.conftest import Where
from support.log_watch import watched_log
from support.patience import PATIENCE

from aiokafkawire import Client, ConsumerStalled, TopicNotReady, TopicPartition

pytestmark = pytest.mark.anyio

NO_PATIENCE: dict[str, Any] = {"topic_metadata_propagation_max_ms": 500}
PATIENT: dict[str, Any] = {"topic_metadata_propagation_max_ms": 30_000}
ADVICE = "check the spelling, create the topic, or set allow_auto_create_topics=True"


async def test_a_producer_says_that_the_topic_does_not_exist_and_what_to_do(
    cluster: Where, new_name: Callable[[], str]
) -> None:
    name = new_name()
    async with cluster.client(**NO_PATIENCE) as kafka, kafka.producer() as producer:
        told = (
            rf"^topic '{name}' does not exist: the cluster answered UNKNOWN_TOPIC_OR_PARTITION for 0\.5 s .*{ADVICE}$"
        )
        with anyio.fail_after(PATIENCE), pytest.raises(TopicNotReady, match=told):
            await producer.send(name, b"1")
        assert name not in await kafka.admin.list_topics()


async def test_a_consumer_of_a_whole_topic_says_so_too(cluster: Where, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with cluster.client(**NO_PATIENCE) as kafka:
        with (
            anyio.fail_after(PATIENCE),
            pytest.raises(TopicNotReady, match=rf"^topic '{name}' does not exist: .*{ADVICE}$"),
        ):
            async with kafka.consumer(name):
                raise AssertionError("opened")


@pytest.mark.slow
async def test_a_member_of_a_misspelt_topic_warns_names_it_and_stalls(
    cluster: Where, new_name: Callable[[], str]
) -> None:
    name = new_name()
    options: dict[str, Any] = {"group_id": f"group-of-{name}", "stall_timeout_ms": 2_000}
    with watched_log() as log:
        async with cluster.client() as kafka, kafka.consumer(name, **options) as consumer:
            told = rf"\(stall_timeout_ms\): topic '{name}' does not exist in the cluster"
            with anyio.fail_after(PATIENCE), pytest.raises(ConsumerStalled, match=told):
                await anext(consumer)
            health = consumer.health()
            assert (health.missing_topics, health.stalled) == ((name,), True)
            assert (health.why_idle or "").startswith(f"topic '{name}' does not exist in the cluster")
            await log.until(lambda lines: any("WARNING cluster: " in line for line in lines))
    assert [line for line in log.of("cluster") if "coordinator" not in line] == [
        f"INFO cluster: topic '{name}' does not exist in the cluster; requesting metadata again",
        f"WARNING cluster: topic '{name}' does not exist in the cluster (UNKNOWN_TOPIC_OR_PARTITION): {ADVICE}",
    ]


@pytest.mark.slow
async def test_a_member_reads_the_topic_soon_after_it_is_created(
    cluster: Where, kafka: Client, new_name: Callable[[], str]
) -> None:
    name = new_name()
    options: dict[str, Any] = {"group_id": f"group-of-{name}", "auto_offset_reset": "earliest"}
    async with cluster.client() as reading, reading.consumer(name, **options) as consumer:
        with anyio.fail_after(PATIENCE):
            while consumer.health().missing_topics != (name,):
                assert await consumer.poll(timeout=0.02) == []
        await kafka.admin.create_topics({name: 1})
        async with kafka.producer() as producer:
            await producer.send(name, b"1")
        with anyio.fail_after(PATIENCE):  # ten seconds at most, and a rebalance
            assert (await anext(consumer)).value == b"1"
        assert consumer.assignment == (TopicPartition(name, 0),)
        assert consumer.health().missing_topics == ()


async def test_a_pattern_that_matches_nothing_is_said_to(kafka: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with kafka.consumer(group_id=f"group-of-{name}", stall_timeout_ms=2_000) as consumer:
        consumer.subscribe(pattern=f"{name}-.*")
        told = f"no topic matches the pattern '{name}-.*' of its subscription"
        with anyio.fail_after(PATIENCE):
            while consumer.health().why_idle != told:
                assert await consumer.poll(timeout=0.1) == []
        assert not consumer.health().stalled


async def test_a_topic_that_is_created_while_a_producer_waits_gets_its_record(
    cluster: Where, new_name: Callable[[], str]
) -> None:
    name = new_name()
    missing = f"INFO cluster: topic '{name}' does not exist in the cluster; requesting metadata again"
    with watched_log() as log:

        async def create_when_it_is_missing() -> None:
            await log.until(lambda lines: missing in lines)
            await kafka.admin.create_topics({name: 1})

        client = cluster.client(**PATIENT)
        async with client as kafka, kafka.producer() as producer, anyio.create_task_group() as tasks:
            tasks.start_soon(create_when_it_is_missing)
            assert (await producer.send(name, b"1")).offset == 0
