"""The server of one broker: it listens, serves connections, stops and restarts."""

import logging
import ssl
from collections.abc import Callable

import anyio
from anyio.abc import ByteStream, Listener, SocketAttribute, SocketStream

from ...runtime import Owner
from ..cluster.state import BrokerNode
from ..security.authentication import LoginState
from ..security.tls import handshake
from .call import Peer
from .memory import memory_connection
from .server import serve

__all__ = ("NodeServer",)

_log = logging.getLogger(__name__)


class NodeServer:
    """The server of one broker, over TCP and in memory.

    Args:
        node: the broker whose requests are served.
        listens_on: the host and port to listen on; None for in-memory connections only. Port 0 means any free port; a
            restart uses the same port.
        number: returns the number of a new connection.
        on_fault: called with each unexpected exception of a connection.
        tls: the context for TLS on TCP; None for no TLS.
    """

    def __init__(
        self,
        node: BrokerNode,
        listens_on: tuple[str, int] | None,
        number: Callable[[], int],
        on_fault: Callable[[Exception], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._node = node
        self._listens_on = listens_on
        self._number = number
        self._on_fault = on_fault
        self._tls = tls
        self._owner: Owner | None = None
        self._refuses = False
        self._listening: anyio.CancelScope | None = None
        self._closed: anyio.Event | None = None

    @property
    def running(self) -> bool:
        """Whether the server was started and not stopped."""
        return self._owner is not None

    @property
    def accepting(self) -> bool:
        """Whether the server runs and does not refuse connections."""
        return self._owner is not None and not self._refuses

    async def start(self) -> None:
        """Start the server, which then accepts connections.

        Raises:
            OSError: the address is not available.
        """
        owner = Owner(self._on_fault)
        try:
            await owner.open()
        except BaseException:
            await owner.close()  # open() was cancelled: the owner's task exists already
            raise
        self._owner = owner  # from here on connections may arrive
        try:
            await self.accept()
        except BaseException:
            await self.stop()
            raise

    async def accept(self) -> None:
        """Accept new connections; a stopped server accepts them only after :meth:`start`. Raises as :meth:`start`."""
        self._refuses = False
        if self._owner is None or self._listens_on is None or self._listening is not None:
            return
        host, port = self._listens_on
        listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
        self._node.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's extra
        self._listens_on = host, self._node.port
        self._listening, self._closed = anyio.CancelScope(), anyio.Event()
        self._owner.spawn(self._listen, listener, self._listening, self._closed)

    async def refuse(self) -> None:
        """Refuse new connections until :meth:`accept`, and keep the existing ones."""
        self._refuses = True
        listening, self._listening = self._listening, None
        if listening is not None and self._closed is not None:
            listening.cancel()
            await self._closed.wait()

    async def stop(self) -> None:
        """Close the listener and every connection at once."""
        owner, self._owner = self._owner, None
        self._listening = None
        self._node.share_sessions.clear()  # a killed broker releases no records
        if owner is not None:
            await owner.close()

    def connect(self) -> ByteStream:
        """Open an in-memory connection and return the client's end."""
        theirs, ours = memory_connection()
        self.attend(ours, "memory connection")
        return theirs

    def attend(self, stream: ByteStream, name: str) -> None:
        """Serve a connection that another component made; ``stream`` is the broker's end, ``name`` is for the log."""
        assert self._owner is not None
        number = self._number()
        self._owner.spawn(self._serve, stream, self._peer(f"{name} {number}", number))

    def _peer(self, name: str, number: int, host: str = "127.0.0.1") -> Peer:
        cluster = self._node.cluster
        peer = Peer(name, host, number)
        if cluster.settings.sasl_enabled_mechanisms:
            peer.login = LoginState(
                cluster.settings.sasl_enabled_mechanisms,
                cluster.credentials,
                max_reauth_ms=cluster.settings.connections_max_reauth_ms,
                new_nonce=lambda: cluster.new_uuid().hex,
            )
        return peer

    async def _serve(self, stream: ByteStream, peer: Peer, tls: ssl.SSLContext | None = None) -> None:
        """Serve a connection. One above the quota of its address is not read, and closed a moment later (KIP-612)."""
        cluster = self._node.cluster
        pause = cluster.throttles[self._node.node_id].connected(peer.host, cluster.timers.now() * 1000)
        if pause:
            reason = f"connection_creation_rate of {peer.host} is exceeded"
            _log.info("node %d closes the connection of %s in %d ms: %s", self._node.node_id, peer.name, pause, reason)
            async with stream:
                await anyio.sleep(pause / 1000)
            return
        served = stream if tls is None else await handshake(stream, tls, peer)
        if served is not None:
            await serve(self._node, served, peer)

    async def _listen(
        self, listener: Listener[SocketStream], listening: anyio.CancelScope, closed: anyio.Event
    ) -> None:
        async def attend(stream: SocketStream) -> None:
            number = self._number()
            try:
                host, port = tuple(stream.extra(SocketAttribute.remote_address))[:2]  # noqa: S610  # not Django's extra
                peer = self._peer(f"{host}:{port}", number, str(host))
            except anyio.TypedAttributeLookupError:
                peer = self._peer("a client that disconnected at once", number)
            try:
                await self._serve(stream, peer, self._tls)
            except Exception as fault:
                # A bug that shows in one connection must not end other connections.
                self._on_fault(fault)

        # Connections outlive the listener while the broker refuses new ones.
        async with anyio.create_task_group() as connections:
            async with listener:
                with listening:
                    await listener.serve(attend, connections)
            closed.set()
