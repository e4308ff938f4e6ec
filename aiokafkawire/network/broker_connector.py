"""How one connection gets to its broker: over the loop's own transport where nothing stands between, else a stream."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import attrs
from anyio.abc import ByteStream, SocketAttribute

from ..errors import ConnectionLost, KafkaError
from ..runtime import on_trio
from ..types import Address
from .asyncio_transport import AsyncioTransport, open_transport
from .connector import Connector, connect_tcp, keep_alive
from .pipeline import Pipeline
from .security import Security
from .transport import StreamTransport, Transport

__all__ = ("BrokerConnector",)

W = TypeVar("W", bound=AsyncioTransport)


@attrs.frozen
class BrokerConnector:
    """The way to ``at``, which is dialled at ``dialled``: the same, unless the user maps addresses."""

    connector: Connector
    security: Security
    at: Address
    dialled: Address
    keepalive: bool = attrs.field(kw_only=True)

    async def open(self, pipeline: Pipeline, limit: float, on_fault: Callable[[Exception], None]) -> Transport:
        """A wire there; the time for opening it is the caller's to limit.

        Args:
            limit: how long it may take for a frame, in seconds.
            on_fault: as of :class:`.transport.TransportWire`.

        Raises:
            KafkaError: ConnectionLost, or what TLS and proxies say of their own.
        """
        where = str(self.at)
        connector = self.connector if self.dialled == self.at else self._elsewhere
        try:
            if self._has_transport:
                return await self._over_transport(connector, pipeline, where, limit, on_fault)
            stream = await self.security.around(connector)(*self.at)
        except KafkaError:
            raise
        except Exception as error:  # a connector of the user's may fail in a way of its own
            raise self._failed(error) from error
        if self.keepalive:
            keep_alive(stream.extra(SocketAttribute.raw_socket, None))  # noqa: S610
        return StreamTransport(stream, pipeline, where, limit)

    @property
    def _has_transport(self) -> bool:
        # Names of hosts in other scripts anyio spells for TLS as it does for dialling.
        return self.connector is connect_tcp and not on_trio() and (self.security.tls is None or self.at.host.isascii())

    async def _over_transport(
        self,
        connector: Connector,
        pipeline: Pipeline,
        where: str,
        limit: float,
        on_fault: Callable[[Exception], None],
    ) -> Transport:
        async def dial(kind: type[W]) -> W:
            make = partial(kind, pipeline, where, limit, on_fault)
            return await open_transport(self.dialled, make, keepalive=self.keepalive)

        if self.security.tls is None:
            return await dial(AsyncioTransport)
        return await self.security.tls.over_transport(self.at, connector, dial)

    async def _elsewhere(self, host: str, port: int) -> ByteStream:
        return await self.connector(*self.dialled)

    def _failed(self, error: Exception) -> ConnectionLost:
        # A connector that tried several addresses wraps what each of them said.
        cause = error.__cause__ or error
        causes = cause.exceptions if isinstance(cause, ExceptionGroup) else (cause,)
        told = "; ".join(dict.fromkeys(str(one) or repr(one) for one in causes))
        mapped = f" (dialled at {self.dialled})" if self.dialled != self.at else ""
        return ConnectionLost(f"cannot connect to {self.at}{mapped}: {told}")
