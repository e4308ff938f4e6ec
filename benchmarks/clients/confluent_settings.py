"""The settings of confluent-kafka in measurements."""

from typing import Any

import confluent_kafka
from confluent_kafka import Producer

from benchmarks.clients.measurement import Job

VERSION = f"librdkafka {confluent_kafka.libversion()[0]}"


def connecting(job: Job) -> dict[str, Any]:
    """Return the settings of all its clients."""
    settings: dict[str, Any] = {"bootstrap.servers": job.bootstrap}
    if job.tls:
        settings |= {"security.protocol": "ssl", "ssl.ca.location": job.ca_file}
    return settings


def producing(job: Job, linger_ms: int) -> dict[str, Any]:
    """Return the settings of all its producers."""
    return {
        **connecting(job),
        "acks": 1,
        "linger.ms": linger_ms,
        "batch.size": job.batch_size,
        "message.max.bytes": 1_048_576,  # the same limit as the other clients'
        "compression.type": job.compression,
        "max.in.flight.requests.per.connection": job.in_flight,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 1_048_576,
        "socket.nagle.disable": True,
    }


def new_producer(job: Job, linger_ms: int, more: dict[str, Any] | None = None) -> Producer:
    """Open a producer that has sent to every partition."""
    producer = Producer({**producing(job, linger_ms), **(more or {})})
    for name, index in job.places:
        producer.produce(name, job.value, partition=index)
    producer.flush()
    return producer
