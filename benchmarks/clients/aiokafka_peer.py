"""Measures aiokafka: one way of using it, once, on one event loop."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.clients.measurement import WARM_UP_SENDS, Job, Watch, print_latency, print_throughput, read_job

LOOPS = ("asyncio", "uvloop")
VERSION = str(aiokafka.__version__)


async def send(job: Job) -> None:
    """``await producer.send(...)`` for every record, which waits for room only, then flush."""
    topic, value, watch = job.topic, job.value, Watch()
    async with _producer(job, job.linger_ms) as producer:
        with watch:
            for _ in range(job.records):
                await producer.send(topic, value)
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


async def send_batch(job: Job) -> None:
    """``create_batch``, ``append`` for every record, ``send_batch`` to the partitions in turn, then flush."""
    topic, value, watch = job.topic, job.value, Watch()
    async with _producer(job, job.linger_ms) as producer:
        with watch:
            partition = 0
            batch = producer.create_batch()
            for _ in range(job.records):
                if batch.append(key=None, value=value, timestamp=None) is None:
                    await producer.send_batch(batch, topic, partition=partition)
                    partition = (partition + 1) % job.partitions
                    batch = producer.create_batch()
                    batch.append(key=None, value=value, timestamp=None)
            await producer.send_batch(batch, topic, partition=partition)
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


async def getmany(job: Job) -> None:
    """``await consumer.getmany(...)``, every key and value touched."""
    size = keys = 0
    wanted = job.records * job.value_size
    watch = Watch()
    async with _consumer(job) as consumer:
        with watch:
            while size < wanted:
                found = await consumer.getmany(timeout_ms=1000)
                for records in found.values():
                    for record in records:
                        value = record.value
                        if value is not None:
                            size += len(value)
                        if record.key is not None:
                            keys += 1
    print_throughput(job, watch, done=size // job.value_size, version=VERSION)


async def async_for(job: Job) -> None:
    """``async for record in consumer``, every key and value touched."""
    size = keys = 0
    wanted = job.records * job.value_size
    watch = Watch()
    async with _consumer(job) as consumer:
        with watch:
            async for record in consumer:
                value = record.value
                if value is not None:
                    size += len(value)
                if record.key is not None:
                    keys += 1
                if size >= wanted:
                    break
    print_throughput(job, watch, done=size // job.value_size, version=VERSION)


async def awaited_send(job: Job) -> None:
    """``await producer.send_and_wait(...)``, one at a time."""
    topic, value, watch = job.topic, job.value, Watch()
    latencies: list[float] = []
    async with _producer(job, 0) as producer:
        with watch:
            for _ in range(job.records):
                began = time.perf_counter()
                await producer.send_and_wait(topic, value)
                latencies.append(time.perf_counter() - began)
    print_latency(watch, latencies, version=VERSION)


@asynccontextmanager
async def _producer(job: Job, linger_ms: int) -> AsyncIterator[Any]:
    producer = AIOKafkaProducer(
        bootstrap_servers=job.bootstrap,
        acks=1,
        max_batch_size=job.batch_size,
        linger_ms=linger_ms,
    )
    await producer.start()
    try:
        for partition in range(job.partitions):
            for _ in range(WARM_UP_SENDS):
                await producer.send_and_wait(job.topic, job.value, partition=partition)
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def _consumer(job: Job) -> AsyncIterator[Any]:
    """A consumer that has read a first record and gone back: connected, and nothing read ahead counts."""
    partitions = [TopicPartition(job.topic, index) for index in range(job.partitions)]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=job.bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        await consumer.getone()
        for partition in partitions:
            consumer.seek(partition, 0)
        yield consumer
    finally:
        await consumer.stop()


WAYS = {
    "send": send,
    "send_batch": send_batch,
    "getmany": getmany,
    "async_for": async_for,
    "awaited_send": awaited_send,
}


def main() -> None:
    job = read_job(__doc__ or "", tuple(WAYS), LOOPS)
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if job.loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(WAYS[job.way](job))


if __name__ == "__main__":
    main()
