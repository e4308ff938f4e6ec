"""Clusters of scripted brokers: a network of names, Metadata answers, and a cluster opened on it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any
from uuid import UUID

import anyio
from anyio.abc import ByteStream
from support.connecting import running_tasks
from support.scripted_broker import ScriptedBroker

from aiokafkawire.cluster.cluster import Cluster
from aiokafkawire.config import ClientConfig, make_config, parse_servers
from aiokafkawire.network.connector import Connector
from aiokafkawire.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.runtime import Runtime

__all__ = ("QUICK", "Net", "hang", "metadata", "opened", "partition", "topic")

QUICK: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}
"""Waits so short that a test need not care for them."""


class Net:
    """The connector of a test: names lead to scripted brokers, or to whatever ``hosts`` says; others refuse."""

    def __init__(self, **brokers: ScriptedBroker) -> None:
        self.hosts: dict[str, Callable[[str, int], Awaitable[ByteStream]]] = {
            name: broker.connect for name, broker in brokers.items()
        }
        self.dials: list[str] = []

    async def connect(self, host: str, port: int) -> ByteStream:
        self.dials.append(host)
        if host not in self.hosts:
            raise ConnectionRefusedError(111, "Connection refused")
        return await self.hosts[host](host, port)


async def hang(host: str, port: int) -> ByteStream:
    """A host whose packets are lost."""
    await anyio.sleep_forever()
    raise AssertionError("woken")


def partition(index: int, leader: int = 1, epoch: int = 0, error_code: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[leader],
        isr_nodes=[leader],
    )


def topic(
    name: str | None, *partitions: MetadataResponsePartition, error: int = 0, topic_id: UUID = ZERO_UUID
) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, partitions=list(partitions))


def metadata(
    *topics: MetadataResponseTopic, hosts: Sequence[str] = ("b",), controller: int = 1, error: int = 0
) -> MetadataResponse:
    """Brokers 1, 2 and so on listen at ``hosts``."""
    brokers = [MetadataResponseBroker(node_id=1 + number, host=host, port=9092) for number, host in enumerate(hosts)]
    return MetadataResponse(brokers=brokers, controller_id=controller, topics=list(topics), error_code=error)


@asynccontextmanager
async def opened(
    connector: Connector, servers: str = "b:9092", *, runtime: Runtime | None = None, **options: Any
) -> AsyncIterator[Cluster]:
    """An open cluster, whose waits are the same in every run; afterwards no task of it is left."""
    before = running_tasks()
    cluster = Cluster(
        parse_servers(servers),
        make_config(ClientConfig, {**QUICK, **options}),
        connector,
        runtime or Runtime(chance=Random(1)),
    )
    try:
        await cluster.open()
        yield cluster
    finally:
        await cluster.close()
    assert running_tasks() <= before
