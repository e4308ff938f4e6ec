"""Batches that the caller has filled: their place in the order, their size, and the space that they wait for."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from support.patience import SOON

from aiokafkawire import BufferFull, Client, Producer, TopicPartition, UsageError
from aiokafkawire.errors import RecordTooLarge
from aiokafkawire.producer.batch import BatchResult
from aiokafkawire.records.batch import BatchBuilder
from aiokafkawire.testing import ApiKey, Broker, ErrorCode

pytestmark = pytest.mark.anyio

WHERE = TopicPartition("t", 0)


async def enqueue(producer: Producer[bytes, bytes], *values: bytes) -> BatchResult:
    builder = BatchBuilder(limit=100_000)
    for value in values:
        builder.append(7, None, value)
    return await producer._enqueue_batch(WHERE, builder, [7] * len(values))


async def test_a_batch_comes_after_the_records_before_it_and_before_those_after_it() -> None:
    with anyio.fail_after(SOON):
        async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as client:
            broker.create_topic("t")
            async with client.producer(linger_ms=10_000) as producer:
                await producer.enqueue("t", b"1", partition=0)
                result = await enqueue(producer, b"2", b"3")
                await producer.enqueue("t", b"4", partition=0)
                await producer.flush()
                assert (await result.wait(1)).offset == 2
                assert not result.has_append_time(1)
            assert [record.value async for record in client.read_records("t")] == [b"1", b"2", b"3", b"4"]


async def test_a_batch_that_a_broker_finds_too_large_is_split() -> None:
    with anyio.fail_after(SOON):
        async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as client:
            broker.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})
            broker.on(ApiKey.PRODUCE, answer=ErrorCode.MESSAGE_TOO_LARGE)
            async with client.producer() as producer:
                result = await enqueue(producer, b"1", b"2")
                assert (await result.wait(1)).offset == 1
                assert result.has_append_time(1)


async def test_a_batch_waits_for_space() -> None:
    with anyio.fail_after(SOON):
        async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as client:
            broker.create_topic("t")
            async with (
                client.producer(buffer_memory=1_500) as producer,
                anyio.create_task_group() as tasks,
                broker.hold(ApiKey.PRODUCE) as held,
            ):
                await enqueue(producer, b"v" * 1_000)
                await held.arrived()
                tasks.start_soon(enqueue, producer, b"w" * 1_000)
                while not producer._accumulator.blocked:
                    await anyio.lowlevel.checkpoint()
                assert producer.health().buffered < 1_500
                held.release()
            assert [record.value async for record in client.read_records("t")] == [b"v" * 1_000, b"w" * 1_000]


async def test_a_batch_without_space_or_place_is_refused() -> None:
    with anyio.fail_after(SOON):
        async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as client:
            broker.create_topic("t")
            async with client.producer() as patient, client.producer(buffer_memory=1_500, max_block_ms=10) as producer:
                await patient.partitions_for("t")
                with pytest.raises(RecordTooLarge):
                    await enqueue(producer, b"v" * 2_000)
                with pytest.raises(UsageError, match="no 9"):
                    await producer._enqueue_batch(TopicPartition("t", 9), BatchBuilder(limit=100), [])
                async with broker.hold(ApiKey.PRODUCE) as held:
                    await enqueue(producer, b"v" * 1_000)
                    await held.arrived()
                    with pytest.raises(BufferFull):
                        await enqueue(producer, b"w" * 1_000)
                    held.release()
            with pytest.raises(UsageError, match="closed"):
                await enqueue(producer, b"v")
