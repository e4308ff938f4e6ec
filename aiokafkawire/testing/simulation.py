"""Clients and a cluster in virtual time, on a network with injected faults; a seed determines a run.

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
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, TypeVarTuple, Unpack
from uuid import UUID

import anyio
import anyio.lowlevel
import attrs
import trio
from trio._core import _run  # no public name gives access: see `_seeded_scheduler`

from ..runtime import Owner, Runtime
from .broker import Broker
from .broker_options import SimulatedArguments
from .virtual.broker_links import BrokerLinks
from .virtual.chaos import Chaos, Fault
from .virtual.clock import VirtualClock
from .virtual.network import Network
from .virtual.study import current_study
from .virtual.trace import Trace

if TYPE_CHECKING:
    from ..client import Client

__all__ = ("Run", "Simulation", "simulate")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_EPOCH_MS: Final = 1_700_000_000_000
"""The wall-clock time at which a simulation begins."""
_KEPT: Final = 2_000
_SHOWN: Final = 60
"""How many trace lines are kept by default, and how many a failure shows unless ``keep`` is above that default."""


@attrs.frozen
class Run(Generic[T]):
    """The result of a simulation."""

    seed: int
    value: T
    """The return value of ``main``."""
    seconds: float
    """The virtual time that the run took, in seconds."""
    trace: Trace


class Simulation:
    """The clients, brokers and faults of a running simulation, for its main function; :func:`simulate` creates it."""

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
        """A source of randomness for the main function."""
        self.trace: Trace = Trace(now, keep)
        """The events of the simulation, one per line."""
        ids = self.chance("ids")
        self.broker: Broker = Broker(
            nodes,
            port=None,
            clock=self.wall_ms,
            new_uuid=lambda: UUID(int=ids.getrandbits(128), version=4),
            **broker_options,
        )
        """The cluster of brokers."""
        current_study().broker = self.broker
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
        """The network between clients and brokers."""
        self._faults: list[Exception] = []
        self._owner = Owner(self._faults.append)
        self._clients = 0
        self._links = BrokerLinks(self.broker, self.network, self.trace, self._owner)
        self._chaos = Chaos(self.broker, self.network, self.trace, self.chance("chaos"), self._owner)

    def chance(self, name: str) -> Random:
        """Return a source of randomness that depends only on the seed and the name."""
        # Random uses all bytes of a string; a string's hash differs between processes.
        return Random(f"{self.seed}/{name}")  # noqa: S311  # for a simulation, not for secrets

    def now(self) -> float:
        """Return the virtual time since the simulation began, in seconds."""
        return self._now()

    def wall_ms(self) -> int:
        """Return the virtual wall-clock time in ms since the epoch, which clients and brokers use."""
        return _EPOCH_MS + int(self._now() * 1000)

    def client(self, name: str | None = None, **options: Any) -> "Client":
        """Return a client of this simulation, for ``async with``; ``name`` is its name in the network and the trace.

        The default names are ``client-1``, ``client-2`` and so on. ``options`` are those of ``Client``.
        """
        from ..client import Client

        self._clients += 1
        name = name or f"client-{self._clients}"
        runtime = Runtime(
            now=self._now, wall_ms=self.wall_ms, chance=self.chance(f"{name}.{self._clients}"), offload=_inline
        )
        return Client(self.broker.bootstrap, connector=self.network.connector(name), runtime=runtime, **options)

    def note(self, told: str) -> None:
        """Add the line ``told`` to the trace."""
        self.trace.add(told)

    # --- broker faults ---------------------------------------------------------------------------------------------

    async def crash(self, node_id: int) -> None:
        """Stop a broker like a killed process: sent bytes still arrive, then its connections end. It refuses new ones.

        Raises:
            KeyError: there is no such broker.
        """
        self.trace.fault("crash", f"broker {node_id} crashes")
        self._chaos.spare(node_id)
        await self.broker.stop_node(node_id)

    async def restart(self, node_id: int, *, max_versions: str | None = None) -> None:
        """Restart a crashed broker with all its data; see :meth:`Broker.start_node`. Raises as :meth:`crash`."""
        self.trace.add(f"broker {node_id} is back")
        await self.broker.start_node(node_id, max_versions=max_versions)
        self._chaos.spare_no_more(node_id)

    def chaos(
        self,
        *faults: Fault,
        every: tuple[float, float] = (0.5, 5.0),
        lasting: tuple[float, float] = (0.1, 8.0),
        releases: Sequence[str] = (),
    ) -> None:
        """Inject faults of random types at random times, until :meth:`calm`.

        Args:
            faults: the types of faults; all types by default.
            every: the shortest and the longest time between the starts of two faults, in seconds.
            lasting: the shortest and the longest duration of a fault, in seconds; faults may overlap.
            releases: releases of Apache Kafka such as "3.9": a broker that has crashed restarts as one of them.

        Raises:
            TypeError: an argument is not a Fault.
            ValueError: ``every`` or ``lasting`` is not a minimum and a maximum.
        """
        self._chaos.begin(faults or tuple(Fault), every, lasting, releases)

    async def calm(self) -> None:
        """End all faults: restart and unfence all brokers, and end separations, refused connections and slow links."""
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
        """Open the cluster, run ``main``, close the cluster, and return the result of ``main``."""
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
    """Run ``main(sim)`` to its end in virtual time, on trio. This function blocks: call it outside of any event loop.

    The same seed gives the same run, byte for byte, in every process with the same versions of Python and trio: all
    randomness comes from the seed, including the order in which trio runs its tasks.

    Args:
        main: the scenario, an async function of a :class:`Simulation`.
        seed: the seed of all randomness.
        nodes: the number of brokers.
        latency: the shortest and the longest time that bytes take from client to broker, or back, in seconds.
        bandwidth: bytes per second, for each direction of each connection; None for no limit.
        time_limit: the virtual time after which the run fails, in seconds.
        keep: the number of trace lines to keep; above the default, the note on an exception shows all kept lines.
        broker_options: arguments of :class:`Broker`, except those for addresses, TLS, ``clock`` and ``new_uuid``.

    Raises:
        TimeoutError: ``main`` did not finish within ``time_limit``.
        Exception: the exception of ``main``, with a note that has the seed and the end of the trace.
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
                shown = keep if keep > _KEPT else _SHOWN
                error.add_note(f"simulation with seed {seed}; the end of its trace:\n{_end_of(sim.trace, shown)}")
            raise


def _end_of(trace: Trace, lines: int) -> str:
    return "\n".join(trace.lines[-lines:])


@contextmanager
def _seeded_scheduler(seed: int) -> Iterator[None]:
    """Let trio run its tasks in an order that the seed determines.

    Trio shuffles runnable tasks, so that programs do not rely on an order. The attributes that control the shuffling
    are private, but stable: Hypothesis and pytest-trio use them, too.
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
    """Collect garbage rarely: a simulation has few cycles, and frequent collections take a tenth of its time."""
    before = gc.get_threshold()
    gc.set_threshold(1_000_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def _inline(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Call ``function(*args)`` in the current task; a worker thread would take real time."""
    await anyio.lowlevel.checkpoint()
    return function(*args)
