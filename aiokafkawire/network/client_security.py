"""The security of a client's connections: TLS and SASL."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from ..config import ClientConfig
from ..config.security import SecurityConfig
from ..errors import RequestTimeout
from ..event_log import EventLog
from ..protocol.schema import Versions
from ..runtime import Runtime
from ..types import Address
from .connector import Connector

if TYPE_CHECKING:
    from .authentication import Login, SendSaslRequest, SendToken
    from .tls_connector import Tls

__all__ = ("Security",)

_log = EventLog("aiokafkawire.security")


class Security:
    """The TLS and SASL of a client, according to its settings. Without TLS or SASL, their modules are not imported.

    Raises:
        ConfigError: an extension for OAUTHBEARER cannot be sent.
    """

    def __init__(self, config: ClientConfig, runtime: Runtime) -> None:
        self._patience = config.socket_connection_setup_timeout_ms / 1000
        self.tls: Tls | None = _tls(config, runtime) if config.uses_tls else None
        self._login = _login(config, runtime) if config.uses_sasl else None

    async def check(self) -> None:
        """Check the files that TLS needs.

        Raises:
            ConfigError: a file is missing, or its content is invalid; the message names the file and the reason.
        """
        if self.tls is not None:
            await self.tls.context()

    def around(self, connector: Connector) -> Connector:
        """Return a connector with TLS around its streams; the same connector if the settings do not enable TLS."""
        return connector if self.tls is None else self.tls.around(connector)

    async def prepare(self) -> None:
        """Fetch the next OAUTHBEARER token if it is due; give up after ``socket_connection_setup_timeout_ms``.

        Raises:
            AuthenticationFailed, ConfigError, ConnectionLost: as :meth:`log_in`.
        """
        if self._login is not None:
            with anyio.move_on_after(self._patience):
                await self._login.prepare()

    async def log_in(
        self,
        ask: "SendSaslRequest",
        versions: Mapping[int, Versions],
        at: Address,
        send_token: "SendToken | None" = None,
    ) -> int:
        """Authenticate a connection as :meth:`.authentication.Login.authenticate`, if the settings enable SASL.

        Raises:
            RequestTimeout: the broker, or the server of the token or ticket, took longer than
                ``socket_connection_setup_timeout_ms``.
        """
        if self._login is None:
            return 0
        with anyio.move_on_after(self._patience):
            lifetime_ms = await self._login.authenticate(ask, versions, at, send_token)
            until = f"for {lifetime_ms / 1000:g} s" if lifetime_ms else "until the connection closes"
            message, text = "logged in to %(broker)s by %(mechanism)s, %(until)s", {"until": until}
            _log.debug(message, text=text, broker=at, mechanism=self._login.mechanism)
            return lifetime_ms
        limit = f"{self._patience:g} s (socket_connection_setup_timeout_ms)"
        raise RequestTimeout(f"the login by {self._login.mechanism} on {at} was not done within {limit}")


def _tls(config: SecurityConfig, runtime: Runtime) -> "Tls":
    from .tls_connector import Tls

    return Tls(config, runtime.offload)


def _login(config: SecurityConfig, runtime: Runtime) -> "Login":
    from .authentication import Login

    return Login(config, runtime)
