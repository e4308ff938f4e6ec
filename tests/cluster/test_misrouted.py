"""Brokers that have got the address of another one: they refuse, and the client begins again (KIP-1242)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from support.clusters import QUICK, Net
from support.patience import PATIENCE

from aiokafkawire.cluster.cluster import Cluster
from aiokafkawire.config import ClientConfig, make_config, parse_servers
from aiokafkawire.errors import ConnectionLost, ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.runtime import Runtime
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(net: Net, servers: str, **options: Any) -> AsyncIterator[Cluster]:
    config = make_config(ClientConfig, {**QUICK, **options})
    cluster = Cluster(parse_servers(servers), config, net.connect, Runtime())
    try:
        await cluster.open()
        yield cluster
    finally:
        await cluster.close()


def to(broker: Broker) -> Callable[[str, int], Awaitable[ByteStream]]:
    """Lead to the broker, whatever name was dialled."""
    port = int(broker.bootstrap.rpartition(":")[2])

    async def connect(*_: object) -> ByteStream:
        return await anyio.connect_tcp("127.0.0.1", port)

    return connect


@asynccontextmanager
async def replaced(stranger: Broker, **options: Any) -> AsyncIterator[tuple[Cluster, Broker]]:
    """A client of a cluster whose only broker has moved, and left its address to a stranger."""
    async with (
        Broker(max_versions="4.4", advertised_host="known", cluster_id="one") as before,
        Broker(max_versions="4.4", advertised_host="moved", cluster_id="one") as moved,
        stranger,
    ):
        net = Net()
        net.hosts["seed"] = net.hosts["known"] = to(before)
        async with opened(net, "seed:9092", **options) as cluster:
            net.hosts["known"] = to(stranger)
            net.hosts["seed"] = net.hosts["moved"] = to(moved)
            yield cluster, before


@pytest.mark.parametrize(("cluster_id", "node_id"), [("two", 1), ("one", 2)])
async def test_a_stranger_refuses_and_the_bootstrap_addresses_are_asked(cluster_id: str, node_id: int) -> None:
    stranger = Broker(max_versions="4.4", advertised_host="known", cluster_id=cluster_id, node_id=node_id)
    async with replaced(stranger) as (cluster, old):
        before = cluster.metadata.snapshot
        with pytest.raises(ConnectionLost, match=r"known:\d+ is another broker than the metadata says") as caught:
            await cluster.connection(before.nodes[1], "some lane")
        assert getattr(caught.value.__cause__, "code", None) == ErrorCode.REBOOTSTRAP_REQUIRED
        await old.stop_node(1)  # which may have answered once more, on the connection that was open
        snapshot = cluster.metadata.snapshot
        while snapshot.nodes[1].address.host != "moved":
            snapshot = await cluster.metadata.refresh(snapshot, cluster.deadline(PATIENCE))
        connection = await cluster.connection(snapshot.nodes[1], "some lane")
        assert connection.broker.startswith("moved:")


@pytest.mark.parametrize("options", [{"metadata_cluster_check_enable": False}, {"metadata_recovery_strategy": "none"}])
async def test_without_the_check_nothing_is_said(options: dict[str, Any]) -> None:
    stranger = Broker(max_versions="4.4", advertised_host="known", cluster_id="two")
    async with replaced(stranger, **options) as (cluster, _):
        await cluster.connection(cluster.metadata.snapshot.nodes[1], "some lane")
        [asked] = stranger.requests.of(ApiKey.API_VERSIONS)
        assert (asked.request.cluster_id, asked.request.node_id) == (None, -1)


async def test_a_cluster_that_was_replaced_at_its_own_address_is_accepted() -> None:
    # The bootstrap address is the broker's own, so the check must not keep the client from the new cluster.
    async with (
        Broker(max_versions="4.4", advertised_host="known", cluster_id="one") as before,
        Broker(max_versions="4.4", advertised_host="known", cluster_id="two") as after,
    ):
        net = Net()
        net.hosts["known"] = to(before)
        async with opened(net, "known:9092") as cluster:
            seen = cluster.metadata.snapshot
            net.hosts["known"] = to(after)
            await before.stop_node(1)
            snapshot = await cluster.metadata.refresh(seen, cluster.deadline(PATIENCE))
            assert snapshot.cluster_id == "two"
            await cluster.connection(snapshot.nodes[1], "some lane")


async def test_the_bootstrap_address_is_asked_without_an_identity() -> None:
    async with Broker(max_versions="4.4", advertised_host="known", cluster_id="one") as broker:
        net = Net()
        net.hosts["seed"] = net.hosts["known"] = to(broker)
        async with opened(net, "seed:9092") as cluster:
            await cluster.connection(cluster.metadata.snapshot.nodes[1], "some lane")
            first, second = (call.request for call in broker.requests.of(ApiKey.API_VERSIONS))
            assert (first.cluster_id, first.node_id) == (None, -1)
            assert (second.cluster_id, second.node_id) == ("one", 1)
