"""Logs which code blocks the event loop: a thread samples the stack of the loop's thread during the block."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from ..event_log import EventLog

__all__ = ("BlockedLoop", "Ticks")

_TICKS: Final = 4
"""The number of ticks of the loop within the threshold."""

_log = EventLog("aiokafkawire.group")


class Ticks:
    """The ticks of an event loop, which show for how long it is blocked. Times are in seconds of one monotonic clock.

    A block begins when the first missing tick was due.
    """

    def __init__(self, threshold: float, now: float) -> None:
        self.period: float = threshold / _TICKS
        """The seconds between two ticks."""
        self._threshold = threshold
        self._due_at = now + self.period
        self._reported = False

    def tick(self, now: float) -> float | None:
        """Record a tick; return the seconds for which the loop was blocked before, None if below the threshold."""
        blocked = now - self._due_at
        self._due_at, self._reported = now + self.period, False
        return blocked if blocked >= self._threshold else None

    def look(self, now: float) -> tuple[float | None, float]:
        """Return the seconds for which the loop has been blocked, and the seconds until the next check.

        The first value is None if the block is below the threshold, or was returned before.
        """
        blocked = now - self._due_at
        if blocked < self._threshold:
            return None, self._threshold - blocked
        first, self._reported = not self._reported, True
        return blocked if first else None, self._threshold


class BlockedLoop:
    """A watch that logs each block of the event loop: during it a warning with the stack, and one at its end.

    Code that does not release the GIL (in a C extension) blocks this watch too; then only the block's end is logged.

    Args:
        threshold: the shortest block to log, in seconds.
        now: a monotonic clock in seconds, which may be read in any thread.
        wait: waits in the thread, for the seconds or until the event is set.
        sleep: waits in the event loop.
    """

    def __init__(
        self,
        threshold: float,
        *,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._threshold, self._now, self._wait, self._sleep = threshold, now, wait, sleep

    async def run(self) -> None:
        """Watch the current event loop from a thread, until cancelled; end in a forked child, which has no thread."""
        lock, ended, loop_thread, pid = threading.Lock(), threading.Event(), threading.get_ident(), os.getpid()
        ticks = Ticks(self._threshold, self._now())

        def watch() -> None:
            while not ended.is_set():
                with lock:
                    blocked, wait = ticks.look(self._now())
                if blocked is not None:
                    message = "the event loop has been blocked for %(elapsed).1f s; it is at:\n%(stack)s"
                    _log.warning(message, text={"stack": _stack(loop_thread)}, elapsed=blocked)
                self._wait(ended, wait)

        thread = threading.Thread(target=watch, name="aiokafkawire-loop-lag", daemon=True)
        try:
            thread.start()
        except RuntimeError as cause:  # too many threads, or the interpreter is shutting down
            message = "cannot start thread %(thread)r, continuing without it: %(error)s"
            _log.warning(message, text={"thread": thread.name}, error=cause)
        try:
            while os.getpid() == pid:
                await self._sleep(ticks.period)
                with lock:
                    blocked = ticks.tick(self._now())
                if blocked is not None:
                    _log.warning("the event loop was blocked for %(elapsed).1f s", elapsed=blocked)
        finally:
            ended.set()


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)).rstrip() if frame is not None else "nowhere: its thread has ended"
