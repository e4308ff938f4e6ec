"""A background thread that runs a function repeatedly, whether or not the event loop is blocked."""

import logging
import os
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = ("WatchdogThread", "Wait", "wait_for")

Wait: TypeAlias = Callable[[threading.Event, float | None], None]
"""A function that waits until the event is set or the seconds have passed; None waits without limit."""

_LONGEST: Final = threading.TIMEOUT_MAX

_log = logging.getLogger("aiokafkawire.group")


def wait_for(event: threading.Event, seconds: float | None) -> None:
    """Wait until the event is set, or ``seconds`` have passed; None waits without limit."""
    event.wait(None if seconds is None else min(max(seconds, 0.0), _LONGEST))


class WatchdogThread:
    """A daemon thread that calls ``step`` when it is woken, or when the wait that the last call returned is over.

    It starts with the first :meth:`start`. In a forked child, which has no such thread, all methods do nothing.

    Args:
        name: the thread's name.
        step: does the due work, and returns the seconds until more is due; None if only :meth:`wake` makes it due.
        wait: waits between steps.
    """

    def __init__(self, name: str, step: Callable[[], float | None], *, wait: Wait = wait_for) -> None:
        self._name, self._step, self._wait = name, step, wait
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self.ending: bool = False
        """Whether the thread is about to end."""

    @property
    def is_here(self) -> bool:
        """Whether the current process is the one that created this object, not a forked child."""
        return os.getpid() == self._pid

    def start(self) -> None:
        """Start the thread, unless it has started or ended. If it cannot start, log a warning."""
        if not self.is_here:
            return
        with self._lock:
            if self._thread is not None or self.ending:
                return
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as cause:  # too many threads, or the interpreter is shutting down
                self.ending = True
                _log.warning("cannot start thread %r, continuing without it: %s", self._name, cause)
            else:
                self._thread = thread

    def wake(self) -> None:
        """Wake the thread, as work may be due."""
        if self.is_here:
            self._woken.set()

    def end(self) -> None:
        """End the thread after its current step."""
        self.ending = True
        self.wake()

    def _run(self) -> None:
        try:
            while True:
                self._woken.clear()
                if self.ending:
                    return
                self._wait(self._woken, self._step())
        except Exception:
            self.ending = True
            _log.exception("thread %r has failed and ends", self._name)
