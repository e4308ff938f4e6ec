"""What consumers do with the replicas of a real cluster: the closest is read (KIP-392), and when one takes over that
has lost records, that is noticed (KIP-320)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack
from secrets import token_hex

import anyio
import pytest
from anyio.to_thread import run_sync
from support.apache_kafka import missing
from support.kafka_cluster import KafkaCluster
from support.metering import Meter
from support.needing import require

from aiokafkawire import Client, Consumer, ConsumerRecord, TopicPartition
from aiokafkawire.admin.new_topics import NewTopic
from aiokafkawire.cluster.metadata import Partition
from aiokafkawire.config import AutoOffsetReset
from aiokafkawire.errors import LogTruncated

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.kafka,
    pytest.mark.faults,
    pytest.mark.timeout(300),
]

RACKS = {1: "r1", 2: "r2", 3: "r3"}
PATIENCE = 60.0
"""Seconds in which everything has to be well again; much more than it takes, for a machine may be busy."""
SIZE, COUNT = 20_000, 50
"""Bytes of a record and how many there are: together much more than all other answers."""
READ_PER_FETCH = 100_000
POLICIES: tuple[AutoOffsetReset, ...] = ("none", "earliest", "latest")
LOSSY = NewTopic(1, 2, {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
"""A topic that prefers losing records to having no leader."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaCluster]:
    require(missing())
    properties = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with KafkaCluster(properties=properties, racks=RACKS) as cluster:
        yield cluster


@pytest.fixture
async def kafka(brokers: KafkaCluster) -> AsyncIterator[Client]:
    async with Client(brokers.bootstrap) as client:
        yield client


async def make(brokers: KafkaCluster, kafka: Client, topic: NewTopic) -> TopicPartition:
    """A topic of one partition, which all brokers know and all its replicas follow."""
    name = f"replicas-{token_hex(4)}"
    await kafka.admin.create_topics({name: topic})
    await run_sync(lambda: brokers.wait_whole(topic=name))
    return TopicPartition(name, 0)


async def known(kafka: Client, where: TopicPartition) -> Partition:
    (partition,) = (await kafka.admin.describe_topic(where.topic)).partitions
    return partition


async def write(kafka: Client, where: TopicPartition, values: Iterable[bytes]) -> None:
    async with kafka.producer() as producer:
        for value in values:
            await producer.send(where.topic, value)


async def take(consumer: Consumer[bytes, bytes], count: int) -> list[ConsumerRecord[bytes, bytes]]:
    with anyio.fail_after(PATIENCE):
        return [await anext(consumer) for _ in range(count)]


def large(first: int, end: int) -> list[bytes]:
    return [(b"%d" % number).ljust(SIZE) for number in range(first, end)]


