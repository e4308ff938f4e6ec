"""Connections that break at random places, the same ones in every run: in mid-frame, and in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from anyio import BrokenResourceError, EndOfStream
from anyio.abc import ByteStream

from aiokafkawire.network.connector import Connector

__all__ = ("Cutting",)


class Cutting:
    """A connector whose connections carry some bytes each way, and are cut then; ``cuts`` is how many were.

    Args:
        connector: opens what is cut.
        seed: of the lengths.
        least, most: how many bytes go through, each way.
    """

    def __init__(self, connector: Connector, seed: int, least: int, most: int) -> None:
        self._connector, self._random, self._bounds = connector, Random(seed), (least, most)
        self.cuts = 0
        self.mends = False
        """Whether connections break no more."""

    async def __call__(self, host: str, port: int) -> ByteStream:
        stream = await self._connector(host, port)
        return _Cut(stream, self, self._random.randint(*self._bounds), self._random.randint(*self._bounds))


class _Cut(ByteStream):
    def __init__(self, stream: ByteStream, cutting: Cutting, out: int, back: int) -> None:
        self._stream, self._cutting, self._out, self._back = stream, cutting, out, back
        self._is_cut = False

    async def send(self, item: bytes) -> None:
        if not self._cutting.mends and len(item) > self._out:
            await self._stream.send(item[: self._out])
            await self._cut()
            raise BrokenResourceError
        self._out -= len(item)
        await self._stream.send(item)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if not self._cutting.mends and self._back <= 0:
            await self._cut()
            raise EndOfStream
        received = await self._stream.receive(max_bytes)
        if not self._cutting.mends:
            received = received[: self._back]
        self._back -= len(received)
        return received

    async def _cut(self) -> None:
        if not self._is_cut:
            self._is_cut = True
            self._cutting.cuts += 1
        await self._stream.aclose()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return self._stream.extra_attributes
