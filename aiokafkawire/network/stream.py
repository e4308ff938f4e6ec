"""Opens the byte stream under a connection. Whatever opens one can take its place: a test's memory, a simulation."""

from typing import Protocol

import anyio
from anyio.abc import ByteStream

__all__ = ("Connector", "connect_tcp")


class Connector(Protocol):
    """Opens a stream to a broker.

    Raises:
        OSError: it cannot be opened.
    """

    async def __call__(self, host: str, port: int) -> ByteStream: ...


async def connect_tcp(host: str, port: int) -> ByteStream:
    """A TCP connection to the first of the name's addresses that takes it (RFC 6555), without Nagle's delay."""
    return await anyio.connect_tcp(host, port)
