"""Streams to a broker, for clients that are given one: over TCP, or over memory to one in this process."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import anyio
from anyio.abc import ByteStream

from aiokafkawire.testing.broker import Broker

__all__ = ("WAYS", "Dial", "Open", "over_memory", "over_tcp")

Dial: TypeAlias = Callable[[], Awaitable[ByteStream]]
"""Opens one more stream to the same broker."""
Open: TypeAlias = Callable[[Broker], Awaitable[ByteStream]]


def over_memory(broker: Broker) -> Awaitable[ByteStream]:
    host, _, port = broker.bootstrap.rpartition(":")
    return broker.connect(host, int(port))


def over_tcp(broker: Broker | str) -> Awaitable[ByteStream]:
    """To an in-process broker that listens, or to an address."""
    host, _, port = (broker if isinstance(broker, str) else broker.bootstrap).rpartition(":")
    return anyio.connect_tcp(host, int(port))


WAYS: Mapping[str, Open] = MappingProxyType({"memory": over_memory, "tcp": over_tcp})
