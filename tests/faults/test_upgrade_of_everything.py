"""A rolling upgrade of a real cluster from Kafka 3.9 to 4.4 with every protocol in use: nothing is lost or doubled.

An idempotent producer writes all the while. Two members of a classic group read, and later join it again by the
consumer protocol (KIP-848); a transform copies in transactions; a share group begins when the new features are on.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.apache_kafka import missing
from support.everything import Everything, until
from support.kafka_cluster import KafkaCluster
from support.needing import require

from aiokafkawire import Client

pytestmark = [pytest.mark.anyio, pytest.mark.kafka, pytest.mark.brokers, pytest.mark.timeout(900)]

OLD, NEW = "3.9.1", "4.4.0"
STEP = 100
"""How many records are written between two steps of the upgrade."""


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """One loop will do: what a release speaks is the same on all."""
    return "asyncio", {"use_uvloop": False}


async def test_an_upgrade_with_every_protocol_in_use_loses_and_doubles_nothing() -> None:
    require(missing())
    with KafkaCluster(OLD, controllers=3) as cluster:
        load = Everything(cluster.bootstrap)
        await load.create_topics()
        async with Client(cluster.bootstrap) as kafka, anyio.create_task_group() as tasks:
            for part in (load.write, load.transform, load.follow_copies):
                tasks.start_soon(part)
            async with anyio.create_task_group() as members:
                for _ in range(2):
                    members.start_soon(load.read_in_group, "group", "classic")
                await load.some_more(STEP)
                await upgrade(cluster, load)
                members.cancel_scope.cancel()
            await finish_upgrade(kafka)
            for _ in range(2):
                tasks.start_soon(load.read_in_group, "group", "consumer")
            tasks.start_soon(load.share, "shared")
            await until(lambda: "shared" in load.seen and load.seen["shared"].count > 0)
            first = load.first_seen("shared") + STEP // 2
            await load.some_more(STEP)
            load.enough = True
            for name in ("group", "copies"):
                await load.wait_until_all_is_seen(name)
            await load.wait_until_all_is_seen("shared", first)
            (described,) = (await kafka.admin.describe_consumer_groups(["group"])).values()
            tasks.cancel_scope.cancel()
    assert described.type == "consumer"
    assert {name: seen.disordered for name, seen in load.seen.items()} == dict.fromkeys(load.seen, 0)
    assert load.seen["copies"].repeated == load.seen["shared"].repeated == 0
    print(f"{OLD} to {NEW}: {load.written} records; the group read {load.seen['group'].repeated} again")


async def upgrade(cluster: KafkaCluster, load: Everything) -> None:
    """Restart each node in turn as the newest release, the controllers first, while records go through."""
    for node in (*cluster.controllers, 1, 2, 3):
        await anyio.to_thread.run_sync(replace_node, cluster, node)
        await load.some_more(STEP)


def replace_node(cluster: KafkaCluster, node: int) -> None:
    cluster.end(node)
    cluster.use(node, NEW)
    cluster.launch(node)
    if node not in cluster.controllers:
        cluster.wait_alive(node)
    cluster.wait_whole()


async def finish_upgrade(kafka: Client) -> None:
    """Turn on what the newest release has: the consumer protocol and share groups with it."""
    supported = (await kafka.admin.describe_features()).supported_features
    for feature in ("metadata.version", "transaction.version", "group.version", "share.version"):
        await kafka.admin.update_features({feature: supported[feature].max_version})
