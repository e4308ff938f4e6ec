"""Random faults in a simulation, determined by the simulation's seed."""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from random import Random
from typing import Final, TypeVarTuple, Unpack

import anyio

from ...runtime import Owner
from ..broker import Broker
from ..cluster.api_error import ApiError
from .fault_injector import FaultInjector, check_range
from .network import Network
from .study import current_study
from .trace import Trace

__all__ = ("Chaos", "Fault")

Ts = TypeVarTuple("Ts")

_SLOW: Final = (0.05, 0.4)
"""The latency of a slow link, in seconds."""
_SLOW_BANDWIDTH: Final = 200_000.0


class Fault(Enum):
    """A type of random fault."""

    CRASH = "crash"
    """A broker's process dies, and restarts later."""
    CUT = "cut"
    """All connections to a broker are reset, perhaps inside a frame."""
    MOVE_LEADER = "move leader"
    """Another replica becomes the leader of a partition."""
    PARTITION = "partition"
    """A broker is separated from clients and other brokers."""
    CLIENT_PARTITION = "client partition"
    """A broker is separated from clients, but not from other brokers."""
    REFUSE = "refuse"
    """A broker refuses new connections."""
    SLOW = "slow"
    """The link to a broker is slow, with a low bandwidth."""


class Chaos:
    """The injection of random faults.

    At any time, a broker has at most one fault, and at most one broker is separated by PARTITION. The end of a fault
    leaves other faults unchanged.
    """

    def __init__(self, broker: Broker, network: Network, trace: Trace, chance: Random, owner: Owner) -> None:
        self._owner = owner
        self._broker, self._network, self._trace, self._chance = broker, network, trace, chance
        self._study = current_study()
        self._busy: dict[int, None] = {}
        self._spared: dict[int, None] = {}
        self._partitioned = False
        self._running: dict[anyio.CancelScope, anyio.Event] = {}

    def begin(
        self,
        faults: Sequence[Fault],
        every: tuple[float, float],
        lasting: tuple[float, float],
        releases: Sequence[str] = (),
    ) -> None:
        """Inject faults until :meth:`end`, with the arguments and errors of ``Simulation.chaos``."""
        for fault in faults:
            if not isinstance(fault, Fault):
                raise TypeError(f"{fault!r} is not a Fault; known: {', '.join(map(str, Fault))}")
        check_range("every", every)
        check_range("lasting", lasting)
        self._start(self._run, faults, every, lasting, releases)

    def spare(self, node: int) -> None:
        """Inject no faults into a broker that the user has crashed, and do not restart it."""
        self._spared[node] = None

    def spare_no_more(self, node: int) -> None:
        """Allow faults in a broker that runs again."""
        self._spared.pop(node, None)

    async def end(self) -> None:
        """End every current fault, and inject no further faults."""
        for scope in list(self._running):
            scope.cancel()
        for ended in list(self._running.values()):
            await ended.wait()

    def _start(self, function: Callable[[Unpack[Ts]], Awaitable[None]], *args: *Ts) -> None:
        scope, ended = anyio.CancelScope(), anyio.Event()
        self._running[scope] = ended

        async def run() -> None:
            try:
                with scope:
                    await function(*args)
            finally:
                del self._running[scope]
                ended.set()

        self._owner.spawn(run)

    async def _run(
        self,
        faults: Sequence[Fault],
        every: tuple[float, float],
        lasting: tuple[float, float],
        releases: Sequence[str],
    ) -> None:
        while True:
            await anyio.sleep(self._chance.uniform(*every))
            # Each fault has random numbers of its own, so that it is the same if the faults before it are left out.
            chance = Random(self._chance.getrandbits(64))  # noqa: S311  # for a simulation, not for secrets
            kind, seconds = chance.choice(faults), chance.uniform(*lasting)
            if not self._study.admits("chaos"):
                continue
            nodes = [node for node in self._broker.node_ids if node not in (*self._busy, *self._spared)]
            if kind is Fault.MOVE_LEADER:
                self._move_a_leader(chance)
            elif nodes and not (kind is Fault.PARTITION and self._partitioned):
                node = chance.choice(nodes)
                self._busy[node] = None
                release = chance.choice(releases) if releases else None
                self._start(self._inject, kind, node, seconds, release)

    async def _inject(self, kind: Fault, node: int, seconds: float, release: str | None) -> None:
        injector = self._network.injector()
        try:
            await self._do(kind, node, injector)
            await anyio.sleep(seconds)
        finally:
            with anyio.CancelScope(shield=True):
                self._network.drop(injector)
                if kind is Fault.CRASH and node not in self._spared:
                    self._trace.add(f"broker {node} is back{f' as {release}' if release else ''}")
                    await self._broker.start_node(node, max_versions=release)
            if kind is Fault.PARTITION:
                self._partitioned = False
            del self._busy[node]

    async def _do(self, kind: Fault, node: int, injector: FaultInjector) -> None:
        match kind:
            case Fault.CRASH:
                self._trace.fault("crash", f"broker {node} crashes")
                await self._broker.stop_node(node)
            case Fault.PARTITION:
                self._partitioned = True
                injector.partition({node})
            case Fault.CLIENT_PARTITION:
                injector.block(node)
            case Fault.REFUSE:
                injector.refuse(node)
            case Fault.SLOW:
                injector.slow(node, latency=_SLOW, bandwidth=_SLOW_BANDWIDTH)
            case _:
                self._network.cut(node)

    def _move_a_leader(self, chance: Random) -> None:
        """Move the leader of a random partition. Internal topics are excluded: they would get nearly all moves."""
        partitions = [one for one in self._broker.partitions if not one.log.topic.startswith("__")]
        if not partitions:
            return
        moved = chance.choice(partitions)
        node = chance.choice(moved.replicas)
        try:
            self._broker.move_leader(moved.log.topic, moved.index, node)
        except ApiError:
            return  # the replica is down or not in sync
        self._trace.fault("move leader", f"broker {node} leads {moved.log.topic}-{moved.index}")
