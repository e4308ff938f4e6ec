"""Opens the byte stream under a connection. Whatever opens one can take its place: a test's memory, a simulation."""

import contextlib
import socket
from typing import Protocol

import anyio
from anyio.abc import ByteStream

__all__ = ("Connector", "connect_tcp", "keep_alive")


class Connector(Protocol):
    """Opens a stream to a broker.

    Raises:
        OSError: it cannot be opened.
    """

    async def __call__(self, host: str, port: int) -> ByteStream: ...


async def connect_tcp(host: str, port: int) -> ByteStream:
    """A TCP connection to the first of the name's addresses that takes it (RFC 6555), without Nagle's delay."""
    return await anyio.connect_tcp(host, port)


def keep_alive(under: socket.socket | None) -> None:
    """Have the system ask now and then if the other side is still there, where there is a socket at all."""
    if under is not None:
        with contextlib.suppress(OSError):  # it is gone already, which whoever reads it hears
            under.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
