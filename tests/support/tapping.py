"""A tap in front of brokers, and clients that reach them through it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from support.dialling import over_tcp
from support.raw_client import RawClient

from aiokafkawire.protocol.messages.metadata import MetadataRequest
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.tap.tap import Tap

__all__ = ("known_nodes", "tapped", "through")


@asynccontextmanager
async def tapped(
    nodes: int = 1, *, broker: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[Broker, Tap]]:
    """Brokers of this process, and a tap of the first of them that knows them all."""
    async with Broker(nodes, **(broker or {})) as brokers, Tap(brokers.bootstrap.partition(",")[0], **options) as tap:
        yield brokers, tap


async def through(tap: Tap, node: int | None = None) -> RawClient:
    """A client of the tap's first address, or of the one for a broker that it knows."""
    host, _, _ = tap.bootstrap.rpartition(":")
    return RawClient(await over_tcp(tap.bootstrap if node is None else f"{host}:{tap.nodes[node]}"))


async def known_nodes(tap: Tap) -> None:
    """Let the tap know all brokers, and forget the request that it took."""
    async with await through(tap) as client:
        await client.ask(MetadataRequest(topics=None), 12)
    tap.requests.clear()
