"""Reads the brokers and topics that are registered in ZooKeeper, and makes a client for each broker."""

from contextlib import AsyncExitStack
from typing import Final, Unpack

import anyio

from ..errors import ConnectionLost, WireError
from ..network.connector import Connector, connect_tcp
from ..runtime import Runtime
from ..types import Address
from .client import LegacyClient
from .errors import NoNode
from .registry import BROKERS, TOPICS, parse_broker, parse_count
from .settings import LegacyOptions
from .zookeeper import Watch, ZooKeeper

__all__ = ("BrokerClients", "Registry")

_TRIES: Final = 10
"""The limit of retries if a node disappears between two requests."""
_LONGEST_ID: Final = 10


class Registry:
    """A reader of brokers' registrations in ZooKeeper. Each method's ``watch`` receives the result's next change."""

    def __init__(self, zookeeper: ZooKeeper) -> None:
        self._zookeeper = zookeeper

    async def brokers(self, watch: Watch | None = None) -> dict[int, Address]:
        """Return the addresses of the registered brokers, by id."""
        found: dict[int, Address] = {}
        for name in await self._children(BROKERS, watch):
            path = f"{BROKERS}/{name}"
            try:
                data, _ = await self._zookeeper.get(path)
            except NoNode:  # the broker was removed meanwhile: the watch has received the change
                continue
            found[_broker_id(name, path)] = parse_broker(data, path)
        return found

    async def topics(self, watch: Watch | None = None) -> list[str]:
        """Return the names of all topics. A topic remains registered when its brokers are down."""
        return await self._children(TOPICS, watch)

    async def partitions(self, topic: str, watch: Watch | None = None) -> dict[int, int]:
        """Return the number of the topic's partitions on each broker, by broker id; empty for an unknown topic."""
        found: dict[int, int] = {}
        for name in await self._children(f"{TOPICS}/{topic}", watch):
            path = f"{TOPICS}/{topic}/{name}"
            try:
                data, _ = await self._zookeeper.get(path, watch)
            except NoNode:
                continue
            found[_broker_id(name, path)] = parse_count(data, path)
        return found

    async def _children(self, path: str, watch: Watch | None) -> list[str]:
        tries = 0
        while True:
            try:
                return await self._zookeeper.children(path, watch)
            except NoNode:
                # Watch for the node's creation; if it was created meanwhile, read its children again.
                if await self._zookeeper.exists(path, watch) is None:
                    return []
                tries += 1
                if tries == _TRIES:
                    raise


def _broker_id(name: str, path: str) -> int:
    if not (name.isascii() and name.isdecimal() and len(name) <= _LONGEST_ID and int(name) < 2**31):
        raise WireError(f"{path:.300}: {name!r:.100} is not the id of a broker")
    return int(name)


class BrokerClients:
    """The clients of a cluster's brokers, each opened when it is first needed. Use the object as ``async with``."""

    def __init__(
        self, *, connector: Connector = connect_tcp, runtime: Runtime | None = None, **options: Unpack[LegacyOptions]
    ) -> None:
        self._connector, self._runtime, self._options = connector, runtime, options
        self._addresses: dict[int, Address] = {}
        self._clients: dict[Address, LegacyClient] = {}
        self._stack = AsyncExitStack()
        self._opening = anyio.Lock()

    def know(self, addresses: dict[int, Address]) -> None:
        """Set the brokers' addresses, by broker id, instead of the previous addresses."""
        self._addresses = dict(addresses)

    @property
    def opened(self) -> list[LegacyClient]:
        """The clients that were opened so far."""
        return list(self._clients.values())

    async def of(self, broker: int) -> LegacyClient:
        """Return the client of a broker; raise ConnectionLost if the broker is not registered."""
        address = self._addresses.get(broker)
        if address is None:
            raise ConnectionLost(f"broker {broker} is not registered in ZooKeeper: it is down, or not up yet")
        async with self._opening:
            client = self._clients.get(address)
            if client is None:
                client = LegacyClient(*address, connector=self._connector, runtime=self._runtime, **self._options)
                await self._stack.enter_async_context(client)
                self._clients[address] = client
            return client

    async def __aenter__(self) -> "BrokerClients":
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._stack.aclose()
