"""The brokers and topics that are registered in ZooKeeper, and a client for each broker."""

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
from .watches import Watch
from .zookeeper import ZooKeeper

__all__ = ("BrokerClients", "Registry")

_TRIES: Final = 10
"""How often a node may be there for one question, and not for the next."""
_LONGEST_ID: Final = 10


class Registry:
    """Reads what brokers have registered; every call takes a watch that hears of the next change."""

    def __init__(self, zookeeper: ZooKeeper) -> None:
        self._zookeeper = zookeeper

    async def brokers(self, watch: Watch | None = None) -> dict[int, Address]:
        """The brokers that are up, by id."""
        found: dict[int, Address] = {}
        for name in await self._children(BROKERS, watch):
            path = f"{BROKERS}/{name}"
            try:
                data, _ = await self._zookeeper.get(path)
            except NoNode:  # it left meanwhile, and the watch has heard of it
                continue
            found[_broker_id(name, path)] = parse_broker(data, path)
        return found

    async def topics(self, watch: Watch | None = None) -> list[str]:
        """The names of all topics; a topic stays here when its brokers are down."""
        return await self._children(TOPICS, watch)

    async def partitions(self, topic: str, watch: Watch | None = None) -> dict[int, int]:
        """How many partitions each broker has of a topic; nothing for one that is not there."""
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
                # Its creation is what there is to hear of; if it was created just now, its children are.
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
    """A client for each broker that was asked for; use it as ``async with``."""

    def __init__(
        self, *, connector: Connector = connect_tcp, runtime: Runtime | None = None, **options: Unpack[LegacyOptions]
    ) -> None:
        self._connector, self._runtime, self._options = connector, runtime, options
        self._addresses: dict[int, Address] = {}
        self._clients: dict[Address, LegacyClient] = {}
        self._stack = AsyncExitStack()
        self._opening = anyio.Lock()

    def know(self, addresses: dict[int, Address]) -> None:
        """Where brokers listen now."""
        self._addresses = dict(addresses)

    @property
    def opened(self) -> list[LegacyClient]:
        """The clients that were asked for so far."""
        return list(self._clients.values())

    async def of(self, broker: int) -> LegacyClient:
        """The client of a broker.

        Raises:
            ConnectionLost: it is not registered.
        """
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
