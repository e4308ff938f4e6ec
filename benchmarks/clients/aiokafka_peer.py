"""Measures aiokafka: one way of using it, once, on one event loop."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice
from typing import Any, TypeAlias

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.clients.measurement import Job, Watch, print_latency, print_throughput, read_job

VERSION = str(aiokafka.__version__)

Reading: TypeAlias = Callable[[Any, int], Awaitable[int]]
"""Reads so many bytes of values from a consumer; how many it has read."""

_GATHERED = 10_000


async def send(job: Job) -> None:
    """``await producer.send(...)`` for every record, which waits for buffer space only, then flush."""
    watch = Watch(job)
    async with _producer(job, job.linger_ms) as producer:
        with watch:
            for topic, value in job.work():
                await producer.send(topic, value)
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


async def send_gathered(job: Job) -> None:
    """``await producer.send(...)`` for every record, and ``asyncio.gather`` for the futures of each 10,000."""
    watch, done = Watch(job), 0
    async with _producer(job, job.linger_ms) as producer:
        with watch:
            work = job.work()
            while futures := [await producer.send(topic, value) for topic, value in islice(work, _GATHERED)]:
                done += len(await asyncio.gather(*futures))
    print_throughput(job, watch, done=done, version=VERSION)


async def send_batch(job: Job) -> None:
    """``create_batch``, ``append`` for every record, ``send_batch`` to the partitions in turn, then flush."""
    topic, watch = job.topic, Watch(job)
    async with _producer(job, job.linger_ms) as producer:
        with watch:
            partition = 0
            batch = producer.create_batch()
            for _, value in job.work():
                if batch.append(key=None, value=value, timestamp=None) is None:
                    await producer.send_batch(batch, topic, partition=partition)
                    partition = (partition + 1) % job.partitions
                    batch = producer.create_batch()
                    batch.append(key=None, value=value, timestamp=None)
            await producer.send_batch(batch, topic, partition=partition)
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


async def getmany(job: Job) -> None:
    """``await consumer.getmany(...)``, reading every key and value."""

    async def read(consumer: Any, wanted: int) -> int:
        size = keys = 0
        while size < wanted:
            found = await consumer.getmany(timeout_ms=1000)
            for records in found.values():
                for record in records:
                    value = record.value
                    if value is not None:
                        size += len(value)
                    if record.key is not None:
                        keys += 1
        return size

    await _consume(job, read)


async def getone(job: Job) -> None:
    """``await consumer.getone()``, reading every key and value."""

    async def read(consumer: Any, wanted: int) -> int:
        size = keys = 0
        while size < wanted:
            record = await consumer.getone()
            value = record.value
            if value is not None:
                size += len(value)
            if record.key is not None:
                keys += 1
        return size

    await _consume(job, read)


async def async_for(job: Job) -> None:
    """Measure ``async for record in consumer``, reading every key and value."""

    async def read(consumer: Any, wanted: int) -> int:
        size = keys = 0
        async for record in consumer:
            value = record.value
            if value is not None:
                size += len(value)
            if record.key is not None:
                keys += 1
            if size >= wanted:
                break
        return size

    await _consume(job, read)


async def awaited_send(job: Job) -> None:
    """``await producer.send_and_wait(...)``, one at a time."""
    watch = Watch(job)
    latencies: list[float] = []
    async with _producer(job, 0) as producer:
        with watch:
            for topic, value in job.work():
                began = time.perf_counter()
                await producer.send_and_wait(topic, value)
                latencies.append(time.perf_counter() - began)
    print_latency(watch, latencies, version=VERSION)


async def send_and_read(job: Job) -> None:
    """``await producer.send(...)``, then ``await consumer.getone()``, one at a time."""
    watch = Watch(job)
    latencies: list[float] = []
    partitions = [TopicPartition(*place) for place in job.places]
    async with _producer(job, 0) as producer, _consumer(job, partitions) as consumer:
        for _ in partitions:
            await consumer.getone()
        with watch:
            for topic, value in job.work():
                began = time.perf_counter()
                await producer.send(topic, value)
                await consumer.getone()
                latencies.append(time.perf_counter() - began)
    print_latency(watch, latencies, version=VERSION)


async def senders(job: Job) -> None:
    """Measure many tasks, each with one ``await producer.send_and_wait(...)`` after the other."""
    topic, value, watch = job.topic, job.value, Watch(job)
    latencies: list[float] = []
    async with _producer(job, 0) as producer:

        async def send(count: int) -> None:
            for _ in range(count):
                began = time.perf_counter()
                await producer.send_and_wait(topic, value)
                latencies.append(time.perf_counter() - began)

        with watch:
            async with asyncio.TaskGroup() as tasks:
                for count in job.turns():
                    tasks.create_task(send(count))
    print_latency(watch, latencies, version=VERSION)


def _settings(job: Job) -> dict[str, Any]:
    if not job.tls:
        return {"bootstrap_servers": job.bootstrap}
    context = ssl.create_default_context(cafile=job.ca_file)
    return {"bootstrap_servers": job.bootstrap, "security_protocol": "SSL", "ssl_context": context}


@asynccontextmanager
async def _producer(job: Job, linger_ms: int) -> AsyncIterator[Any]:
    """Open a producer that has sent to every partition. It has one request in flight per broker, without a setting."""
    producer = AIOKafkaProducer(
        **_settings(job),
        acks=1,
        max_batch_size=job.batch_size,
        linger_ms=linger_ms,
        compression_type=None if job.compression == "none" else job.compression,
    )
    await producer.start()
    try:
        await asyncio.gather(*[await producer.send(name, job.value, partition=index) for name, index in job.places])
        yield producer
    finally:
        await producer.stop()


async def _consume(job: Job, read: Reading) -> None:
    watch = Watch(job)
    async with AsyncExitStack() as opened:
        work = []
        for places, records in job.shares():
            consumer = await opened.enter_async_context(_consumer(job, [TopicPartition(*place) for place in places]))
            work.append((consumer, records * job.value_size))
        with watch:
            sizes = await asyncio.gather(*[read(consumer, wanted) for consumer, wanted in work])
    print_throughput(job, watch, done=sum(sizes) // job.value_size, version=VERSION)


@asynccontextmanager
async def _consumer(job: Job, partitions: list[TopicPartition]) -> AsyncIterator[Any]:
    """Open a consumer that has read a first record and sought back: connected, without prefetched records."""
    in_group = job.group != "none"
    consumer = AIOKafkaConsumer(
        *(job.names if in_group else ()),
        **_settings(job),
        group_id=job.group_id if in_group else None,
        auto_offset_reset="earliest",
        check_crcs=job.check_crcs != "false",
        enable_auto_commit=in_group,
    )
    await consumer.start()
    try:
        if not in_group:
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
    "send_gathered": send_gathered,
    "send_batch": send_batch,
    "getmany": getmany,
    "getone": getone,
    "async_for": async_for,
    "awaited_send": awaited_send,
    "send_and_read": send_and_read,
    "senders": senders,
}


def main() -> None:
    job = read_job()
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if job.loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(WAYS[job.way](job))


if __name__ == "__main__":
    main()
