"""Runs a call that a ``threading.Event`` may end on the loop's thread, while the caller waits, and may do work."""

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

import anyio

from ..errors import UsageError
from ..loop_thread import LoopThread

__all__ = ("check_threading_event", "run_stoppable")

T = TypeVar("T")

_STOP_CHECK_SECONDS: Final = 0.1
"""The interval between two checks of the ``stop`` events, and of signals."""


def check_threading_event(stop: object) -> None:
    """Raise UsageError unless ``stop`` is a threading.Event or None."""
    if stop is not None and not (hasattr(stop, "wait") and hasattr(stop, "is_set")):
        raise UsageError(f"stop must be a threading.Event or None, got {stop!r:.200}")


def run_stoppable(
    loop: LoopThread,
    call: Callable[[anyio.Event], Awaitable[T]],
    work: "SimpleQueue[Callable[[], object] | None]",
    *stops: threading.Event | None,
) -> T:
    """Run ``call`` on the loop until its end; return its result. Once a stop is set, the event that it got is set.

    The calling thread runs the functions that the call puts into ``work`` meanwhile. An exception of this thread, such
    as KeyboardInterrupt, cancels the call.
    """
    stopping: list[anyio.Event] = []

    async def run() -> T:
        stopping.append(anyio.Event())
        try:
            return await call(stopping[0])
        finally:
            work.put(None)

    awaited = [stop for stop in stops if stop is not None]
    ended = loop.begin(run)
    try:
        while True:
            with suppress(Empty):
                function = work.get(timeout=_STOP_CHECK_SECONDS if awaited else None)
                if function is None:
                    return ended.result()
                function()
            if stopping and any(stop.is_set() for stop in awaited):
                loop.post(stopping[0].set)
                awaited = []
    except BaseException:
        ended.cancel()
        raise
