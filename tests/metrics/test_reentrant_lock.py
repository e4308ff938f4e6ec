"""Locks that signal handlers take again, and that are free in a forked process."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from aiokafkawire.metrics import reentrant_lock
from aiokafkawire.metrics.reentrant_lock import ReentrantLock


def is_free(lock: ReentrantLock) -> bool:
    """Return whether another thread gets the lock."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lock._lock.acquire, blocking=False).result()


def test_a_thread_takes_its_lock_again() -> None:
    lock = ReentrantLock()
    with lock:
        with lock:
            pass
        assert not is_free(lock)
    assert is_free(lock)


def test_a_lock_of_a_thread_that_a_fork_has_left_behind_is_free() -> None:
    lock, taken, leave = ReentrantLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock._lock:
            taken.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        taken.wait()
        assert not is_free(lock)
        reentrant_lock._free_all()  # as in the child
        with lock:
            pass
    finally:
        leave.set()
        thread.join()


def test_the_thread_that_forks_keeps_its_lock() -> None:
    lock = ReentrantLock()
    with lock:
        reentrant_lock._free_all()
        assert not is_free(lock)
    assert is_free(lock)
