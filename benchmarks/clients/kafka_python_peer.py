"""Measures kafka-python 3: one way of using it, once. It has a thread of its own, and blocks its caller's."""

import importlib
import logging
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

from benchmarks.clients.measurement import Job, Watch, print_latency, print_throughput, read_job

_kafka: Any = importlib.import_module("kafka")  # it publishes no types
_IN_C = importlib.import_module("kafka.record.util").crc32c_c is not None
VERSION = f"{version('kafka-python')}, checksums in {'C' if _IN_C else 'Python'}"
"""Its checksums are those of the ``crc32c`` package where that is installed, as it is beside aiokafkawire."""

_LARGEST = 1_048_576
_POLL = 10_000
"""Records of one ``poll`` at most; by default 500."""

# It warns that acks=1 excludes idempotence.
logging.getLogger("kafka").setLevel(logging.ERROR)


def send(job: Job) -> None:
    """Measure ``producer.send(...)`` for every record, which blocks for buffer space only, then flush."""
    watch = Watch(job)
    producer = _producer(job, job.linger_ms)
    with watch:
        for topic, value in job.work():
            producer.send(topic, value)
        producer.flush()
    producer.close()
    print_throughput(job, watch, done=job.records, version=VERSION)


def poll(job: Job) -> None:
    """Measure ``consumer.poll(...)``, reading every key and value."""

    def read(consumer: Any, wanted: int) -> int:
        size = keys = 0
        while size < wanted:
            for records in consumer.poll(timeout_ms=1000).values():
                for record in records:
                    value = record.value
                    if value is not None:
                        size += len(value)
                    if record.key is not None:
                        keys += 1
        return size

    watch = Watch(job)
    shares = job.shares()
    consumers = [_consumer(job, [_kafka.TopicPartition(*place) for place in places]) for places, _ in shares]
    with ThreadPoolExecutor(len(shares)) as threads, watch:
        sizes = list(threads.map(read, consumers, [records * job.value_size for _, records in shares]))
    for consumer in consumers:
        consumer.close()
    print_throughput(job, watch, done=sum(sizes) // job.value_size, version=VERSION)


def awaited_send(job: Job) -> None:
    """Measure ``producer.send(...).get()``, one at a time."""
    watch = Watch(job)
    latencies: list[float] = []
    producer = _producer(job, 0)
    with watch:
        for topic, value in job.work():
            began = time.perf_counter()
            producer.send(topic, value).get()
            latencies.append(time.perf_counter() - began)
    producer.close()
    print_latency(watch, latencies, version=VERSION)


def send_and_read(job: Job) -> None:
    """Measure ``producer.send(...)``, then ``consumer.poll(...)`` until it returns the record, one at a time."""
    watch = Watch(job)
    latencies: list[float] = []
    producer = _producer(job, 0)
    consumer = _consumer(job, [_kafka.TopicPartition(*place) for place in job.places])
    left = len(job.places)
    while left:
        left -= sum(map(len, consumer.poll(timeout_ms=1000).values()))
    with watch:
        for topic, value in job.work():
            began = time.perf_counter()
            producer.send(topic, value)
            while not consumer.poll(timeout_ms=1000):
                pass
            latencies.append(time.perf_counter() - began)
    consumer.close()
    producer.close()
    print_latency(watch, latencies, version=VERSION)


def senders(job: Job) -> None:
    """Measure many threads, each with one ``producer.send(...).get()`` after the other."""
    topic, value, watch = job.topic, job.value, Watch(job)
    latencies: list[float] = []
    producer = _producer(job, 0)

    def turn(count: int) -> None:
        for _ in range(count):
            began = time.perf_counter()
            producer.send(topic, value).get()
            latencies.append(time.perf_counter() - began)

    with ThreadPoolExecutor(job.senders) as threads, watch:
        list(threads.map(turn, job.turns()))
    producer.close()
    print_latency(watch, latencies, version=VERSION)


def _settings(job: Job) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": job.bootstrap, "metrics_enabled": False}
    if job.tls:
        context = ssl.create_default_context(cafile=job.ca_file)
        settings |= {"security_protocol": "SSL", "ssl_context": context}
    return settings


def _producer(job: Job, linger_ms: int) -> Any:
    """Open a producer that has sent to every partition."""
    producer = _kafka.KafkaProducer(
        **_settings(job),
        acks=1,
        enable_idempotence=False,
        batch_size=job.batch_size,
        max_request_size=_LARGEST,
        linger_ms=linger_ms,
        compression_type=None if job.compression == "none" else job.compression,
        max_in_flight_requests_per_connection=job.in_flight,
    )
    for name, index in job.places:
        producer.send(name, job.value, partition=index)
    producer.flush()
    return producer


def _consumer(job: Job, partitions: list[Any]) -> Any:
    """Open a consumer that has read some records and sought back: connected, without prefetched records."""
    settings = {**_settings(job), "max_poll_records": _POLL, "auto_offset_reset": "earliest"}
    settings["check_crcs"] = job.check_crcs != "false"
    if job.group == "none":
        consumer = _kafka.KafkaConsumer(**settings, enable_auto_commit=False)
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
    else:
        consumer = _kafka.KafkaConsumer(*job.names, **settings, group_id=job.group_id)
    while not consumer.poll(timeout_ms=1000, max_records=1):
        pass
    for partition in partitions:
        consumer.seek(partition, 0)
    return consumer


WAYS = {"send": send, "poll": poll, "awaited_send": awaited_send, "send_and_read": send_and_read, "senders": senders}


def main() -> None:
    job = read_job()
    WAYS[job.way](job)


if __name__ == "__main__":
    main()
