"""Logs that lose their end, while ``Client.process`` has records of it in hand or later: nothing else is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from aiokafkawire import Client
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio

NEW = [b"new 1", b"new 2", b"new 3"]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    """A cluster of three brokers, two of which have not got all records of the topic."""
    async with Broker(3, port=None) as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
async def kafka(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap, connector=broker.connect, metadata_max_age_ms=200) as kafka:
        await write(kafka, b"kept")
        for follower in (2, 3):
            broker.shrink_isr("t", 0, follower)
        await write(kafka, b"lost 1", b"lost 2")
        yield kafka


async def write(kafka: Client, *values: bytes) -> None:
    async with kafka.producer(enable_idempotence=False) as producer:
        for value in values:
            await producer.send("t", value, key=value)


class Handler:
    """Hangs at the first record when it first comes, and notes the others."""

    def __init__(self) -> None:
        self.done: list[bytes] = []
        self.calls = 0
        self.has_handled_the_lost, self.has_handled_all = anyio.Event(), anyio.Event()

    async def __call__(self, record: Any) -> None:
        if record.value == b"kept":
            self.calls += 1
            if self.calls == 1:
                await anyio.sleep_forever()
        self.done.append(record.value)
        if {b"lost 1", b"lost 2"} <= set(self.done):
            self.has_handled_the_lost.set()
        if {b"kept", *NEW} <= set(self.done):
            self.has_handled_all.set()


OPTIONS: dict[str, Any] = {"group_id": "g", "fetch_max_wait_ms": 20, "commit_interval_ms": 20, "drain_timeout": 0}


async def test_a_record_before_the_end_that_is_lost_is_handled_again(broker: Broker, kafka: Client) -> None:
    handle = Handler()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: kafka.process("t", handle, stop=handle.has_handled_all, **OPTIONS))
            await handle.has_handled_the_lost.wait()
            broker.move_leader("t", 0, 2, unclean=True)
            await write(kafka, *NEW)
    assert sorted(handle.done) == [b"kept", b"lost 1", b"lost 2", *NEW]


async def test_new_records_are_handled_in_the_place_of_finished_ones(broker: Broker, kafka: Client) -> None:
    handle = Handler()
    with anyio.fail_after(30):
        first = await kafka.process("t", handle, stop=handle.has_handled_the_lost, **OPTIONS)
        assert first.in_hand == 1
        broker.move_leader("t", 0, 2, unclean=True)
        await write(kafka, *NEW)
        second = await kafka.process("t", handle, stop=handle.has_handled_all, **OPTIONS)
    assert (second.processed, second.skipped) == (4, 0)


async def test_a_commit_keeps_its_leader_epoch_while_the_record_after_it_is_not_finished(
    broker: Broker, kafka: Client
) -> None:
    """By the epoch the next owner finds that the log has lost records before the commit."""
    seen: set[bytes] = set()

    async def process_until(wanted: set[bytes]) -> None:
        stop = anyio.Event()

        async def handle(record: Any) -> None:
            seen.add(record.value)
            if wanted <= seen:
                stop.set()
            if record.value == b"lost 2":
                await anyio.sleep_forever()

        seen.clear()
        await kafka.process("t", handle, stop=stop, **OPTIONS)

    with anyio.fail_after(20):
        await process_until({b"kept", b"lost 1", b"lost 2"})
        await process_until({b"lost 2"})
        broker.move_leader("t", 0, 2, unclean=True)
        await write(kafka, *NEW)
        await process_until({*NEW})
