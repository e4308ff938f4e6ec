"""confluent-kafka, which is librdkafka, as a member of a group under fault."""

import contextlib
import logging
import threading
import time
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaException

from benchmarks.group_faults.member import LOOK_EVERY, PATIENCE, REST, Membership, Voice, on_order, read_membership

_POLL = 0.1
"""Seconds that one ``poll`` waits at most, and so the order to close."""


def member(job: Membership, voice: Voice) -> None:
    """Read until the request to close. A consumer that keeps failing is replaced by another."""
    order = threading.Event()
    given: list[float] = []

    def give() -> None:
        given.append(time.monotonic())
        order.set()

    on_order(give)
    while not order.is_set():
        try:
            with contextlib.closing(_consumer(job)) as consumer:
                consumer.subscribe([job.topic])
                _read(consumer, voice, order)
        except KafkaException as error:
            voice.error(error)
            order.wait(REST)
    voice.closed(given[0])


def _consumer(job: Membership) -> Consumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": job.bootstrap,
        "group.id": job.group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": True,
        "auto.commit.interval.ms": job.commit_interval_ms,
        # By default a record counts as finished before poll() has returned it.
        "enable.auto.offset.store": False,
        "group.protocol": job.protocol,
    }
    if job.protocol == "consumer":
        settings["group.remote.assignor"] = job.assignor
    else:
        settings |= {
            "session.timeout.ms": job.session_timeout_ms,
            "heartbeat.interval.ms": job.heartbeat_interval_ms,
            "partition.assignment.strategy": job.assignor,
        }
    return Consumer(settings, logger=logging.getLogger("confluent_kafka"))


def _read(consumer: Consumer, voice: Voice, order: threading.Event) -> None:
    failures, look_at = 0, 0.0
    while failures < PATIENCE and not order.is_set():
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + LOOK_EVERY
            voice.assigned(one.partition for one in consumer.assignment())
        message = consumer.poll(_POLL)
        if message is None:
            continue
        error, partition = message.error(), message.partition()
        if error is not None:
            failures += 1
            voice.error(f"{error.name()}: {error.str()}")
            order.wait(REST)
            continue
        failures = 0
        assert partition is not None
        voice.read(partition, message.value())
        # Refused if the partition has been taken away meanwhile.
        with contextlib.suppress(KafkaException):
            consumer.store_offsets(message)


def main() -> None:
    job = read_membership()
    voice = Voice(logging.getLogger("confluent_kafka"), f"librdkafka {confluent_kafka.libversion()[0]}")
    member(job, voice)


if __name__ == "__main__":
    main()
