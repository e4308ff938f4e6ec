"""Two members of a group on three brokers of Apache Kafka that are restarted in order, or killed: nothing is lost.

Each test tells the longest time in which nobody got a record: ``pytest -m faults -s``. A broker that was killed counts
as in sync until broker.session.timeout.ms (9 s) is over: so long no record with acks=all is written anywhere.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import pairwise
from secrets import token_hex
from typing import Any

import anyio
import pytest
from support.apache_kafka import missing
from support.kafka_cluster import KafkaCluster
from support.needing import require
from support.readers import Partitions, Reader, Readers, reading

from aiokafkawire import Client, ConsumerRecord
from aiokafkawire.admin.new_topics import NewTopic

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.kafka,
    pytest.mark.faults,
    pytest.mark.timeout(400),
]

PARTITIONS = 6
RATE = 200
"""Records per second."""
PATIENCE = 90.0
"""Seconds in which everything has to be well again; much more than it takes, for a machine may be busy."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaCluster]:
    require(missing())
    with KafkaCluster() as cluster:
        yield cluster


CONSUMER: dict[str, Any] = {"group_protocol": "consumer"}


def by_strategy(strategy: str) -> dict[str, Any]:
    return {"partition_assignment_strategy": [strategy]}


def name_of(how: dict[str, Any]) -> str:
    return str(how.get("group_protocol") or how["partition_assignment_strategy"][0])


class Load:
    """A steady producer and members that read what it writes, each with a client of its own."""

    def __init__(self, kafka: Client, readers: Readers, clients: list[Client], topic: str) -> None:
        self.written = 0
        self.members: list[Reader] = []
        self.readers, self.topic = readers, topic
        self._kafka, self._clients = kafka, clients
        self._over = anyio.Event()
        self._read: Counter[int] = Counter()
        self._newest = [-1] * PARTITIONS
        self._arrivals: list[float] = []

    async def join(self, **options: Any) -> Reader:
        """Another member."""
        client = self._clients[len(self.members)]
        if options.get("group_protocol") != "consumer":  # in which the brokers have the session timeout
            options["session_timeout_ms"] = 30_000
        member = await self.readers.join(client, self.topic, self.topic, **options)
        member.on_record = self._took
        self.members.append(member)
        return member

    async def write(self) -> None:
        """Numbers, each into the partition that it leaves, until it is over; none may fail."""
        async with self._kafka.producer() as producer:
            while not self._over.is_set():
                await producer.enqueue(self.topic, b"%d" % self.written, partition=self.written % PARTITIONS)
                self.written += 1
                await anyio.sleep(1 / RATE)

    async def goes_on(self) -> None:
        """Wait until of every partition something was read that is written from now on."""
        first = self.written
        await self.readers.until(lambda: min(self._newest) >= first, PATIENCE)

    async def coordinator(self) -> str:
        """Where the group's coordinator listens."""
        return str((await self._kafka.admin.describe_groups(self.topic))[self.topic].coordinator)

    async def finish(self, what: str) -> None:
        """End it: everything must have been read. Tells how long it took at worst."""
        self._over.set()
        with contextlib.suppress(AssertionError):  # what is missing says more
            await self.readers.until(lambda: len(self._read) >= self.written, PATIENCE)
        assert sorted(set(range(self.written)) - set(self._read)) == []
        assert all(one.errors == [] for one in self.members)
        gap = max(after - before for before, after in pairwise(self._arrivals))
        again = self._read.total() - self.written
        print(f"\n{what}: at most {gap:.1f} s without a new record; {self.written} records, {again} read again")

    def _took(self, record: ConsumerRecord[bytes, bytes]) -> None:
        number = int(record.value or b"")
        if number not in self._read:
            self._arrivals.append(time.monotonic())
        self._read[number] += 1
        self._newest[record.partition] = max(self._newest[record.partition], number)


@pytest.fixture
async def load(brokers: KafkaCluster) -> AsyncIterator[Load]:
    topic = f"load-{token_hex(4)}"
    async with AsyncExitStack() as stack:
        kafka, *clients = [await stack.enter_async_context(Client(brokers.bootstrap)) for _ in range(3)]
        await kafka.admin.create_topics({topic: NewTopic(PARTITIONS, 3)})
        await anyio.to_thread.run_sync(brokers.wait_whole)
        readers = await stack.enter_async_context(reading())
        yield Load(kafka, readers, clients, topic)


@pytest.mark.parametrize("how", [*map(by_strategy, ("range", "cooperative-sticky")), CONSUMER], ids=name_of)
async def test_brokers_are_restarted_in_order_one_after_the_other(
    brokers: KafkaCluster, load: Load, how: dict[str, Any]
) -> None:
    async with anyio.create_task_group() as tasks:
        members = [await load.join(**how) for _ in range(2)]
        await load.readers.share(*members, count=PARTITIONS, patience=PATIENCE)
        tasks.start_soon(load.write)
        for node in (1, 2, 3):
            await load.goes_on()
            await anyio.to_thread.run_sync(brokers.end, node)
            await load.goes_on()
            await anyio.to_thread.run_sync(brokers.restart, node)
            await anyio.to_thread.run_sync(brokers.wait_whole)
        await load.goes_on()
        await load.finish(f"rolling restart, {name_of(how)}")
    # Nobody was away for a session, so nobody has lost anything.
    assert all("lost" not in member.words() for member in members)


@pytest.mark.parametrize("how", [by_strategy("range"), CONSUMER], ids=name_of)
async def test_the_coordinator_is_killed_while_the_group_is_stable(
    brokers: KafkaCluster, load: Load, how: dict[str, Any]
) -> None:
    async with anyio.create_task_group() as tasks:
        members = [await load.join(**how) for _ in range(2)]
        await load.readers.share(*members, count=PARTITIONS, patience=PATIENCE)
        tasks.start_soon(load.write)
        await load.goes_on()
        told, generation = [len(member.told) for member in members], members[0].generation
        node = brokers.node_at(await load.coordinator())
        await anyio.to_thread.run_sync(brokers.kill, node)
        await load.goes_on()
        # A coordinator that is silent takes nothing away, and the next one knows the group.
        await members[0].consumer.commit(members[0].consumer.positions())
        assert members[0].generation == generation
        assert [len(member.told) for member in members] == told
        await anyio.to_thread.run_sync(brokers.restart, node)
        await anyio.to_thread.run_sync(brokers.wait_whole)
        await load.finish(f"coordinator killed while stable, {name_of(how)}")


async def test_the_coordinator_is_killed_while_the_group_rebalances(brokers: KafkaCluster, load: Load) -> None:
    rebalancing, killed = anyio.Event(), anyio.Event()

    async def wait(going: Partitions) -> None:
        rebalancing.set()
        await killed.wait()

    async with anyio.create_task_group() as tasks:
        one = await load.join()
        await load.readers.until(lambda: len(one.owned) == PARTITIONS, PATIENCE)
        tasks.start_soon(load.write)
        await load.goes_on()
        node = brokers.node_at(await load.coordinator())
        one.on["revoked"] = wait
        two = await load.join()
        # Now the coordinator holds the JoinGroup of one, and waits for that of the other.
        await rebalancing.wait()
        await anyio.to_thread.run_sync(brokers.kill, node)
        one.on.clear()
        killed.set()
        await load.readers.share(one, two, count=PARTITIONS, patience=PATIENCE)
        await load.goes_on()
        await anyio.to_thread.run_sync(brokers.restart, node)
        await anyio.to_thread.run_sync(brokers.wait_whole)
        await load.finish("coordinator killed while rebalancing")
