"""A broker that lets nobody connect, for its packets are lost: the client learns meanwhile who leads instead of it."""

from typing import Any

import anyio
import pytest
from support.clusters import hang
from support.faulty_cluster import FaultyCluster, a, serving
from support.producing import producing
from support.virtual_time import virtual_time

pytestmark = [pytest.mark.anyio, virtual_time]

FAILOVER = 4.0
"""Seconds until the controller notices that the broker is gone: within its first attempt to connect."""


async def fail_over(cluster: FaultyCluster) -> None:
    await anyio.sleep(FAILOVER)
    cluster.move(a(0), 1)


@pytest.mark.parametrize("options", [{}, {"socket_keepalive_enable": False}])
async def test_records_reach_the_new_leader_before_the_attempt_to_connect_to_the_old_one_ends(
    options: dict[str, Any],
) -> None:
    async with serving({a(0): 2}) as cluster, cluster.client(**options) as client:
        cluster.net.hosts["n2"] = hang
        async with producing(client, delivery_timeout_ms=60_000) as producer, anyio.create_task_group() as tasks:
            tasks.start_soon(fail_over, cluster)
            with anyio.fail_after(FAILOVER + 2):
                await producer.send("a", b"x", partition=0)
        assert cluster.values(a(0)) == [b"x"]


async def test_a_reader_follows_as_soon() -> None:
    async with serving({a(0): 2}) as cluster:
        async with cluster.client() as client, producing(client) as producer:
            await producer.send("a", b"x", partition=0)
        cluster.net.hosts["n2"] = hang
        async with cluster.client() as client, client.consumer() as consumer, anyio.create_task_group() as tasks:
            consumer.assign([a(0)])
            consumer.seek(a(0), 0)
            tasks.start_soon(fail_over, cluster)
            with anyio.fail_after(FAILOVER + 2):
                record = await anext(aiter(consumer))
        assert record.value == b"x"


LONG: dict[str, Any] = {
    "retry_backoff_ms": 100,
    "retry_backoff_max_ms": 60_000,
    "reconnect_backoff_max_ms": 60_000,
    "default_api_timeout_ms": 600_000,
}
"""Waits between attempts that grow so long that a test sees who does not wait for their end."""
OUTAGE = 100.0


async def refuse(host: str, port: int) -> Any:
    raise ConnectionRefusedError(111, "Connection refused")


async def test_a_fetch_waits_no_longer_than_until_the_next_attempt_to_connect() -> None:
    reached: list[float] = []
    async with (
        serving({a(0): 2}) as cluster,
        cluster.client(**LONG | {"reconnect_backoff_max_ms": 1_000}) as client,
        client.consumer() as consumer,
    ):
        cluster.on_fetch = lambda node, asked: reached.append(anyio.current_time())
        connect, cluster.net.hosts["n2"] = cluster.net.hosts["n2"], refuse
        consumer.assign([a(0)])
        consumer.seek(a(0), 0)
        await anyio.sleep(OUTAGE)
        cluster.net.hosts["n2"] = connect
        back = anyio.current_time()
        await anyio.sleep(30)
    assert reached[0] - back < 1.5


async def test_the_first_broker_that_is_reachable_again_ends_the_waits_for_the_others() -> None:
    reached: list[float] = []
    async with (
        serving({a(0): 1, a(1): 2}) as cluster,
        cluster.client(**LONG) as client,
        producing(client, delivery_timeout_ms=600_000) as producer,
        client.consumer() as consumer,
    ):
        consumer.assign([a(0), a(1)])
        consumer.seek(a(0), 0)
        consumer.seek(a(1), 0)
        await producer.send("a", b"for the producer's id", partition=0)
        hosts = dict(cluster.net.hosts)
        cluster.net.hosts |= dict.fromkeys(hosts, refuse)
        await client._cluster.brokers.abandon()
        sent = [await producer.enqueue("a", b"x", partition=partition) for partition in (0, 1)]
        await anyio.sleep(OUTAGE)
        cluster.net.hosts |= hosts
        cluster.on_fetch = lambda node, asked: reached.append(anyio.current_time())
        for delivery in sent:
            delivery.add_callback(lambda *_: reached.append(anyio.current_time()))
        await anyio.sleep(180)
    first, *_ = reached
    assert len([at for at in reached if at - first < 0.5]) == 4  # a delivery and a long poll at each broker


async def test_an_attempt_that_ends_soon_asks_for_no_metadata() -> None:
    async with serving({a(0): 2}) as cluster, cluster.client() as client:
        connect = cluster.net.hosts["n2"]

        async def slow(host: str, port: int) -> Any:
            await anyio.sleep(0.9)
            return await connect(host, port)

        cluster.net.hosts["n2"] = slow
        async with producing(client, delivery_timeout_ms=60_000) as producer:
            await producer.partitions_for("a")
            before = cluster.nodes[1].seen.copy()
            await producer.send("a", b"x", partition=0)
        assert [type(one).__name__ for one in cluster.nodes[1].seen[len(before) :]].count("MetadataRequest") == 0
