"""User code that blocks the event loop, for longer than the session lasts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.patience import SOON

from aiokafkawire import Client, Consumer, TopicPartition
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

SESSION = {"session_timeout_ms": 3_000, "heartbeat_interval_ms": 250, "max_poll_interval_ms": 60_000}


def heartbeats(kafka: BackgroundBroker) -> int:
    return kafka.do(lambda broker: len(broker.requests.of(ApiKey.HEARTBEAT)))


def block(kafka: BackgroundBroker, beats: int) -> None:
    """Hold up the loop until the broker has had so many heartbeats more, from whomever."""
    enough = heartbeats(kafka) + beats
    give_up = time.monotonic() + SOON
    while heartbeats(kafka) < enough and time.monotonic() < give_up:
        threading.Event().wait(0.01)


@asynccontextmanager
async def member(kafka: BackgroundBroker, **options: Any) -> AsyncIterator[Consumer[bytes, bytes]]:
    """One that has read the first of two records."""
    kafka.create_topic("a")
    async with Client(kafka.bootstrap) as client, client.producer() as producer:
        await producer.send_many("a", [b"1", b"2"])
        consumer = client.consumer("a", group_id="g", auto_offset_reset="earliest", **{**SESSION, **options})
        async with consumer:
            await anext(consumer)
            yield consumer


@pytest.mark.slow
async def test_a_thread_keeps_the_membership_and_the_log_says_what_blocks(caplog: pytest.LogCaptureFixture) -> None:
    with BackgroundBroker(group_min_session_timeout_ms=100) as kafka:
        async with member(kafka, heartbeat_thread=True) as consumer:
            before = consumer.health().membership
            # A thread that sends every 375 ms at the earliest has lived through a session by then.
            block(kafka, beats=10)
            await anext(consumer)
            await consumer.commit()
            after = consumer.health().membership
            assert before is not None
            assert after is not None
            assert (after.group, after.rebalances) == (before.group, 1)
    blocked = [one.getMessage() for one in caplog.records if "has been blocked" in one.getMessage()]
    assert any("in block" in told for told in blocked)
    ours = [one for one in caplog.records if one.name.startswith("aiokafkawire")]
    assert {one.levelno for one in ours} <= {logging.WARNING, logging.INFO}


@pytest.mark.slow
async def test_a_thread_keeps_a_member_of_a_consumer_group_and_its_partitions() -> None:
    sessions: dict[str, Any] = {"group_consumer_session_timeout_ms": 3_000, "group_consumer_heartbeat_interval_ms": 100}
    lost: list[str] = []

    async def on_lost(_: object) -> None:
        lost.append("lost")

    with BackgroundBroker(**sessions) as kafka:
        kafka.create_topic("a")
        async with Client(kafka.bootstrap) as client, client.producer() as producer:
            options: dict[str, Any] = {"group_protocol": "consumer", "auto_offset_reset": "earliest"}
            async with client.consumer(group_id="g", heartbeat_thread=True, **options) as consumer:
                consumer.subscribe("a", on_revoked=on_lost, on_lost=on_lost)
                await producer.send_many("a", [b"1", b"2"])
                await anext(consumer)
                before = consumer.health().membership
                time.sleep(4)  # noqa: ASYNC251  # more than a session
                await anext(consumer)
                await consumer.commit()
                after = consumer.health().membership
                assert before is not None
                assert after is not None
                assert (after.group, after.rebalances, lost) == (before.group, before.rebalances, [])
                assert list(consumer.assignment) == [TopicPartition("a", 0)]


async def test_the_threads_end_with_the_consumer() -> None:
    def threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("aiokafkawire-")]

    with BackgroundBroker(group_min_session_timeout_ms=100) as kafka:
        async with member(kafka, heartbeat_thread=True):
            assert "aiokafkawire-heartbeat" in [thread.name for thread in threads()]
    for thread in threads():
        thread.join(SOON)
    assert threads() == []
