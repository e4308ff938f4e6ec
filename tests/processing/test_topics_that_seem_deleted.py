"""Records of a topic that the brokers do not know for a moment: what is finished of them is committed later."""

from __future__ import annotations

from typing import Any

import anyio

from aiokafkawire import TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.simulation import Simulation, simulate

WHERE = TopicPartition("a", 0)


def test_what_was_not_committed_since_the_topic_seemed_deleted_is_committed_later() -> None:
    found: list[int] = []

    async def main(sim: Simulation) -> None:
        broker = sim.broker
        broker.create_topic("a")
        stop, handled = anyio.Event(), anyio.Event()

        async def handle(record: Any) -> None:
            handled.set()

        async with sim.client("one") as kafka, anyio.create_task_group() as tasks:
            metadata = kafka._cluster.metadata

            async def process() -> None:
                await kafka.process("a", handle, group_id="g", group_protocol="consumer", stop=stop)

            tasks.start_soon(process)
            await anyio.sleep(10)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            commit = broker.on(ApiKey.OFFSET_COMMIT, answer=unknown, times=None)
            async with kafka.producer() as producer:
                await producer.send("a", b"x")
            await handled.wait()
            young = broker.on(ApiKey.METADATA, answer=unknown, times=None)
            await metadata.refresh(metadata.snapshot, kafka._cluster.deadline(5))
            await anyio.sleep(20)
            assert commit.count
            commit.remove()
            young.remove()
            await anyio.sleep(20)
            found.append((await kafka.admin.list_consumer_group_offsets("g"))[WHERE].offset)
            stop.set()

    simulate(main)
    assert found == [1]
