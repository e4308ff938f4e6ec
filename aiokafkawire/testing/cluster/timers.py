"""Timers of a cluster, such as the timeouts of sessions, rebalances and transactions."""

import logging
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

import anyio.lowlevel

__all__ = ("Timer", "Timers")

_FEW: Final = 64  # with fewer timers, cancelled ones stay until they are due

_log = logging.getLogger(__name__)


class Timer:
    """A scheduled call of a function."""

    __slots__ = ("_function", "due")

    def __init__(self, due: float, function: Callable[[], None]) -> None:
        self.due: float = due
        self._function: Callable[[], None] | None = function

    def cancel(self) -> None:
        """Cancel the scheduled call; without effect if it was already made or cancelled."""
        self._function = None

    @property
    def pending(self) -> bool:
        """Whether the call is neither made nor cancelled yet."""
        return self._function is not None

    def fire(self) -> None:
        """Make the call, unless it was cancelled or already made."""
        function, self._function = self._function, None
        if function is not None:
            function()


class Timers:
    """Scheduled calls, ordered by due time and then by creation. Times are those of the event loop's clock."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = count()
        self._most = _FEW
        self._sooner = anyio.Event()

    def now(self) -> float:
        """Return the loop's time, in seconds."""
        return anyio.current_time()

    def after(self, seconds: float, function: Callable[[], None]) -> Timer:
        """Schedule a call of ``function`` in ``seconds``."""
        timer = Timer(self.now() + seconds, function)
        if len(self._heap) >= self._most:
            self._forget_cancelled()
        heappush(self._heap, (timer.due, next(self._count), timer))
        if self._heap[0][2] is timer:
            self._sooner.set()
        return timer

    async def run(self, on_fault: Callable[[Exception], None] | None = None) -> None:
        """Make the calls when they are due, until cancelled.

        A failed call's exception goes to ``on_fault``, or to the log if that is None; later calls are still made.
        """
        while True:
            self._sooner = anyio.Event()
            for timer in self._due():
                try:
                    timer.fire()
                except Exception as fault:
                    if on_fault is None:
                        _log.error("a timer failed", exc_info=fault)
                    else:
                        on_fault(fault)
            # A call may reschedule itself at once, for ever; other tasks must run in between.
            await anyio.lowlevel.checkpoint()
            left = self._heap[0][0] - self.now() if self._heap else None
            with anyio.move_on_after(left):
                await self._sooner.wait()

    def _due(self) -> list[Timer]:
        """Remove and return the timers that are due now, without those that their calls will start."""
        now = self.now()
        due = []
        while self._heap and (not self._heap[0][2].pending or self._heap[0][0] <= now):
            due.append(heappop(self._heap)[2])
        return due

    def _forget_cancelled(self) -> None:
        """Remove the cancelled timers before they outnumber the pending ones, since each heartbeat cancels a timer."""
        self._heap = [entry for entry in self._heap if entry[2].pending]
        heapify(self._heap)
        self._most = max(_FEW, 2 * len(self._heap))
