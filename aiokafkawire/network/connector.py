"""Opens the byte stream under a connection: over TCP, or by a connector of a test or a simulation."""

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
    """Open a TCP connection to the first of the name's addresses that accepts it (RFC 6555), without Nagle's delay."""
    return await anyio.connect_tcp(host, port)


def keep_alive(under: socket.socket | None) -> None:
    """Enable TCP keepalive, if there is a socket."""
    if under is not None:
        with contextlib.suppress(OSError):  # it is closed already, which the next read reports
            under.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
