"""``Client.process`` for code without an event loop: worker threads handle the records, and the caller waits."""

import inspect
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from queue import SimpleQueue
from typing import Final

from ..errors import UsageError
from ..loop_thread import LoopThread
from ..processing.processing_run import require_main_thread
from ..processing.summary import ProcessSummary
from .stoppable_call import check_threading_event, run_stoppable

__all__ = ("run_process",)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run_process(
    loop: LoopThread,
    process: Callable[..., Awaitable[ProcessSummary]],
    handle: object,
    stop: threading.Event | None,
    *,
    handle_signals: bool,
) -> ProcessSummary:
    """Run ``process`` on the loop until its end; let ``stop`` and signals end it."""
    if inspect.iscoroutinefunction(handle):
        raise UsageError(f"handle must be a plain function for the blocking client, got {handle!r}")
    check_threading_event(stop)
    signalled = threading.Event()
    with _signals(signalled) if handle_signals is True else nullcontext():
        return run_stoppable(loop, lambda stopping: process(stop=stopping), SimpleQueue(), stop, signalled)


@contextmanager
def _signals(signalled: threading.Event) -> Iterator[None]:
    """Let SIGTERM and SIGINT set the event; a second one raises KeyboardInterrupt."""
    require_main_thread()

    def receive(number: int, _: object) -> None:
        if signalled.is_set():
            raise KeyboardInterrupt(signal.Signals(number).name)
        signalled.set()

    before = [signal.signal(number, receive) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)
