"""Members of groups, which topics they read, and on which clusters and loops."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from secrets import token_hex

import pytest
from contract.conftest import Where
from support.apache_kafka import ApacheKafka
from support.readers import Reader, Readers, reading

from aiokafkawire import Client, TopicPartition
from aiokafkawire.errors import GroupIdNotFound
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.testing.broker import Broker

ASYNCIO, UVLOOP = ("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})
TRIO: tuple[str, dict[str, bool]] = ("trio", {})

SOME_CLUSTERS = pytest.mark.parametrize(
    ("anyio_backend", "cluster"),
    [
        pytest.param(ASYNCIO, "in-process", id="asyncio-in-process"),
        pytest.param(UVLOOP, "in-process", id="uvloop-in-process"),
        pytest.param(TRIO, "memory", id="trio-memory"),
        pytest.param(ASYNCIO, "apache-kafka", id="asyncio-apache-kafka", marks=pytest.mark.kafka),
    ],
    indirect=True,
)
"""Each loop and each cluster once: little depends on which meets which."""

_QUICK_HEARTBEATS = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
}

COUNT = 60
"""Records that a topic is filled with, a third of them in each partition."""
SOON = {"metadata_max_age_ms": 100}
"""For a client that hears of new topics and partitions by itself."""


@pytest.fixture
def group() -> str:
    """A group that no other test uses."""
    return f"group-{token_hex(6)}"


@pytest.fixture(scope="session")
def apache_kafka_quick(apache_kafka: ApacheKafka) -> Iterator[ApacheKafka]:
    """A server whose consumer groups (KIP-848) learn of changes sooner than every 5 s."""
    with ApacheKafka(apache_kafka.version, properties=_QUICK_HEARTBEATS) as kafka:
        yield kafka


@pytest.fixture(params=["in-process", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
async def quick_cluster(request: pytest.FixtureRequest, kafka_release: str | None) -> AsyncIterator[Where]:
    """A cluster whose consumer groups learn of changes at once."""
    if request.param == "apache-kafka":
        yield Where(request.getfixturevalue("apache_kafka_quick").bootstrap, connect_tcp)
        return
    async with Broker(group_consumer_heartbeat_interval_ms=100, max_versions=kafka_release) as broker:
        yield Where(broker.bootstrap, connect_tcp)


@pytest.fixture
async def readers(kafka: Client) -> AsyncIterator[Readers]:
    async with reading() as all_:
        yield all_


@pytest.fixture
async def filled(kafka: Client, topic: str) -> str:
    """A topic of three partitions with COUNT records, which are numbers."""
    await write(kafka, topic, 0, COUNT)
    return topic


async def write(kafka: Client, topic: str, first: int, end: int) -> None:
    """Numbers, each into the partition that it leaves divided by three."""
    async with kafka.producer() as producer:
        for number in range(first, end):
            await producer.enqueue(topic, b"%d" % number, partition=number % 3)


def all_of(topic: str, count: int = 3) -> set[TopicPartition]:
    return {TopicPartition(topic, index) for index in range(count)}


def numbers(*readers: Reader) -> list[int]:
    """What all of them have read, in order; twice what was read twice."""
    return sorted(int(value) for reader in readers for value in reader.values if value is not None)


async def committed_by(kafka: Client, group: str, topic: str) -> int:
    """The sum of what is committed for the topic's partitions."""
    found = await kafka.admin.list_consumer_group_offsets(group)
    return sum(at.offset for where, at in found.items() if where.topic == topic)


async def members_of(kafka: Client, group: str) -> int:
    """How many members the group has, once it is stable."""
    try:
        found = (await kafka.admin.describe_groups(group))[group]
    except GroupIdNotFound:
        return 0
    return len(found.members) if found.state == "Stable" else 0