def small(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


def numbers(records: Iterable[ConsumerRecord[bytes, bytes]]) -> list[int]:
    return [int(record.value or b"") for record in records]


def source(consumer: Consumer[bytes, bytes], where: TopicPartition) -> str:
    """Who is asked for its records, by its address."""
    return str(consumer.health().partitions[where].broker)


async def test_the_replica_in_the_consumers_rack_is_read_while_it_lives(brokers: KafkaCluster, kafka: Client) -> None:
    where = await make(brokers, kafka, NewTopic(1, 3))
    await write(kafka, where, large(0, COUNT))
    before = await known(kafka, where)
    node = next(one for one in before.replicas if one != before.leader)
    leader, follower = brokers.address_of(before.leader or 0), brokers.address_of(node)
    meter = Meter()
    async with (
        Client(brokers.bootstrap, connector=meter) as near,
        near.consumer(client_rack=RACKS[node], max_partition_fetch_bytes=READ_PER_FETCH) as consumer,
    ):
        consumer.assign({where: 0})
        assert numbers(await take(consumer, COUNT)) == list(range(COUNT))
        for number in range(COUNT, COUNT + 10):  # now at the end of the log, which followers learn of last
            await write(kafka, where, large(number, number + 1))
            assert numbers(await take(consumer, 1)) == [number]
        assert source(consumer, where) == follower
        assert meter.received[follower] > (COUNT + 10) * SIZE
        assert meter.received[leader] < SIZE

        # It dies while much of what it holds is still to be read, and the rest comes from the leader.
        await write(kafka, where, large(COUNT + 10, 2 * COUNT))
        assert numbers(await take(consumer, 10)) == list(range(COUNT + 10, COUNT + 20))
        await run_sync(brokers.kill, node)
        await write(kafka, where, large(2 * COUNT, 2 * COUNT + 10))
        assert numbers(await take(consumer, COUNT - 10)) == list(range(COUNT + 20, 2 * COUNT + 10))
        assert source(consumer, where) == leader
        assert meter.received[leader] > 20 * SIZE

        await run_sync(brokers.restart, node)
        await run_sync(brokers.wait_whole)
        number = 2 * COUNT + 10
        with anyio.fail_after(PATIENCE):
            while source(consumer, where) != follower:
                await write(kafka, where, large(number, number + 1))
                assert numbers(await take(consumer, 1)) == [number]
                number += 1


@pytest.mark.parametrize("rack", ["", "r9"])
async def test_without_a_replica_in_its_rack_the_leader_is_read(
    brokers: KafkaCluster, kafka: Client, rack: str
) -> None:
    where = await make(brokers, kafka, NewTopic(1, 3))
    await write(kafka, where, large(0, COUNT))
    before = await known(kafka, where)
    meter = Meter()
    async with (
        Client(brokers.bootstrap, connector=meter) as far,
        far.consumer(client_rack=rack, max_partition_fetch_bytes=READ_PER_FETCH) as consumer,
    ):
        consumer.assign({where: 0})
        assert numbers(await take(consumer, COUNT)) == list(range(COUNT))
        assert source(consumer, where) == brokers.address_of(before.leader or 0)
    assert {address for address, size in meter.received.items() if size > SIZE} == {source(consumer, where)}


async def write_unevenly(brokers: KafkaCluster, kafka: Client, where: TopicPartition) -> tuple[int, int]:
    """Ten records, of which the follower has the first five: it is down from then on. Who leads, and who follows."""
    before = await known(kafka, where)
    first = before.leader or 0
    (second,) = (one for one in before.replicas if one != first)
    await write(kafka, where, small(0, 5))
    await run_sync(brokers.end, second)
    await write(kafka, where, small(5, 10))
    return first, second


async def change_over(brokers: KafkaCluster, where: TopicPartition, first: int, second: int) -> None:
    """The leader dies, and the one that lacks five records leads."""
    await run_sync(brokers.kill, first)
    await run_sync(brokers.restart, second)
    await run_sync(brokers.wait_led, where.topic, second)


async def mend(brokers: KafkaCluster, node: int) -> None:
    await run_sync(brokers.restart, node)
    await run_sync(brokers.wait_whole)


async def test_a_log_that_lost_records_is_not_read_on_as_if_nothing_had_happened(
    brokers: KafkaCluster, kafka: Client
) -> None:
    where = await make(brokers, kafka, LOSSY)
    async with AsyncExitStack() as stack:
        first, second = await write_unevenly(brokers, kafka, where)
        consumers = {}
        for policy in POLICIES:
            consumer = consumers[policy] = kafka.consumer(auto_offset_reset=policy)
            await stack.enter_async_context(consumer)
            consumer.assign({where: 0})
            assert numbers(await take(consumer, 10)) == list(range(10))
        await change_over(brokers, where, first, second)
        # So many that the position is an offset of the new log as well: only its epochs tell that it is another.
        await write(kafka, where, small(100, 110))
        with pytest.raises(LogTruncated) as told:
            await take(consumers["none"], 1)
        assert (told.value.partition, told.value.position, told.value.diverging_offset) == (where, 10, 5)
        consumers["none"].seek(where, 5)
        for consumer in consumers.values():
            records = await take(consumer, 10)
            assert [record.offset for record in records] == list(range(5, 15))
            assert numbers(records) == list(range(100, 110))
    await mend(brokers, first)


async def test_what_a_group_has_committed_is_held_against_the_log_as_well(brokers: KafkaCluster, kafka: Client) -> None:
    where = await make(brokers, kafka, LOSSY)
    first, second = await write_unevenly(brokers, kafka, where)
    groups = {policy: f"{where.topic}-{policy}" for policy in POLICIES}
    for group in groups.values():
        async with kafka.consumer(group_id=group, auto_offset_reset="earliest") as consumer:
            consumer.assign([where])
            assert numbers(await take(consumer, 10)) == list(range(10))
            await consumer.commit()
    await change_over(brokers, where, first, second)
    await write(kafka, where, small(100, 102))
    for policy, group in groups.items():
        async with kafka.consumer(group_id=group, auto_offset_reset=policy) as consumer:
            consumer.assign([where])
            if policy == "none":
                with pytest.raises(LogTruncated) as told:
                    await take(consumer, 1)
                assert (told.value.partition, told.value.position, told.value.diverging_offset) == (where, 10, 5)
            else:
                assert numbers(await take(consumer, 2)) == [100, 101]
    await mend(brokers, first)
