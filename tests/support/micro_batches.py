"""What a task of a micro-batch writes in its driver's transaction, and what readers of the topic see of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import pyarrow as pa

from aiokafkawire import OffsetSpec, TopicPartition, blocking
from aiokafkawire.spark.options import WriteOptions
from aiokafkawire.spark.partition_writer import write_batches
from aiokafkawire.types import ProducerIdentity

__all__ = ("seen", "seen_at_last", "task", "values_in")

Level: TypeAlias = Literal["read_committed", "read_uncommitted"]


def task(sink: WriteOptions, identity: ProducerIdentity, partition: int, *values: bytes) -> None:
    """What an executor does."""
    rows = pa.record_batch({"value": list(values), "partition": pa.array([partition] * len(values), pa.int32())})
    assert write_batches(sink, [rows], identity=identity) == len(values)


def seen_at_last(sink: WriteOptions) -> list[bytes | None]:
    """What is seen once the brokers have written how the last transaction ended, which comes after they say so."""
    where = dict.fromkeys([TopicPartition(sink.topic or "", index) for index in (0, 1)], OffsetSpec.LATEST)
    with (
        blocking.Client(sink.settings.bootstrap_servers) as kafka,
        kafka.consumer(isolation_level="read_committed") as consumer,
        kafka.consumer() as everything,
    ):
        while consumer.offsets(where) != everything.offsets(where):
            pass
    return seen(sink)


def seen(sink: WriteOptions, *, committed: bool = True) -> list[bytes | None]:
    """The values that readers of committed records see, or all of them, sorted."""
    assert sink.topic is not None
    level: Level = "read_committed" if committed else "read_uncommitted"
    return values_in(sink.settings.bootstrap_servers, sink.topic, 2, level)


def values_in(
    bootstrap: str | Sequence[str], topic: str, partitions: int, level: Level = "read_committed"
) -> list[bytes | None]:
    """The values in a topic, sorted."""
    where = [TopicPartition(topic, index) for index in range(partitions)]
    found: list[bytes | None] = []
    with blocking.Client(bootstrap) as kafka, kafka.consumer(isolation_level=level) as consumer:
        ends = {at: end.offset for at, end in consumer.offsets(dict.fromkeys(where, OffsetSpec.LATEST)).items() if end}
        consumer.assign(dict.fromkeys(where, OffsetSpec.EARLIEST))
        while any((consumer.position(at) or 0) < end for at, end in ends.items()):
            found += [record.value for record in consumer.poll(timeout=0.05)]
    return sorted(found, key=lambda value: value or b"")
