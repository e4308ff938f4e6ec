"""The heartbeat thread's connections: through proxies, inside TLS, and logged in, while no loop of the client runs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from anyio.from_thread import start_blocking_portal
from support.proxies import TestProxy, listening
from support.securing import login, make_papers

from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import ErrorCode, ProxyRefused, SaslAuthenticationFailed
from aiokafkawire.group.blocking_connection import BlockingConnector
from aiokafkawire.group.heartbeat_schedule import HeartbeatMember, HeartbeatReport, HeartbeatResult
from aiokafkawire.group.heartbeat_thread import HeartbeatThread
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address

HIDDEN = "kafka.internal"


async def reach(host: str, port: int) -> ByteStream:
    assert host == HIDDEN
    return await anyio.connect_tcp("127.0.0.1", port)


def first_report(port: int, host: str = HIDDEN, **options: Any) -> HeartbeatReport:
    """What becomes of a heartbeat for a member that the broker does not know."""
    done = threading.Event()
    direct = "proxy" not in options
    way = BlockingConnector(
        make_config(ClientConfig, options), lambda at: Address("127.0.0.1", at.port) if direct else at
    )
    thread = HeartbeatThread(max_poll_interval=60.0, connect=way.connect, log_in=way.log_in, on_report=done.set)
    thread.keep(HeartbeatMember(Address(host, port), "g", 1, "m", interval=0.01, request_timeout=10.0))
    try:
        assert done.wait(30)
        return thread.reports()[0]
    finally:
        assert thread.close(5.0)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("kind", [None, "socks5", "http"])
def test_heartbeats_inside_tls_with_a_login(tmp_path: Path, mechanism: str, kind: str | None) -> None:
    papers = make_papers(tmp_path)
    broker = Broker(
        advertised_host=HIDDEN,
        tls=papers.server(HIDDEN),
        users={"alice": "secret"},
        connection_failed_authentication_delay_ms=0,
    )
    proxy = TestProxy(kind or "http", reach, user="me", password="s3cret")
    right: dict[str, Any] = {**papers.client(), **login(mechanism, "alice", "secret")}
    right["security_protocol"] = "SASL_SSL"
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(broker),
        portal.wrap_async_context_manager(listening(proxy)),
    ):
        port = int(broker.bootstrap.rpartition(":")[2])
        if kind is not None:
            right["proxy"] = proxy.url
        heard = first_report(port, **right)
        assert (heard.result, heard.code) == (HeartbeatResult.ANSWER, ErrorCode.UNKNOWN_MEMBER_ID)
        assert bool(proxy.asked) == (kind is not None)
        refused = first_report(port, **{**right, "sasl_password": "wrong"})
        assert type(refused.error) is SaslAuthenticationFailed
        if kind is not None:
            wrong = {**right, "proxy": proxy.url.replace("s3cret", "wrong")}
            assert type(first_report(port, **wrong).error) is ProxyRefused


def test_a_certificate_for_another_host_gets_no_heartbeat(tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    broker = Broker(tls=papers.server("elsewhere.example.org"))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(broker):
        port = int(broker.bootstrap.rpartition(":")[2])
        report = first_report(port, **papers.client())
        assert "certificate verify failed" in str(report.error).lower()
