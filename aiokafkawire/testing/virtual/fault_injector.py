"""Faults of a simulated network, begun by injectors; an injector can end only the faults that it has begun."""

from collections.abc import Callable, Collection
from typing import TypeAlias

from .trace import Trace

__all__ = ("FaultInjector", "Endpoint", "check_range", "check_speed")

Endpoint: TypeAlias = str | int
"""A client by its name, or a broker by its id."""

Speed: TypeAlias = tuple[tuple[float, float], float | None]
"""The shortest and longest latency in seconds, and the bandwidth in bytes per second."""


class FaultInjector:
    """An object that begins network faults, and ends only those that it has begun.

    The network itself is an injector for tests; chaos uses a new injector for each fault. A method that is called
    without ids of brokers applies to all brokers. An unknown id raises KeyError.

    Args:
        nodes: returns the ids of all brokers.
        trace: the trace of the simulation.
        separations_changed: called when separations begin or end.
        speeds_changed: called when links become slow or fast.
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
        self.groups: list[frozenset[Endpoint]] = []
        self.blocked: dict[int, None] = {}
        self.refusing: dict[int, None] = {}
        self.slowed: dict[int, Speed] = {}

    def slow(self, *nodes: int, latency: tuple[float, float], bandwidth: float | None = None) -> None:
        """Give the links to these brokers this latency and bandwidth, until :meth:`normal`.

        Raises:
            ValueError: ``latency`` is not a minimum and a maximum, or ``bandwidth`` is not positive.
        """
        named = self._named(nodes)
        check_speed(latency, bandwidth)
        self._trace.fault("slow", f"{_names(nodes)} slow, {latency[0]:.4f} to {latency[1]:.4f} s")
        self.slowed.update(dict.fromkeys(named, (latency, bandwidth)))
        self._speeds_changed()

    def normal(self, *nodes: int) -> None:
        """Undo :meth:`slow` for the links to these brokers."""
        named = self._named(nodes)
        self._trace.add(f"{_names(nodes)} as quick as before")
        for node in named:
            self.slowed.pop(node, None)
        self._speeds_changed()

    def refuse(self, *nodes: int) -> None:
        """Let these brokers refuse new connections until :meth:`accept`; open connections stay."""
        named = self._named(nodes)
        self._trace.fault("refuse", f"{_names(nodes)} refusing connections")
        self.refusing.update(dict.fromkeys(named))

    def accept(self, *nodes: int) -> None:
        """Let these brokers accept connections again."""
        for node in self._named(nodes):
            self.refusing.pop(node, None)
        self._trace.add(f"{_names(nodes)} accepting connections")

    def partition(self, *groups: Collection[Endpoint]) -> None:
        """Separate these groups from each other and from all other endpoints; this replaces earlier groups.

        ``partition({1})`` isolates broker 1; ``partition({"client-1", 1}, {2, 3})`` leaves client-1 with broker 1 only.

        Raises:
            TypeError: an argument is a single client or broker instead of a group.
        """
        for group in groups:
            if isinstance(group, str) or not isinstance(group, Collection):
                raise TypeError(f"a group must be a set of clients and brokers such as {{{group!r}}}, got {group!r}")
            for node in group:
                if not isinstance(node, str):
                    self._named([node])
        shown = " | ".join(", ".join(sorted(map(str, group))) for group in groups)
        self._trace.fault("partition", f"partition: {shown} | the others")
        self.groups = [frozenset(group) for group in groups]
        self._separations_changed()

    def block(self, *nodes: int) -> None:
        """Separate these brokers from all clients, but not from each other, until :meth:`unblock`."""
        named = self._named(nodes)
        self._trace.fault("client partition", f"clients do not reach {_names(nodes)}")
        self.blocked.update(dict.fromkeys(named))
        self._separations_changed()

    def unblock(self, *nodes: int) -> None:
        """Let clients reach these brokers again."""
        for node in self._named(nodes):
            self.blocked.pop(node, None)
        self._trace.add(f"clients reach {_names(nodes)} again")
        self._separations_changed()

    def heal(self) -> None:
        """End the separations by :meth:`partition` and :meth:`block` of this injector."""
        self._trace.add("healed")
        self.blocked.clear()
        self.groups = []
        self._separations_changed()

    def clear(self) -> None:
        """End all faults of this injector."""
        if self.groups or self.blocked:
            self.heal()
        if self.refusing:
            self.accept(*self.refusing)
        if self.slowed:
            self.normal(*self.slowed)

    def separates(self, one: Endpoint, other: Endpoint) -> bool:
        """Return whether this injector separates these two endpoints."""
        blocked = self.blocked
        if blocked and ((isinstance(one, str) and other in blocked) or (isinstance(other, str) and one in blocked)):
            return True
        return bool(self.groups) and any((one in group) != (other in group) for group in self.groups)

    def _named(self, nodes: Collection[int]) -> Collection[int]:
        known = self._nodes()
        for node in nodes:
            if node not in known:
                raise KeyError(f"no broker {node!r}; known: {', '.join(map(str, known))}")
        return nodes or known


def check_range(name: str, between: tuple[float, float]) -> None:
    """Raise ValueError unless ``between`` is a minimum and a maximum in seconds; the message calls it ``name``."""
    least, most = between
    if not 0 <= least <= most:
        raise ValueError(f"{name} must be a minimum and a maximum of 0 or more seconds, got {between!r}")


def check_speed(latency: tuple[float, float], bandwidth: float | None) -> None:
    """Raise ValueError unless the latency, in seconds, and the bandwidth, in bytes per second, are valid."""
    check_range("latency", latency)
    if bandwidth is not None and not bandwidth > 0:
        raise ValueError(f"bandwidth must be above 0 bytes per second, or None for no limit, got {bandwidth!r}")


def _names(nodes: Collection[int]) -> str:
    return f"broker {', '.join(map(str, nodes))}" if nodes else "all brokers"
