"""Faults of a simulated network, by whose hand they are: one ends without the end of another's."""

from collections.abc import Callable, Collection
from typing import TypeAlias

from .trace import Trace

__all__ = ("FaultInjector", "Place", "check_range", "check_speed")

Place: TypeAlias = str | int
"""Who can be reached or cut off: a client by its name, a broker by its id."""

Speed: TypeAlias = tuple[tuple[float, float], float | None]
"""Latency, and bandwidth."""


class FaultInjector:
    """Makes faults, and ends those that it has made. A network is one, of tests; each fault of chaos has its own.

    Brokers are named by their ids; naming none is naming all. One that does not exist is a KeyError.

    Args:
        nodes: gives the ids of all brokers.
        trace: what happened.
        separations_changed: is called when someone was separated, or is no more.
        speeds_changed: is called when ways became slow, or are no more.
    """

    def __init__(
        self,
        nodes: Callable[[], Collection[int]],
        trace: Trace,
        separations_changed: Callable[[], None],
        speeds_changed: Callable[[], None],
    ) -> None:
        self._nodes, self._trace = nodes, trace
        self._separations_changed, self._speeds_changed = separations_changed, speeds_changed
        self.groups: list[frozenset[Place]] = []
        self.blocked: dict[int, None] = {}
        self.refusing: dict[int, None] = {}
        self.slowed: dict[int, Speed] = {}

    def slow(self, *nodes: int, latency: tuple[float, float], bandwidth: float | None = None) -> None:
        """Make the ways to these brokers as slow as this, from now on; :meth:`normal` undoes it.

        Raises:
            ValueError: latency is not the least and the most of seconds, or bandwidth is none.
        """
        named = self._named(nodes)
        check_speed(latency, bandwidth)
        self._trace.fault("slow", f"{_told(nodes)} slow, {latency[0]:.4f} to {latency[1]:.4f} s")
        self.slowed.update(dict.fromkeys(named, (latency, bandwidth)))
        self._speeds_changed()

    def normal(self, *nodes: int) -> None:
        """Make the ways to these brokers as quick as they were in the beginning."""
        named = self._named(nodes)
        self._trace.add(f"{_told(nodes)} as quick as before")
        for node in named:
            self.slowed.pop(node, None)
        self._speeds_changed()

    def refuse(self, *nodes: int) -> None:
        """Let these brokers take no new connections; those that are open stay. :meth:`accept` undoes it."""
        named = self._named(nodes)
        self._trace.fault("refuse", f"{_told(nodes)} refusing connections")
        self.refusing.update(dict.fromkeys(named))

    def accept(self, *nodes: int) -> None:
        """Let these brokers take connections again."""
        for node in self._named(nodes):
            self.refusing.pop(node, None)
        self._trace.add(f"{_told(nodes)} accepting connections")

    def partition(self, *groups: Collection[Place]) -> None:
        """Separate these groups from one another and from all who are in none of them. Replaces what was separated.

        ``partition({1})`` cuts broker 1 off; ``partition({"client-1", 1}, {2, 3})`` leaves client-1 with broker 1 only.

        Raises:
            TypeError: a group is none, but one client or broker.
        """
        for group in groups:
            if isinstance(group, str) or not isinstance(group, Collection):
                raise TypeError(f"{group!r} is no group of clients and brokers: {{{group!r}}} would be")
            for node in group:
                if not isinstance(node, str):
                    self._named([node])
        told = " | ".join(", ".join(sorted(map(str, group))) for group in groups)
        self._trace.fault("partition", f"partition: {told} | the others")
        self.groups = [frozenset(group) for group in groups]
        self._separations_changed()

    def block(self, *nodes: int) -> None:
        """Separate these brokers from all clients, not from one another. :meth:`unblock` undoes it."""
        named = self._named(nodes)
        self._trace.fault("client partition", f"clients do not reach {_told(nodes)}")
        self.blocked.update(dict.fromkeys(named))
        self._separations_changed()

    def unblock(self, *nodes: int) -> None:
        """Let clients reach these brokers again."""
        for node in self._named(nodes):
            self.blocked.pop(node, None)
        self._trace.add(f"clients reach {_told(nodes)} again")
        self._separations_changed()

    def heal(self) -> None:
        """Separate nobody any more, neither by :meth:`partition` nor by :meth:`block`."""
        self._trace.add("healed")
        self.blocked.clear()
        self.groups = []
        self._separations_changed()

    def let_go(self) -> None:
        """End all that this hand has made."""
        if self.groups or self.blocked:
            self.heal()
        if self.refusing:
            self.accept(*self.refusing)
        if self.slowed:
            self.normal(*self.slowed)

    def separates(self, one: Place, other: Place) -> bool:
        """Whether this hand lets nothing get through between these two."""
        if (isinstance(one, str) and other in self.blocked) or (isinstance(other, str) and one in self.blocked):
            return True
        return any((one in group) != (other in group) for group in self.groups)

    def _named(self, nodes: Collection[int]) -> Collection[int]:
        there = self._nodes()
        for node in nodes:
            if node not in there:
                raise KeyError(f"no broker {node!r}: there are {', '.join(map(str, there))}")
        return nodes or there


def check_range(name: str, between: tuple[float, float]) -> None:
    """Raise ValueError unless these are the least and the most of something in seconds."""
    least, most = between
    if not 0 <= least <= most:
        raise ValueError(f"{name} is {between!r}: the least and the most, in seconds, from 0 on")


def check_speed(latency: tuple[float, float], bandwidth: float | None) -> None:
    """Raise ValueError unless ways can be as slow as this."""
    check_range("latency", latency)
    if bandwidth is not None and not bandwidth > 0:
        raise ValueError(f"bandwidth is {bandwidth!r}: bytes per second, more than 0, or None for no limit")


def _told(nodes: Collection[int]) -> str:
    return f"broker {', '.join(map(str, nodes))}" if nodes else "all brokers"
