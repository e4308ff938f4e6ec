"""The blocks of docs/legacy.md as they stand, on brokers in memory, and with a real ZooKeeper."""

from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

import anyio
import pytest
from support.legacy_cluster import legacy_cluster
from support.page_blocks import blocks_of
from support.patience import SOON
from support.zookeeper import ZooKeeperServer

import aiokafkawire
from aiokafkawire import Client, legacy
from aiokafkawire.testing import Broker, LegacyServer

pytestmark = pytest.mark.anyio

DIRECT, GROUP, MIGRATION = (one.code for one in blocks_of(Path(__file__).parents[2] / "docs" / "legacy.md"))
SERVERS = "zk1:2181,zk2:2181"


async def printed_by(code: str, *, lines: int) -> list[tuple[object, ...]]:
    """Run a block until it has printed so many lines, or to its end if that is none."""
    printed: list[tuple[object, ...]] = []

    def note(*values: object) -> None:
        printed.append(values)
        if len(printed) == lines:
            scope.cancel()

    names: dict[str, Any] = {"print": note}
    exec(f"async def block():\n{indent(code, '    ')}", names)
    with anyio.fail_after(SOON), anyio.CancelScope() as scope:
        await names["block"]()
    return printed


def instead(monkeypatch: pytest.MonkeyPatch, name: str, of: str, address: str, **options: Any) -> None:
    """Let a name of aiokafkawire.legacy take an address for the page's."""
    real = getattr(legacy, name)

    def at(servers: str, *arguments: Any, **others: Any) -> Any:
        assert servers == of
        return real(address, *arguments, **options, **others)

    monkeypatch.setattr(legacy, name, at)


async def test_a_broker_with_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LegacyServer(host="old-kafka") as server:
        monkeypatch.setattr(legacy, "LegacyClient", partial(legacy.LegacyClient, connector=server.connect))
        assert await printed_by(DIRECT, lines=2) == [(0, b"UA1545"), (16, b"DL461")]


async def test_a_group(zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster:
        await cluster.topic(0, "flights")
        for name in ("LegacyProducer", "LegacyConsumer"):
            instead(monkeypatch, name, SERVERS, cluster.zookeeper, connector=cluster.connect)
        assert await printed_by(GROUP, lines=1) == [(0, 0, b"UA1545")]


async def values_of(topic: str, broker: Broker) -> list[bytes | None]:
    async with Client(broker.bootstrap, connector=broker.connect) as client:
        return [record.value async for record in client.read_records(topic)]


async def test_a_migration(zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with legacy_cluster(zookeeper, 1) as cluster, Broker() as broker:
        async with legacy.LegacyProducer(cluster.zookeeper, connector=cluster.connect) as producer:
            await cluster.topic(0, "flights")
            await producer.send("flights", [b"UA1545"])
            await producer.confirm()
        broker.create_topic("flights")
        instead(monkeypatch, "sources_from_zookeeper", "zk1:2181", cluster.zookeeper)
        monkeypatch.setattr(legacy, "BrokerClients", partial(legacy.BrokerClients, connector=cluster.connect))

        def client(servers: str) -> Client:
            assert servers == "new-kafka:9092"
            return Client(broker.bootstrap, connector=broker.connect)

        monkeypatch.setattr(aiokafkawire, "Client", client)
        assert await printed_by(MIGRATION, lines=0) == []
        assert await values_of("flights", broker) == [b"UA1545"]
