"""Deserializers that need longer than the locks of records hold, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from support.share_simulation import A0, LOCK

from aiokafkawire import DeserializationError, ShareConsumer, ShareRecord
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.simulation import Simulation, simulate


class Waiting:
    """Deserializes numbers; for an ``x`` it waits for longer than locks hold, and fails."""

    def deserialize(self, data: bytes, _: object) -> Any:
        return self._fail() if data == b"x" else int(data)

    async def _fail(self) -> int:
        await anyio.sleep(3 * LOCK)
        raise ValueError("no schema")


def run(body: Callable[[ShareConsumer[bytes, int], ShareRecord[bytes, int]], Awaitable[None]]) -> None:
    """Run a member that has a record, while its deserializer will wait with the next one of the same partition."""

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        configs = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(round(LOCK * 1000))}
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, "g", configs)
        async with sim.client() as client, client.producer(linger_ms=0) as producer:
            await producer.send("a", b"1")
            async with client.share_consumer("a", group_id="g", value_deserializer=Waiting()) as consumer:
                (record,) = await consumer.poll(1)
                await producer.send("a", b"x")
                await body(consumer, record)

    simulate(main)


def test_locks_are_renewed_and_records_acknowledged_while_a_deserializer_waits() -> None:
    async def body(consumer: ShareConsumer[bytes, int], record: ShareRecord[bytes, int]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail_to_poll, consumer)
            async with record:
                await anyio.sleep(2.5 * LOCK)
            assert await consumer.commit(timeout=0.2) == {A0: 1}

    run(body)


def test_the_release_of_a_record_that_was_read_too_late_spoils_no_acknowledgement() -> None:
    async def body(consumer: ShareConsumer[bytes, int], record: ShareRecord[bytes, int]) -> None:
        async with record:
            await fail_to_poll(consumer)
        assert await consumer.commit() == {A0: 1}

    run(body)


def test_closing_sends_acknowledgements_while_a_deserializer_waits() -> None:
    async def body(consumer: ShareConsumer[bytes, int], record: ShareRecord[bytes, int]) -> None:
        assert await consumer.poll(1, timeout=0.1) == []
        consumer.acknowledge(record)
        await consumer.close(timeout=LOCK)
        assert consumer._fetcher.queue.results.take() == {A0: 1}

    run(body)


async def fail_to_poll(consumer: ShareConsumer[bytes, int]) -> None:
    with pytest.raises(DeserializationError):
        await consumer.poll(1)
