"""Calls the rebalance listeners of a blocking consumer, each on a thread of its own."""

import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio

from ..errors import UsageError
from ..loop_thread import LoopThread, ThreadCall
from ..types import TopicPartition

__all__ = ("Listener", "ListenerThread")

T = TypeVar("T")

Listener = Callable[[tuple[TopicPartition, ...]], None]
"""Hears of partitions; a plain function, which is called on a thread of its own."""


class ListenerThread:
    """One call of a listener on a thread of its own.

    What the listener calls runs in the task that waits for it: so the consumer knows that a commit comes from a
    listener, and does not have it wait for the rebalance that waits for the listener.
    """

    def __init__(self, loop: LoopThread) -> None:
        self._loop = loop
        self._calls: deque[ThreadCall[Any]] = deque()
        self._called = anyio.Event()
        self._error: BaseException | None = None
        self._has_returned = False
        self._is_over = False
        self.thread: int | None = None

    async def run(self, listener: Callable[[], object]) -> None:
        """Call it, and raise what it raises."""
        thread = threading.Thread(target=self._listen, args=(listener,), name="aiokafkawire-listener", daemon=True)
        thread.start()
        try:
            while not self._has_returned or self._calls:
                await self._called.wait()
                self._called = anyio.Event()
                while self._calls:
                    await self._calls.popleft().run()
        finally:
            self._is_over = True
            while self._calls:
                self._calls.popleft().end(_too_late())
        if self._error is not None:
            raise self._error

    def _listen(self, listener: Callable[[], object]) -> None:
        self.thread = threading.get_ident()
        try:
            listener()
        except BaseException as error:
            self._error = error
        self._has_returned = True
        with suppress(UsageError):  # the client is closed: nobody waits
            self._loop.post(self._wake)

    def _wake(self) -> None:
        self._called.set()

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Make a call of the listener's thread."""
        call: ThreadCall[T] = ThreadCall(function)
        self._calls.append(call)
        if self._is_over:
            raise _too_late()
        self._loop.post(self._wake)
        return call.wait()


def _too_late() -> UsageError:
    return UsageError("the consumer does not wait for this listener any more, so it can call nothing")
