"""Opens the byte stream of a connection. The default is TCP; tests and simulations have their own connectors."""

import contextlib
import socket
from typing import Protocol

import anyio
from anyio.abc import ByteStream

__all__ = ("Connector", "connect_tcp", "keep_alive")


class Connector(Protocol):
    """A function that opens a stream to a broker.

    Raises:
        OSError: the stream cannot be opened.
    """

    async def __call__(self, host: str, port: int) -> ByteStream: ...


async def connect_tcp(host: str, port: int) -> ByteStream:
    """Open a TCP connection to the first of the host's addresses that accepts it (RFC 6555), with TCP_NODELAY."""
    return await anyio.connect_tcp(host, port)


def keep_alive(under: socket.socket | None) -> None:
    """Enable TCP keepalive on the socket ``under`` a stream; do nothing if the stream has no socket (None)."""
    if under is not None:
        with contextlib.suppress(OSError):  # the socket is closed already; the next read reports that
            under.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
