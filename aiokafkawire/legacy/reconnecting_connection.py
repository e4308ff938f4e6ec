"""A connection to one broker of Kafka 0.6 or 0.7, opened when it is first needed, and reopened after it broke."""

from typing import Final

import anyio
from anyio.abc import ByteStream

from ..config import ClientConfig
from ..errors import ConnectionLost, KafkaError, RequestTimeout, UnsupportedVersion, WireError, copy_for_reraise
from ..network.connection import Connection
from ..network.connector import Connector
from ..runtime import Owner, Runtime
from ..types import Address
from .connection import LegacyConnection
from .requests import Answer, Request
from .settings import LegacyConfig

__all__ = ("ReconnectingConnection",)

_PROBE_SECONDS: Final = 5.0


class ReconnectingConnection:
    """A connection to a broker that is replaced when it breaks.

    If the connection broke after produce requests, whose messages may be lost, the next request raises the connection's
    error, once. Otherwise the connection is replaced without an error.
    """

    def __init__(self, address: Address, connector: Connector, config: LegacyConfig, runtime: Runtime) -> None:
        self.where: str = str(address)
        self._address, self._connector, self._config, self._runtime = address, connector, config, runtime
        self._owner = Owner()
        self._opening = anyio.Lock()
        self._connection: LegacyConnection | None = None
        self._answered = False

    async def open(self) -> None:
        """Allow requests. The first request opens the connection."""
        await self._owner.open()

    async def close(self) -> None:
        """Close the connection. Calling it again has no effect."""
        if self._connection is not None:
            await self._connection.close()
        await self._owner.close()

    @property
    def unproven(self) -> int:
        """The number of produce requests sent after the last answered request."""
        return 0 if self._connection is None else self._connection.unproven

    async def ask(self, request: Request) -> Answer | None:
        """Send a request and return its answer, or None for produce requests. Raises as ``LegacyClient``'s methods."""
        self._owner.require_open()
        connection: LegacyConnection | None = None
        try:
            connection = await self._open()
            answer = await connection.ask(request)
        except (ConnectionLost, RequestTimeout, WireError) as error:
            if connection is not None and connection is self._connection:
                self._connection = None  # the next request must not raise the same error again
            await self._explain(error)
            raise
        if answer is not None:
            self._answered = True
        return answer

    async def _open(self) -> LegacyConnection:
        async with self._opening:
            known = self._connection
            if known is not None and known.failure is None:
                return known
            self._connection = None
            if known is not None and known.failure is not None and known.unproven:
                raise copy_for_reraise(known.failure)
            stream = await self._connect()
            self._connection = LegacyConnection(stream, self.where, self._config.request_timeout_ms / 1000)
            await self._connection.start(self._owner)
            return self._connection

    async def _connect(self) -> ByteStream:
        limit = self._config.socket_connection_setup_timeout_ms / 1000
        try:
            with anyio.fail_after(limit):
                return await self._connector(*self._address)
        except TimeoutError as cause:
            raise ConnectionLost(f"{self.where} did not accept a connection within {limit:g} s") from cause
        except Exception as error:  # a custom connector may raise anything
            raise ConnectionLost(f"cannot connect to {self.where}: {error}") from error

    async def _explain(self, error: KafkaError) -> None:
        """Raise UnsupportedVersion, caused by ``error``, if the broker answers requests of Kafka 0.8 or later."""
        if self._answered or isinstance(error.__cause__, OSError):
            return
        try:
            found = await Connection.open(
                self._connector,
                *self._address,
                config=ClientConfig(socket_connection_setup_timeout_ms=self._config.socket_connection_setup_timeout_ms),
                owner=self._owner,
                runtime=self._runtime,
                within=_PROBE_SECONDS,
            )
        except KafkaError:
            return
        await found.close()
        release = found.known.release if found.known is not None else None
        raise UnsupportedVersion(
            f"{self.where} is a broker of Kafka {release or '0.10 or later'}, and was asked as one of 0.7:"
            " use aiokafkawire.Client"
        ) from error
