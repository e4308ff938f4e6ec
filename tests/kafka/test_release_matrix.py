"""Every release of Apache Kafka from 0.8.0 on: what of it works, as docs/releases.md tells."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from secrets import token_hex
from time import time
from typing import Any
from uuid import UUID

import anyio
import pytest
from support.apache_kafka import missing
from support.kafka_releases import RELEASES, KafkaRelease, number_of
from support.needing import require
from support.patience import PATIENCE, SOON
from support.release_table import PAGE, ReleaseTable

from aiokafkawire import (
    Client,
    ConsumerRecord,
    ElectionType,
    OffsetSpec,
    TopicPartition,
    TopicPartitionReplica,
    UnsupportedVersion,
)
from aiokafkawire.admin.admin import Admin
from aiokafkawire.admin.new_topics import NewTopic
from aiokafkawire.cluster.connection_pool import CONTROL
from aiokafkawire.config import parse_servers
from aiokafkawire.errors import KafkaError, UnknownTopicOrPartition
from aiokafkawire.protocol.primitives import ZERO_UUID

pytestmark = [pytest.mark.anyio, pytest.mark.matrix, pytest.mark.timeout(400)]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """One loop will do: what a release speaks is the same on all."""
    return "asyncio", {"use_uvloop": False}


@pytest.fixture(scope="module")
def table() -> Iterator[ReleaseTable]:
    """Written down at the end, if it is whole: nobody has to see to it that the page is what was found."""
    table = ReleaseTable(RELEASES)
    yield table
    if table.write():
        pytest.fail(f"{PAGE.name} was not what this run has found; now it is: look what has changed, and commit it")


@pytest.fixture(scope="module", params=RELEASES)
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaRelease]:
    """A broker of each release, for all tests one after the other."""
    require(missing())
    with KafkaRelease(request.param) as kafka:
        yield kafka


class Found:
    """What a test finds goes into the table, and has to be what is expected."""

    def __init__(self, table: ReleaseTable, release: str) -> None:
        self._table, self.release, self.number = table, release, number_of(release)

    def note(self, feature: str, cell: str, *changes: tuple[str, str]) -> None:
        """``changes``: from which release on which cell is expected, from old to new."""
        assert cell == [expected for since, expected in changes if self.number >= number_of(since)][-1], feature
        self._table.add(feature, self.release, cell)


@pytest.fixture
def found(table: ReleaseTable, kafka: KafkaRelease) -> Found:
    return Found(table, kafka.version)


@asynccontextmanager
async def client_of(kafka: KafkaRelease, *, create: bool = True) -> AsyncIterator[Client]:
    async with Client(kafka.bootstrap, allow_auto_create_topics=create) as client:
        with anyio.fail_after(PATIENCE):
            yield client


@pytest.fixture
async def client(kafka: KafkaRelease) -> AsyncIterator[Client]:
    async with Client(kafka.bootstrap, allow_auto_create_topics=True) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"topic-{token_hex(6)}"


async def produce(client: Client, topic: str, count: int = 3, **options: Any) -> None:
    async with client.producer(linger_ms=5, **options) as producer:
        sent = [await producer.enqueue(topic, b"%d" % number * 50, key=b"k", partition=0) for number in range(count)]
        for delivery in sent:
            await delivery


async def consume(client: Client, topic: str, count: int = 3, **options: Any) -> list[ConsumerRecord[Any, Any]]:
    async with client.consumer(auto_offset_reset="earliest", **options) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with anyio.fail_after(PATIENCE):
            return [await anext(consumer) for _ in range(count)]


async def works(call: Callable[[], Any]) -> str:
    """Whether it is done, or refused for the broker's age."""
    try:
        with anyio.fail_after(PATIENCE):
            await call()
    except UnsupportedVersion:
        return "no"
    return "yes"


NO_UNTIL = ("0", "no")


async def test_versions(client: Client, kafka: KafkaRelease, found: Found) -> None:
    (address,) = parse_servers(kafka.bootstrap)
    connection = await client._cluster.brokers.connection(address, CONTROL)
    assert connection.known is not None
    release = connection.known.release
    assert release == (None if found.number >= (0, 10) else ".".join(kafka.version.split(".")[:3]))
    told = "yes" if release is None else "silent" if release == "0.9.0" else "closes"
    found.note("ApiVersions", told, ("0", "closes"), ("0.9", "silent"), ("0.10", "yes"))


async def test_metadata_makes_no_topic(kafka: KafkaRelease, found: Found, topic: str) -> None:
    async with client_of(kafka, create=False) as client:
        async with client.producer(max_block_ms=1_000) as producer:
            with pytest.raises(KafkaError):
                await producer.send(topic, b"")
        with pytest.raises(UnknownTopicOrPartition):  # it was asked for now, however slow the broker is
            await client.admin.describe_topic(topic)
        made = topic in await client.admin.list_topics()
    found.note("Metadata creates no topic", "no" if made else "yes", ("0", "yes"))


