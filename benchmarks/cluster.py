"""The measured Kafka, booted for the run or running already, and its topics."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from support.apache_kafka import NEWEST, ApacheKafka, missing

from aiokafkawire import Client, KafkaError, NewTopic, OffsetSpec, TopicPartition
from aiokafkawire.errors import UnknownTopicOrPartition

JVM = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
"""Kafka's own defaults. The tests' broker has a smaller heap and only the first of Java's two compilers."""

_AT_ONCE = 5_000
_PATIENCE_MS = 600_000
_SETTINGS = {"log.segment.delete.delay.ms": "1000"}
"""Logs of deleted topics go at once: those of 10,000 partitions are too many to keep for a minute."""


class _MeasuredKafka(ApacheKafka):
    """The tests' Apache Kafka with the options of a server."""

    java_options = JVM


@dataclass(frozen=True)
class Kafka:
    """The addresses of the cluster."""

    bootstrap: str
    description: str
    tls_bootstrap: str = ""
    """Its address for TLS; empty if it has none."""
    ca_file: str = ""
    """The authority of its certificate."""


@contextlib.contextmanager
def kafka(*, tls: bool = False, properties: Mapping[str, str] | None = None) -> Iterator[Kafka]:
    """Boot a node for a run, with a second listener if ``tls``; ``properties`` are settings of the broker.

    :raises SystemExit: there is no Kafka to boot; the message says what is missing.
    """
    lacks = missing()
    if lacks is not None:
        raise SystemExit(f"cannot boot Apache Kafka here, use --bootstrap instead. {lacks}")
    description = f"Apache Kafka {NEWEST} on this machine, one node, {' '.join(JVM[:3])}"
    settings = _SETTINGS | dict(properties or {})
    if not tls:
        with _MeasuredKafka(properties=settings) as booted:
            yield Kafka(booted.bootstrap, description)
        return
    from benchmarks.tls import certify

    with tempfile.TemporaryDirectory() as folder:
        of_tls, authority = certify(Path(folder))
        with _MeasuredKafka(properties=settings | of_tls, listeners={"SSL": "SSL"}) as booted:
            yield Kafka(booted.bootstrap, description, booted.addresses["SSL"], str(authority))


@contextlib.contextmanager
def kafka_to_kill() -> Iterator[tuple[str, Callable[[], None]]]:
    """Boot a node; yield its address, and a function that ends it as ``kill -9`` does."""
    with ApacheKafka(properties={"group.initial.rebalance.delay.ms": "0"}) as booted:
        yield booted.bootstrap, booted.kill


def create_topics(bootstrap: str, names: Sequence[str], partitions: int) -> None:
    """Create topics with one replica a partition, and wait until they are known and their logs are there."""

    async def create() -> None:
        async with Client(bootstrap, default_api_timeout_ms=_PATIENCE_MS) as client:
            # A controller refuses to create many more partitions than this at once.
            step = max(1, _AT_ONCE // partitions)
            for start in range(0, len(names), step):
                some = names[start : start + step]
                await client.admin.create_topics({name: NewTopic(partitions, 1) for name in some})
                for name in some:
                    await _until_known(client, name)

    anyio.run(create)
    # A broker that creates many logs answers late; it returns their ends when it is done.
    records_in(bootstrap, names, partitions)


async def _until_known(client: Client, name: str) -> None:
    # The controller answers before the brokers know of the topic.
    with anyio.fail_after(60):
        while True:
            with contextlib.suppress(UnknownTopicOrPartition):
                await client.admin.describe_topic(name)
                return
            await anyio.sleep(0.05)


def records_in(bootstrap: str, names: Sequence[str], partitions: int) -> int:
    """Return the number of records in topics without transactions and compaction."""

    async def count() -> int:
        where = [TopicPartition(name, index) for name in names for index in range(partitions)]
        async with Client(bootstrap, default_api_timeout_ms=_PATIENCE_MS) as client:
            ends = await client.admin.list_offsets(dict.fromkeys(where, OffsetSpec.LATEST))
        return sum(end.offset for end in ends.values() if end is not None)

    return anyio.run(count)


def delete_topics(bootstrap: str, names: Sequence[str]) -> None:
    """Delete topics, as far as the cluster allows it."""

    async def delete() -> None:
        async with Client(bootstrap) as client:
            await client.admin.delete_topics(names)

    with contextlib.suppress(KafkaError):
        anyio.run(delete)
