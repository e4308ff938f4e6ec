"""Connections between whose ends the network is dead: recognized by what the system knows, closed, and opened anew."""

import socket
import sys
from typing import Any

import pytest
from anyio.abc import SocketAttribute
from support.connecting import eventually

from aiokafkawire import Client
from aiokafkawire.cluster import cluster
from aiokafkawire.network import anyio_transport, asyncio_transport
from aiokafkawire.network.connector import SocketOptions
from aiokafkawire.network.dead_paths import CAN_RECOGNIZE, DEAD_SECONDS, unanswered_in, unanswered_seconds
from aiokafkawire.testing import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]


def tcp_info(retransmits: int = 0, probes: int = 0, wait_ms: int = 200) -> bytes:
    return bytes([1, 0, retransmits, probes, 0, 0, 0, 0]) + (wait_ms * 1000).to_bytes(4, sys.byteorder)


@pytest.mark.parametrize(
    ("info", "seconds"),
    [
        (tcp_info(wait_ms=6_400), 0.0),
        (tcp_info(retransmits=1, wait_ms=400), 0.2),
        (tcp_info(retransmits=5, wait_ms=6_400), 6.2),  # 0.2 + 0.4 + 0.8 + 1.6 + 3.2
        (tcp_info(retransmits=2, wait_ms=5_000), 3.75),  # the first wait was 1.25 s
        (tcp_info(probes=1), 0.0),
        (tcp_info(probes=2), 1.0),  # the round trip may take more than a second
        (tcp_info(probes=6), 5.0),
        (tcp_info(retransmits=5, wait_ms=6_400)[:-1], 0.0),
    ],
)
async def test_the_time_counts_in_which_something_is_repeated_without_an_answer(info: bytes, seconds: float) -> None:
    assert unanswered_in(info) == seconds


async def test_a_socket_that_is_answered_or_closed_or_missing_is_not_dead() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        client.send(b"taken")
        assert unanswered_seconds(client) == 0.0
    assert unanswered_seconds(client) == 0.0
    assert unanswered_seconds(None) == 0.0


def let_sockets_be_silent(monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[object]:
    """Let all sockets be silent for so long; return the list to which each look at a socket adds it."""
    looks: list[object] = []

    def unanswered(under: object) -> float:
        looks.append(under)
        return seconds if under is not None else 0.0

    for module in (anyio_transport, asyncio_transport):
        monkeypatch.setattr(module, "unanswered_seconds", unanswered)
    return looks


@pytest.mark.parametrize("options", [{}, {"socket_keepalive_enable": False}])
async def test_a_dead_connection_is_closed_and_a_new_one_works(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(cluster, "WATCH_SECONDS", 0.01)
    watched = CAN_RECOGNIZE and not options
    async with Broker(port=0) as broker, Client(broker.bootstrap, **options) as kafka, kafka.producer() as producer:
        broker.create_topic("t")
        await producer.send("t", value=b"before")
        opened = [connection for _, connection in kafka._cluster.brokers.in_use()]
        assert len(opened) >= 2
        looks = let_sockets_be_silent(monkeypatch, DEAD_SECONDS - 0.1)
        if watched:
            await eventually(lambda: len(looks) > 2 * len(opened))
        assert all(connection.failure is None for connection in opened)
        let_sockets_be_silent(monkeypatch, DEAD_SECONDS)
        if watched:
            await eventually(lambda: all(connection.failure is not None for connection in opened))
        let_sockets_be_silent(monkeypatch, 0.0)
        await producer.send("t", value=b"after")
        assert all((connection.failure is None) != watched for connection in opened)
        if watched:
            assert str(opened[0].failure) == f"{opened[0].broker} has left repeated packets unanswered for 5.0 s"


async def test_the_system_probes_idle_connections_within_seconds() -> None:
    async with Broker(port=0) as broker, Client(broker.bootstrap) as kafka:
        for _, connection in kafka._cluster.brokers.in_use():
            wire: Any = connection._transport
            over = getattr(wire, "_transport", None)
            under = over.get_extra_info("socket") if over else wire._stream.extra(SocketAttribute.raw_socket)
            if hasattr(socket, "TCP_KEEPIDLE"):
                assert under.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 5
                assert under.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 1


async def test_sizes_of_buffers_are_set_where_the_system_has_no_keepalive() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        SocketOptions(keepalive=True, send_buffer=20_000).set_on(ours)
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (20_000, 40_000)  # Linux doubles it
