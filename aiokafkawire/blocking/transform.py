"""``Client.transform`` for code without an event loop: the calling thread processes the records."""

import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeAlias

import anyio

from ..errors import UsageError
from ..loop_thread import LoopThread
from ..records.batch import ConsumerRecord
from ..transform import OutgoingRecord
from .stoppable_call import check_threading_event, run_stoppable

__all__ = ("Process", "run_transform")

Records: TypeAlias = list[ConsumerRecord[bytes, bytes]]
Process: TypeAlias = Callable[[Records], Iterable[OutgoingRecord]]
"""A plain function that receives consumed records, and returns the records to send."""


class _Work:
    """Records that the loop's thread passes to the calling thread, and the result of processing them."""

    def __init__(self, records: Records, loop: LoopThread) -> None:
        self._records, self._context = records, copy_context()
        # By these anyio would take the calling thread for one that runs the client's event loop.
        self._of_loop = [variable for variable, _ in loop.require().variables]
        self._outgoing: Any = None
        self._error: Exception | None = None
        self.done: anyio.Event = anyio.Event()

    def do(self, process: Process) -> None:
        """Process the records, on the thread that called ``transform``."""
        for variable in self._of_loop:
            self._context.run(variable.set, variable.get(None))
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
    check_threading_event(stop)
    work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    async def processed(records: Records) -> Any:
        item = _Work(records, loop)

        def do() -> None:
            item.do(process)
            loop.post(item.done.set)

        work.put(do)
        await item.done.wait()
        return item.result()

    return run_stoppable(loop, lambda stopping: transform(processed, stop=stopping), work, stop)
