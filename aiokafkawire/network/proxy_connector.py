"""Streams through a proxy, whatever opens the streams to it."""

import anyio
from anyio.abc import ByteStream

from ..config.network import Proxy
from ..errors import ProxyFailed
from ..types import Address
from .connector import Connector
from .proxy_handshake import ProxyHandshake, talk

__all__ = ("through",)


def through(proxy: Proxy, connector: Connector) -> Connector:
    """A connector whose streams lead through the proxy; the time for that is the caller's to limit.

    It raises as :func:`.proxying.talk`.
    """

    async def connect(host: str, port: int) -> ByteStream:
        to = Address(host, port)
        try:
            stream = await connector(*proxy.at)
        except OSError as error:
            cause = error.__cause__ or error
            raise ProxyFailed(f"{proxy} cannot be reached: {cause}") from error
        try:
            await _have(stream, talk(proxy, to))
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(stream)
            if isinstance(error, anyio.EndOfStream | anyio.BrokenResourceError | OSError):
                raise ProxyFailed(f"{proxy} hung up when it was asked for {to}") from error
            raise
        return stream

    return connect


async def _have(stream: ByteStream, conversation: ProxyHandshake) -> None:
    heard: bytes | None = None
    while True:
        try:
            turn = conversation.send(heard)
        except StopIteration:
            return
        if isinstance(turn, bytes):
            await stream.send(turn)
            heard = None
        else:
            heard = await stream.receive(turn)
