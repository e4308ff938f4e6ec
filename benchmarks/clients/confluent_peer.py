"""Measures confluent-kafka, which is librdkafka: one way of using it, once."""

import asyncio
import time
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.aio import AIOProducer

from benchmarks.clients.measurement import WARM_UP_SENDS, Job, Watch, print_latency, print_throughput, read_job
from benchmarks.contenders import NO_LOOP

LOOPS = (NO_LOOP,)
VERSION = f"librdkafka {confluent_kafka.libversion()[0]}"

_POLL_EVERY = 1000
"""Records between calls of ``poll(0)``, which serves delivery reports."""
_CONSUME = 10_000


def produce(job: Job) -> None:
    """``produce(...)`` for every record without a delivery report, then flush."""
    topic, value, watch = job.topic, job.value, Watch()
    # Reports of success would be made, queued and thrown away for want of a callback.
    producer = _producer(job, job.linger_ms, {"delivery.report.only.error": True})
    with watch:
        for start in range(0, job.records, _POLL_EVERY):
            for _ in range(min(_POLL_EVERY, job.records - start)):
                try:
                    producer.produce(topic, value)
                except BufferError:
                    _produce_once_there_is_room(producer, topic, value)
            producer.poll(0)
        producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


def produce_reports(job: Job) -> None:
    """``produce(..., on_delivery=...)`` for every record, its report served by ``poll``, then flush."""
    topic, value, watch = job.topic, job.value, Watch()
    delivered = 0

    def on_delivery(error: object, message: Message) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1

    producer = _producer(job, job.linger_ms)
    with watch:
        for start in range(0, job.records, _POLL_EVERY):
            for _ in range(min(_POLL_EVERY, job.records - start)):
                try:
                    producer.produce(topic, value, on_delivery=on_delivery)
                except BufferError:
                    _produce_once_there_is_room(producer, topic, value, on_delivery=on_delivery)
            producer.poll(0)
        producer.flush()
    print_throughput(job, watch, done=delivered, version=VERSION)


def consume(job: Job) -> None:
    """``consume(10000)``, every key and value touched."""
    size = keys = 0
    wanted = job.records * job.value_size
    watch = Watch()
    consumer = _consumer(job)
    with watch:
        while size < wanted:
            # It waits for as many as it is asked for, so the last call asks for what is left.
            left = (wanted - size) // job.value_size
            for message in consumer.consume(min(_CONSUME, left), 1.0):
                if message.error() is not None:
                    raise KafkaException(message.error())
                value = message.value()
                if value is not None:
                    size += len(value)
                if message.key() is not None:
                    keys += 1
    consumer.close()
    print_throughput(job, watch, done=size // job.value_size, version=VERSION)


def poll(job: Job) -> None:
    """``poll()`` for every record, every key and value touched."""
    size = keys = 0
    wanted = job.records * job.value_size
    watch = Watch()
    consumer = _consumer(job)
    with watch:
        while size < wanted:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            value = message.value()
            if value is not None:
                size += len(value)
            if message.key() is not None:
                keys += 1
    consumer.close()
    print_throughput(job, watch, done=size // job.value_size, version=VERSION)


def produce_poll(job: Job) -> None:
    """``produce(...)``, then ``poll`` until its delivery report is there, one at a time; this blocks its thread."""
    topic, value, watch = job.topic, job.value, Watch()
    latencies: list[float] = []
    delivered = 0

    def on_delivery(error: object, message: Message) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1

    producer = _producer(job, 0)
    with watch:
        for sent in range(1, job.records + 1):
            began = time.perf_counter()
            producer.produce(topic, value, on_delivery=on_delivery)
            while delivered < sent:
                producer.poll(1.0)
            latencies.append(time.perf_counter() - began)
    print_latency(watch, latencies, version=VERSION)


def aio_producer(job: Job) -> None:
    """``AIOProducer.produce``, then ``flush``, awaited one at a time.

    Without the flush, reports are served by a timer of half a second only, whatever the buffer's size.
    """
    asyncio.run(_aio_producer(job))


async def _aio_producer(job: Job) -> None:
    topic, value, watch = job.topic, job.value, Watch()
    latencies: list[float] = []
    producer = AIOProducer(_producer_settings(job, 0), batch_size=1)
    for partition in range(job.partitions):
        for _ in range(WARM_UP_SENDS):
            await _deliver(producer, topic, value, partition=partition)
    with watch:
        for _ in range(job.records):
            began = time.perf_counter()
            await _deliver(producer, topic, value)
            latencies.append(time.perf_counter() - began)
    await producer.close()
    print_latency(watch, latencies, version=VERSION)


async def _deliver(producer: AIOProducer, topic: str, value: bytes, **more: Any) -> None:
    delivery = await producer.produce(topic, value, **more)
    await producer.flush()
    await delivery


def fill(job: Job) -> None:
    """Not a measurement of its own: evenly fill the partitions for the consumers, in large batches."""
    topic, value, watch = job.topic, job.value, Watch()
    producer = Producer({**_producer_settings(job, 200), "delivery.report.only.error": True})
    with watch:
        for index in range(job.records):
            try:
                producer.produce(topic, value, partition=index % job.partitions)
            except BufferError:
                _produce_once_there_is_room(producer, topic, value, partition=index % job.partitions)
        producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


def _producer_settings(job: Job, linger_ms: int) -> dict[str, Any]:
    return {
        "bootstrap.servers": job.bootstrap,
        "acks": 1,
        "linger.ms": linger_ms,
        "batch.size": job.batch_size,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 1_048_576,
        "socket.nagle.disable": True,
    }


def _producer(job: Job, linger_ms: int, more: dict[str, Any] | None = None) -> Producer:
    """A producer that has sent to every partition."""
    producer = Producer({**_producer_settings(job, linger_ms), **(more or {})})
    for partition in range(job.partitions):
        for _ in range(WARM_UP_SENDS):
            producer.produce(job.topic, job.value, partition=partition)
            producer.flush()
    return producer


def _produce_once_there_is_room(producer: Producer, topic: str, value: bytes, **more: Any) -> None:
    while True:
        producer.poll(0.01)
        try:
            producer.produce(topic, value, **more)
        except BufferError:
            continue
        return


def _consumer(job: Job) -> Consumer:
    """A consumer that has read a first record and gone back: connected, and nothing read ahead counts."""
    consumer = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": "benchmark",  # required, though nothing joins or commits
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            # By default it holds 100,000 records or 64 MB, and rests for a second whenever it holds more.
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 1_048_576,
            "fetch.queue.backoff.ms": 10,
        }
    )
    starts = [TopicPartition(job.topic, index, 0) for index in range(job.partitions)]
    consumer.assign(starts)
    while consumer.poll(1.0) is None:
        pass
    for start in starts:
        consumer.seek(start)
    return consumer


WAYS = {
    "produce": produce,
    "produce_reports": produce_reports,
    "consume": consume,
    "poll": poll,
    "produce_poll": produce_poll,
    "aio_producer": aio_producer,
    "fill": fill,
}


def main() -> None:
    job = read_job(__doc__ or "", tuple(WAYS), LOOPS)
    WAYS[job.way](job)


if __name__ == "__main__":
    main()
