"""Blocking connections for the heartbeat thread: through proxies, with TLS and SASL."""

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

import anyio

from ..config import ClientConfig
from ..config.network import parse_proxy
from ..errors import ConnectionLost
from ..network.proxy_handshake import ProxyHandshake, talk
from ..protocol.api import choose_version
from ..protocol.schema import Request, Response, Versions
from ..runtime import Runtime
from ..types import Address

__all__ = ("BlockingConnector", "BlockingConnection")

R = TypeVar("R", bound=Response)

_RENEWED_AFTER: Final = 0.85
"""The fraction of a SASL session's lifetime after which a new connection replaces this one (KIP-368)."""


class BlockingConnection(Protocol):
    """A blocking connection that sends one request at a time."""

    broker: Address
    versions: Mapping[int, Versions]

    def ask(self, request: Request[R], version: int, deadline: float) -> R: ...


class BlockingConnector:
    """Opens connections by the client's settings, in any thread.

    Args:
        config: the client's settings.
        dialled: maps a broker's advertised address to the address to connect to.
    """

    def __init__(self, config: ClientConfig, dialled: Callable[[Address], Address]) -> None:
        self._config, self._dialled = config, dialled
        self._proxy = parse_proxy(config.proxy) if config.proxy is not None else None

    def connect(self, broker: Address, within: float) -> socket.socket:
        """Open a connection, within ``within`` seconds for each of the name's addresses.

        Raises:
            OSError: no connection could be opened, or TLS failed on it.
            KafkaError: the proxy refused the connection, or an address or certificate in the settings is invalid.
        """
        deadline = time.monotonic() + within
        at = self._dialled(broker)
        sock = socket.create_connection(self._proxy.at if self._proxy is not None else at, within)
        try:
            if self._proxy is not None:
                _drive(sock, talk(self._proxy, at), deadline)
            return self._inside_tls(sock, broker.host, deadline) if self._config.uses_tls else sock
        except BaseException:
            with contextlib.suppress(OSError):
                sock.close()
            raise

    def _inside_tls(self, sock: socket.socket, host: str, deadline: float) -> socket.socket:
        from ..network.tls_context import make_context

        sock.settimeout(_left(deadline))
        context = self._config.ssl_context or make_context(self._config)
        return context.wrap_socket(sock, server_hostname=host)

    def log_in(self, connection: BlockingConnection, deadline: float) -> float:
        """Authenticate if SASL is configured; return for how many seconds the connection may be used.

        Raises:
            KafkaError: as :meth:`.authentication.Login.authenticate`.
            OSError: the connection broke, or the deadline passed.
        """
        if not self._config.uses_sasl:
            return float("inf")
        # A login is a coroutine; this thread has no event loop, so it runs its own.
        lifetime_ms = anyio.run(self._log_in, connection, deadline)
        return lifetime_ms / 1000 * _RENEWED_AFTER if lifetime_ms else float("inf")

    async def _log_in(self, connection: BlockingConnection, deadline: float) -> int:
        from ..network.authentication import Login

        async def ask(request: Request[R], *, wanted: Versions) -> R:
            version = choose_version(type(request), connection.versions, wanted, str(connection.broker))
            return connection.ask(request, version, deadline)

        with anyio.fail_after(_left(deadline)):
            return await Login(self._config, Runtime()).authenticate(ask, connection.versions, connection.broker)
        raise AssertionError("neither done nor failed")


def _drive(sock: socket.socket, conversation: ProxyHandshake, deadline: float) -> None:
    received: Any = None
    while True:
        try:
            step = conversation.send(received)
        except StopIteration:
            return
        sock.settimeout(_left(deadline))
        if isinstance(step, bytes):
            sock.sendall(step)
            received = None
        elif not (received := sock.recv(step)):
            raise ConnectionLost("the proxy closed the connection")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
