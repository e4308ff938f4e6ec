"""Clients pointed at the wrong place, over real sockets: one helpful error, in time, and nothing left behind."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from support.connecting import running_tasks

from aiokafkawire import Client, KafkaError, NoBrokerReachable, WireError
from aiokafkawire.errors import SecurityMismatch

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]

QUICK: dict[str, Any] = {
    "bootstrap_timeout_ms": 1_000,
    "socket_connection_setup_timeout_ms": 500,
    "retry_backoff_ms": 20,
}
LATE = 5.0
"""Far beyond the deadline: what takes so long waits for something else."""

Handler = Callable[[SocketStream], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[str]:
    """A TCP server on a free port of this machine; its address."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as server, anyio.create_task_group() as tasks:

        async def serve(stream: SocketStream) -> None:
            async with stream:
                try:
                    await handler(stream)
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return

        tasks.start_soon(server.serve, serve)
        yield f"127.0.0.1:{server.extra(SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def leaving_no_task() -> AsyncIterator[None]:
    before = running_tasks()
    yield
    assert running_tasks() <= before


async def failing_to_open(servers: str, **options: Any) -> KafkaError:
    """The error of a client that is given these servers."""
    with anyio.fail_after(LATE), pytest.raises(KafkaError) as caught:
        async with Client(servers, **{**QUICK, **options}):
            raise AssertionError("opened")
    return caught.value


async def web_server(stream: SocketStream) -> None:
    await stream.receive()
    await stream.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def tls_server(stream: SocketStream) -> None:
    await stream.receive()
    await stream.send(b"\x15\x03\x03\x00\x02\x02\x46")


async def garbage(stream: SocketStream) -> None:
    await stream.send(b"\xff\xfe\xfd\xfc" * 100)
    await anyio.sleep_forever()


async def huge_frame(stream: SocketStream) -> None:
    await stream.send(b"\x3f\xff\xff\xff" * 100)
    await anyio.sleep_forever()


async def silence(_: SocketStream) -> None:
    await anyio.sleep_forever()


async def hang_up(_: SocketStream) -> None:
    return


async def kafka_07(stream: SocketStream) -> None:
    """Hangs up on requests that it does not know; one with key 2 is a multi-fetch to it, here of nothing."""
    size = int.from_bytes(await stream.receive(4))
    request = b""
    while len(request) < size:
        request += await stream.receive(size - len(request))
    if int.from_bytes(request[:2]) == 2:
        await stream.send(b"\0\0\0\x02" + b"\0\0")
        await anyio.sleep_forever()


async def half_a_frame_and_silence(stream: SocketStream) -> None:
    await stream.receive()
    await stream.send(b"\0\0\1\0" + b"\0\0\0\0" + b"\0" * 10)
    await anyio.sleep_forever()


async def half_a_frame(stream: SocketStream) -> None:
    await stream.receive()
    await stream.send(b"\0\0\1\0" + b"\0\0\0\0" + b"\0" * 10)


async def wrong_answer(stream: SocketStream) -> None:
    await stream.receive()
    await stream.send(b"\0\0\0\x08" + b"\0\0\0\0" + b"\0\0\x7f\x7f")
    await anyio.sleep_forever()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "kind", "told"),
    [
        (
            web_server,
            WireError,
            r"{at} sent an HTTP answer \('HTTP/1.1 400 Bad Request'\): this port is a web server's",
        ),
        (tls_server, SecurityMismatch, r"{at} sent a TLS record: this listener speaks TLS"),
        (garbage, WireError, r"{at} sent a frame of -66052 bytes, allowed are 4 to \d+ \(receive_message_max_bytes\)"),
        (huge_frame, WireError, r"{at} sent a frame of 1073741823 bytes, allowed are 4 to \d+ "),
        (wrong_answer, WireError, r"{at} answered ApiVersionsResponse v5"),
        (kafka_07, WireError, r"{at} sent a frame of 2 bytes, .*; it is older than Kafka 0\.8, .* or not Kafka"),
        (silence, NoBrokerReachable, r"{at} did not answer ApiVersions \(is it a Kafka listener\?\) within 0\.5 s"),
        (hang_up, NoBrokerReachable, r"{at}: ({at} closed the connection|the connection to {at} broke)"),
        (half_a_frame_and_silence, NoBrokerReachable, r"{at} did not answer ApiVersions .*within 0\.5 s"),
        (half_a_frame, NoBrokerReachable, r"{at}: ({at} closed the connection|the connection to {at} broke)"),
    ],
)
async def test_whatever_listens_there_is_told_from_kafka(handler: Handler, kind: type[KafkaError], told: str) -> None:
    async with leaving_no_task(), listening(handler) as address:
        error = await failing_to_open(address)
        assert type(error) is kind
        with pytest.raises(kind, match=told.replace("{at}", address)):
            raise error


@pytest.mark.slow
async def test_a_closed_port_is_told() -> None:
    async with listening(silence) as address:
        pass
    error = await failing_to_open(address)
    assert type(error) is NoBrokerReachable
    assert str(error).startswith(f"no broker reachable within 1 s: {address}: cannot connect to {address}: [Errno 111]")


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 64 + ".invalid", "ü" * 70])
async def test_a_host_that_does_not_exist_is_told(host: str) -> None:
    async with leaving_no_task():
        error = await failing_to_open(f"{host}:9092", bootstrap_timeout_ms=100)
    assert type(error) is NoBrokerReachable
    assert str(error).startswith(f"no broker reachable within 0.1 s: {host}:9092: ")
    # Where names are looked up slowly, the time is over first.
    assert "cannot connect to" in str(error) or "did not accept a connection" in str(error)


@pytest.mark.slow
async def test_every_address_is_told_with_its_own_cause() -> None:
    async with listening(silence) as closed:
        pass
    async with leaving_no_task(), listening(silence) as silent, listening(web_server) as web:
        error = await failing_to_open(f"{closed},{silent},{web}")
    for address in (closed, silent, web):
        assert f"{address}: " in str(error)
    assert "cannot connect" in str(error)
    assert "did not answer ApiVersions" in str(error)
    assert "web server" in str(error)
