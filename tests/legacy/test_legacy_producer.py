"""Producing to the partitions that ZooKeeper knows."""

import random

import pytest
from anyio.lowlevel import checkpoint
from support.legacy_cluster import legacy_cluster
from support.zookeeper import ZooKeeperServer

from aiokafkawire.errors import ConnectionLost, UsageError
from aiokafkawire.legacy.cluster import Registry
from aiokafkawire.legacy.producer import LegacyProducer, java_hash_partitioner
from aiokafkawire.legacy.registry import BrokerPartition
from aiokafkawire.legacy.zookeeper import EventType, Watch, WatchEvent
from aiokafkawire.runtime import Runtime

pytestmark = pytest.mark.anyio


async def test_a_topic_that_nobody_has_is_begun_at_partition_0_of_some_broker(zookeeper: ZooKeeperServer) -> None:
    async with (
        legacy_cluster(zookeeper, 2, 2) as cluster,
        LegacyProducer(cluster.zookeeper, connector=cluster.connect) as producer,
    ):
        places = {await producer.send("new", [b"x"]) for _ in range(40)}
        assert places == {BrokerPartition(0, 0), BrokerPartition(1, 0)}
        await producer.confirm()
        assert {len(cluster.logs(broker).content("new", 0)) > 0 for broker in (0, 1)} == {True}


async def test_messages_spread_over_all_partitions_of_all_brokers(zookeeper: ZooKeeperServer) -> None:
    runtime = Runtime(chance=random.Random(7))
    async with legacy_cluster(zookeeper, 2, 1) as cluster:
        for broker in (0, 1):
            await cluster.topic(broker, "t")
        async with LegacyProducer(cluster.zookeeper, connector=cluster.connect, runtime=runtime) as producer:
            sent = [(await producer.send("t", [b"%d" % number]), b"%d" % number) for number in range(50)]
            await producer.confirm()
        for place in (BrokerPartition(0, 0), BrokerPartition(0, 1), BrokerPartition(1, 0)):
            stored = cluster.logs(place.broker).content("t", place.partition)
            assert stored
            assert stored == [value for where, value in sent if where == place]


async def test_a_key_names_its_partition_as_in_java(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 2, 2) as cluster:
        for broker in (0, 1):
            await cluster.topic(broker, "t")
        async with LegacyProducer(cluster.zookeeper, connector=cluster.connect) as producer:
            found = [await producer.send("t", [b"x"], key=key) for key in ("a", "b", "hello", "a")]
        assert found == [BrokerPartition(0, 1), BrokerPartition(1, 0), BrokerPartition(1, 0), BrokerPartition(0, 1)]


def test_the_hash_is_javas() -> None:
    assert java_hash_partitioner("hello", 10**9) == 99162322
    assert java_hash_partitioner("polygenelubricants", 10) == 0  # its hash code is the least number, as known
    assert java_hash_partitioner("", 3) == 0
    assert java_hash_partitioner("\U0001f600", 10**9) == 1772899  # two units, as in UTF-16


async def test_brokers_that_come_are_sent_to(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 1, 1) as cluster:
        await cluster.topic(0, "t")
        async with LegacyProducer(cluster.zookeeper, connector=cluster.connect) as producer:
            assert {await producer.send("t", [b"x"]) for _ in range(20)} == {BrokerPartition(0, 0)}
            await cluster.topic(1, "t")
            places: set[BrokerPartition] = set()
            while len(places) < 2:  # the watch has to arrive
                places.add(await producer.send("t", [b"x"]))
                await checkpoint()
            await cluster.leave(0)
            while True:
                try:
                    found = {await producer.send("t", [b"x"]) for _ in range(20)}
                except ConnectionLost:  # the connection to the broker that went
                    continue
                if found == {BrokerPartition(1, 0)}:
                    break


async def test_what_changes_while_it_is_asked_for_is_asked_again(
    zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    async def partitions(self: Registry, topic: str, watch: Watch) -> dict[int, int]:
        nonlocal asked
        asked += 1
        if asked == 1:
            watch(WatchEvent(EventType.CHILDREN_CHANGED, f"/brokers/topics/{topic}"))
        return {0: asked}

    monkeypatch.setattr(Registry, "partitions", partitions)
    async with (
        legacy_cluster(zookeeper, 3) as cluster,
        LegacyProducer(
            cluster.zookeeper, connector=cluster.connect, partitioner=lambda key, count: count - 1
        ) as producer,
    ):
        assert [(await producer.send("t", [b"x"], key="k")).partition for _ in range(3)] == [0, 1, 1]


async def test_no_broker_is_up(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper) as cluster, LegacyProducer(cluster.zookeeper) as producer:
        with pytest.raises(ConnectionLost, match="no broker is registered"):
            await producer.send("t", [b"x"])


async def test_a_partitioner_may_be_the_users(zookeeper: ZooKeeperServer) -> None:
    async with legacy_cluster(zookeeper, 3) as cluster:
        await cluster.topic(0, "t")
        async with LegacyProducer(
            cluster.zookeeper, connector=cluster.connect, partitioner=lambda key, count: len(key)
        ) as producer:
            assert await producer.send("t", [b"x"], key="ab") == BrokerPartition(0, 2)
            with pytest.raises(UsageError, match="chose 4 of 3"):
                await producer.send("t", [b"x"], key="abcd")
