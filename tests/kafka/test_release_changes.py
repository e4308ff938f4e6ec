"""Three brokers of old and new releases: one that dies takes nothing along, and neither does an upgrade of all."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import anyio
import pytest
from support.apache_kafka import missing
from support.kafka_cluster import KafkaCluster
from support.kafka_releases import KafkaRelease, number_of
from support.needing import require

from aiokafkawire import Client, TopicPartition
from aiokafkawire.admin.new_topics import NewTopic

pytestmark = [pytest.mark.anyio, pytest.mark.matrix, pytest.mark.timeout(400)]

PATIENCE = 180.0
UPGRADED_FROM, UPGRADED_TO = "2.8.2", "3.9.1"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """One loop will do: what a release speaks is the same on all."""
    return "asyncio", {"use_uvloop": False}


class Load:
    """Writes numbers to both partitions of a topic, one after the other, and reads them meanwhile."""

    def __init__(self, client: Client, topic: str) -> None:
        self.client, self.topic = client, topic
        self.written: list[bytes] = []
        self.read: list[bytes] = []
        self.gaps = {"writing": 0.0, "reading": 0.0}
        """The longest times without an acknowledgement, and without a record, in seconds."""
        self.enough = False
        """Set by the test: the writer stops after the record that it is writing."""
        self._ended = False
        self._more = anyio.Event()
        self._last = dict.fromkeys(self.gaps, anyio.current_time())

    async def write(self) -> None:
        async with self.client.producer(acks="all", linger_ms=5) as producer:
            number = 0
            while not self.enough:
                value = b"%d" % number
                await producer.send(self.topic, value, partition=number % 2)
                self.written.append(value)
                self._note("writing")
                number += 1
                self._tell()
                await anyio.sleep(0.005)
        self._ended = True

    async def follow(self) -> None:
        async with self.client.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(self.topic, 0), TopicPartition(self.topic, 1)])
            while not (self._ended and len(set(self.read)) >= len(self.written)):
                for record in await consumer.poll(timeout=0.1):
                    assert record.value is not None
                    self.read.append(record.value)
                    self._note("reading")

    async def some_more(self, count: int = 50) -> None:
        """Wait until so many more are written."""
        wanted = len(self.written) + count
        while len(self.written) < wanted:
            await self._more.wait()

    def _note(self, what: str) -> None:
        now = anyio.current_time()
        self.gaps[what] = max(self.gaps[what], now - self._last[what])
        self._last[what] = now

    def _tell(self) -> None:
        more, self._more = self._more, anyio.Event()
        more.set()

    def check(self) -> None:
        """Nothing that was acknowledged is missing."""
        assert set(self.written) <= set(self.read)


async def leader_of(client: Client, topic: str) -> int:
    while True:
        leader = (await client.admin.describe_topic(topic)).partitions[0].leader
        if leader is not None:
            return leader
        await anyio.sleep(0.05)


def three_of(release: str) -> KafkaRelease | KafkaCluster:
    """Three brokers; with KRaft they have a controller of their own."""
    return KafkaRelease(release, brokers=3) if number_of(release) < (3, 3) else KafkaCluster(release)


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1.1", "0.8.2.2", "0.9.0.1", "2.8.2", "4.1.1"])
async def test_what_a_dead_leader_led_is_written_and_read_on(release: str) -> None:
    require(missing())
    with three_of(release) as kafka:
        async with Client(kafka.bootstrap, allow_auto_create_topics=True) as client:
            load = Load(client, f"topic-{token_hex(6)}")
            with anyio.fail_after(PATIENCE):
                if isinstance(kafka, KafkaCluster):  # its brokers make no topics by themselves
                    await client.admin.create_topics({load.topic: NewTopic(2, 3)})
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(load.write)
                    await load.some_more(10)
                    tasks.start_soon(load.follow)
                    before = await leader_of(client, load.topic)
                    await anyio.to_thread.run_sync(kafka.kill, before)
                    await load.some_more()
                    assert await leader_of(client, load.topic) != before
                    load.enough = True
            load.check()


async def test_an_upgrade_under_load_loses_nothing() -> None:
    require(missing())
    with KafkaRelease(UPGRADED_FROM, brokers=3) as kafka:
        async with Client(kafka.bootstrap, allow_auto_create_topics=True) as client:
            load = Load(client, f"topic-{token_hex(6)}")
            with anyio.fail_after(2 * PATIENCE):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(load.write)
                    await load.some_more(10)
                    tasks.start_soon(load.follow)
                    for node in (1, 2, 3):
                        settings = {"inter.broker.protocol.version": "2.8"}
                        await anyio.to_thread.run_sync(kafka.upgrade, node, UPGRADED_TO, settings)
                        await load.some_more()
                    load.enough = True
            load.check()
            assert len(load.read) == len(set(load.read)), "these brokers know idempotence: nothing is doubled"
            assert len(load.written) >= 160
            gaps = ", ".join(f"{seconds:.2f} s {what}" for what, seconds in load.gaps.items())
            print(f"{UPGRADED_FROM} to {UPGRADED_TO}: {len(load.written)} records, none lost; longest gaps: {gaps}")
