"""What a broker does when time has passed: session timeouts, rebalance timeouts, transactions left open."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

import anyio

__all__ = ("Timer", "Timers")


class Timer:
    """One call to be made."""

    __slots__ = ("_function", "due")

    def __init__(self, due: float, function: Callable[[], None]) -> None:
        self.due = due
        self._function: Callable[[], None] | None = function

    def cancel(self) -> None:
        """Never make the call. May be called again, and afterwards."""
        self._function = None

    @property
    def pending(self) -> bool:
        """Whether the call will be made."""
        return self._function is not None

    def fire(self) -> None:
        """Make the call, unless it was cancelled or made."""
        function, self._function = self._function, None
        if function is not None:
            function()


class Timers:
    """Calls to be made later, in the order of their time and then of their making. Times are those of the loop."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = count()
        self._sooner = anyio.Event()

    def now(self) -> float:
        """The loop's time, in seconds."""
        return anyio.current_time()

    def after(self, seconds: float, function: Callable[[], None]) -> Timer:
        """Have ``function`` called in ``seconds``."""
        timer = Timer(self.now() + seconds, function)
        heappush(self._heap, (timer.due, next(self._count), timer))
        if self._heap[0][2] is timer:
            self._sooner.set()
        return timer

    async def run(self) -> None:
        """Make the calls when they are due, until cancelled."""
        while True:
            self._sooner = anyio.Event()
            while self._heap and (not self._heap[0][2].pending or self._heap[0][0] <= self.now()):
                heappop(self._heap)[2].fire()
            left = self._heap[0][0] - self.now() if self._heap else None
            with anyio.move_on_after(left):
                await self._sooner.wait()
