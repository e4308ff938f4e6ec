"""Handlers of batches that use up their lists: all records are finished, tried again, or written elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.from_thread
import pytest

from aiokafkawire import Client, Retry, TopicPartition
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio

VALUES = [b"%d" % number for number in range(4)]


@pytest.fixture
async def kafka() -> AsyncIterator[Client]:
    """A client of a broker with a topic of one batch."""
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as kafka:
        broker.create_topic("t")
        broker.create_topic("t.dead")
        async with kafka.producer() as producer:
            await producer.send_many("t", VALUES)
        with anyio.fail_after(30):
            yield kafka


async def process(kafka: Client, handle: Any, **options: Any) -> Any:
    return await kafka.process("t", handle, group_id="g", max_batch=len(VALUES), ordering="partition", **options)


async def committed(kafka: Client) -> int:
    async with kafka.consumer(group_id="g") as consumer:
        (offset,) = (await consumer.committed([TopicPartition("t", 0)])).values()
    return 0 if offset is None else offset.offset


@pytest.mark.parametrize("plain", [False, True])
async def test_all_records_of_a_batch_are_finished(kafka: Client, plain: bool) -> None:
    stop = anyio.Event()

    def handle_plainly(records: list[Any]) -> None:
        anyio.from_thread.run_sync(stop.set)
        while records:
            records.pop()

    async def handle(records: list[Any]) -> None:
        stop.set()
        records.clear()

    summary = await process(kafka, handle_plainly if plain else handle, stop=stop)
    assert (summary.processed, summary.in_hand) == (len(VALUES), 0)
    assert await committed(kafka) == len(VALUES)


async def test_all_records_of_a_batch_are_tried_again_and_become_dead_letters(kafka: Client) -> None:
    stop, given = anyio.Event(), list[list[bytes]]()

    async def handle(records: list[Any]) -> None:
        given.append([record.value for record in records])
        records.clear()
        raise ValueError

    def told(summary: Any) -> None:
        if summary.dead_lettered:
            stop.set()

    options: dict[str, Any] = {"retry": Retry(attempts=2, backoff_ms=1), "dead_letter_topic": "t.dead"}
    summary = await process(kafka, handle, stop=stop, on_progress=told, **options)
    assert given == [VALUES, VALUES]
    assert summary.dead_lettered == len(VALUES)
    assert [record.value async for record in kafka.read_records("t.dead")] == VALUES
    assert await committed(kafka) == len(VALUES)
