"""Opens the transport to a broker: on asyncio's transports for direct connections, otherwise over a stream."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import attrs
from anyio.abc import ByteStream, SocketAttribute

from .._lazy_classes import frozen
from .._printable import printable
from ..errors import ConnectionLost, KafkaError
from ..runtime import on_trio
from ..types import Address
from .anyio_transport import StreamTransport
from .asyncio_transport import AsyncioTransport, open_transport
from .client_security import Security
from .connection_protocol import ConnectionProtocol
from .connector import Connector, SocketOptions, connect_tcp
from .transport import Transport

__all__ = ("TransportFactory",)

W = TypeVar("W", bound=AsyncioTransport)


@frozen
class TransportFactory:
    """A factory of transports to the broker ``at``.

    ``dialled`` is the address to connect to: ``at``, or the result of ``advertised_listeners_map`` for ``at``.
    """

    connector: Connector
    security: Security
    at: Address
    dialled: Address
    options: SocketOptions = attrs.field(kw_only=True)

    async def open(
        self, pipeline: ConnectionProtocol, limit: float, on_fault: Callable[[Exception], None]
    ) -> Transport:
        """Open the transport. The caller limits the time to open it.

        Args:
            pipeline: the pipeline of the connection.
            limit: how long writing a frame may take, in seconds.
            on_fault: as for :class:`.asyncio_transport.AsyncioTransport`.

        Raises:
            KafkaError: ConnectionLost, or an error of TLS or of a proxy.
        """
        broker = str(self.at)
        connector = self.connector if self.dialled == self.at else self._connect_mapped
        try:
            if self._has_transport:
                return await self._over_transport(connector, pipeline, broker, limit, on_fault)
            stream = await self.security.around(connector)(*self.at)
        except KafkaError:
            raise
        except Exception as error:  # a user's connector may raise any error
            raise self._failed(error) from error
        self.options.set_on(stream.extra(SocketAttribute.raw_socket, None))  # noqa: S610
        return StreamTransport(stream, pipeline, broker, limit)

    @property
    def _has_transport(self) -> bool:
        # Non-ASCII host names need anyio's stream, which IDNA-encodes them for TLS as well.
        return self.connector is connect_tcp and not on_trio() and (self.security.tls is None or self.at.host.isascii())

    async def _over_transport(
        self,
        connector: Connector,
        pipeline: ConnectionProtocol,
        broker: str,
        limit: float,
        on_fault: Callable[[Exception], None],
    ) -> Transport:
        async def dial(transport_type: type[W]) -> W:
            make = partial(transport_type, pipeline, broker, limit, on_fault)
            return await open_transport(self.dialled, make, options=self.options)

        if self.security.tls is None:
            return await dial(AsyncioTransport)
        return await self.security.tls.over_transport(self.at, connector, dial)

    async def _connect_mapped(self, host: str, port: int) -> ByteStream:
        return await self.connector(*self.dialled)

    def _failed(self, error: Exception) -> ConnectionLost:
        # A connector that tried several addresses groups their errors.
        cause = error.__cause__ or error
        causes = cause.exceptions if isinstance(cause, ExceptionGroup) else (cause,)
        message = "; ".join(dict.fromkeys(str(cause) or repr(cause) for cause in causes))
        mapped = f" (dialled at {self.dialled})" if self.dialled != self.at else ""
        return ConnectionLost(f"cannot connect to {self.at}{mapped}: {printable(message)}")
