"""Connection pools on a network of scripted brokers, and a clock that stands still."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from aiokafkawire.cluster.connection_pool import ConnectionPool
from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.runtime import Owner, Runtime
from aiokafkawire.types import Address

from .clusters import Net
from .connecting import running_tasks

__all__ = ("A", "B", "C", "Clock", "brokers_on")

A, B, C = (Address(host, 9092) for host in "abc")


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@asynccontextmanager
async def brokers_on(net: Net, clock: Clock | None = None, **options: Any) -> AsyncIterator[ConnectionPool]:
    """The connections to the brokers of a network; afterwards no task of them is left, and none has failed."""
    before, faults = running_tasks(), list[Exception]()
    owner = Owner(faults.append)
    await owner.open()
    runtime = Runtime(now=clock or Clock(), chance=Random(1))
    brokers = ConnectionPool(make_config(ClientConfig, options), net.connect, owner, runtime)
    try:
        yield brokers
    finally:
        await brokers.close()
        await owner.close()
    assert running_tasks() <= before
    assert faults == []
