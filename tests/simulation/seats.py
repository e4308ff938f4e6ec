"""The seats of a group: on each, one member follows another, and the last one stays until the end of the run."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

import anyio
import attrs

from aiokafkawire.testing.simulation import Simulation

__all__ = ("Seats", "until_settled")

_QUIET = 10.0
"""Virtual seconds in which nothing is to change any more."""


class _Member(Protocol):
    @property
    def name(self) -> str: ...

    async def live(self, scope: anyio.CancelScope) -> None: ...


M = TypeVar("M", bound=_Member)


@attrs.define
class Seats(Generic[M]):
    """Members come, leave in order, crash, or lose power, until ``calm`` is set."""

    sim: Simulation
    calm: anyio.Event
    make: Callable[[int, str], M]
    """Makes the member with this name for this seat."""
    gone: Callable[[M], None] = lambda _: None
    """Is called with each member that is over."""
    ends: Sequence[str] = ("leaves", "leaves", "crashes", "loses power")
    """How members may end."""
    lives: int = 0
    """How many members there were."""
    there: dict[int, M] = attrs.field(factory=dict)
    """The member on each seat."""
    _stays: dict[int, anyio.CancelScope] = attrs.field(factory=dict)
    """Cancelled when the member on this seat is to leave in order."""
    _without_power: list[str] = attrs.field(factory=list)
    _ended: bool = False

    async def sit(self, seat: int) -> None:
        """One member after the other; the last one stays until :meth:`end`."""
        chance = self.sim.chance(f"seat {seat}")
        await self._pause(chance.choice((0.0, chance.uniform(0, 20))))
        while not self._ended:
            self.lives += 1
            member = self.there[seat] = self.make(seat, f"member-{seat}.{self.lives}")
            end = chance.choice(self.ends)
            longest = chance.choice((5.0, 20.0, 60.0))
            async with anyio.create_task_group() as living:
                scope = self._stays[seat] = anyio.CancelScope()
                living.start_soon(member.live, scope)
                await self._pause(chance.uniform(0.1, longest))
                if not self.calm.is_set():
                    self._end_life(member, end, scope, living.cancel_scope)
            self.gone(member)
            await self._pause(chance.choice((0.0, 1.0, chance.uniform(0, 20))))

    def end(self) -> None:
        """Have all members leave, and no others follow."""
        self._ended = True
        for scope in self._stays.values():
            scope.cancel()

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.calm.wait()

    def _end_life(self, member: M, end: str, leaving: anyio.CancelScope, living: anyio.CancelScope) -> None:
        self.sim.note(f"{member.name} {end}")
        if end == "leaves":
            leaving.cancel()
            return
        if end == "loses power":
            self._without_power.append(member.name)
            self.sim.network.partition(*({name} for name in self._without_power))
        living.cancel()


async def until_settled(
    sim: Simulation, state: Callable[[], Awaitable[str]], *, limit: float, wrong: Iterable[str]
) -> float:
    """Wait until the state begins with "settled", and see that it stays so; return how many virtual seconds that took.

    Raises:
        AssertionError: that takes longer than ``limit`` virtual seconds; ``wrong`` is what else is known to be wrong.
    """
    began = sim.now()
    while not (settled := await state()).startswith("settled"):
        assert sim.now() - began < limit, f"{limit:g} s after all faults: {settled}; {wrong}"
        await anyio.sleep(1)
    took = sim.now() - began
    await anyio.sleep(_QUIET)
    assert await state() == settled, f"{settled}, and then {await state()}"
    return took
