"""Clients and a cluster in virtual time, on a network that fails as it is told to; one seed is one run.

def test_nothing_is_lost() -> None:
    async def main(sim: Simulation) -> None:
        sim.broker.create_topic("flights", partitions=6)
        async with sim.client() as client, client.producer() as producer:
            sim.chaos()
            ...  # an hour of this takes seconds
            await sim.calm()

    simulate(main, seed=7)
"""

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, TypeVarTuple, Unpack
from uuid import UUID

import anyio
import anyio.lowlevel
import attrs
import trio
from trio._core import _run  # for what no public name tells: see `_seeded_scheduler`

from ..runtime import Owner, Runtime
from .broker import Broker
from .broker_options import SimulatedArguments
from .virtual.broker_links import BrokerLinks
from .virtual.chaos import Chaos, Fault
from .virtual.clock import VirtualClock
from .virtual.network import Network
from .virtual.trace import Trace

if TYPE_CHECKING:
    from ..client import Client

__all__ = ("Run", "Simulation", "simulate")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_EPOCH_MS: Final = 1_700_000_000_000
"""The wall clock's time when a simulation begins."""
_KEPT: Final = 2_000
_TOLD: Final = 60
"""Lines of a trace that are kept, and those that are told of a simulation that failed, unless more are asked for."""


@attrs.frozen
class Run(Generic[T]):
    """What one simulation has shown."""

    seed: int
    value: T
    """What ``main`` returned."""
    seconds: float
    """How much virtual time it took."""
    trace: Trace


class Simulation:
    """What the main function of a simulation works with; :func:`simulate` makes it."""

    def __init__(
        self,
        seed: int,
        now: Callable[[], float],
        *,
        nodes: int,
        latency: tuple[float, float],
        bandwidth: float | None,
        keep: int,
        broker_options: SimulatedArguments,
    ) -> None:
        self.seed: int = seed
        self._now = now
        self.random: Random = self.chance("main")
        """Chance for the main function's own use."""
        self.trace: Trace = Trace(now, keep)
        """What happens, line by line."""
        ids = self.chance("ids")
        self.broker: Broker = Broker(
            nodes,
            port=None,
            clock=self.wall_ms,
            new_uuid=lambda: UUID(int=ids.getrandbits(128), version=4),
            **broker_options,
        )
        """The cluster."""
        self.network: Network = Network(
            self.broker.attend,
            lambda: self.broker.addresses,
            now=now,
            chance=self.chance("network"),
            trace=self.trace,
            latency=latency,
            bandwidth=bandwidth,
            on_change=lambda: self._links.changed(),
        )
        """The network."""
        self._faults: list[Exception] = []
        self._owner = Owner(self._faults.append)
        self._clients = 0
        self._links = BrokerLinks(self.broker, self.network, self.trace, self._owner)
        self._chaos = Chaos(self.broker, self.network, self.trace, self.chance("chaos"), self._owner)

    def chance(self, name: str) -> Random:
        """A source of chance that depends on the seed and the name alone."""
        # Of strings Random takes all bytes; their hash is another in every process.
        return Random(f"{self.seed}/{name}")  # noqa: S311  # for a simulation, not for secrets

    def now(self) -> float:
        """The virtual time since the simulation began, in seconds."""
        return self._now()

    def wall_ms(self) -> int:
        """The virtual time in ms since the epoch: timestamps of records, and the brokers' clock."""
        return _EPOCH_MS + int(self._now() * 1000)

    def client(self, name: str | None = None, **options: Any) -> "Client":
        """A client in this simulation, to be used as ``async with``; the network knows it as ``name``.

        ``client-1``, ``client-2`` and so on, unless named. ``options`` are those of ``Client``.
        """
        from ..client import Client

        self._clients += 1
        name = name or f"client-{self._clients}"
        runtime = Runtime(
            now=self._now, wall_ms=self.wall_ms, chance=self.chance(f"{name}.{self._clients}"), offload=_inline
        )
        return Client(self.broker.bootstrap, connector=self.network.connector(name), runtime=runtime, **options)

    def note(self, told: str) -> None:
        """Put a line into the trace."""
        self.trace.add(told)

    # --- faults of brokers -------------------------------------------------------------------------------------

    async def crash(self, node_id: int) -> None:
        """Kill a broker's process: connections end once their bytes arrived, new ones are refused.

        Raises:
            KeyError: there is no such broker.
        """
        self.trace.fault("crash", f"broker {node_id} crashes")
        self._chaos.spare(node_id)
        await self.broker.stop_node(node_id)

    async def restart(self, node_id: int) -> None:
        """Bring a crashed broker back, with all it had.

        Raises:
            KeyError: there is no such broker.
        """
        self.trace.add(f"broker {node_id} is back")
        await self.broker.start_node(node_id)
        self._chaos.spare_no_more(node_id)

    def chaos(
        self, *faults: Fault, every: tuple[float, float] = (0.5, 5.0), lasting: tuple[float, float] = (0.1, 8.0)
    ) -> None:
        """Inject faults at random times from now on, each of a random kind, until :meth:`calm`.

        Args:
            faults: the kinds; all of them, unless given.
            every: the least and the most time between the beginnings of two faults, in seconds.
            lasting: how long one lasts, in seconds; several may be at work at once.

        Raises:
            TypeError: a fault is none.
            ValueError: ``every`` or ``lasting`` is not the least and the most.
        """
        self._chaos.begin(faults or tuple(Fault), every, lasting)

    async def calm(self) -> None:
        """End all faults: brokers are back, nobody is separated, the network is as quick as in the beginning."""
        await self._chaos.end()
        self.network.heal()
        self.network.accept()
        self.network.normal()
        for node_id in self.broker.node_ids:
            await self.broker.start_node(node_id)
            self._chaos.spare_no_more(node_id)
            self.broker.unfence_node(node_id)
        self.trace.add("calm")

    async def run(self, main: "Callable[[Simulation], Awaitable[T]]") -> T:
        """Open the cluster, run ``main``, and close it."""
        await self._owner.open()
        try:
            async with self.broker:
                value = await main(self)
        finally:
            await self._owner.close()
        if self._faults:
            raise self._faults[0]
        return value


