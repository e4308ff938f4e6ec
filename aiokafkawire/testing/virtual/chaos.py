"""Faults at random times, from a seed."""

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
from .trace import Trace

__all__ = ("Chaos", "Fault")

Ts = TypeVarTuple("Ts")

_SLOW: Final = (0.05, 0.4)
"""Seconds that bytes take on a slow way."""
_SLOW_BANDWIDTH: Final = 200_000.0


class Fault(Enum):
    """What can go wrong."""

    CRASH = "crash"
    """A broker's process dies, and comes back."""
    CUT = "cut"
    """All connections to a broker are reset, perhaps in the middle of a frame."""
    MOVE_LEADER = "move leader"
    """Another replica leads a partition."""
    PARTITION = "partition"
    """Nothing gets through to a broker, neither from clients nor from the other brokers."""
    CLIENT_PARTITION = "client partition"
    """Nothing gets through from clients to a broker, which goes on with the other brokers."""
    REFUSE = "refuse"
    """A broker takes no new connections."""
    SLOW = "slow"
    """The way to a broker is slow, and its bandwidth small."""


class Chaos:
    """Injects faults until it is ended. A broker has one fault at a time; one partition is made at a time.

    The end of a fault ends nothing that others have made.
    """

    def __init__(self, broker: Broker, network: Network, trace: Trace, chance: Random, owner: Owner) -> None:
        self._owner = owner
        self._broker, self._network, self._trace, self._chance = broker, network, trace, chance
        self._busy: dict[int, None] = {}
        self._spared: dict[int, None] = {}
        self._partitioned = False
        self._running: dict[anyio.CancelScope, anyio.Event] = {}

    def begin(self, faults: Sequence[Fault], every: tuple[float, float], lasting: tuple[float, float]) -> None:
        """Go on until :meth:`end`. Times are in seconds.

        Raises:
            TypeError: a fault is none.
            ValueError: times are not the least and the most.
        """
        for fault in faults:
            if not isinstance(fault, Fault):
                raise TypeError(f"{fault!r} is no Fault: there are {', '.join(map(str, Fault))}")
        check_range("every", every)
        check_range("lasting", lasting)
        self._start(self._rage, faults, every, lasting)

    def spare(self, node: int) -> None:
        """Inject no fault at a broker that someone else has crashed, and do not bring it back."""
        self._spared[node] = None

    def spare_no_more(self, node: int) -> None:
        """It is back."""
        self._spared.pop(node, None)

    async def end(self) -> None:
        """End every fault that is at work, and begin none."""
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

    async def _rage(self, faults: Sequence[Fault], every: tuple[float, float], lasting: tuple[float, float]) -> None:
        while True:
            await anyio.sleep(self._chance.uniform(*every))
            kind, seconds = self._chance.choice(faults), self._chance.uniform(*lasting)
            nodes = [node for node in self._broker.node_ids if node not in (*self._busy, *self._spared)]
            if kind is Fault.MOVE_LEADER:
                self._move_a_leader()
            elif nodes and not (kind is Fault.PARTITION and self._partitioned):
                node = self._chance.choice(nodes)
                self._busy[node] = None
                self._start(self._inflict, kind, node, seconds)

    async def _inflict(self, kind: Fault, node: int, seconds: float) -> None:
        hand = self._network.hand()
        try:
            await self._do(kind, node, hand)
            await anyio.sleep(seconds)
        finally:
            with anyio.CancelScope(shield=True):
                self._network.drop(hand)
                if kind is Fault.CRASH and node not in self._spared:
                    self._trace.add(f"broker {node} is back")
                    await self._broker.start_node(node)
            if kind is Fault.PARTITION:
                self._partitioned = False
            del self._busy[node]

    async def _do(self, kind: Fault, node: int, hand: FaultInjector) -> None:
        match kind:
            case Fault.CRASH:
                self._trace.fault("crash", f"broker {node} crashes")
                await self._broker.stop_node(node)
            case Fault.PARTITION:
                self._partitioned = True
                hand.partition({node})
            case Fault.CLIENT_PARTITION:
                hand.block(node)
            case Fault.REFUSE:
                hand.refuse(node)
            case Fault.SLOW:
                hand.slow(node, latency=_SLOW, bandwidth=_SLOW_BANDWIDTH)
            case _:
                self._network.cut(node)

    def _move_a_leader(self) -> None:
        """Prefer one of the users' partitions: there are many internal ones."""
        partitions = [one for one in self._broker.partitions if not one.log.topic.startswith("__")]
        if not partitions:
            return
        moved = self._chance.choice(partitions)
        node = self._chance.choice(moved.replicas)
        try:
            self._broker.move_leader(moved.log.topic, moved.index, node)
        except ApiError:
            return  # it is down, or not in sync
        self._trace.fault("move leader", f"broker {node} leads {moved.log.topic}-{moved.index}")
