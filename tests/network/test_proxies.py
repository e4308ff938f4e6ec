"""Connections through proxies, over TCP on every loop: to brokers whose names only the proxy knows, and TLS inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream, SocketStream
from support.connecting import running_tasks
from support.login_settings import login
from support.proxies import TestProxy, listening
from support.securing import make_papers, refusal, there_and_back

from aiokafkawire import Client
from aiokafkawire.config import ClientConfig, make_config
from aiokafkawire.errors import BrokerNotTrusted, ConfigError, NoBrokerReachable, ProxyFailed, ProxyRefused, WireError
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop, pytest.mark.usefixtures("nothing_fails_unheard")]

KINDS = pytest.mark.parametrize("kind", ["socks5", "http"])
HIDDEN = "kafka.internal"


def to(broker: Broker) -> Any:
    """The way to a broker from inside its network, where its name is known."""

    async def reach(host: str, port: int) -> ByteStream:
        if host != HIDDEN:
            raise ConnectionRefusedError(111, "Connection refused")
        return await anyio.connect_tcp("127.0.0.1", port)

    return reach


def port_of(broker: Broker) -> str:
    return broker.bootstrap.rpartition(":")[2]


@KINDS
async def test_records_through_a_proxy(kind: str) -> None:
    async with Broker(advertised_host=HIDDEN) as broker, listening(TestProxy(kind, to(broker))) as proxy:
        await there_and_back(f"{HIDDEN}:{port_of(broker)}", proxy=proxy.url)
        assert {host for host, _ in proxy.asked} == {HIDDEN}


@KINDS
async def test_tls_and_logins_inside(kind: str, tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    broker = Broker(advertised_host=HIDDEN, tls=papers.server(HIDDEN), users={"alice": "secret"})
    async with broker, listening(TestProxy(kind, to(broker), user="me", password="s3cret")) as proxy:
        options = {**papers.client(), **login("SCRAM-SHA-256", "alice", "secret"), "security_protocol": "SASL_SSL"}
        await there_and_back(f"{HIDDEN}:{port_of(broker)}", proxy=proxy.url, **options)


async def test_a_certificate_is_to_be_of_the_advertised_host_wherever_that_is_dialled(tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    options = {**papers.client(), "advertised_listeners_map": lambda _, port: ("127.0.0.1", port)}
    async with Broker(advertised_host=HIDDEN, tls=papers.server(HIDDEN, "127.0.0.1")) as broker:
        await there_and_back(f"127.0.0.1:{port_of(broker)}", **options)
    async with (
        Broker(advertised_host=HIDDEN, tls=papers.server("127.0.0.1")) as broker,
        Client(f"127.0.0.1:{port_of(broker)}", **options) as client,
    ):
        with pytest.raises(BrokerNotTrusted, match=f"is not for the host '{HIDDEN}'"):
            await client.admin.create_topics({"t": 1})


@KINDS
async def test_a_login_that_the_proxy_does_not_take_is_told_at_once(kind: str) -> None:
    async with Broker() as broker, listening(TestProxy(kind, to(broker), user="me", password="s3cret")) as proxy:
        error = await refusal("b:1", proxy=proxy.url.replace("s3cret", "wrong-s3cret"))
        assert type(error) is ProxyRefused
        assert "refused the name and password" in str(error)
        assert "s3cret" not in f"{error!r} {error.__cause__!r}"
        bare = await refusal("b:1", proxy=f"{kind}://{proxy.at}")
        assert type(bare) is ProxyRefused
        assert "requires a name and password" in str(bare)
        assert proxy.refused == 2


@pytest.mark.slow
@KINDS
async def test_a_broker_that_the_proxy_cannot_reach(kind: str) -> None:
    async with Broker() as broker, listening(TestProxy(kind, to(broker))) as proxy:
        error = await refusal("elsewhere:1", proxy=proxy.url, bootstrap_timeout_ms=1_000)
        assert type(error) is NoBrokerReachable
        assert isinstance(error.__cause__, ProxyFailed)
        assert "elsewhere:1" in str(error)


@pytest.mark.slow
async def test_a_proxy_that_is_not_there() -> None:
    async def refuse(host: str, port: int) -> ByteStream:
        raise ConnectionRefusedError(111, "Connection refused")

    error = await refusal("b:1", connector=refuse, proxy="http://p:1", bootstrap_timeout_ms=500)
    assert "the HTTP proxy p:1 cannot be reached: [Errno 111] Connection refused" in str(error)


class Odd(TestProxy):
    """A proxy that says what the test wants, and then nothing, or hangs up."""

    def __init__(self, kind: str, says: bytes, *, stays: bool) -> None:
        super().__init__(kind, to(None))  # type: ignore[arg-type]
        self.says, self.stays = says, stays

    async def serve(self, stream: SocketStream) -> None:
        try:
            await stream.receive()
            await stream.send(self.says)
            if self.stays:
                await stream.receive()
                await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return


@pytest.mark.slow
@KINDS
async def test_a_proxy_that_says_nothing_or_hangs_up_is_told_in_time(kind: str) -> None:
    before = running_tasks()
    limits = {"bootstrap_timeout_ms": 600, "socket_connection_setup_timeout_ms": 300}
    async with listening(Odd(kind, b"", stays=True)) as proxy:
        error = await refusal("b:1", proxy=proxy.url, **limits)
        assert "b:1 did not accept a connection within" in str(error)
    async with listening(Odd(kind, b"", stays=False)) as proxy:
        error = await refusal("b:1", proxy=proxy.url, **limits)
        assert "closed the connection when asked to connect to b:1" in str(error)
    assert running_tasks() <= before


async def test_what_is_no_proxy_is_told_at_once() -> None:
    async with listening(Odd("socks5", b"HTTP/1.1 400 Bad Request\r\n\r\n", stays=True)) as proxy:
        error = await refusal("b:1", proxy=proxy.url)
        assert type(error) is WireError
        assert "did not answer as a SOCKS5 proxy" in str(error)


def test_the_setting_shows_no_secret_and_what_contradicts_it_is_refused() -> None:
    url = "socks5://me:s3cret@p:1080"
    assert "s3cret" not in repr(make_config(ClientConfig, {"proxy": url}))
    with pytest.raises(ConfigError, match="names are looked up by the proxy"):
        Client("a:1", proxy=url, client_dns_lookup="resolve_canonical_bootstrap_servers_only")