def simulate(
    main: Callable[[Simulation], Awaitable[T]],
    *,
    seed: int = 0,
    nodes: int = 3,
    latency: tuple[float, float] = (0.0005, 0.003),
    bandwidth: float | None = None,
    time_limit: float = 3_600.0,
    keep: int = _KEPT,
    **broker_options: Unpack[SimulatedArguments],
) -> Run[T]:
    """Run ``main(sim)`` in virtual time to its end. Blocks; wants no event loop around it. Needs trio.

    The same seed gives the same run, byte for byte, in every process of the same Python and trio: everything that is
    left to chance comes from the seed, the order in which trio runs its tasks included.

    Args:
        main: the scenario.
        seed: of all chance.
        nodes: how many brokers.
        latency: the least and the most time that bytes take from client to broker, or back, in seconds.
        bandwidth: bytes per second, for each direction of each connection; None for no limit.
        time_limit: how much virtual time may pass, in seconds: what hangs ends here.
        keep: how many lines of the trace are kept. Who wants more than these has them all in the note on an error.
        broker_options: those of :class:`Broker`, but for where it listens, its clock and ids.

    Raises:
        TimeoutError: it was not over in time.
        Exception: whatever ``main`` raised; a note on it has the seed and the end of the trace.
    """
    made: list[Simulation] = []
    clock = VirtualClock()

    async def run() -> Run[T]:
        sim = Simulation(
            seed,
            clock.current_time,
            nodes=nodes,
            latency=latency,
            bandwidth=bandwidth,
            keep=keep,
            broker_options=broker_options,
        )
        made.append(sim)
        with anyio.fail_after(time_limit):
            value = await sim.run(main)
        return Run(seed, value, sim.now(), sim.trace)

    with _seeded_scheduler(seed), _rare_collections():
        try:
            return trio.run(run, clock=clock)
        except BaseException as error:
            for sim in made:
                told = keep if keep > _KEPT else _TOLD
                error.add_note(f"simulation with seed {seed}; the end of its trace:\n{_end_of(sim.trace, told)}")
            raise


def _end_of(trace: Trace, lines: int) -> str:
    return "\n".join(trace.lines[-lines:])


@contextmanager
def _seeded_scheduler(seed: int) -> Iterator[None]:
    """Let trio run its tasks in an order that follows from the seed.

    It shuffles those that can run, so that nobody relies on an order. What it shuffles with is not public, and has
    stayed as it is for the sake of Hypothesis, for which pytest-trio does the same.
    """
    scheduler: Any = _run
    before, state = scheduler._ALLOW_DETERMINISTIC_SCHEDULING, scheduler._r.getstate()
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    scheduler._r.seed(seed)
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = before
        scheduler._r.setstate(state)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage less often: little of a simulation is cycles, and a tenth of its time went into the search."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def _inline(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """What would be a thread's work: a thread's end comes in real time, of which a simulation has none."""
    await anyio.lowlevel.checkpoint()
    return function(*args)
