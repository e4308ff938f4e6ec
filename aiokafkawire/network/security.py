"""How the connections of one client are protected: TLS around them, and a login on them."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from ..config import ClientConfig
from ..config.security import SecurityConfig
from ..errors import RequestTimeout
from ..protocol.schema import Versions
from ..runtime import Runtime
from ..types import Address
from .connector import Connector

if TYPE_CHECKING:
    from .authentication import AskBare, Login, SendSaslRequest
    from .tls import Tls

__all__ = ("Security",)

_log = logging.getLogger("aiokafkawire.security")


class Security:
    """TLS and SASL as the settings want them; plain connections load neither.

    Raises:
        ConfigError: an extension for OAUTHBEARER cannot be said.
    """

    def __init__(self, config: ClientConfig, runtime: Runtime) -> None:
        self._patience = config.socket_connection_setup_timeout_ms / 1000
        self.tls: Tls | None = _tls(config, runtime) if config.uses_tls else None
        self._login = _login(config, runtime) if config.uses_sasl else None

    async def check(self) -> None:
        """Look into the files that are needed.

        Raises:
            ConfigError: one is not there, or does not hold what it should; the message says which, and in what.
        """
        if self.tls is not None:
            await self.tls.context()

    def around(self, connector: Connector) -> Connector:
        """The connector, with TLS around what it opens, where that is wanted."""
        return connector if self.tls is None else self.tls.around(connector)

    async def prepare(self) -> None:
        """Have ready what others than the broker give for a login, if that comes in time.

        Raises:
            AuthenticationFailed, ConfigError, ConnectionLost: as :meth:`log_in`.
        """
        if self._login is not None:
            with anyio.move_on_after(self._patience):
                await self._login.prepare()

    async def log_in(
        self, ask: "SendSaslRequest", versions: Mapping[int, Versions], at: Address, ask_bare: "AskBare | None" = None
    ) -> int:
        """Log in on a connection, where that is wanted; as :meth:`.authentication.Login.authenticate`.

        Raises:
            RequestTimeout: it took more than ``socket_connection_setup_timeout_ms``, be it the broker, or whatever
                gives tokens and tickets.
        """
        if self._login is None:
            return 0
        with anyio.move_on_after(self._patience):
            holds_ms = await self._login.authenticate(ask, versions, at, ask_bare)
            until = f"for {holds_ms / 1000:g} s" if holds_ms else "until the connection closes"
            _log.debug("logged in to %s by %s, %s", at, self._login.mechanism, until)
            return holds_ms
        limit = f"{self._patience:g} s (socket_connection_setup_timeout_ms)"
        raise RequestTimeout(f"the login by {self._login.mechanism} on {at} was not done within {limit}")


def _tls(config: SecurityConfig, runtime: Runtime) -> "Tls":
    from .tls import Tls

    return Tls(config, runtime.offload)


def _login(config: SecurityConfig, runtime: Runtime) -> "Login":
    from .authentication import Login

    return Login(config, runtime)