async def test_timestamps(client: Client, found: Found, topic: str) -> None:
    began = int(time() * 1000)
    await produce(client, topic)
    records = await consume(client, topic)
    assert records[0].key == b"k"
    timed = records[0].timestamp >= began
    found.note("Timestamps", "yes" if timed else "no", NO_UNTIL, ("0.10", "yes"))


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_acks(client: Client, found: Found, topic: str, acks: Any) -> None:
    # With acks=0 nobody says that the leader of a new topic knows it by now: what it refuses is lost. So is what 0.9
    # reads together with the end of the connection: the producer stays open.
    await client.admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.LATEST})
    async with client.producer(linger_ms=5, acks=acks) as producer:
        for number in range(3):
            await producer.send(topic, b"%d" % number * 50, partition=0)
        records = await consume(client, topic)
    assert [one.value for one in records] == [b"%d" % number * 50 for number in range(3)]
    found.note(f"Acks {acks}", "yes", ("0", "yes"))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_codecs(client: Client, found: Found, topic: str, codec: str) -> None:
    async def there_and_back() -> None:
        await produce(client, topic, 20, compression_type=codec)
        records = await consume(client, topic, 20)
        assert [one.value for one in records] == [b"%d" % number * 50 for number in range(20)]

    since = {"zstd": "2.1", "lz4": "0.8.2"}.get(codec, "0")
    cell = await works(there_and_back)
    found.note(f"Codec {codec}", cell, NO_UNTIL, (since, "yes"))


async def test_headers(client: Client, found: Found, topic: str) -> None:
    async def send() -> None:
        async with client.producer() as producer:
            await producer.send(topic, b"v", partition=0, headers={"h": b"x"})
        (record,) = await consume(client, topic, 1)
        assert list(record.headers) == [("h", b"x")]

    found.note("Headers", await works(send), NO_UNTIL, ("0.11", "yes"))


async def test_idempotence(client: Client, found: Found, topic: str) -> None:
    async def send() -> None:
        async with client.producer(enable_idempotence=True) as producer:
            await producer.send(topic, b"v")

    found.note("Idempotence", await works(send), NO_UNTIL, ("0.11", "yes"))


async def test_transactions(client: Client, found: Found, topic: str) -> None:
    async def send() -> None:
        async with client.producer(transactional_id=topic) as producer, producer.transaction():
            await producer.send(topic, b"v", partition=0)
        (record,) = await consume(client, topic, 1, isolation_level="read_committed")
        assert record.value == b"v"

    found.note("Transactions", await works(send), NO_UNTIL, ("0.11", "yes"))


