"""confluent-kafka's consumers of a large group, a thread each."""

import logging
import threading
from collections.abc import Iterable
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaException

from benchmarks.group_growth.crowd import Job, Voice, read_job, wait_close, wait_join

_POLL = 0.1
"""Seconds that one ``poll`` waits at most, and so the order to close."""
_QUIET = logging.getLogger("benchmarks.group_growth")


def crowd(job: Job, voice: Voice) -> None:
    """Join on order, read until the order to close, and close in order."""
    wait_join()
    order = threading.Event()
    threads = [threading.Thread(target=_consume, args=(job, voice, one, order)) for one in range(job.consumers)]
    for thread in threads:
        thread.start()
    wait_close()
    order.set()
    for thread in threads:
        thread.join()
    voice.flush()


def _consume(job: Job, voice: Voice, number: int, order: threading.Event) -> None:
    def assigned(_: object, partitions: Iterable[Any]) -> None:
        voice.assigned(number, [one.partition for one in partitions])

    def revoked(_: object, partitions: Iterable[Any]) -> None:
        voice.revoked(number, [one.partition for one in partitions])

    consumer = Consumer(_settings(job), logger=_QUIET)
    try:
        consumer.subscribe([job.topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        while not order.is_set():
            message = consumer.poll(_POLL)
            if message is None:
                continue
            error, partition = message.error(), message.partition()
            if error is not None:
                voice.error(f"{error.name()}: {error.str()}")
                continue
            assert partition is not None
            voice.read(partition, message.value())
    except KafkaException as error:
        voice.error(error)
    finally:
        consumer.close()


def _settings(job: Job) -> dict[str, Any]:
    settings = {
        "bootstrap.servers": job.bootstrap,
        "group.id": job.topic,
        "auto.offset.reset": "earliest",
        "group.protocol": job.protocol,
    }
    return settings | ({} if job.protocol == "consumer" else {"partition.assignment.strategy": "cooperative-sticky"})


def main() -> None:
    _QUIET.addHandler(logging.NullHandler())
    _QUIET.propagate = False
    crowd(read_job(), Voice(f"librdkafka {confluent_kafka.libversion()[0]}"))


if __name__ == "__main__":
    main()
