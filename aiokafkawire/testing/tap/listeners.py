"""The ports of a tap: one for the first address, and one for each broker that a response names."""

import errno
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio
from anyio.abc import Listener, SocketAttribute, SocketStream

from ...runtime import Owner
from ...types import Address
from ..cluster.api_error import Disconnect
from .advertised_addresses import AdvertisedBroker
from .tap_events import TapNotice

__all__ = ("TapListener", "TapListeners")

_LAST_PORT: Final = 65_535
_ATTEMPTS: Final = 100
_ANY_HOST: Final = ("0.0.0.0", "::")  # noqa: S104  # to compare with

Serve = Callable[["TapListener", SocketStream], Awaitable[None]]
"""A function that serves one connection of a client."""


class TapListener:
    """A port at which clients reach a broker, or the first broker that can be reached of several.

    Args:
        owner: runs the listener's tasks.
        serve: serves a connection.
        host: the address to listen at.
        targets: the brokers' addresses.
        node_id: the broker's id; None if it is not known.
    """

    def __init__(
        self, owner: Owner, serve: Serve, host: str, targets: Sequence[Address], node_id: int | None = None
    ) -> None:
        self.targets: tuple[Address, ...] = tuple(targets)
        self.node_id = node_id
        self.port: int = 0
        """The port; it stays the same while connections are refused."""
        self._owner, self._serve, self._host = owner, serve, host
        self._listening: anyio.CancelScope | None = None
        self._closed: anyio.Event | None = None

    async def accept(self, port: int | None = None) -> None:
        """Accept connections at a port, 0 for any free one, or at the previous port; do nothing if it accepts them.

        Raises:
            OSError: the address is not available.
        """
        if self._listening is not None:
            return
        listener = await anyio.create_tcp_listener(
            local_host=self._host, local_port=self.port if port is None else port
        )
        self.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's extra
        self._listening, self._closed = anyio.CancelScope(), anyio.Event()
        self._owner.spawn(self._listen, listener, self._listening, self._closed)

    async def refuse(self) -> None:
        """Refuse new connections, and keep the existing ones."""
        listening, self._listening = self._listening, None
        if listening is not None and self._closed is not None:
            listening.cancel()
            await self._closed.wait()

    async def _listen(
        self, listener: Listener[SocketStream], listening: anyio.CancelScope, closed: anyio.Event
    ) -> None:
        async def serve(stream: SocketStream) -> None:
            # On asyncio a new stream reads without a limit until its first receive() that has to wait.
            transport = getattr(stream, "_transport", None)
            if transport is not None:
                transport.pause_reading()
            await self._serve(self, stream)

        # Connections outlive the listener while it refuses new ones.
        async with anyio.create_task_group() as connections:
            async with listener:
                with listening:
                    await listener.serve(serve, connections)
            closed.set()


class TapListeners:
    """All ports of a tap.

    Args:
        owner: runs the listeners' tasks.
        serve: serves a connection.
        host: the address to listen at.
        port: the first port; brokers take the next free ones. 0 means any free ports.
        advertised_host: the host that clients connect to; None for ``host``, or for the address at which the client
            has connected if ``host`` stands for all addresses.
        emit: called with notices.
    """

    def __init__(
        self,
        owner: Owner,
        serve: Serve,
        host: str,
        port: int,
        advertised_host: str | None,
        emit: Callable[[TapNotice], None],
    ) -> None:
        self._owner, self._serve, self._host, self._emit = owner, serve, host, emit
        self._next_port = port
        self._advertised_host = advertised_host
        self._first: TapListener | None = None
        self._by_address: dict[Address, TapListener] = {}
        self._opening = anyio.Lock()

    async def start(self, targets: Sequence[Address]) -> None:
        """Open the first port, for the brokers at these addresses. Raise OSError if the port is not available."""
        first = TapListener(self._owner, self._serve, self._host, targets)
        await first.accept(self._next_port)
        if self._next_port:
            self._next_port += 1
        self._first = first
        if len(targets) == 1:
            self._by_address[targets[0]] = first

    @property
    def first(self) -> Address:
        """The address for clients' ``bootstrap.servers``."""
        assert self._first is not None
        local = "localhost" if self._host in _ANY_HOST else self._host
        return Address(self._advertised_host or local, self._first.port)

    @property
    def nodes(self) -> dict[int, TapListener]:
        """The listener of each broker whose id is known."""
        known = [(found.node_id, found) for found in self._by_address.values() if found.node_id is not None]
        return dict(sorted(known, key=lambda pair: pair[0]))

    def of_node(self, node_id: int) -> list[TapListener]:
        """Return the listeners of a broker: several if it has had several addresses.

        Raises:
            KeyError: no response has named such a broker.
        """
        found = [listener for listener in self._by_address.values() if listener.node_id == node_id]
        if not found:
            known = ", ".join(map(str, self.nodes)) or "none"
            raise KeyError(f"no response has named a broker {node_id}; known: {known}")
        return found

    async def addresses(self, brokers: Sequence[AdvertisedBroker], reached_at: str) -> dict[Address, Address]:
        """Return the address of the tap for each of these brokers; open a port for a new one.

        Args:
            brokers: the brokers in a response.
            reached_at: the address at which the client has connected.

        Raises:
            Disconnect: no port is available.
        """
        if any(address not in self._by_address for _, address in brokers):
            async with self._opening:
                for node_id, address in brokers:
                    if address not in self._by_address:
                        self._by_address[address] = await self._open(node_id, address)
        for node_id, address in brokers:
            listener = self._by_address[address]
            if listener.node_id != node_id:
                listener.node_id = node_id
                self._emit(TapNotice(f"broker {node_id} is {address}: clients reach it at port {listener.port}"))
        host = self._advertised_host or (reached_at if self._host in _ANY_HOST else self._host)
        return {address: Address(host, self._by_address[address].port) for _, address in brokers}

    async def _open(self, node_id: int, address: Address) -> TapListener:
        listener = TapListener(self._owner, self._serve, self._host, [address])
        for _ in range(_ATTEMPTS):
            port = self._next_port
            if port > _LAST_PORT:
                break
            if port:
                self._next_port += 1
            try:
                await listener.accept(port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise Disconnect(f"cannot listen for broker {node_id}: {error}") from None
            else:
                return listener
        raise Disconnect(f"cannot listen for broker {node_id}: no free port before {self._next_port}")
