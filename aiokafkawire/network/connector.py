"""Opens the byte stream of a connection. The default is TCP; tests and simulations have their own connectors."""

import contextlib
import socket
from typing import TYPE_CHECKING, Protocol

import anyio

from .._lazy_classes import frozen

if TYPE_CHECKING:
    from anyio.abc import ByteStream

__all__ = ("Connector", "SocketOptions", "connect_tcp")


class Connector(Protocol):
    """A function that opens a stream to a broker.

    Raises:
        OSError: the stream cannot be opened.
    """

    async def __call__(self, host: str, port: int) -> "ByteStream": ...


async def connect_tcp(host: str, port: int) -> "ByteStream":
    """Open a TCP connection to the first of the host's addresses that accepts it (RFC 6555), with TCP_NODELAY."""
    return await anyio.connect_tcp(host, port)


@frozen
class SocketOptions:
    """The options that a client's sockets get."""

    keepalive: bool = False
    send_buffer: int | None = None
    receive_buffer: int | None = None

    def set_on(self, under: socket.socket | None) -> None:
        """Set the options of the socket ``under`` a stream; do nothing if the stream has no socket (None)."""
        if under is None:
            return
        with contextlib.suppress(
            OSError
        ):  # closed already, as the next read reports; or a size beyond the system's limit
            if self.keepalive:
                under.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.send_buffer is not None:
                under.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer)
            if self.receive_buffer is not None:
                under.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
