"""Which records ``stop()`` commits: those whose tasks have finished them, and no others."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from support.coroutine_functions import looks_async
from support.patience import SOON

from aiokafkawire.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing import Broker

T = TopicPartition("t", 0)


async def committed_after(work: Any, kind: Any = AIOKafkaConsumer) -> int | None:
    """Let ``work`` read from a topic of two records with a consumer, stop it, and return the group's offset."""
    async with Broker() as broker:
        broker.create_topic("t")
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for value in (b"0", b"1"):
                await producer.send_and_wait("t", value)
        settings: Any = {"bootstrap_servers": broker.bootstrap, "group_id": "g"}
        consumer = kind("t", auto_offset_reset="earliest", auto_commit_interval_ms=60_000, **settings)
        await consumer.start()
        try:
            left = await work(consumer)
        finally:
            await consumer.stop()
        if left is not None:
            left.cancel()
        async with AIOKafkaConsumer(**settings) as other:
            found: int | None = await other.committed(T)
            return found


async def same_task(consumer: Any) -> None:
    await asyncio.wait_for(consumer.getone(), 10)


async def task_of_its_own(consumer: Any) -> None:
    await asyncio.create_task(consumer.getone())


async def many(consumer: Any) -> None:
    found = await asyncio.wait_for(consumer.getmany(timeout_ms=10_000, max_records=1), 20)
    assert len(found[T]) == 1


async def finished_worker(consumer: Any) -> None:
    async def worker() -> None:
        await asyncio.wait_for(consumer.getone(), 10)

    await asyncio.create_task(worker())


@pytest.mark.parametrize("work", [same_task, task_of_its_own, many, finished_worker])
def test_a_record_is_committed_once_its_task_has_finished_it(work: Any) -> None:
    assert asyncio.run(committed_after(work)) == 1


async def running_worker(consumer: Any) -> Any:
    has_begun = asyncio.Event()

    async def worker() -> None:
        await asyncio.wait_for(consumer.getone(), 10)
        has_begun.set()
        await asyncio.sleep(1_000)

    task = asyncio.create_task(worker())
    await has_begun.wait()
    return task


async def failed_worker(consumer: Any) -> None:
    async def worker() -> None:
        await consumer.getone()
        raise ValueError

    task = asyncio.create_task(worker(), name="failed")
    await asyncio.wait([task])
    assert isinstance(task.exception(), ValueError)  # or the loop logs it when the task is collected, in any later test


async def cancelled_worker(consumer: Any) -> None:
    task = await running_worker(consumer)
    task.cancel()
    await asyncio.wait([task])


class Logging(AIOKafkaConsumer[Any, Any]):
    """A subclass, whose method may run in a task that wait_for() makes."""

    async def getone(self, *partitions: Any) -> Any:
        return await super().getone(*partitions)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", [AIOKafkaConsumer, Logging])
@pytest.mark.parametrize("work", [running_worker, failed_worker, cancelled_worker])
def test_a_record_that_its_task_has_not_finished_is_not(work: Any, kind: Any) -> None:
    assert asyncio.run(committed_after(work, kind)) == 0


async def failed_on_those_before_one_that_is_unreadable(consumer: Any) -> None:
    async def worker() -> None:
        found = await consumer.getmany(timeout_ms=10_000)
        assert [record.value for record in found[T]] == [0]
        raise ValueError

    task = asyncio.create_task(worker())
    await asyncio.wait([task])
    assert isinstance(task.exception(), ValueError)


def test_a_record_before_one_that_cannot_be_deserialized_is_not_committed_before_it_is_finished() -> None:
    kind = partial(AIOKafkaConsumer, value_deserializer={b"0": 0}.__getitem__)
    assert asyncio.run(committed_after(failed_on_those_before_one_that_is_unreadable, kind)) == 0


def test_a_commit_finishes_no_record_that_another_task_takes_meanwhile() -> None:
    async def main() -> int | None:
        async with Broker() as broker:
            broker.create_topic("t")
            settings: Any = {"bootstrap_servers": broker.bootstrap, "group_id": "g"}
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
                for value in (b"0", b"1"):
                    await producer.send_and_wait("t", value)
            reader: Any = AIOKafkaConsumer("t", auto_offset_reset="earliest", auto_commit_interval_ms=10**7, **settings)
            async with reader as consumer:
                await consumer.getone()
                async with broker.hold(ApiKey.OFFSET_COMMIT) as commit:
                    committing = asyncio.create_task(consumer.commit())
                    await commit.arrived(timeout=SOON)
                    working = await running_worker(consumer)
                    commit.release()
                    await committing
            working.cancel()
            async with AIOKafkaConsumer(**settings) as other:
                return await other.committed(T)

    assert asyncio.run(main()) == 1


def test_what_is_sent_right_after_the_start_is_read() -> None:
    async def main() -> list[bytes | None]:
        async with Broker() as broker:
            broker.create_topic("t")
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
            reader: Any = AIOKafkaConsumer("t", bootstrap_servers=broker.bootstrap, group_id="g")
            async with producer, reader as consumer:
                await producer.partitions_for("t")
                for number in range(20):
                    await producer.send_and_wait("t", b"%d" % number)
                return [(await asyncio.wait_for(consumer.getone(), 10)).value for _ in range(20)]

    assert asyncio.run(main()) == [b"%d" % number for number in range(20)]


def test_getone_looks_like_a_coroutine_function() -> None:
    assert looks_async(AIOKafkaConsumer.getone)
    assert looks_async(AIOKafkaConsumer.getmany)


def test_a_getone_between_calls_of_getmany_delays_no_commit() -> None:
    async def main() -> list[int | None]:
        async with Broker() as broker:
            broker.create_topic("t", 2)
            settings: Any = {"bootstrap_servers": broker.bootstrap, "group_id": "g"}
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
                for partition in (0, 1):
                    for _ in range(3):
                        await producer.send_and_wait("t", b"v", partition=partition)
            reader: Any = AIOKafkaConsumer("t", auto_offset_reset="earliest", auto_commit_interval_ms=10**7, **settings)
            async with reader as consumer, asyncio.timeout(SOON):
                oldest = TopicPartition("t", (await consumer.getone()).partition)
                await consumer.getone(TopicPartition("t", 1 - oldest.partition))
                assert list(await consumer.getmany(max_records=1)) == [oldest]
                await consumer.getone()
                while sum([await consumer.position(at) for at in consumer.assignment()]) < 6:
                    await consumer.getmany(timeout_ms=1_000)
            async with AIOKafkaConsumer(**settings) as other:
                return [await other.committed(TopicPartition("t", partition)) for partition in (0, 1)]

    assert asyncio.run(main()) == [3, 3]
