"""Streams to brokers through a proxy."""

import anyio
from anyio.abc import ByteStream

from ..config.network import Proxy
from ..errors import ProxyFailed
from ..types import Address
from .connector import Connector
from .proxy_handshake import ProxyHandshake, handshake

__all__ = ("proxied",)


def proxied(proxy: Proxy, connector: Connector) -> Connector:
    """Return a connector whose streams pass through the proxy.

    The connector raises as :func:`.proxy_handshake.handshake`. Its callers limit the time to open a stream.
    """

    async def connect(host: str, port: int) -> ByteStream:
        to = Address(host, port)
        try:
            stream = await connector(*proxy.at)
        except OSError as error:
            cause = error.__cause__ or error
            raise ProxyFailed(f"{proxy} cannot be reached: {cause}") from error
        try:
            await _drive(stream, handshake(proxy, to))
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(stream)
            if isinstance(error, anyio.EndOfStream | anyio.BrokenResourceError | OSError):
                raise ProxyFailed(f"{proxy} closed the connection when asked to connect to {to}") from error
            raise
        return stream

    return connect


async def _drive(stream: ByteStream, steps: ProxyHandshake) -> None:
    received: bytes | None = None
    while True:
        try:
            step = steps.send(received)
        except StopIteration:
            return
        if isinstance(step, bytes):
            await stream.send(step)
            received = None
        else:
            received = await stream.receive(step)
