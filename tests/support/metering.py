"""Connections that count what comes over them, from each broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from anyio.abc import ByteStream

from aiokafkawire.network.connector import Connector, connect_tcp

__all__ = ("Meter",)


class Meter:
    """A connector. ``received`` is how many bytes came from each ``host:port``, over all connections to it."""

    def __init__(self, connector: Connector = connect_tcp) -> None:
        self._connector = connector
        self.received: Counter[str] = Counter()

    async def __call__(self, host: str, port: int) -> ByteStream:
        return _Metered(await self._connector(host, port), self.received, f"{host}:{port}")


class _Metered(ByteStream):
    def __init__(self, stream: ByteStream, received: Counter[str], address: str) -> None:
        self._stream, self._received, self._address = stream, received, address

    async def send(self, item: bytes) -> None:
        await self._stream.send(item)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        received = await self._stream.receive(max_bytes)
        self._received[self._address] += len(received)
        return received

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return self._stream.extra_attributes
