"""Reads from a faulty cluster, and sees what it was asked for."""

from typing import Any

import anyio
from support.faulty_cluster import FaultyCluster

from aiokafkawire import Consumer, ConsumerRecord
from aiokafkawire.protocol.messages.fetch import FetchRequest

from .patience import SOON

__all__ = ("check", "fetches", "numbers", "take", "values")


async def take(consumer: Consumer[bytes, bytes], count: int) -> list[ConsumerRecord[bytes, bytes]]:
    """The next records."""
    with anyio.fail_after(SOON):
        return [await anext(consumer) for _ in range(count)]


async def values(consumer: Consumer[bytes, bytes], count: int) -> list[Any]:
    """The values of the next records."""
    return [record.value for record in await take(consumer, count)]


async def check(consumer: Consumer[bytes, bytes], expected: list[bytes]) -> None:
    """The next values are these."""
    assert await values(consumer, len(expected)) == expected


def numbers(first: int, end: int) -> list[bytes]:
    """Values in order."""
    return [b"%d" % number for number in range(first, end)]


def fetches(cluster: FaultyCluster) -> list[FetchRequest]:
    """Every fetch that came."""
    return [one for node in cluster.nodes.values() for one in node.seen if isinstance(one, FetchRequest)]
