"""``Client.transform`` for code without an event loop: the calling thread processes the records."""

import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

import anyio

from ..errors import UsageError
from ..loop_thread import LoopThread
from ..records.batch import ConsumerRecord
from ..transform import OutgoingRecord

__all__ = ("Process", "run_transform")

Records: TypeAlias = list[ConsumerRecord[bytes, bytes]]
Process: TypeAlias = Callable[[Records], Iterable[OutgoingRecord]]
"""A plain function that receives consumed records, and returns the records to send."""

_STOP_CHECK_SECONDS: Final = 0.1
"""The interval between two checks of the ``stop`` event."""


class _Work:
    """Records that the loop's thread passes to the calling thread, and the result of processing them."""

    def __init__(self, records: Records) -> None:
        self._records, self._context = records, copy_context()
        self._outgoing: Any = None
        self._error: Exception | None = None
        self.done: anyio.Event = anyio.Event()

    def do(self, process: Process) -> None:
        """Process the records, on the thread that called ``transform``."""
        try:
            self._outgoing = self._context.run(self._processed, process)
        except Exception as error:
            self._error = error

    def _processed(self, process: Process) -> Any:
        made = process(self._records)
        return list(made) if isinstance(made, Iterable) else made

    def result(self) -> Any:
        """Return the outgoing records, on the loop's thread, or raise the error of ``process``."""
        if self._error is not None:
            raise self._error
        return self._outgoing


def run_transform(
    loop: LoopThread, transform: Callable[..., Awaitable[int]], process: Process, stop: threading.Event | None
) -> int:
    """Run ``transform`` on the loop, and ``process`` on the calling thread; return the result of ``transform``."""
    if inspect.iscoroutinefunction(process):
        raise UsageError(f"process must be a plain function for the blocking client, got {process!r}")
    work: SimpleQueue[_Work | None] = SimpleQueue()
    stopping: list[anyio.Event] = []

    async def processed(records: Records) -> Any:
        item = _Work(records)
        work.put(item)
        await item.done.wait()
        return item.result()

    async def run() -> int:
        stopping.append(anyio.Event())
        try:
            return await transform(processed, stop=stopping[0])
        finally:
            work.put(None)

    ended = loop.begin(run)
    try:
        while True:
            with suppress(Empty):
                item = work.get(timeout=None if stop is None else _STOP_CHECK_SECONDS)
                if item is None:
                    return ended.result()
                item.do(process)
                loop.post(item.done.set)
            if stop is not None and stop.is_set() and stopping:
                loop.post(stopping[0].set)
                stop = None
    except BaseException:
        ended.cancel()
        raise
