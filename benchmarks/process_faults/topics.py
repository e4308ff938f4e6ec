"""The records of a run under fault: written at a steady rate with keys, and read back from the sink."""

import threading
import time
from collections.abc import Mapping
from typing import Any

import anyio

from aiokafkawire import Client, ConfigResource, Delivery, KafkaError, NewTopic, OffsetSpec, TopicPartition
from benchmarks.process_faults.judge import Place

_PATIENCE_MS = 300_000


class Writer:
    """A thread that writes numbers with keys until it is stopped; no record may fail.

    Args:
        bootstrap: the brokers.
        topic: the topic.
        rate: records per second.
        keys: how many keys take turns.
    """

    def __init__(self, bootstrap: str, topic: str, rate: int, keys: int) -> None:
        self.places: dict[int, Place] = {}
        """Where each number is, of those that are acknowledged."""
        self.errors: list[str] = []
        self._bootstrap, self._topic, self._rate, self._keys = bootstrap, topic, rate, keys
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: anyio.run(self._write), daemon=True)

    def start(self) -> None:
        """Start to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more, and wait until all is acknowledged."""
        self._over.set()
        self._thread.join()

    async def _write(self) -> None:
        try:
            async with (
                Client(self._bootstrap) as kafka,
                kafka.producer(delivery_timeout_ms=_PATIENCE_MS, max_block_ms=_PATIENCE_MS) as producer,
                anyio.create_task_group() as waiting,
            ):
                began, number = time.monotonic(), 0
                while not self._over.is_set():
                    while number < (time.monotonic() - began) * self._rate:
                        key = b"%d" % (number % self._keys)
                        delivery = await producer.enqueue(self._topic, b"%d" % number, key=key)
                        waiting.start_soon(self._note, number, delivery)
                        number += 1
                    await anyio.sleep(0.01)
        except* KafkaError as errors:
            self.errors += [str(error) for error in errors.exceptions]

    async def _note(self, number: int, delivery: Delivery) -> None:
        try:
            written = await delivery
        except KafkaError as error:
            self.errors.append(f"record {number}: {error}")
        else:
            self.places[number] = written.partition, written.offset


def create(bootstrap: str, topics: Mapping[str, int], replicas: int, *, share_group: str) -> None:
    """Create topics with so many partitions, and let the share group read them from their beginning."""

    async def create_all() -> None:
        async with Client(bootstrap) as kafka:
            await kafka.admin.create_topics({name: NewTopic(count, replicas) for name, count in topics.items()})
            group = {
                "share.auto.offset.reset": "earliest",
                "share.record.lock.duration.ms": "5000",  # how long records of a killed instance wait
                "share.delivery.count.limit": "10",
            }
            await kafka.admin.incremental_alter_configs({ConfigResource.group(share_group): group})

    anyio.run(create_all)


def committed_copies(bootstrap: str, topic: str, partitions: int) -> dict[int, list[tuple[str, int]]]:
    """Return the keys and numbers of the committed records of each partition, up to the last stable offsets."""
    return anyio.run(_read, bootstrap, [TopicPartition(topic, index) for index in range(partitions)])


async def _read(bootstrap: str, partitions: list[TopicPartition]) -> dict[int, list[tuple[str, int]]]:
    found: dict[int, list[tuple[str, int]]] = {one.partition: [] for one in partitions}
    options: dict[str, Any] = {"isolation_level": "read_committed", "enable_auto_commit": False}
    async with Client(bootstrap) as kafka, kafka.consumer(**options) as consumer:
        consumer.assign(dict.fromkeys(partitions, 0))
        ends = await consumer.offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))  # the last stable ones
        while any((consumer.position(one) or 0) < end.offset for one, end in ends.items() if end is not None):
            for record in await consumer.poll(timeout=1.0):
                found[record.partition].append(((record.key or b"").decode(), int(record.value or b"-1")))
    return found
