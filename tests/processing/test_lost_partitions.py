"""What a member of a group still has of partitions that it has lost: it counts no more."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokafkawire import ConsumerRecord, TopicPartition
from aiokafkawire.consumer.consumer import Consumer
from aiokafkawire.records._pure_record import undeserializable
from aiokafkawire.testing.simulation import Simulation, simulate


def test_a_record_that_cannot_be_deserialized_is_forgotten_with_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error waits until the records before it are taken, and the partition may be lost meanwhile."""
    made: list[Consumer[Any, Any]] = []
    opened = Consumer._open

    def remember(consumer: Consumer[Any, Any], *arguments: Any) -> None:
        made.append(consumer)
        opened(consumer, *arguments)

    async def main(sim: Simulation) -> tuple[list[bytes | None], bool]:
        for name in ("a", "lost", "dead"):
            sim.broker.create_topic(name)
        stop = anyio.Event()

        async def handle(record: Any) -> None: ...

        async with sim.client("one") as kafka:

            async def process() -> None:
                await kafka.process("a", handle, group_id="g", stop=stop, dead_letter_topic="dead")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process)
                await anyio.sleep(10)
                made[0]._iteration.report(undeserializable("value", ConsumerRecord("lost", 0, 7, raw_value=b"x")))
                await anyio.sleep(10)
                stop.set()
            committed = await kafka.admin.list_consumer_group_offsets("g")
            return [record.value async for record in kafka.read_records("dead")], TopicPartition("lost", 0) in committed

    monkeypatch.setattr(Consumer, "_open", remember)
    assert simulate(main).value == ([], False)
