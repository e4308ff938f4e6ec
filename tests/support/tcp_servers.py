"""Servers of the tests' own on TCP ports of this machine: what they say is up to a test, and a proxy that is cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream, TaskGroup

__all__ = ("CuttableProxy", "cuttable_proxy", "tcp_server")

_BROKEN = (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@asynccontextmanager
async def tcp_server(serve: Callable[[SocketStream], Awaitable[None]]) -> AsyncIterator[str]:
    """Serve each connection by a task, until that returns or the client hangs up; gives the address."""

    async def until_it_ends(stream: SocketStream) -> None:
        with suppress(*_BROKEN):
            async with stream:
                await serve(stream)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, until_it_ends)
        try:
            yield f"127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        finally:
            tasks.cancel_scope.cancel()


class CuttableProxy:
    """A proxy that a test cuts; while it ``refuses`` it hangs up on everybody."""

    def __init__(self, port: int) -> None:
        self.address = ""
        self.dialled = 0
        self.refuses = False
        self._port = port
        self._streams: list[ByteStream] = []

    async def cut(self, *, refuse: bool = True) -> None:
        """Cut all connections, and refuse others until ``refuses`` is unset."""
        self.refuses = refuse
        streams, self._streams = self._streams, []
        for stream in streams:
            await stream.aclose()

    async def serve(self, stream: SocketStream) -> None:
        self.dialled += 1
        if self.refuses:
            return
        self._streams.append(stream)
        async with await anyio.connect_tcp("127.0.0.1", self._port) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(_pump, stream, server, tasks)
            await _pump(server, stream, tasks)


async def _pump(source: ByteStream, sink: ByteStream, tasks: TaskGroup) -> None:
    with suppress(*_BROKEN):
        while True:
            await sink.send(await source.receive())
    tasks.cancel_scope.cancel()


@asynccontextmanager
async def cuttable_proxy(port: int) -> AsyncIterator[CuttableProxy]:
    """A proxy to a port of this machine."""
    proxy = CuttableProxy(port)
    async with tcp_server(proxy.serve) as proxy.address:
        yield proxy
