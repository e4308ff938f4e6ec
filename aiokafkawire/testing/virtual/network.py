"""The network of a simulation: every way from a client to a broker, how quick it is, and whether it is there at all."""

import errno
from collections.abc import Callable, Collection, Iterable
from random import Random
from typing import Protocol, TypeAlias

import anyio
from anyio.abc import ByteStream

from .stream import Connection, End
from .trace import Trace
from .way import Way

__all__ = ("Dial", "Network", "Place")

Place: TypeAlias = str | int
"""Who can be reached or cut off: a client by its name, a broker by its id."""


class Dial(Protocol):
    """Opens a connection, as a client's ``connector``."""

    async def __call__(self, host: str, port: int) -> ByteStream: ...


class Network:
    """Ways between clients and brokers in virtual time.

    1. Bytes take ``latency``, never overtake one another, and fill a window of 256 KiB.
    2. What :meth:`partition` separates hangs: bytes are held, new connections wait, and nobody is told. After
       :meth:`heal` all goes on, as TCP does that sends again; nothing gives up but those who wait.
    3. :meth:`cut` resets connections: each side still gets some of what was under way, and then an error.

    Args:
        attend: serves the broker's end of a new connection; raises ConnectionRefusedError where no broker runs.
        addresses: which broker listens where.
        now: the virtual time, in seconds.
        chance: decides all that is left to chance here.
        trace: what happened.
        latency: the least and the most time that bytes take one way, in seconds.
        bandwidth: bytes per second, for each direction of each connection; None for no limit.
        on_change: is called when someone was separated, or is no more.
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
        self._on_change = on_change
        self._attend, self._addresses = attend, addresses
        self._now, self._chance, self._trace = now, chance, trace
        self.latency: tuple[float, float] = latency
        self.bandwidth: float | None = bandwidth
        self._ways: dict[tuple[str, int], Way] = {}
        self._open: list[tuple[str, int, Connection]] = []
        self._groups: list[frozenset[Place]] = []
        self._refusing: dict[int, None] = {}
        self._blocked: dict[int, None] = {}
        self._count = 0

    # --- being used --------------------------------------------------------------------------------------------

    def connector(self, client: str) -> Dial:
        """What opens this client's connections: the ``connector`` of a ``Client``."""

        async def connect(host: str, port: int) -> ByteStream:
            return await self._connect(client, host, port)

        return connect

    async def _connect(self, client: str, host: str, port: int) -> ByteStream:
        node = self._addresses().get((host, port))
        if node is None:
            raise OSError(errno.EHOSTUNREACH, f"no route to {host}:{port}")
        way = self._way(client, node)
        self._count += 1
        name = f"{client}-{node}.{self._count}"
        self._trace.add(f"{name} is dialled")
        await way.wait_until_open()
        await anyio.sleep(way.delay(self._chance) + way.delay(self._chance))
        await way.wait_until_open()
        if node in self._refusing:
            raise self._refused(name, ConnectionRefusedError(errno.ECONNREFUSED, f"{host}:{port} refuses"))
        made = Connection(name, way, self._now, self._chance, self._trace.add)
        try:
            self._attend(node, made.server, name)
        except ConnectionRefusedError as refused:
            raise self._refused(name, refused) from None
        self._trace.add(f"{name} is open")
        self._open = [one for one in self._open if one[2].is_open]
        self._open.append((client, node, made))
        return made.client

    def _refused(self, name: str, error: ConnectionRefusedError) -> ConnectionRefusedError:
        self._trace.add(f"{name} is refused")
        return error

    def _way(self, client: str, node: int) -> Way:
        way = self._ways.get((client, node))
        if way is None:
            way = self._ways[client, node] = Way(self.latency, self.bandwidth)
            way.blocked_since = self._now() if self.separated(client, node) else None
        return way

    # --- faults ------------------------------------------------------------------------------------------------

    def slow(
        self, *, latency: tuple[float, float], bandwidth: float | None = None, nodes: Collection[int] | None = None
    ) -> None:
        """Make the ways to these brokers, or to all, as slow as this, from now on; :meth:`normal` undoes it."""
        self._trace.fault("slow", f"{_named(nodes)} slow, {latency[0]:.4f} to {latency[1]:.4f} s")
        for way in self._ways_to(nodes):
            way.latency, way.bandwidth = latency, bandwidth

    def normal(self, nodes: Collection[int] | None = None) -> None:
        """Make the ways to these brokers, or to all, as quick as they were in the beginning."""
        self._trace.add(f"{_named(nodes)} as quick as before")
        for way in self._ways_to(nodes):
            way.latency, way.bandwidth = self.latency, self.bandwidth

    def _ways_to(self, nodes: Collection[int] | None) -> Iterable[Way]:
        known = [(client, node) for client, node in self._ways if nodes is None or node in nodes]
        return [self._ways[key] for key in known]

    def cut(self, client: str | None = None, node: int | None = None) -> int:
        """Reset the open connections of this client, to this broker, or all; how many there were."""
        found = [
            one
            for one in self._open
            if one[2].is_open and client in (None, one[0]) and node in (None, one[1]) and not one[2].way.blocked
        ]
        self._trace.fault("cut", f"{len(found)} connections of {client or 'all clients'} to {node or 'all brokers'}")
        for _, _, connection in found:
            connection.cut()
        return len(found)

    def refuse(self, *nodes: int) -> None:
        """Let these brokers take no new connections; those that are open stay. :meth:`accept` undoes it."""
        self._trace.fault("refuse", f"{_named(nodes)} refusing connections")
        self._refusing.update(dict.fromkeys(nodes))

    def accept(self, *nodes: int) -> None:
        """Let these brokers, or all, take connections again."""
        for node in nodes or list(self._refusing):
            self._refusing.pop(node, None)
        self._trace.add(f"{_named(nodes or None)} accepting connections")

    def partition(self, *groups: Collection[Place]) -> None:
        """Separate these groups from one another and from all who are in none of them. Replaces what was separated.

        ``partition({1})`` cuts broker 1 off; ``partition({"client-1", 1}, {2, 3})`` leaves client-1 with broker 1 only.
        """
        told = " | ".join(", ".join(sorted(map(str, group))) for group in groups)
        self._trace.fault("partition", f"partition: {told} | the others")
        self._regroup([frozenset(group) for group in groups])

    def block(self, *nodes: int) -> None:
        """Separate these brokers from all clients, not from one another. :meth:`unblock` undoes it."""
        self._trace.fault("client partition", f"clients do not reach {_named(nodes)}")
        self._blocked.update(dict.fromkeys(nodes))
        self._changed()

    def unblock(self, *nodes: int) -> None:
        """Let clients reach these brokers again."""
        for node in nodes:
            self._blocked.pop(node, None)
        self._trace.add(f"clients reach {_named(nodes)} again")
        self._changed()

    def heal(self) -> None:
        """Separate nobody any more."""
        self._trace.add("healed")
        self._blocked.clear()
        self._regroup([])

    def separated(self, one: Place, other: Place) -> bool:
        """Whether nothing gets through between these two."""
        if (isinstance(one, str) and other in self._blocked) or (isinstance(other, str) and one in self._blocked):
            return True
        return any((one in group) != (other in group) for group in self._groups)

    def _regroup(self, groups: list[frozenset[Place]]) -> None:
        self._groups = groups
        self._changed()

    def _changed(self) -> None:
        for (client, node), way in self._ways.items():
            self._open_or_block(client, node, way)
        self._on_change()

    def _open_or_block(self, client: str, node: int, way: Way) -> None:
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


def _named(nodes: Collection[int] | None) -> str:
    return "all brokers" if nodes is None else f"broker {', '.join(map(str, nodes))}"
