"""Notices that something blocks the event loop, and says what: a thread looks at the loop's thread while it hangs."""

import logging
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from .thread_worker import ThreadWorker, Wait, wait_for

__all__ = ("LoopLag", "Ticks")

_TICKS: Final = 4
"""How many times within the threshold the loop has to tick."""

_log = logging.getLogger("aiokafkawire.group")


class Ticks:
    """When a loop has ticked, and so for how long it is blocked. Times are in seconds of one monotonic clock.

    A block begins when the tick was due that did not come.
    """

    def __init__(self, threshold: float, now: float) -> None:
        self.period: float = threshold / _TICKS
        """How often the loop should tick."""
        self._threshold = threshold
        self._due_at = now + self.period
        self._told = False

    def tick(self, now: float) -> float | None:
        """The loop runs. For how long it was blocked before, if that was for the threshold or longer."""
        blocked = now - self._due_at
        self._due_at, self._told = now + self.period, False
        return blocked if blocked >= self._threshold else None

    def look(self, now: float) -> tuple[float | None, float]:
        """For how long the loop is blocked, if that has to be told now, once for each block; and when to look again."""
        blocked = now - self._due_at
        if blocked < self._threshold:
            return None, self._threshold - blocked
        first, self._told = not self._told, True
        return blocked if first else None, self._threshold


class LoopLag:
    """Logs one warning for each time that the event loop is blocked, with the stack of what blocks it.

    Code that keeps the interpreter to itself (a C extension that does not release the GIL) stops the thread, too: of
    that only the end is logged.

    Args:
        threshold: how long a block has to be, in seconds.
        now: a monotonic clock in seconds, which may be read in any thread.
        wait: how the thread waits.
        sleep: how the loop waits.
    """

    def __init__(
        self,
        threshold: float,
        *,
        now: Callable[[], float] = time.monotonic,
        wait: Wait = wait_for,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._threshold, self._now, self._wait, self._sleep = threshold, now, wait, sleep

    async def run(self) -> None:
        """Watch the loop that this runs on, until it is cancelled."""
        lock, loop_thread = threading.Lock(), threading.get_ident()
        ticks = Ticks(self._threshold, self._now())

        def look() -> float:
            with lock:
                blocked, wait = ticks.look(self._now())
            if blocked is not None:
                told = "the event loop has been blocked for %.1f s; it is at:\n%s"
                _log.warning(told, blocked, _stack(loop_thread))
            return wait

        watching = ThreadWorker("aiokafkawire-loop-lag", look, on_end=lambda: None, wait=self._wait)
        watching.start()
        try:
            while watching.is_here:
                await self._sleep(ticks.period)
                with lock:
                    blocked = ticks.tick(self._now())
                if blocked is not None:
                    _log.warning("the event loop was blocked for %.1f s", blocked)
        finally:
            watching.end()


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)).rstrip() if frame is not None else "nowhere: its thread has ended"
