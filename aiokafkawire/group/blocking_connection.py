"""How the heartbeat thread gets to a broker: blocking connections, through proxies and inside TLS, logged in."""

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

import anyio

from ..config import ClientConfig
from ..config.network import parse_proxy
from ..errors import ConnectionLost
from ..network.proxy_handshake import ProxyHandshake, handshake
from ..protocol.api import choose_version
from ..protocol.schema import Request, Response, Versions
from ..runtime import Runtime
from ..types import Address

__all__ = ("BlockingConnector", "BlockingConnection")

R = TypeVar("R", bound=Response)

_RENEWED_AFTER: Final = 0.85
"""After which part of a login's time the next connection is made (KIP-368)."""


class BlockingConnection(Protocol):
    """A blocking connection, for one request after the other."""

    broker: Address
    versions: Mapping[int, Versions]

    def ask(self, request: Request[R], version: int, deadline: float) -> R: ...


class BlockingConnector:
    """Connections as the client's settings want them, in whichever thread asks for one.

    Args:
        config: the client's settings.
        dialled: where a broker is dialled that advertises an address.
    """

    def __init__(self, config: ClientConfig, dialled: Callable[[Address], Address]) -> None:
        self._config, self._dialled = config, dialled
        self._proxy = parse_proxy(config.proxy) if config.proxy is not None else None

    def connect(self, broker: Address, within: float) -> socket.socket:
        """A connection, within so many seconds for each of the name's addresses.

        Raises:
            OSError: there is none, or TLS failed on it.
            KafkaError: the proxy refuses, or an address or a certificate of the settings will not do.
        """
        deadline = time.monotonic() + within
        at = self._dialled(broker)
        made = socket.create_connection(self._proxy.at if self._proxy is not None else at, within)
        try:
            if self._proxy is not None:
                _have(made, handshake(self._proxy, at), deadline)
            return self._inside_tls(made, broker.host, deadline) if self._config.uses_tls else made
        except BaseException:
            with contextlib.suppress(OSError):
                made.close()
            raise

    def _inside_tls(self, made: socket.socket, host: str, deadline: float) -> socket.socket:
        from ..network.tls_context import make_context

        made.settimeout(_left(deadline))
        context = self._config.ssl_context or make_context(self._config)
        return context.wrap_socket(made, server_hostname=host)

    def log_in(self, line: BlockingConnection, deadline: float) -> float:
        """Log in, where that is wanted; for how many seconds the line is to be used.

        Raises:
            KafkaError: as :meth:`.authentication.Login.authenticate`.
            OSError: the connection broke, or the time is up.
        """
        if not self._config.uses_sasl:
            return float("inf")
        # The steps of a login wait, each for its answer: a loop of this thread's own has nothing else to do.
        lifetime_ms = anyio.run(self._log_in, line, deadline)
        return lifetime_ms / 1000 * _RENEWED_AFTER if lifetime_ms else float("inf")

    async def _log_in(self, line: BlockingConnection, deadline: float) -> int:
        from ..network.authentication import Login

        async def ask(request: Request[R], *, wanted: Versions) -> R:
            version = choose_version(type(request), line.versions, wanted, str(line.broker))
            return line.ask(request, version, deadline)

        with anyio.fail_after(_left(deadline)):
            return await Login(self._config, Runtime()).authenticate(ask, line.versions, line.broker)
        raise AssertionError("neither done nor failed")


def _have(made: socket.socket, conversation: ProxyHandshake, deadline: float) -> None:
    heard: Any = None
    while True:
        try:
            turn = conversation.send(heard)
        except StopIteration:
            return
        made.settimeout(_left(deadline))
        if isinstance(turn, bytes):
            made.sendall(turn)
            heard = None
        elif not (heard := made.recv(turn)):
            raise ConnectionLost("the proxy hung up")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
