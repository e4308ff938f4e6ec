"""A group begins at the end of a log, and its next member goes on there, whatever was written between them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import anyio

from aiokafkawire import Client, OutgoingRecord, TopicPartition
from aiokafkawire.testing.simulation import Simulation, simulate


def test_a_record_that_comes_between_two_calls_is_handled_although_a_new_group_begins_at_the_end() -> None:
    found: list[bytes | None] = []

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        async with sim.client("one") as kafka, kafka.producer() as producer:
            await producer.send("a", b"before the group")
            handled = anyio.Event()

            async def handle(record: Any) -> None:
                found.append(record.value)
                handled.set()

            async def process(stop: anyio.Event) -> None:
                await kafka.process("a", handle, group_id="g", auto_offset_reset="latest", stop=stop)

            first = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process, first)
                await anyio.sleep(10)
                first.set()
            await producer.send("a", b"between the calls")
            second = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process, second)
                with anyio.move_on_after(60):
                    await handled.wait()
                second.set()

    simulate(main)
    assert found == [b"between the calls"]


def test_a_transform_goes_on_where_the_one_before_has_begun() -> None:
    found: list[bytes | None] = []

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a", partitions=2)
        sim.broker.create_topic("b")
        async with sim.client("one") as kafka, kafka.producer() as producer:
            for partition in range(2):
                await producer.send("a", b"before the group", partition=partition)

            def process(records: list[Any]) -> list[OutgoingRecord]:
                return [OutgoingRecord("b", record.value) for record in records]

            async def transform(stop: anyio.Event) -> None:
                await kafka.transform(
                    "a", process, group_id="g", transactional_id="t", auto_offset_reset="latest", stop=stop
                )

            for number in range(2):
                stop = anyio.Event()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(transform, stop)
                    await anyio.sleep(20)
                    stop.set()
                await producer.send("a", b"after %d" % number, partition=number)
            stop = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(transform, stop)
                await anyio.sleep(20)
                stop.set()
            found.extend([record.value async for record in kafka.read_records("b")])

    simulate(main)
    assert found == [b"after 0", b"after 1"]


async def leave_an_old_commit(kafka: Client) -> None:
    """Let the group have a commit in a topic, whose records there were deleted since."""
    async with kafka.producer() as producer:
        for _ in range(3):
            await producer.send("a", b"deleted")
    await kafka.admin.alter_consumer_group_offsets("g", {TopicPartition("a", 0): 1})
    await kafka.admin.delete_records({TopicPartition("a", 0): 2})


async def for_a_while(run: Callable[[anyio.Event], Coroutine[Any, Any, None]]) -> None:
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, stop)
        await anyio.sleep(20)
        stop.set()


def test_a_group_whose_commit_is_out_of_range_goes_on_where_it_has_begun_anew() -> None:
    found: list[bytes | None] = []

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        async with sim.client("one") as kafka, kafka.producer() as producer:
            await leave_an_old_commit(kafka)

            async def handle(record: Any) -> None:
                found.append(record.value)

            async def process(stop: anyio.Event) -> None:
                await kafka.process("a", handle, group_id="g", auto_offset_reset="latest", stop=stop)

            await for_a_while(process)
            await producer.send("a", b"between the calls")
            await for_a_while(process)

    simulate(main)
    assert found == [b"between the calls"]


def test_a_transform_whose_commit_is_out_of_range_goes_on_where_it_has_begun_anew() -> None:
    found: list[bytes | None] = []

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        sim.broker.create_topic("b")
        async with sim.client("one") as kafka, kafka.producer() as producer:
            await leave_an_old_commit(kafka)

            def process(records: list[Any]) -> list[OutgoingRecord]:
                return [OutgoingRecord("b", record.value) for record in records]

            async def transform(stop: anyio.Event) -> None:
                await kafka.transform(
                    "a", process, group_id="g", transactional_id="t", auto_offset_reset="latest", stop=stop
                )

            await for_a_while(transform)
            await producer.send("a", b"between the calls")
            await for_a_while(transform)
            found.extend([record.value async for record in kafka.read_records("b")])

    simulate(main)
    assert found == [b"between the calls"]
