"""The Kafka to measure against: one booted for the run, or one that runs already; and topics on it."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.apache_kafka import NEWEST, ApacheKafka, missing

from aiokafkawire import Client, KafkaError, NewTopic, OffsetSpec, TopicPartition
from aiokafkawire.errors import UnknownTopicOrPartition

JVM = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
"""Kafka's own defaults. The tests' broker has a smaller heap and only the first of Java's two compilers."""


class _MeasuredKafka(ApacheKafka):
    """The tests' Apache Kafka under the options that a server runs with."""

    def _launch(self, command: list[str], log: Path) -> None:
        java, rest = command[0], command[command.index("-cp") :]
        super()._launch([java, *JVM, *rest], log)


@contextlib.contextmanager
def kafka(bootstrap: str | None) -> Iterator[tuple[str, str]]:
    """The cluster's address and a line that describes it.

    :raises SystemExit: there is no Kafka to use; the message says what is missing.
    """
    if bootstrap is not None:
        yield bootstrap, f"the cluster at {bootstrap}"
        return
    lacks = missing()
    if lacks is not None:
        raise SystemExit(f"cannot boot Apache Kafka here, use --bootstrap instead. {lacks}")
    with _MeasuredKafka() as booted:
        yield booted.bootstrap, f"Apache Kafka {NEWEST} on this machine, one node, {' '.join(JVM[:3])}"


@contextlib.contextmanager
def kafka_to_kill() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a node booted for this, and what ends it as ``kill -9`` does."""
    with ApacheKafka(properties={"group.initial.rebalance.delay.ms": "0"}) as booted:
        yield booted.bootstrap, booted.kill


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    """Create a topic with one replica a partition, and wait until it is known."""

    async def create() -> None:
        async with Client(bootstrap) as client:
            await client.admin.create_topics({name: NewTopic(partitions, 1)})
            # The controller answers before the brokers have heard of it.
            with anyio.fail_after(30):
                while True:
                    with contextlib.suppress(UnknownTopicOrPartition):
                        await client.admin.describe_topic(name)
                        return
                    await anyio.sleep(0.05)

    anyio.run(create)


def records_in(bootstrap: str, name: str, partitions: int) -> int:
    """How many records the brokers hold of a topic, which has been written only plainly."""

    async def count() -> int:
        where = [TopicPartition(name, index) for index in range(partitions)]
        async with Client(bootstrap) as client:
            ends = await client.admin.list_offsets(dict.fromkeys(where, OffsetSpec.LATEST))
        return sum(end.offset for end in ends.values() if end is not None)

    return anyio.run(count)


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic, as far as the cluster allows it."""

    async def delete() -> None:
        async with Client(bootstrap) as client:
            await client.admin.delete_topics([name])

    with contextlib.suppress(KafkaError):
        anyio.run(delete)
