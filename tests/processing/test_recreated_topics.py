"""Topics that are deleted and created again while ``Client.process`` has records of them in hand."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokafkawire import TopicPartition
from aiokafkawire.testing.simulation import Simulation, simulate

WHERE = TopicPartition("a", 0)


@pytest.mark.parametrize("reset", ["earliest", "latest"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_is_finished_of_the_old_topic_is_not_committed_for_the_new_one(protocol: Any, reset: Any) -> None:
    """The next owner would begin there, and skip as many records of the new topic."""
    found: list[int] = []
    handled: list[bytes] = []

    async def main(sim: Simulation) -> None:
        broker = sim.broker
        broker.create_topic("a")
        stop, has_slow, may_end = anyio.Event(), anyio.Event(), anyio.Event()

        async def handle(record: Any) -> None:
            if record.value == b"slow":
                has_slow.set()
                await may_end.wait()
            handled.append(record.value)

        async with sim.client("one") as kafka, kafka.producer() as producer, anyio.create_task_group() as tasks:

            async def process() -> None:
                options: Any = {"group_id": "g", "group_protocol": protocol, "auto_offset_reset": reset}
                await kafka.process("a", handle, stop=stop, **options)

            async def committed() -> int:
                return (await kafka.admin.list_consumer_group_offsets("g"))[WHERE].offset

            tasks.start_soon(process)
            await anyio.sleep(10)
            await producer.send("a", b"old")
            await producer.send("a", b"slow", key=b"k")
            await has_slow.wait()
            await anyio.sleep(10)
            broker.delete_topic("a")
            broker.create_topic("a")
            metadata = kafka._cluster.metadata
            await metadata.refresh(metadata.snapshot, kafka._cluster.deadline(5))
            await anyio.sleep(10)
            may_end.set()
            await anyio.sleep(20)
            found.append(await committed())
            for number in range(3):
                await producer.send("a", b"%d" % number, key=b"k")
            await anyio.sleep(20)
            found.append(await committed())
            stop.set()

    simulate(main)
    # A handler goes on while the coordinator takes the partition back, and is cancelled where it is lost.
    assert [value for value in handled if value != b"slow"] == [b"old", b"0", b"1", b"2"]
    assert handled.count(b"slow") == (protocol == "consumer")
    assert found == [0, 3]
