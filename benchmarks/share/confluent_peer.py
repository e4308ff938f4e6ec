"""Measures the share consumer of confluent-kafka, which is librdkafka: one way of using it, once."""

from typing import Any

from confluent_kafka import KafkaException, ShareConsumer

from benchmarks.clients.confluent_settings import VERSION, connecting
from benchmarks.clients.measurement import Job, Watch, print_share, read_job
from benchmarks.share.group import begin_at_earliest


def share_explicit(job: Job) -> None:
    """``poll()``, then ``acknowledge(message)`` for every message."""
    _consume(job, "explicit")


def share_implicit(job: Job) -> None:
    """``poll()``, which accepts the messages of the last one."""
    _consume(job, "implicit")


def _consume(job: Job, mode: str) -> None:
    """Start the clock with the first messages, and stop it once the brokers have taken note of the last."""
    watch = Watch(job)
    consumer = ShareConsumer(
        {
            **connecting(job),
            "group.id": job.group_id,
            "share.acknowledgement.mode": mode,
            "max.poll.records": job.max_poll_records,
            "socket.nagle.disable": True,
        }
    )
    consumer.subscribe(job.names)
    is_explicit, wanted = mode == "explicit", job.records * job.value_size
    while not (messages := consumer.poll(1.0)):
        pass
    first = len(messages)
    with watch:
        size = _process(consumer, messages, is_explicit=is_explicit)
        while size < wanted:
            size += _process(consumer, consumer.poll(1.0), is_explicit=is_explicit)
        for error in consumer.commit_sync().values():
            if error is not None:
                raise KafkaException(error)
    consumer.close()
    print_share(job, watch, first=first, done=size // job.value_size, version=VERSION)


def _process(consumer: ShareConsumer, messages: Any, *, is_explicit: bool) -> int:
    size = 0
    for message in messages:
        if message.error() is not None:
            raise KafkaException(message.error())
        size += len(message.value() or b"")
        if is_explicit:
            consumer.acknowledge(message)
    return size


WAYS = {"share_explicit": share_explicit, "share_implicit": share_implicit}


def main() -> None:
    job = read_job()
    begin_at_earliest(job)
    WAYS[job.way](job)


if __name__ == "__main__":
    main()
