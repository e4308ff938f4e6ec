"""The network of a simulation: every way from a client to a broker, how quick it is, and whether it is there at all."""

import errno
from collections.abc import Callable
from random import Random
from typing import Final, Protocol

import anyio
from anyio.abc import ByteStream

from .fault_injector import FaultInjector, Place, check_speed
from .link import Link
from .stream import End, VirtualConnection
from .trace import Trace

__all__ = ("Dial", "Network")

_LOOK_AT: Final = 64
"""Connections, open or not, among which those that are over are looked for."""


class Dial(Protocol):
    """Opens a connection, as a client's ``connector``."""

    async def __call__(self, host: str, port: int) -> ByteStream: ...


class Network(FaultInjector):
    """Ways between clients and brokers in virtual time.

    1. Bytes take ``latency``, never overtake one another, and fill a window of 256 KiB.
    2. What :meth:`partition` separates hangs: bytes are held, new connections wait, and nobody is told. After
       :meth:`heal` all goes on, as TCP does that sends again; nothing gives up but those who wait.
    3. :meth:`cut` resets connections: each side still gets some of what was under way, and then an error.
    4. What was made by one :meth:`hand` is ended by the same; the network's own methods are one hand, of the test's.

    Brokers are named by their ids; naming none is naming all. One that does not exist is a KeyError.

    Args:
        attend: serves the broker's end of a new connection; raises ConnectionRefusedError where no broker runs.
        addresses: which broker listens where.
        now: the virtual time, in seconds.
        chance: decides all that is left to chance here.
        trace: what happened.
        latency: the least and the most time that bytes take one way, in seconds.
        bandwidth: bytes per second, for each direction of each connection; None for no limit.
        on_change: is called when someone was separated, or is no more.

    Raises:
        ValueError: latency is not the least and the most of seconds, or bandwidth is none.
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
        self._ways: dict[tuple[str, int], Link] = {}
        self._open: list[tuple[str, int, VirtualConnection]] = []
        self._look_at = _LOOK_AT
        self._listening: dict[tuple[str, int], int] = {}
        self._hands: list[FaultInjector] = [self]
        self._count = 0

    # --- being used --------------------------------------------------------------------------------------------

    def connector(self, client: str) -> Dial:
        """What opens this client's connections: the ``connector`` of a ``Client``."""

        async def connect(host: str, port: int) -> ByteStream:
            return await self._connect(client, host, port)

        return connect

    async def _connect(self, client: str, host: str, port: int) -> ByteStream:
        if (host, port) not in self._listening:
            self._listening = self._addresses()
        node = self._listening.get((host, port))
        if node is None:
            raise OSError(errno.EHOSTUNREACH, f"no route to {host}:{port}")
        way = self._way(client, node)
        self._count += 1
        name = f"{client}-{node}.{self._count}"
        self._trace.add(f"{name} is dialled")
        await way.wait_until_open()
        await anyio.sleep(way.delay(self._chance) + way.delay(self._chance))
        await way.wait_until_open()
        if any(node in hand.refusing for hand in self._hands):
            raise self._refused(name, ConnectionRefusedError(errno.ECONNREFUSED, f"{host}:{port} refuses"))
        made = VirtualConnection(name, way, self._now, self._chance, self._trace.add)
        try:
            self._attend(node, made.server, name)
        except ConnectionRefusedError as refused:
            raise self._refused(name, refused) from None
        self._trace.add(f"{name} is open")
        self._remember(client, node, made)
        return made.client

    def _remember(self, client: str, node: int, made: VirtualConnection) -> None:
        # What is closed at one end may still have something under way to the other. To look for what is over at each of
        # a thousand connections would take time that grows with the square of their number.
        if len(self._open) >= self._look_at:
            self._open = [one for one in self._open if not one[2].is_over]
            self._look_at = max(_LOOK_AT, 2 * len(self._open))
        self._open.append((client, node, made))

    def _refused(self, name: str, error: ConnectionRefusedError) -> ConnectionRefusedError:
        self._trace.add(f"{name} is refused")
        return error

    def _way(self, client: str, node: int) -> Link:
        way = self._ways.get((client, node))
        if way is None:
            way = self._ways[client, node] = Link(*self._speed(node))
            way.blocked_since = self._now() if self.separated(client, node) else None
        return way

    # --- faults ------------------------------------------------------------------------------------------------

    def hand(self) -> FaultInjector:
        """For someone else's faults, which end without the end of these."""
        made = FaultInjector(self._nodes, self._trace, self._regroup, self._set_speeds)
        self._hands.append(made)
        return made

    def drop(self, hand: FaultInjector) -> None:
        """End all that a hand has made, and forget it."""
        hand.let_go()
        self._hands.remove(hand)

    def cut(self, *nodes: int, client: str | None = None) -> int:
        """Reset the open connections to these brokers, of this client if it is named; how many there were."""
        named = self._named(nodes)
        found = [
            one
            for one in self._open
            if one[2].is_open and client in (None, one[0]) and one[1] in named and not one[2].way.blocked
        ]
        told = ", ".join(map(str, nodes)) or "all brokers"
        self._trace.fault("cut", f"{len(found)} connections of {client or 'all clients'} to {told}")
        for _, _, connection in found:
            connection.cut()
        return len(found)

    def separated(self, one: Place, other: Place) -> bool:
        """Whether nothing gets through between these two."""
        return any(hand.separates(one, other) for hand in self._hands)

    def _speed(self, node: int) -> tuple[tuple[float, float], float | None]:
        slowed = [hand.slowed[node] for hand in self._hands if node in hand.slowed]
        return slowed[-1] if slowed else (self.latency, self.bandwidth)

    def _set_speeds(self) -> None:
        for (_, node), way in self._ways.items():
            way.latency, way.bandwidth = self._speed(node)

    def _regroup(self) -> None:
        for (client, node), way in self._ways.items():
            self._open_or_block(client, node, way)
        self._on_change()

    def _open_or_block(self, client: str, node: int, way: Link) -> None:
        now, since = self._now(), way.blocked_since
        if self.separated(client, node):
            way.blocked_since = now if since is None else since
        elif since is not None:
            way.blocked_since = None
            for by, to, connection in self._open:
                if (by, to) == (client, node):
                    connection.reopened(since)
            opened, way.opened = way.opened, None
            if opened is not None:
                opened.set()
