"""Measures confluent-kafka, which is librdkafka: one way of using it, once. `confluent_awaited` has single sends."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from benchmarks.clients import confluent_awaited
from benchmarks.clients.confluent_settings import VERSION, connecting, new_producer, producing
from benchmarks.clients.measurement import Job, Watch, print_latency, print_throughput, read_job

_POLL_EVERY = 1000
"""Records between calls of ``poll(0)``, which serves delivery reports."""
_CONSUME = 10_000


def produce(job: Job) -> None:
    """``produce(...)`` for every record without a delivery report, then flush."""
    watch = Watch(job)
    # Reports of success would be made, queued and discarded without a callback.
    producer = new_producer(job, job.linger_ms, {"delivery.report.only.error": True})
    with watch:
        for number, (topic, value) in enumerate(job.work()):
            try:
                producer.produce(topic, value)
            except BufferError:
                _produce_once_there_is_room(producer, topic, value)
            if number % _POLL_EVERY == 0:
                producer.poll(0)
        producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


def produce_reports(job: Job) -> None:
    """``produce(..., on_delivery=...)`` for every record, its report served by ``poll``, then flush."""
    watch = Watch(job)
    delivered = 0

    def on_delivery(error: object, message: Message) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1

    producer = new_producer(job, job.linger_ms)
    with watch:
        for number, (topic, value) in enumerate(job.work()):
            try:
                producer.produce(topic, value, on_delivery=on_delivery)
            except BufferError:
                _produce_once_there_is_room(producer, topic, value, on_delivery=on_delivery)
            if number % _POLL_EVERY == 0:
                producer.poll(0)
        producer.flush()
    print_throughput(job, watch, done=delivered, version=VERSION)


def consume(job: Job) -> None:
    """``consume(10000)``, reading every key and value."""

    def read(consumer: Consumer, records: int) -> int:
        size = keys = 0
        wanted = records * job.value_size
        while size < wanted:
            # It waits for the full number, so the last call requests only the remaining records.
            left = (wanted - size) // job.value_size
            for message in consumer.consume(min(_CONSUME, left), 1.0):
                if message.error() is not None:
                    raise KafkaException(message.error())
                value = message.value()
                if value is not None:
                    size += len(value)
                if message.key() is not None:
                    keys += 1
        return size

    _consume(job, read)


def poll(job: Job) -> None:
    """``poll()`` for every record, reading every key and value."""

    def read(consumer: Consumer, records: int) -> int:
        size = keys = 0
        wanted = records * job.value_size
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
        return size

    _consume(job, read)


def send_and_read(job: Job) -> None:
    """``produce(...)``, then ``consumer.poll()`` until the record is there, one at a time."""
    watch = Watch(job)
    latencies: list[float] = []
    producer = new_producer(job, 0, {"delivery.report.only.error": True})
    consumer = _consumer(job, [TopicPartition(*place, 0) for place in job.places])

    def read() -> None:
        while (message := consumer.poll(1.0)) is None:
            pass
        if message.error() is not None:
            raise KafkaException(message.error())

    for _ in job.places:
        read()
    with watch:
        for topic, value in job.work():
            began = time.perf_counter()
            producer.produce(topic, value)
            read()
            latencies.append(time.perf_counter() - began)
    producer.flush()
    consumer.close()
    print_latency(watch, latencies, version=VERSION)


def fill(job: Job) -> None:
    """Fill the partitions evenly for the consumers, in large batches; this is not measured."""
    watch = Watch(job)
    producer = Producer({**producing(job, 200), "delivery.report.only.error": True})
    with watch:
        for topic, partition, value in job.filling():
            try:
                producer.produce(topic, value, partition=partition)
            except BufferError:
                _produce_once_there_is_room(producer, topic, value, partition=partition)
        producer.flush()
    print_throughput(job, watch, done=job.records, version=VERSION)


def _produce_once_there_is_room(producer: Producer, topic: str, value: bytes, **more: Any) -> None:
    while True:
        producer.poll(0.01)
        try:
            producer.produce(topic, value, **more)
        except BufferError:
            continue
        return


def _consume(job: Job, read: Callable[[Consumer, int], int]) -> None:
    """Read in this thread if there is one consumer, and otherwise in a thread for each."""
    watch = Watch(job)
    shares = job.shares()
    consumers = [_consumer(job, [TopicPartition(*place, 0) for place in places]) for places, _ in shares]
    counts = [records for _, records in shares]
    with ThreadPoolExecutor(len(shares)) as threads, watch:
        run: Callable[..., Any] = map if len(shares) == 1 else threads.map
        sizes = list(run(read, consumers, counts))
    for consumer in consumers:
        consumer.close()
    print_throughput(job, watch, done=sum(sizes) // job.value_size, version=VERSION)


def _consumer(job: Job, starts: list[TopicPartition]) -> Consumer:
    """Open a consumer that has read a first record and sought back: connected, without prefetched records."""
    in_group = job.group != "none"
    consumer = Consumer(
        {
            **connecting(job),
            **({"group.protocol": job.group} if in_group else {}),
            **({"check.crcs": job.check_crcs == "true"} if job.check_crcs else {}),
            "group.id": job.group_id,  # required, although without a group no consumer joins or commits
            "enable.auto.commit": in_group,
            "enable.auto.offset.store": in_group,
            "auto.offset.reset": "earliest",
            # By default it holds 100,000 records or 64 MB, and pauses for a second whenever it holds more.
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 1_048_576,
            "fetch.queue.backoff.ms": 10,
        }
    )
    if in_group:
        consumer.subscribe(job.names)
    else:
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
    "send_and_read": send_and_read,
    "fill": fill,
    **confluent_awaited.WAYS,
}


def main() -> None:
    job = read_job()
    WAYS[job.way](job)


if __name__ == "__main__":
    main()
