"""A thread beside the event loop, for what must go on while the loop does not."""

import logging
import os
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = ("ThreadWorker", "Wait", "wait_for")

Wait: TypeAlias = Callable[[threading.Event, float | None], None]
"""Waits until the event is set, or for so many seconds."""

_LONGEST: Final = threading.TIMEOUT_MAX

_log = logging.getLogger("aiokafkawire.group")


def wait_for(event: threading.Event, seconds: float | None) -> None:
    """The real :data:`Wait`."""
    event.wait(None if seconds is None else min(max(seconds, 0.0), _LONGEST))


class ThreadWorker:
    """A daemon thread that takes a turn whenever it is woken, or the time is up that its last turn named.

    It begins with the first :meth:`start`. In a forked child, which has no such thread, nothing here does anything.

    Args:
        name: of the thread.
        turn: does what is due, and says how long nothing will be due, in seconds; None for until it is woken.
        on_end: runs in the thread when it ends, whatever ends it.
        wait: how it waits between turns.
    """

    def __init__(
        self, name: str, turn: Callable[[], float | None], *, on_end: Callable[[], None], wait: Wait = wait_for
    ) -> None:
        self._name, self._turn, self._on_end, self._wait = name, turn, on_end, wait
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self.ending: bool = False
        """Whether it takes no more turns."""

    @property
    def is_here(self) -> bool:
        """Whether this is the process it was made in."""
        return os.getpid() == self._pid

    def start(self) -> None:
        """Begin, unless it has begun or ended. Where there can be no thread, the log says so."""
        if not self.is_here:
            return
        with self._lock:
            if self._thread is not None or self.ending:
                return
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as cause:  # too many of them, or the interpreter is going down
                self.ending = True
                _log.warning("cannot start thread %r, continuing without it: %s", self._name, cause)
            else:
                self._thread = thread

    def wake(self) -> None:
        """There may be something to do."""
        if self.is_here:
            self._woken.set()

    def end(self) -> None:
        """Take no more turns, once the one it is at is over."""
        self.ending = True
        self.wake()

    def join(self, within: float) -> bool:
        """Wait so many seconds for its end; whether it has ended."""
        thread = self._thread if self.is_here else None
        if thread is None:
            return True
        if thread is not threading.current_thread():
            thread.join(within)
        return not thread.is_alive()

    def _run(self) -> None:
        try:
            while True:
                self._woken.clear()
                if self.ending:
                    return
                self._wait(self._woken, self._turn())
        except Exception:
            self.ending = True
            _log.exception("thread %r has failed and ends", self._name)
        finally:
            self._on_end()
