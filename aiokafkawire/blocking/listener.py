"""Calls the rebalance listeners of a blocking consumer, each call on its own thread."""

import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio

from ..errors import KafkaError, UsageError
from ..loop_thread import LoopThread, ThreadCall
from ..types import TopicPartition

__all__ = ("Listener", "ListenerThread")

T = TypeVar("T")

Listener = Callable[[tuple[TopicPartition, ...]], None]
"""A plain function that is called with the assigned, revoked or lost partitions, on its own thread."""


class ListenerThread:
    """One call of a listener on its own thread.

    The listener's calls of the consumer run in the task that waits for the listener. By this task the consumer
    recognises a commit of the listener, which must not wait for the rebalance, since the rebalance waits for the
    listener.
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
        """Call the listener on a thread, run its calls of the consumer, and raise the listener's error."""
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
            if not isinstance(self._error, Exception):  # such as of sys.exit(): it would end the client's thread
                raise KafkaError(f"a listener has raised {self._error!r}") from self._error
            raise self._error

    def _listen(self, listener: Callable[[], object]) -> None:
        self.thread = threading.get_ident()
        try:
            listener()
        except BaseException as error:
            self._error = error
        self._has_returned = True
        with suppress(UsageError):  # the client is closed: no task waits
            self._loop.post(self._wake)

    def _wake(self) -> None:
        self._called.set()

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run ``function`` on the loop while the listener's thread waits; return the function's result."""
        call: ThreadCall[T] = ThreadCall(function)
        self._calls.append(call)
        if self._is_over:
            raise _too_late()
        self._loop.post(self._wake)
        return call.wait()


def _too_late() -> UsageError:
    return UsageError("the consumer does not wait for this listener any more, so the listener cannot call it")
