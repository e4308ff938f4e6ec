"""Measures aiokafkawire: one way of using it, once, on one event loop."""

import time
from typing import Any

import anyio

from aiokafkawire import BufferFull, Client, Consumer, Producer, TopicPartition
from aiokafkawire.records.batch import IMPLEMENTATION
from benchmarks.clients.measurement import WARM_UP_SENDS, Job, Watch, print_latency, print_throughput, read_job

LOOPS = ("asyncio", "uvloop", "trio")
VERSION = f"{IMPLEMENTATION} records"

_YIELD_EVERY = 1000
"""Records between checkpoints in the loop over send_nowait, which by itself never lets the sender run."""


async def enqueue(job: Job) -> None:
    """``await producer.enqueue(...)`` for every record, then flush."""
    topic, value, watch = job.topic, job.value, Watch()
    async with Client(job.bootstrap) as kafka, _producer(kafka, job, job.linger_ms) as producer:
        await _warm_up(producer, job)
        with watch:
            for _ in range(job.records):
                await producer.enqueue(topic, value)
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


async def send_nowait(job: Job) -> None:
    """``producer.send_nowait(...)`` for every record, waiting only where the buffer is full, then flush."""
    topic, value, watch = job.topic, job.value, Watch()
    async with Client(job.bootstrap) as kafka, _producer(kafka, job, job.linger_ms) as producer:
        await _warm_up(producer, job)
        with watch:
            for start in range(0, job.records, _YIELD_EVERY):
                for _ in range(min(_YIELD_EVERY, job.records - start)):
                    try:
                        producer.send_nowait(topic, value)
                    except BufferFull:
                        await producer.enqueue(topic, value)
                await anyio.lowlevel.checkpoint()
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


async def batches(job: Job) -> None:
    """``async for batch in consumer.batches()``, every key and value touched."""
    size = keys = 0
    wanted = job.records * job.value_size
    watch = Watch()
    async with Client(job.bootstrap) as kafka, kafka.consumer() as consumer:
        await _begin_again(consumer, job)
        with watch:
            async for batch in consumer.batches():
                for record in batch:
                    value = record.value
                    if value is not None:
                        size += len(value)
                    if record.key is not None:
                        keys += 1
                if size >= wanted:
                    break
    print_throughput(job, watch, done=size // job.value_size, version=VERSION)


async def async_for(job: Job) -> None:
    """``async for record in consumer``, every key and value touched."""
    size = keys = 0
    wanted = job.records * job.value_size
    watch = Watch()
    async with Client(job.bootstrap) as kafka, kafka.consumer() as consumer:
        await _begin_again(consumer, job)
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
    """``await producer.send(...)``, one at a time."""
    topic, value, watch = job.topic, job.value, Watch()
    latencies: list[float] = []
    async with Client(job.bootstrap) as kafka, _producer(kafka, job, 0) as producer:
        await _warm_up(producer, job)
        with watch:
            for _ in range(job.records):
                began = time.perf_counter()
                await producer.send(topic, value)
                latencies.append(time.perf_counter() - began)
    print_latency(watch, latencies, version=VERSION)


async def fill(job: Job) -> None:
    """Not a measurement of its own: evenly fill the partitions for the consumers, in large batches."""
    topic, value, watch = job.topic, job.value, Watch()
    async with Client(job.bootstrap) as kafka, _producer(kafka, job, 200) as producer:
        with watch:
            for index in range(job.records):
                await producer.enqueue(topic, value, partition=index % job.partitions)
            await producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


def _producer(kafka: Client, job: Job, linger_ms: int) -> Producer[bytes, bytes]:
    return kafka.producer(acks=1, batch_size=job.batch_size, linger_ms=linger_ms, compression_type="none")


async def _warm_up(producer: Producer[bytes, bytes], job: Job) -> None:
    for partition in range(job.partitions):
        for _ in range(WARM_UP_SENDS):
            await producer.send(job.topic, job.value, partition=partition)


async def _begin_again(consumer: Consumer[bytes, bytes], job: Job) -> None:
    """Read a first record, then go back: everything is connected, and nothing read ahead counts."""
    partitions = [TopicPartition(job.topic, index) for index in range(job.partitions)]
    consumer.assign(dict.fromkeys(partitions, 0))
    await anext(aiter(consumer))
    for partition in partitions:
        consumer.seek(partition, 0)


WAYS = {
    "enqueue": enqueue,
    "send_nowait": send_nowait,
    "batches": batches,
    "async_for": async_for,
    "awaited_send": awaited_send,
    "fill": fill,
}


def main() -> None:
    job = read_job(__doc__ or "", tuple(WAYS), LOOPS)
    options: dict[str, Any] = {"use_uvloop": job.loop == "uvloop"} if job.loop != "trio" else {}
    backend = "trio" if job.loop == "trio" else "asyncio"
    anyio.run(WAYS[job.way], job, backend=backend, backend_options=options)


if __name__ == "__main__":
    main()
