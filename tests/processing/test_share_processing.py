"""Members of a share group whose handlers are slow: they keep their place, and leave other records to others."""

from __future__ import annotations

from typing import Final

import anyio

from aiokafkawire import ShareRecord
from aiokafkawire.observe import Observer, PartitionsLost
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.simulation import Simulation, simulate

COUNT: Final = 600
QUICK: Final = 300
"""The records that the handler handles at once, before it hangs."""
CONCURRENCY: Final = 4
POLL_INTERVAL_MS: Final = 10_000


class _Losses(Observer):
    def __init__(self) -> None:
        self.count = 0

    def partitions_lost(self, event: PartitionsLost) -> None:
        self.count += 1


def test_a_member_whose_handlers_hang_leaves_the_other_records_to_others() -> None:
    handled, read = list[int](), list[int]()

    async def handle(record: ShareRecord[bytes, bytes]) -> None:
        if len(handled) >= QUICK:
            await anyio.sleep_forever()
        handled.append(record.offset)

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        configs = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "1000"}
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, "g", configs)
        losses = _Losses()
        async with (
            sim.client("one", observers=[losses]) as one,
            sim.client("two") as two,
            anyio.create_task_group() as tasks,
        ):
            async with one.producer(linger_ms=0) as producer:
                for _ in range(COUNT):
                    await producer.send("a", b"x")  # in a batch of its own

            async def process() -> None:
                await one.process(
                    "a",
                    handle,
                    group_id="g",
                    share=True,
                    concurrency=CONCURRENCY,
                    drain_timeout=0,
                    max_poll_interval_ms=POLL_INTERVAL_MS,
                )

            tasks.start_soon(process)
            await anyio.sleep(3 * POLL_INTERVAL_MS / 1000)
            assert len(handled) == QUICK
            async with two.share_consumer("a", group_id="g") as consumer:
                while len(read) < COUNT - QUICK - 2 * CONCURRENCY:
                    with anyio.fail_after(30):
                        for record in await consumer.poll():
                            read.append(record.offset)
                            consumer.acknowledge(record)
            assert not losses.count  # though it did not poll for so long
            tasks.cancel_scope.cancel()

    simulate(main)
    assert not set(handled) & set(read)


def test_a_member_whose_connections_are_idle_keeps_its_records() -> None:
    handled = list[int]()

    async def handle(record: ShareRecord[bytes, bytes]) -> None:
        await anyio.sleep(6)
        handled.append(record.offset)

    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("a")
        configs = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "15000"}
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, "g", configs)
        stop = anyio.Event()
        async with (
            sim.client("one", connections_max_idle_ms=1000) as one,
            sim.client("two") as two,
            anyio.create_task_group() as tasks,
        ):
            async with one.producer() as producer:
                await producer.send("a", b"x")

            async def process() -> None:
                await one.process("a", handle, group_id="g", share=True, stop=stop, max_in_hand=1)

            tasks.start_soon(process)
            await anyio.sleep(3)
            async with two.share_consumer("a", group_id="g") as other:
                assert await other.poll(timeout=20) == []
            stop.set()

    simulate(main)
    assert handled == [0]
