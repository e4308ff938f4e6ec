"""The login of one connection: made when it opens, and made again before it ends (KIP-368)."""

from collections.abc import Mapping
from typing import Protocol, TypeVar

import anyio

from ..errors import ConnectionLost, KafkaError, RequestTimeout
from ..protocol.schema import Request, Response, Versions
from ..types import Address, Random
from .sasl import renew_after
from .security import Security

__all__ = ("Reauthenticator", "LoginConnection")

R = TypeVar("R", bound=Response)


class LoginConnection(Protocol):
    """What a login needs of its connection."""

    @property
    def versions(self) -> Mapping[int, Versions]:
        """What the broker speaks, by API key."""

    async def ask_ahead(self, request: Request[R], *, wanted: Versions) -> R:
        """Ask before whatever is held back, and wait for the answer; that is no use of the connection."""

    async def ask_bare(self, token: bytes) -> bytes:
        """Send a frame without a header, as after SaslHandshake v0, and wait for the one that comes back."""

    async def hold(self) -> None:
        """Hold back what is asked from now on, and wait until what was asked before is answered."""

    def release(self) -> None:
        """Send what was held back, in its order."""

    async def close(self, reason: KafkaError | None = None) -> None:
        """Close the connection; whoever waits hears the reason."""


class Reauthenticator:
    """Logs a connection in, and keeps it so.

    A broker takes any other request while a login is renewed for a mistake. So it begins when all that it was asked is
    answered, and what comes meanwhile waits for the few round trips; not for a token, which is fetched before.

    Args:
        line: the connection.
        security: how to log in, if at all.
        at: the broker.
        chance: spreads renewals.
    """

    def __init__(self, line: LoginConnection, security: Security, at: Address, chance: Random) -> None:
        self._line, self._security, self._at, self._chance = line, security, at, chance
        self._done = anyio.Event()
        self._holds_ms = 0

    async def log_in(self) -> None:
        """Log in. Raises as :meth:`.security.Security.log_in`."""
        line = self._line
        self._holds_ms = await self._security.log_in(line.ask_ahead, line.versions, self._at, line.ask_bare)
        self._done.set()

    async def keep(self) -> None:
        """Log in again whenever it is time, as long as the connection lasts; it is for that to cancel this."""
        await self._done.wait()
        while (due := renew_after(self._holds_ms, self._chance)) is not None:
            await anyio.sleep(due)
            try:
                await self._security.prepare()
                await self._line.hold()
                await self.log_in()
            except RequestTimeout as late:
                await self._line.close(ConnectionLost(f"the login was not renewed: {late}"))
            except KafkaError as error:
                await self._line.close(error)
            finally:
                self._line.release()
