"""The authentication of one connection, which is renewed before its session ends (KIP-368)."""

from collections.abc import Mapping
from typing import Protocol, TypeVar

import anyio

from ..errors import ConnectionLost, KafkaError, RequestTimeout
from ..protocol.schema import Request, Response, Versions
from ..types import Address, RandomSource
from .client_security import Security
from .sasl import renew_after

__all__ = ("Reauthenticator", "LoginConnection")

R = TypeVar("R", bound=Response)


class LoginConnection(Protocol):
    """A connection, with the methods that authentication uses."""

    @property
    def versions(self) -> Mapping[int, Versions]:
        """The versions that the broker supports, by API key."""

    async def request_ahead(self, request: Request[R], *, wanted: Versions) -> R:
        """Send a request before those that :meth:`hold` delays, without counting it as a use of the connection."""

    async def send_token(self, token: bytes) -> bytes:
        """Send a SASL token as a frame without a header, as after SaslHandshake v0; return the broker's token."""

    async def hold(self) -> None:
        """Delay new requests until :meth:`release`, and wait until the pending requests are answered."""

    async def wait_while_throttled(self) -> None:
        """Wait while the broker throttles this client, or until the connection ends."""

    def release(self) -> None:
        """Send the requests that were delayed since :meth:`hold`, in their order."""

    async def close(self, reason: KafkaError | None = None) -> None:
        """Close the connection; pending requests fail with ``reason``."""


class Reauthenticator:
    """The authentication of a connection, and its renewals.

    A broker refuses any other request during a reauthentication. Therefore a reauthentication begins when all pending
    requests are answered, and later requests wait for the end of the reauthentication. The token is fetched in advance.

    Args:
        security: authenticates, if SASL is used.
        at: the broker.
        chance: randomizes the times of renewals.
    """

    def __init__(self, connection: LoginConnection, security: Security, at: Address, chance: RandomSource) -> None:
        self._connection, self._security, self._at, self._chance = connection, security, at, chance
        self._done = anyio.Event()
        self._lifetime_ms = 0

    async def log_in(self) -> None:
        """Authenticate. Raises as :meth:`.connection_security.Security.log_in`."""
        made = self._connection
        self._lifetime_ms = await self._security.log_in(made.request_ahead, made.versions, self._at, made.send_token)
        self._done.set()

    async def keep(self) -> None:
        """Reauthenticate before the session ends, again and again, until the connection ends and cancels this task."""
        await self._done.wait()
        while (due := renew_after(self._lifetime_ms, self._chance)) is not None:
            await anyio.sleep(due)
            try:
                # A broker reads nothing of a throttled connection, and accepts a login after the session's end as well.
                await self._connection.wait_while_throttled()
                await self._security.prepare()
                await self._connection.hold()
                await self._connection.wait_while_throttled()  # the pending responses may have named a throttle time
                await self.log_in()
            except RequestTimeout as late:
                await self._connection.close(ConnectionLost(f"reauthentication timed out: {late}"))
            except KafkaError as error:
                await self._connection.close(error)
            finally:
                self._connection.release()
