"""Opens the byte stream of a connection. The default is TCP; tests and simulations have their own connectors."""

import contextlib
import socket
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from .._lazy_classes import frozen
from ..runtime import on_trio
from .dead_paths import PROBE_SECONDS

if TYPE_CHECKING:
    from anyio.abc import ByteStream, SocketStream

__all__ = ("Connector", "SocketOptions", "connect_tcp")

_IDLE_SECONDS: Final = 5
"""The seconds without traffic before the first keepalive probe. It also keeps NAT from forgetting the connection."""


class Connector(Protocol):
    """A function that opens a stream to a broker.

    Raises:
        OSError: the stream cannot be opened.
    """

    async def __call__(self, host: str, port: int) -> "ByteStream": ...


async def connect_tcp(host: str, port: int) -> "ByteStream":
    """Open a TCP connection to the first of the host's addresses that accepts it (RFC 8305), with TCP_NODELAY.

    On trio the host's name is resolved again while no address answers. On asyncio the transports of
    ``asyncio_transport`` do so, which most connections have.
    """
    if not on_trio():
        return await anyio.connect_tcp(host, port)
    from .happy_eyeballs import addresses_of, dial  # not needed before the first connection

    async def connect(address: str) -> "SocketStream":
        try:
            return await anyio.connect_tcp(address, port)
        except OSError as error:
            # anyio raises an error for all addresses of a host, of which the only one's is the cause.
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            raise

    return await dial(await addresses_of(host, port), connect, _discard, lambda: addresses_of(host, port))


def _discard(stream: "SocketStream") -> None:
    from anyio.abc import SocketAttribute  # takes longer to import than this module

    stream.extra(SocketAttribute.raw_socket).close()  # noqa: S610


def _keep_alive(under: socket.socket) -> None:
    """Let the system probe an idle connection; by default it would first do so after two hours."""
    _set(under, socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # TCP_KEEPALIVE is macOS's name of TCP_KEEPIDLE.
    times = {"TCP_KEEPIDLE": _IDLE_SECONDS, "TCP_KEEPALIVE": _IDLE_SECONDS, "TCP_KEEPINTVL": PROBE_SECONDS}
    for name, seconds in times.items():
        option = getattr(socket, name, None)
        if option is not None:
            _set(under, socket.IPPROTO_TCP, option, seconds)


def _set(under: socket.socket, level: int, option: int, value: int) -> None:
    # It is closed already, as the next read reports; the value is beyond the system's limit; or it is no TCP socket.
    with contextlib.suppress(OSError):
        under.setsockopt(level, option, value)


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
        if self.keepalive:
            _keep_alive(under)
        if self.send_buffer is not None:
            _set(under, socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer)
        if self.receive_buffer is not None:
            _set(under, socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
