"""Proxies of the tests' own: SOCKS5 and HTTP CONNECT, over TCP, that let through what a test lets them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

__all__ = ("TestProxy", "listening")

Reach = Callable[[str, int], Awaitable[ByteStream]]


class TestProxy:
    """Speaks ``kind``. ``reach`` leads to brokers by the names that are asked for, ``asked`` says for which."""

    __test__ = False

    def __init__(self, kind: str, reach: Reach, *, user: str = "", password: str = "") -> None:
        self.kind, self.reach = kind, reach
        self.user, self.password = user, password
        self.asked: list[tuple[str, int]] = []
        self.refused = 0
        self.at = ""

    @property
    def url(self) -> str:
        known = f"{self.user}:{self.password}@" if self.user else ""
        return f"{self.kind}://{known}{self.at}"

    async def serve(self, stream: SocketStream) -> None:
        heard = BufferedByteReceiveStream(stream)
        try:
            to = await (self._socks5 if self.kind == "socks5" else self._http)(stream, heard)
            if to is None:
                self.refused += 1
                return
            self.asked.append(to)
            try:
                inner = await self.reach(*to)
            except OSError:
                await stream.send(b"\5\5\0\1" + bytes(6) if self.kind == "socks5" else _answer(502, "Bad Gateway"))
                return
            await stream.send(
                b"\5\0\0\3\4host\0\1" if self.kind == "socks5" else _answer(200, "Connection established")
            )
            async with inner, anyio.create_task_group() as tasks:
                tasks.start_soon(_pump, heard, inner, tasks)
                await _pump(inner, stream, tasks)
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead):
            pass

    async def _socks5(self, stream: SocketStream, heard: BufferedByteReceiveStream) -> tuple[str, int] | None:
        version, count = await heard.receive_exactly(2)
        methods = await heard.receive_exactly(count)
        assert version == 5
        wanted = 2 if self.user else 0
        if wanted not in methods:
            await stream.send(b"\5\xff")
            return None
        await stream.send(bytes((5, wanted)))
        if self.user:
            _, size = await heard.receive_exactly(2)
            name = await heard.receive_exactly(size)
            (size,) = await heard.receive_exactly(1)
            right = (name.decode(), (await heard.receive_exactly(size)).decode()) == (self.user, self.password)
            await stream.send(b"\1\0" if right else b"\1\1")
            if not right:
                return None
        _, command, _, kind = await heard.receive_exactly(4)
        assert command == 1
        assert kind in (1, 3)
        size = 4 if kind == 1 else (await heard.receive_exactly(1))[0]
        host = await heard.receive_exactly(size)
        asked = host.decode() if kind == 3 else ".".join(map(str, host))
        return asked, int.from_bytes(await heard.receive_exactly(2), "big")

    async def _http(self, stream: SocketStream, heard: BufferedByteReceiveStream) -> tuple[str, int] | None:
        header = (await heard.receive_until(b"\r\n\r\n", 65536)).decode()
        first, *rest = header.split("\r\n")
        method, target, version = first.split()
        assert (method, version) == ("CONNECT", "HTTP/1.1")
        fields = dict(line.split(": ", 1) for line in rest)
        assert fields["Host"] == target
        known = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if self.user and fields.get("Proxy-Authorization") != f"Basic {known}":
            await stream.send(_answer(407, "Proxy Authentication Required"))
            return None
        host, _, port = target.rpartition(":")
        return host, int(port)


def _answer(code: int, reason: str) -> bytes:
    return f"HTTP/1.1 {code} {reason}\r\nVia: test\r\n\r\n".encode()


async def _pump(source: ByteStream | BufferedByteReceiveStream, sink: ByteStream, tasks: anyio.abc.TaskGroup) -> None:
    try:
        while True:
            await sink.send(await source.receive())
    except anyio.EndOfStream:
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def listening(proxy: TestProxy) -> AsyncIterator[TestProxy]:
    """The proxy, on a free port of this machine."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as server, anyio.create_task_group() as tasks:

        async def serve(stream: SocketStream) -> None:
            async with stream:
                await proxy.serve(stream)

        proxy.at = f"127.0.0.1:{server.extra(SocketAttribute.local_port)}"
        tasks.start_soon(server.serve, serve)
        yield proxy
        tasks.cancel_scope.cancel()
