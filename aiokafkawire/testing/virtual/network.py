"""The network of a simulation: the links between clients and brokers, their speed and their faults."""

import errno
from collections.abc import Callable
from random import Random
from typing import Final, Protocol

import anyio
from anyio.abc import ByteStream

from .fault_injector import Endpoint, FaultInjector, check_speed
from .link import Link
from .stream import End, VirtualConnection
from .trace import Trace

__all__ = ("Dial", "Network")

_PRUNE_AT: Final = 64
"""The number of remembered connections at which closed ones are removed for the first time."""


class Dial(Protocol):
    """A function that opens a connection to a host and port: the type of a client's ``connector``."""

    async def __call__(self, host: str, port: int) -> ByteStream: ...


class Network(FaultInjector):
    """Links between clients and brokers in virtual time.

    1. Bytes arrive after ``latency`` and in order; at most 256 KiB per direction of a connection are in transit.
    2. Connections across a :meth:`partition` hang: bytes are held, new connections wait, and no side gets an error.
       After :meth:`heal`, connections continue, as with TCP's retransmission, unless a client's timeout has ended them.
    3. :meth:`cut` resets connections: each side gets a part of the bytes in transit, and then an error.
    4. The faults of an :meth:`injector` end when :meth:`drop` removes it; tests use the network itself as an injector.

    Args:
        attend: serves the broker's end of a new connection; raises ConnectionRefusedError if the broker does not run.
        addresses: returns the brokers' ids by host and port.
        now: returns the virtual time, in seconds.
        chance: the source of randomness.
        trace: the trace of the simulation.
        latency: the shortest and the longest time that bytes take in one direction, in seconds.
        bandwidth: bytes per second, for each direction of each connection; None for no limit.
        on_change: called when separations begin or end.

    Raises:
        ValueError: ``latency`` is not a minimum and a maximum, or ``bandwidth`` is not positive.
    """

    def __init__(
        self,
        attend: Callable[[int, End, str], None],
        addresses: Callable[[], dict[tuple[str, int], int]],
        *,
        now: Callable[[], float],
        chance: Random,
        trace: Trace,
        latency: tuple[float, float],
        bandwidth: float | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        check_speed(latency, bandwidth)
        super().__init__(lambda: list(addresses().values()), trace, self._regroup, self._set_speeds)
        self._on_change = on_change
        self._attend, self._addresses = attend, addresses
        self._now, self._chance = now, chance
        self.latency: tuple[float, float] = latency
        self.bandwidth: float | None = bandwidth
        self._links_by_endpoints: dict[tuple[str, int], Link] = {}
        self._open: list[tuple[str, int, VirtualConnection]] = []
        self._prune_at = _PRUNE_AT
        self._listening: dict[tuple[str, int], int] = {}
        self._injectors: list[FaultInjector] = [self]
        self._count = 0

    # --- connections -------------------------------------------------------------------------------------------

    def connector(self, client: str) -> Dial:
        """Return a function that opens this client's connections: the ``connector`` of a ``Client``."""

        async def connect(host: str, port: int) -> ByteStream:
            return await self._connect(client, host, port)

        return connect

    async def _connect(self, client: str, host: str, port: int) -> ByteStream:
        if (host, port) not in self._listening:
            self._listening = self._addresses()
        node = self._listening.get((host, port))
        if node is None:
            raise OSError(errno.EHOSTUNREACH, f"no route to {host}:{port}")
        link = self._link(client, node)
        self._count += 1
        name = f"{client}-{node}.{self._count}"
        self._trace.add(f"{name} is dialled")
        await link.wait_until_open()
        await anyio.sleep(link.delay(self._chance) + link.delay(self._chance))
        await link.wait_until_open()
        if any(node in injector.refusing for injector in self._injectors):
            raise self._refused(name, ConnectionRefusedError(errno.ECONNREFUSED, f"{host}:{port} refuses"))
        made = VirtualConnection(name, link, self._now, self._chance, self._trace.add)
        try:
            self._attend(node, made.server, name)
        except ConnectionRefusedError as refused:
            raise self._refused(name, refused) from None
        self._trace.add(f"{name} is open")
        self._remember(client, node, made)
        return made.client

    def _remember(self, client: str, node: int, made: VirtualConnection) -> None:
        # Connections that are over are removed only now and then, since a search at each new connection would take
        # quadratic time. A connection that is closed at one end may still have bytes in transit to the other end.
        if len(self._open) >= self._prune_at:
            self._open = [entry for entry in self._open if not entry[2].is_over]
            self._prune_at = max(_PRUNE_AT, 2 * len(self._open))
        self._open.append((client, node, made))

    def _refused(self, name: str, error: ConnectionRefusedError) -> ConnectionRefusedError:
        self._trace.add(f"{name} is refused")
        return error

    def _link(self, client: str, node: int) -> Link:
        link = self._links_by_endpoints.get((client, node))
        if link is None:
            link = self._links_by_endpoints[client, node] = Link(*self._speed(node))
            link.blocked_since = self._now() if self.separated(client, node) else None
        return link

    # --- faults ------------------------------------------------------------------------------------------------

    def injector(self) -> FaultInjector:
        """Return a new injector, whose faults end independently of other injectors' faults."""
        made = FaultInjector(self._nodes, self._trace, self._regroup, self._set_speeds)
        self._injectors.append(made)
        return made

    def drop(self, injector: FaultInjector) -> None:
        """End all faults of an injector, and remove the injector."""
        injector.clear()
        self._injectors.remove(injector)

    def cut(self, *nodes: int, client: str | None = None) -> int:
        """Reset the connections of ``client``, or of all clients, to these brokers; return how many were reset."""
        named = self._named(nodes)
        found = [
            entry
            for entry in self._open
            if entry[2].is_open and client in (None, entry[0]) and entry[1] in named and not entry[2].link.blocked
        ]
        shown = ", ".join(map(str, nodes)) or "all brokers"
        self._trace.fault("cut", f"{len(found)} connections of {client or 'all clients'} to {shown}")
        for _, _, connection in found:
            connection.cut()
        return len(found)

    def separated(self, one: Endpoint, other: Endpoint) -> bool:
        """Return whether any injector separates these two endpoints."""
        return any(injector.separates(one, other) for injector in self._injectors)

    def _speed(self, node: int) -> tuple[tuple[float, float], float | None]:
        slowed = [injector.slowed[node] for injector in self._injectors if node in injector.slowed]
        return slowed[-1] if slowed else (self.latency, self.bandwidth)

    def _set_speeds(self) -> None:
        for (_, node), link in self._links_by_endpoints.items():
            link.latency, link.bandwidth = self._speed(node)

    def _regroup(self) -> None:
        for (client, node), link in self._links_by_endpoints.items():
            self._open_or_block(client, node, link)
        self._on_change()

    def _open_or_block(self, client: str, node: int, link: Link) -> None:
        now, since = self._now(), link.blocked_since
        if self.separated(client, node):
            link.blocked_since = now if since is None else since
        elif since is not None:
            link.blocked_since = None
            for by, to, connection in self._open:
                if (by, to) == (client, node):
                    connection.reopened(since)
            opened, link.opened = link.opened, None
            if opened is not None:
                opened.set()
