"""A lock of threads under which signal handlers and forked processes may run."""

import os
import threading
from types import TracebackType
from typing import Final
from weakref import WeakSet

__all__ = ("ReentrantLock",)


class ReentrantLock:
    """A lock that its own thread may take again, such as in a signal handler.

    A process that was forked while another thread had the lock can take it: that thread does not exist there.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def after_fork(self) -> None:
        """Free the lock in a forked process, unless the thread that has forked holds it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_locks: Final[WeakSet[ReentrantLock]] = WeakSet()


def _free_all() -> None:
    for lock in list(_locks):
        lock.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
