"""Listeners of rebalances that await a task that they have cancelled, and so raise its CancelledError."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.patience import SOON

from aiokafkawire import Client, TopicPartition
from aiokafkawire.aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafkawire.errors import KafkaError
from aiokafkawire.testing import Broker


async def cancel_and_await(_: object) -> None:
    worker = asyncio.create_task(asyncio.sleep(10_000))
    await asyncio.sleep(0)
    worker.cancel()
    await worker


def test_the_next_call_raises_its_error() -> None:
    async def main() -> None:
        async with Broker() as broker, Client(broker.bootstrap) as kafka:
            broker.create_topic("t")
            async with kafka.producer() as producer, kafka.consumer(group_id="g", auto_offset_reset="earliest") as one:
                await producer.send("t", b"0")
                one.subscribe("t", on_assigned=cancel_and_await)
                with pytest.raises(KafkaError, match="CancelledError, and nobody has cancelled it"):
                    await anext(one)
                assert (await anext(one)).offset == 0

    asyncio.run(asyncio.wait_for(main(), SOON))


def test_its_consumer_leaves_the_group_when_it_is_closed() -> None:
    async def main() -> None:
        async with Broker() as broker, Client(broker.bootstrap) as kafka:
            broker.create_topic("t")
            assigned = asyncio.Event()

            async def on_assigned(_: tuple[TopicPartition, ...]) -> None:
                assigned.set()

            async with kafka.consumer(group_id="g") as one:
                one.subscribe("t", on_assigned=on_assigned, on_revoked=cancel_and_await)
                await assigned.wait()
            assert (await kafka.admin.describe_groups("g"))["g"].members == ()

    asyncio.run(asyncio.wait_for(main(), SOON))


class Cancelling(ConsumerRebalanceListener):
    """Awaits a task that it has cancelled."""

    async def on_partitions_revoked(self, revoked: object) -> None:
        await cancel_and_await(revoked)

    async def on_partitions_assigned(self, assigned: object) -> None:
        await cancel_and_await(assigned)


def test_it_is_logged_for_aiokafkas_consumer(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Broker() as broker, Client(broker.bootstrap) as kafka:
            broker.create_topic("t")
            async with kafka.producer() as producer:
                await producer.send("t", b"0")
            reader: Any = AIOKafkaConsumer(
                bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest"
            )
            async with reader as one:
                one.subscribe(["t"], listener=Cancelling())
                assert (await one.getone()).offset == 0
            assert (await kafka.admin.describe_groups("g"))["g"].members == ()

    asyncio.run(asyncio.wait_for(main(), SOON))
    told = [record.getMessage() for record in caplog.records if record.name == "aiokafkawire.aiokafka"]
    assert len(told) == 3  # before and after the first assignment, and at the end
    assert all("nobody has cancelled it" in one for one in told)
