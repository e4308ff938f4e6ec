"""Brokers of 0.7 in memory, registered in a real ZooKeeper as real ones are."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint
from support.zookeeper import ZooKeeperServer

from aiokafkawire.legacy.errors import NodeExists
from aiokafkawire.legacy.registry import BROKERS, TOPICS
from aiokafkawire.legacy.zookeeper import ZooKeeper
from aiokafkawire.network.connector import Connector
from aiokafkawire.testing.legacy.logs import LegacyLogs
from aiokafkawire.testing.legacy.server import LegacyServer

__all__ = ("LegacyCluster", "legacy_cluster")

_ROOTS = itertools.count()


class LegacyCluster:
    """Some brokers, and the sessions that they are registered by."""

    def __init__(self, zookeeper: str) -> None:
        self.zookeeper = zookeeper
        """What to give clients as ZooKeeper's servers: a root of its own."""
        self.servers: dict[int, LegacyServer] = {}
        self.sessions: dict[int, ZooKeeper] = {}

    @property
    def connect(self) -> Connector:
        """One connector for all brokers."""
        by_address = {(server.host, server.port): server for server in self.servers.values()}

        async def connect(host: str, port: int) -> ByteStream:
            server = by_address.get((host, port))
            if server is None:
                await checkpoint()
                raise ConnectionRefusedError(f"nothing listens at {host}:{port}")
            return await server.connect(host, port)

        return connect

    def logs(self, broker: int) -> LegacyLogs:
        return self.servers[broker].logs

    async def register(self, broker: int) -> None:
        """A broker comes."""
        server, session = self.servers[broker], self.sessions[broker]
        address = f"{server.host}:{server.port}"
        await session.ensure(BROKERS)
        await session.create(f"{BROKERS}/{broker}", f"{server.host}-1795:{address}".encode(), ephemeral=True)

    async def topic(self, broker: int, topic: str) -> None:
        """A broker makes a topic known, as it does when it stores the first message of it."""
        session = self.sessions[broker]
        await session.ensure(f"{TOPICS}/{topic}")
        count = self.logs(broker).partitions(topic)
        try:
            await session.create(f"{TOPICS}/{topic}/{broker}", b"%d" % count, ephemeral=True)
        except NodeExists:
            return

    async def leave(self, broker: int) -> None:
        """A broker goes."""
        await self.sessions[broker].__aexit__(None, None, None)
        await self.servers[broker].hang_up()


@asynccontextmanager
async def legacy_cluster(zookeeper: ZooKeeperServer, *partitions: int, **settings: Any) -> AsyncIterator[LegacyCluster]:
    """A cluster whose brokers have so many partitions of every topic each."""
    root = f"/cluster-{next(_ROOTS)}"
    async with ZooKeeper(zookeeper.address) as first:
        await first.create(root)
    cluster = LegacyCluster(zookeeper.address + root)
    async with _servers(cluster, list(partitions), settings):
        yield cluster


@asynccontextmanager
async def _servers(cluster: LegacyCluster, partitions: list[int], settings: dict[str, Any]) -> AsyncIterator[None]:
    if not partitions:
        yield
        return
    broker = len(cluster.servers)
    async with (
        LegacyServer(host=f"broker-{broker}", num_partitions=partitions[0], **settings) as server,
        ZooKeeper(cluster.zookeeper) as session,
    ):
        cluster.servers[broker], cluster.sessions[broker] = server, session
        await cluster.register(broker)
        async with _servers(cluster, partitions[1:], settings):
            yield
