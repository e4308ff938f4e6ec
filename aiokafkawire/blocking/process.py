"""``Client.process`` for code without an event loop: worker threads handle the records, and the caller waits."""

import inspect
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Final

import anyio

from ..errors import UsageError
from ..loop_thread import LoopThread
from ..processing.processing_run import require_main_thread
from ..processing.summary import ProcessSummary

__all__ = ("run_process",)

_STOP_CHECK_SECONDS: Final = 0.1
"""The interval between two checks of the ``stop`` event, and of signals."""
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
    if stop is not None and not (hasattr(stop, "wait") and hasattr(stop, "is_set")):
        raise UsageError(f"stop must be a threading.Event or None, got {stop!r:.200}")
    over: SimpleQueue[None] = SimpleQueue()
    stopping: list[anyio.Event] = []

    async def run() -> ProcessSummary:
        stopping.append(anyio.Event())
        try:
            return await process(stop=stopping[0])
        finally:
            over.put(None)

    signalled = threading.Event()
    with _signals(signalled) if handle_signals is True else _no_signals():
        ended = loop.begin(run)
        told = False
        try:
            while True:
                with suppress(Empty):
                    over.get(timeout=_STOP_CHECK_SECONDS)
                    return ended.result()
                if not told and stopping and (signalled.is_set() or (stop is not None and stop.is_set())):
                    loop.post(stopping[0].set)
                    told = True
        except BaseException:
            ended.cancel()
            raise


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


@contextmanager
def _no_signals() -> Iterator[None]:
    yield
