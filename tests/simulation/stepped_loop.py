"""The loop of a blocking client in a simulation: its user's thread and the event loop run in turns, never both.

While the user computes, the event loop stands still, and so does virtual time; while the user waits for a call, the
loop runs it. So one seed is one run, threads or not. A call may be interrupted before, while or after it runs, as by
Ctrl-C.
"""

import threading
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, ParamSpec, TypeVar, cast

import anyio

from aiokafkawire.loop_thread import LoopThread

__all__ = ("SteppedLoop",)

P = ParamSpec("P")
T = TypeVar("T")

_HANGS = 60.0
"""Seconds of real time after which a thread that does not go on is taken for hung."""


class SteppedLoop(LoopThread):
    """What a blocking client calls; :meth:`serve` runs on the event loop."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.interrupted: float = 0.0
        """How likely it is that the next call is interrupted."""
        self.interrupts_within: float = 0.05
        """Virtual seconds until a call is interrupted that runs."""
        self._chance = chance
        self._for_loop, self._for_user = threading.Semaphore(0), threading.Semaphore(0)
        self._asked: Callable[[], Awaitable[Any]] | None = None
        self._result: Any = None
        self._error: BaseException | None = None

    @property
    def is_running(self) -> bool:
        """Whether calls are served."""
        return True

    def require(self) -> Any:
        """Return something: the loop runs."""
        return self

    async def serve(self, user: Callable[[], None]) -> None:
        """Run the user's function on a thread of its own, and its calls here; raise what it raises."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                user()
            except BaseException as error:
                failed.append(error)
            self._asked = None
            self._for_loop.release()

        threading.Thread(target=run, daemon=True).start()
        self._wait(self._for_loop)
        try:
            while self._asked is not None:
                await self._answer(self._asked)
                self._for_user.release()
                self._wait(self._for_loop)
        except BaseException as error:
            # Cancelled: the user's thread ends with what it waits for.
            while self._asked is not None:
                self._error = error
                self._for_user.release()
                self._wait(self._for_loop)
            raise
        if failed:
            raise failed[0]

    async def _answer(self, asked: Callable[[], Awaitable[Any]]) -> None:
        self._result, self._error = None, None
        how = self._chance.choice(("before", "while", "after")) if self._chance.random() < self.interrupted else None
        if how == "before":
            self._error = KeyboardInterrupt()
            return
        within = None if how is None else self._chance.uniform(0, self.interrupts_within)
        with anyio.move_on_after(within) as scope:
            try:
                self._result = await asked()
            except Exception as error:
                self._error = error
        if how == "after" or scope.cancelled_caught:
            self._error = KeyboardInterrupt()

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have the event loop run it, and wait."""
        self._asked = lambda: function(*args, **kwargs)
        self._for_loop.release()
        self._wait(self._for_user)
        if self._error is not None:
            raise self._error
        return cast("T", self._result)

    def _wait(self, turn: threading.Semaphore) -> None:
        if not turn.acquire(timeout=_HANGS):
            raise AssertionError("the other thread hangs")
