"""Single sends by confluent-kafka: one at a time, and from many tasks at once."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from confluent_kafka import KafkaException, Message
from confluent_kafka.aio import AIOProducer

from benchmarks.clients.confluent_settings import VERSION, new_producer, producing
from benchmarks.clients.measurement import Job, Watch, print_latency


def produce_poll(job: Job) -> None:
    """``produce(...)``, then ``poll`` until its delivery report is there, one at a time; this blocks its thread."""
    watch = Watch(job)
    latencies: list[float] = []
    delivered = 0

    def on_delivery(error: object, message: Message) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1

    producer = new_producer(job, 0)
    with watch:
        for sent, (topic, value) in enumerate(job.work(), 1):
            began = time.perf_counter()
            producer.produce(topic, value, on_delivery=on_delivery)
            while delivered < sent:
                producer.poll(1.0)
            latencies.append(time.perf_counter() - began)
    print_latency(watch, latencies, version=VERSION)


def aio_producer(job: Job) -> None:
    """Measure ``AIOProducer.produce``, then ``flush``, awaited one at a time.

    Without the flush, reports are served by a timer of half a second only, whatever the buffer's size.
    """

    async def run() -> None:
        watch = Watch(job)
        latencies: list[float] = []
        producer = await _aio_producer(job, batch_size=1)
        with watch:
            for topic, value in job.work():
                began = time.perf_counter()
                await _deliver(producer, topic, value)
                latencies.append(time.perf_counter() - began)
        await producer.close()
        print_latency(watch, latencies, version=VERSION)

    asyncio.run(run())


def aio_senders(job: Job) -> None:
    """Measure many tasks, each with one ``AIOProducer.produce`` after the other, while one more task keeps flushing."""

    async def run() -> None:
        watch = Watch(job)
        producer = await _aio_producer(job, batch_size=job.senders)

        async def flush() -> None:
            while True:
                await producer.flush()

        async def send() -> None:
            await (await producer.produce(job.topic, job.value))

        with watch:
            flushing = asyncio.create_task(flush())
            latencies = await _turns(job, send)
            flushing.cancel()
            await asyncio.wait([flushing])
        await producer.close()
        print_latency(watch, latencies, version=VERSION)

    asyncio.run(run())


def futures(job: Job) -> None:
    """Measure many tasks, each with one ``produce`` after the other, and a future that its delivery report sets.

    The reports come in a thread that calls ``poll``, as in confluent-kafka's own example for asyncio.
    """

    async def run() -> None:
        watch = Watch(job)
        loop = asyncio.get_running_loop()
        topic, value, over = job.topic, job.value, threading.Event()
        producer = new_producer(job, 0)

        def poll() -> None:
            while not over.is_set():
                producer.poll(0.1)

        async def send() -> None:
            future: asyncio.Future[None] = loop.create_future()

            def on_delivery(error: Any, message: Message) -> None:
                if error is None:
                    loop.call_soon_threadsafe(future.set_result, None)
                else:
                    loop.call_soon_threadsafe(future.set_exception, KafkaException(error))

            producer.produce(topic, value, on_delivery=on_delivery)
            await future

        poller = threading.Thread(target=poll)
        poller.start()
        try:
            with watch:
                latencies = await _turns(job, send)
        finally:
            over.set()
            poller.join()
        print_latency(watch, latencies, version=VERSION)

    asyncio.run(run())


async def _turns(job: Job, send: Callable[[], Awaitable[None]]) -> list[float]:
    latencies: list[float] = []

    async def turn(count: int) -> None:
        for _ in range(count):
            began = time.perf_counter()
            await send()
            latencies.append(time.perf_counter() - began)

    async with asyncio.TaskGroup() as tasks:
        for count in job.turns():
            tasks.create_task(turn(count))
    return latencies


async def _aio_producer(job: Job, *, batch_size: int) -> AIOProducer:
    producer = AIOProducer(producing(job, 0), batch_size=batch_size)
    for topic, partition in job.places:
        await _deliver(producer, topic, job.value, partition=partition)
    return producer


async def _deliver(producer: AIOProducer, topic: str, value: bytes, **more: Any) -> None:
    delivery = await producer.produce(topic, value, **more)
    await producer.flush()
    await delivery


WAYS = {"produce_poll": produce_poll, "aio_producer": aio_producer, "aio_senders": aio_senders, "futures": futures}
