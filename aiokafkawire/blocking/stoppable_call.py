"""Runs a call that a ``threading.Event`` may end on the loop's thread, while the caller waits, and may do work."""

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

import anyio

from ..errors import UsageError
from ..loop_thread import LoopThread, ThreadCall

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
    return loop.run(_StoppableCall(loop, call, work, [stop for stop in stops if stop is not None]))


class _StoppableCall(ThreadCall[T]):
    """A call whose caller waits for stops, and runs functions, until the call has ended."""

    def __init__(
        self,
        loop: LoopThread,
        call: Callable[[anyio.Event], Awaitable[T]],
        work: "SimpleQueue[Callable[[], object] | None]",
        stops: list[threading.Event],
    ) -> None:
        super().__init__(self._call)
        self._loop, self._stoppable, self._work, self._stops = loop, call, work, stops
        self._stopping: anyio.Event | None = None

    async def _call(self) -> T:
        self._stopping = anyio.Event()
        return await self._stoppable(self._stopping)

    def end(self, error: BaseException | None, result: T | None = None) -> None:
        """Store the outcome, and wake the waiting thread."""
        super().end(error, result)
        self._work.put(None)

    def wait(self) -> T:
        """Run the functions, and look for stops, until the end; return the result, or raise the error."""
        stops = self._stops
        while True:
            with suppress(Empty):
                function = self._work.get(timeout=_STOP_CHECK_SECONDS if stops else None)
                if function is None:
                    return super().wait()
                function()
            for stop in stops:
                if self._stopping is not None and stop.is_set():
                    self._loop.post(self._stopping.set)
                    stops = []
                    break
