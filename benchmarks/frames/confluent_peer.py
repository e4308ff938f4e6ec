"""Writes a frame with ``produce`` for each row, and reads it with ``consume(10000)``, a frame for each call."""

from functools import partial
from typing import Final

import polars as pl
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from benchmarks.frames.frame import PARTITIONS, Job, measure, new_frame, read_job

_POLL_EVERY = 1_000
_CONSUME = 10_000
_SCHEMA: Final[dict[str, pl.DataType | type[pl.DataType]]] = {
    "key": pl.Binary,
    "value": pl.Binary,
    "offset": pl.Int64,
    "timestamp": pl.Datetime("ms", "UTC"),
}


def write(job: Job, frame: pl.DataFrame) -> None:
    """Write the frame without reports of success, which take longer."""
    producer = Producer(
        {
            "bootstrap.servers": job.bootstrap,
            "acks": 1,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "message.max.bytes": 1_048_576,
            "compression.type": job.compression,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
            "partitioner": "murmur2_random",
            "delivery.report.only.error": True,
        }
    )
    produce, topic = producer.produce, job.topic
    for number, (key, value) in enumerate(zip(frame["key"].to_list(), frame["value"].to_list(), strict=True)):
        while True:
            try:
                produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.01)
        if number % _POLL_EVERY == 0:
            producer.poll(0)
    producer.flush()


def read(job: Job) -> pl.DataFrame:
    """Read the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": "frames",
            "enable.auto.commit": False,
            # By default it holds 100,000 records or 64 MB, and pauses for a second whenever it holds more.
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 1_048_576,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([TopicPartition(job.topic, index, 0) for index in range(PARTITIONS)])
    # A frame for each call: lists of all rows would be visited by the garbage collector again and again.
    frames: list[pl.DataFrame] = []
    left = job.rows
    while left:
        messages = consumer.consume(min(_CONSUME, left), 1.0)
        failed = next((message.error() for message in messages if message.error() is not None), None)
        if failed is not None:
            raise KafkaException(failed)
        if messages:
            frames.append(_frame(messages))
            left -= len(messages)
    consumer.close()
    return pl.concat(frames)


def _frame(messages: list[Message]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "key": [message.key() for message in messages],
            "value": [message.value() for message in messages],
            "offset": [message.offset() for message in messages],
            "timestamp": [message.timestamp()[1] for message in messages],
        },
        schema=_SCHEMA,
    )


if __name__ == "__main__":
    job = read_job()
    measure(partial(read, job) if job.task == "read" else partial(write, job, new_frame(job.rows)), job.rows)
