"""Connectors of the tests' own: to servers that a test speaks for, with connections that it cuts, and to nowhere."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint

from aiokafkawire.network.connector import Connector
from aiokafkawire.testing.serving.memory import memory_connection

__all__ = ("Lines", "nowhere", "spoken_for")


async def nowhere(host: str, port: int) -> ByteStream:
    """A connector where nothing listens."""
    await checkpoint()
    raise ConnectionRefusedError("refused")


@asynccontextmanager
async def spoken_for(serve: Callable[[ByteStream], Awaitable[None]]) -> AsyncIterator[Connector]:
    """A connector whose streams are served so, each by a task of its own, until it returns or the client hangs up."""

    async def until_it_ends(stream: ByteStream) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await serve(stream)

    async def connect(host: str, port: int) -> ByteStream:
        await checkpoint()
        theirs, ours = memory_connection()
        tasks.start_soon(until_it_ends, ours)
        return theirs

    async with anyio.create_task_group() as tasks:
        try:
            yield connect
        finally:
            tasks.cancel_scope.cancel()


class Lines:
    """A connector that knows what it has opened, cuts it, and refuses hosts."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._streams: list[ByteStream] = []
        self.asked: list[str] = []
        self.refused: set[str] = set()

    async def __call__(self, host: str, port: int) -> ByteStream:
        self.asked.append(host)
        if host in self.refused:
            await checkpoint()
            raise ConnectionRefusedError(f"{host} is down")
        stream = await self._connector(host, port)
        self._streams.append(stream)
        return stream

    async def cut(self) -> None:
        for stream in self._streams:
            await stream.aclose()
