"""A clock that a thread reads and waits by, and that stands still until the test moves it."""

from __future__ import annotations

import math
import threading
import time

from .patience import SOON

__all__ = ("ThreadClock",)


class ThreadClock:
    """For one thread that waits by :meth:`wait`. Times are in seconds; use such as are exact in binary."""

    def __init__(self) -> None:
        self._time = 1000.0
        self._changed = threading.Condition()
        self._sleeper: tuple[threading.Event, float] | None = None

    def now(self) -> float:
        with self._changed:
            return self._time

    def wait(self, event: threading.Event, seconds: float | None) -> None:
        """Until the event is set, or the clock has been moved so far."""
        with self._changed:
            until = math.inf if seconds is None else self._time + seconds
            self._sleeper = event, until
            self._changed.notify_all()
            while not event.is_set() and self._time < until:
                self._changed.wait(0.001)  # nobody tells of the event
            self._sleeper = None

    def settle(self) -> float:
        """Let the thread do all that is due; for how long it sleeps then."""
        deadline = time.monotonic() + SOON
        with self._changed:
            while self._sleeper is None or self._sleeper[0].is_set() or self._sleeper[1] <= self._time:
                assert time.monotonic() < deadline, "the thread does not come to rest"
                self._changed.wait(0.001)
            return self._sleeper[1] - self._time

    def move(self, seconds: float) -> None:
        """Move on, without waiting for the thread."""
        with self._changed:
            self._time += seconds
            self._changed.notify_all()

    def advance(self, seconds: float) -> float:
        """Move on, and let the thread do what is due then; for how long it sleeps after that."""
        self.settle()
        self.move(seconds)
        return self.settle()
