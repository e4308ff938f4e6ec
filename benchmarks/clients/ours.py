"""Measures aiokafkawire: one way of using it, once, on one event loop."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias, cast

import anyio

from aiokafkawire import BufferFull, Client, Consumer, Producer, TopicPartition
from aiokafkawire.config import CompressionType
from aiokafkawire.records.batch import IMPLEMENTATION
from benchmarks.clients.measurement import Job, Watch, print_latency, print_throughput, read_job

VERSION = f"{IMPLEMENTATION} records"

_YIELD_EVERY = 1000
"""Records between checkpoints in the loop over send_nowait, which by itself never lets the sender run."""

Reading: TypeAlias = Callable[[Consumer[bytes, bytes], int], Awaitable[int]]
"""Reads so many bytes of values; how many it has read."""


def _client(job: Job) -> Client:
    if not job.tls:
        return Client(job.bootstrap)
    return Client(job.bootstrap, security_protocol="SSL", ssl_ca_location=job.ca_file)


async def enqueue(job: Job) -> None:
    """``await producer.enqueue(...)`` for every record, then flush."""
    watch = Watch(job)
    async with _client(job) as kafka, _producer(kafka, job, job.linger_ms) as producer:
        await _warm_up(producer, job)
        with watch:
            for topic, value in job.work():
                await producer.enqueue(topic, value)
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


async def send_nowait(job: Job) -> None:
    """Measure ``producer.send_nowait(...)`` for every record, waiting only while the buffer is full, then flush."""
    watch = Watch(job)
    async with _client(job) as kafka, _producer(kafka, job, job.linger_ms) as producer:
        await _warm_up(producer, job)
        with watch:
            for number, (topic, value) in enumerate(job.work()):
                try:
                    producer.send_nowait(topic, value)
                except BufferFull:
                    await producer.enqueue(topic, value)
                if number % _YIELD_EVERY == 0:
                    await anyio.lowlevel.checkpoint()
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


async def batches(job: Job) -> None:
    """Measure ``async for batch in consumer.batches()``, reading every key and value."""

    async def read(consumer: Consumer[bytes, bytes], wanted: int) -> int:
        size = keys = 0
        async for batch in consumer.batches():
            for record in batch:
                value = record.value
                if value is not None:
                    size += len(value)
                if record.key is not None:
                    keys += 1
            if size >= wanted:
                break
        return size

    await _consume(job, read)


async def async_for(job: Job) -> None:
    """Measure ``async for record in consumer``, reading every key and value."""

    async def read(consumer: Consumer[bytes, bytes], wanted: int) -> int:
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


async def poll(job: Job) -> None:
    """Measure ``consumer.poll(10_000)``, reading every key and value."""

    async def read(consumer: Consumer[bytes, bytes], wanted: int) -> int:
        size = keys = 0
        while size < wanted:
            for record in await consumer.poll(10_000):
                value = record.value
                if value is not None:
                    size += len(value)
                if record.key is not None:
                    keys += 1
        return size

    await _consume(job, read)


async def awaited_send(job: Job) -> None:
    """``await producer.send(...)``, one at a time."""
    watch = Watch(job)
    latencies: list[float] = []
    async with _client(job) as kafka, _producer(kafka, job, 0) as producer:
        await _warm_up(producer, job)
        with watch:
            for topic, value in job.work():
                began = time.perf_counter()
                await producer.send(topic, value)
                latencies.append(time.perf_counter() - began)
    print_latency(watch, latencies, version=VERSION)


async def send_and_read(job: Job) -> None:
    """``await producer.enqueue(...)``, then ``await anext(...)`` of a consumer beside it, one at a time."""
    watch = Watch(job)
    latencies: list[float] = []
    async with _client(job) as kafka, _producer(kafka, job, 0) as producer, kafka.consumer() as consumer:
        await _warm_up(producer, job)
        consumer.assign({TopicPartition(*place): 0 for place in job.places})
        for _ in job.places:
            await anext(consumer)
        with watch:
            for topic, value in job.work():
                began = time.perf_counter()
                await producer.enqueue(topic, value)
                await anext(consumer)
                latencies.append(time.perf_counter() - began)
    print_latency(watch, latencies, version=VERSION)


async def senders(job: Job) -> None:
    """Measure many tasks, each with one ``await producer.send(...)`` after the other."""
    topic, value, watch = job.topic, job.value, Watch(job)
    latencies: list[float] = []
    async with _client(job) as kafka, _producer(kafka, job, 0) as producer:

        async def send(count: int) -> None:
            for _ in range(count):
                began = time.perf_counter()
                await producer.send(topic, value)
                latencies.append(time.perf_counter() - began)

        await _warm_up(producer, job)
        with watch:
            async with anyio.create_task_group() as tasks:
                for count in job.turns():
                    tasks.start_soon(send, count)
    print_latency(watch, latencies, version=VERSION)


async def fill(job: Job) -> None:
    """Fill the partitions evenly for the consumers, in large batches; this is not measured."""
    watch = Watch(job)
    async with _client(job) as kafka, _producer(kafka, job, 200) as producer:
        with watch:
            for topic, partition, value in job.filling():
                await producer.enqueue(topic, value, partition=partition)
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


def _producer(kafka: Client, job: Job, linger_ms: int) -> Producer[bytes, bytes]:
    return kafka.producer(
        acks=1,
        batch_size=job.batch_size,
        linger_ms=linger_ms,
        compression_type=cast("CompressionType", job.compression),
        max_in_flight_requests_per_connection=job.in_flight,
    )


async def _warm_up(producer: Producer[bytes, bytes], job: Job) -> None:
    for topic, partition in job.places:
        await producer.enqueue(topic, job.value, partition=partition)
    await producer.flush()


async def _consume(job: Job, read: Reading) -> None:
    watch = Watch(job)
    sizes: list[int] = []
    async with _client(job) as kafka, AsyncExitStack() as opened:

        async def count(consumer: Consumer[bytes, bytes], records: int) -> None:
            sizes.append(await read(consumer, records * job.value_size))

        work = []
        for places, records in job.shares():
            consumer = await opened.enter_async_context(_consumer(kafka, job))
            partitions = [TopicPartition(*place) for place in places]
            if job.group == "none":
                consumer.assign(dict.fromkeys(partitions, 0))
            await _begin_again(consumer, partitions)
            work.append((consumer, records))
        with watch:
            async with anyio.create_task_group() as tasks:
                for consumer, records in work:
                    tasks.start_soon(count, consumer, records)
    print_throughput(job, watch, done=sum(sizes) // job.value_size, version=VERSION)


def _consumer(kafka: Client, job: Job) -> Consumer[bytes, bytes]:
    checks = job.check_crcs != "false"
    if job.group == "none":
        return kafka.consumer(check_crcs=checks)
    return kafka.consumer(
        job.names,
        group_id=job.group_id,
        group_protocol=job.group,
        auto_offset_reset="earliest",
        check_crcs=checks,
    )


async def _begin_again(consumer: Consumer[bytes, bytes], partitions: list[TopicPartition]) -> None:
    """Read a first record, then go back: everything is connected, and nothing read ahead counts."""
    await anext(aiter(consumer))
    for partition in partitions:
        consumer.seek(partition, 0)


WAYS = {
    "enqueue": enqueue,
    "send_nowait": send_nowait,
    "batches": batches,
    "async_for": async_for,
    "poll": poll,
    "awaited_send": awaited_send,
    "send_and_read": send_and_read,
    "senders": senders,
    "fill": fill,
}


def main() -> None:
    job = read_job()
    options: dict[str, Any] = {"use_uvloop": job.loop == "uvloop"} if job.loop != "trio" else {}
    backend = "trio" if job.loop == "trio" else "asyncio"
    anyio.run(WAYS[job.way], job, backend=backend, backend_options=options)


if __name__ == "__main__":
    main()