async def test_offsets_by_time(client: Client, found: Found, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await produce(client, topic)

    async def at(spec: OffsetSpec) -> Any:
        return (await client.admin.list_offsets({where: spec}, timeout=PATIENCE))[where]

    assert ((await at(OffsetSpec.EARLIEST)).offset, (await at(OffsetSpec.LATEST)).offset) == (0, 3)
    old = await at(OffsetSpec.at(1))
    assert old.offset == 0
    cell = "records" if old.timestamp >= 0 else "segments"
    found.note("Offsets by time", cell, ("0", "segments"), ("0.10.1", "records"))
    highest = await works(lambda: at(OffsetSpec.MAX_TIMESTAMP))
    found.note("Offset of the highest timestamp", highest, NO_UNTIL, ("3.0", "yes"))


async def test_commits(client: Client, found: Found, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await produce(client, topic)

    async def commit_and_read_on() -> None:
        async with client.consumer(group_id=topic, enable_auto_commit=False) as consumer:
            consumer.assign([where])
            await consumer.commit({where: 2})
        async with client.consumer(group_id=topic, auto_offset_reset="none", enable_auto_commit=False) as consumer:
            consumer.assign([where])
            assert (await anext(consumer)).offset == 2
        assert set(await client.admin.list_consumer_group_offsets(topic, timeout=PATIENCE)) == {where}

    async def commit_for_a_minute() -> None:
        async with client.consumer(group_id=topic, enable_auto_commit=False) as consumer:
            consumer.assign([where])
            await consumer.commit({where: 3}, retention_ms=60_000)

    found.note("Commits with assign()", await works(commit_and_read_on), NO_UNTIL, ("0.8.1", "yes"))
    found.note("Commit retention", await works(commit_for_a_minute), NO_UNTIL, ("0.9", "yes"))


async def test_groups(client: Client, found: Found, topic: str) -> None:
    await produce(client, topic)

    async def share() -> None:
        async with (
            client.consumer(group_id=topic, auto_offset_reset="earliest") as one,
            client.consumer(group_id=topic, auto_offset_reset="earliest") as other,
        ):
            one.subscribe(topic)
            assert (await anext(one)).value is not None
            assert len(one.assignment) == 2
            other.subscribe(topic)
            while not (len(one.assignment) == len(other.assignment) == 1):
                for consumer in (one, other):
                    await consumer.poll(timeout=0.05)
            assert set(one.assignment).isdisjoint(other.assignment)

    if found.number < (0, 9):
        with (
            anyio.fail_after(SOON),
            pytest.raises(UnsupportedVersion, match=r"came with Kafka 0\.9: assign\(\) partitions"),
        ):
            await share()
    found.note("Groups of two, rebalanced", await works(share), NO_UNTIL, ("0.9", "yes"))


async def test_static_members(client: Client, found: Found, topic: str) -> None:
    await produce(client, topic)

    async def join() -> None:
        async with client.consumer(group_id=topic, group_instance_id="i", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            await anext(consumer)

    found.note("Static members", await works(join), NO_UNTIL, ("2.3", "yes"))


async def eventually(admin: Admin, topic: str, *, there: bool) -> None:
    """Brokers hear of it one after the other, and old ones delete in the background."""
    while (topic in await admin.list_topics()) is not there:  # noqa: ASYNC110 - nothing tells of it
        await anyio.sleep(0.02)


async def test_topics_are_made_and_deleted(client: Client, found: Found, topic: str) -> None:
    admin = client.admin
    made = await works(lambda: admin.create_topics({topic: NewTopic(3, 1)}))
    found.note("Topics created and deleted", made, NO_UNTIL, ("0.10.1", "yes"))
    if made == "yes":
        with anyio.fail_after(PATIENCE):
            await eventually(admin, topic, there=True)
            assert len((await admin.describe_topic(topic)).partitions) == 3
            await admin.delete_topics([topic])
            await eventually(admin, topic, there=False)


async def test_topics_by_the_brokers_defaults(client: Client, found: Found, topic: str) -> None:
    made = await works(lambda: client.admin.create_topics({topic: 3}))
    found.note("Topics with the brokers' defaults", made, NO_UNTIL, ("2.4", "yes"))


async def test_topics_by_id(client: Client, found: Found, topic: str) -> None:
    await produce(client, topic)
    topic_id = (await client.admin.describe_topics(topic))[topic].topic_id
    unknown = UUID(int=1) if topic_id == ZERO_UUID else topic_id

    async def describe() -> None:
        assert (await client.admin.describe_topics(unknown))[unknown].name == topic

    found.note("Topics described by id", await works(describe), NO_UNTIL, ("3.1", "yes"))
    deleted = await works(lambda: client.admin.delete_topics(unknown))
    found.note("Topics deleted by id", deleted, NO_UNTIL, ("2.8", "yes"))


async def test_partitions_are_added_and_records_deleted(client: Client, found: Found, topic: str) -> None:
    await produce(client, topic)
    admin, where = client.admin, TopicPartition(topic, 0)

    async def delete() -> None:
        assert await admin.delete_records({where: 2}) == {where: 2}
        assert (await consume(client, topic, 1))[0].offset == 2

    found.note("Records deleted", await works(delete), NO_UNTIL, ("0.11", "yes"))

    async def extend() -> None:
        await admin.create_partitions({topic: 5})
        while len((await admin.describe_topics(topic))[topic].partitions) < 5:  # noqa: ASYNC110 - nothing tells of it
            await anyio.sleep(0.02)

    found.note("Partitions added", await works(extend), NO_UNTIL, ("1.0", "yes"))


async def test_replicas_and_leaders(client: Client, found: Found, topic: str) -> None:
    await produce(client, topic)
    admin, where = client.admin, TopicPartition(topic, 0)
    (node,) = (await admin.describe_topics(topic))[topic].partitions[0].replicas

    async def look() -> None:
        (log_dir,) = (await admin.describe_log_dirs(node))[node].values()
        assert log_dir.replica_infos[where].size > 100
        (found,) = (await admin.describe_replica_log_dirs([TopicPartitionReplica(topic, 0, node)])).values()
        assert found.current_log_dir

    found.note("Log directories described", await works(look), NO_UNTIL, ("1.0", "yes"))
    for kind, since in ((ElectionType.PREFERRED, "2.2"), (ElectionType.UNCLEAN, "2.4")):

        async def elect(kind: ElectionType = kind) -> None:
            assert await admin.elect_leaders(kind, [where]) == {where: False}

        found.note(f"Leaders elected, {kind.name.lower()}", await works(elect), NO_UNTIL, (since, "yes"))

    async def reassign() -> None:
        await admin.alter_partition_reassignments({where: [node]})
        while where in await admin.list_partition_reassignments():  # noqa: ASYNC110 - nothing tells of it
            await anyio.sleep(0.02)

    found.note("Partitions reassigned", await works(reassign), NO_UNTIL, ("2.4", "yes"))


async def test_groups_are_listed_and_described(client: Client, found: Found, topic: str) -> None:
    await produce(client, topic)
    admin = client.admin

    async def look() -> None:
        async with client.consumer(group_id=topic, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            await anext(consumer)
            assert topic in [one.group_id for one in await admin.list_groups()]
            described = (await admin.describe_groups(topic))[topic]
            assert described.state == "Stable"
            assert len(described.members) == 1

    found.note("Groups listed and described", await works(look), NO_UNTIL, ("0.9", "yes"))


async def test_groups_are_deleted(client: Client, found: Found, topic: str) -> None:
    await produce(client, topic)

    async def commit_and_delete() -> None:
        async with client.consumer(group_id=topic) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.commit({TopicPartition(topic, 0): 1})
        await client.admin.delete_groups(topic)

    found.note("Groups deleted", await works(commit_and_delete), NO_UNTIL, ("1.1", "yes"))
