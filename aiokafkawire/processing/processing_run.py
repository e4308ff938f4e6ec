"""One call of ``Client.process``: starts its parts, waits for its end, and lets what is in hand finish."""

import inspect
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import anyio
import anyio.abc

from ..errors import KafkaError, UsageError
from ..event_log import EventLog
from ..runtime import is_being_cancelled
from .handler_call import cancellation_in
from .handler_pool import HandlerPool
from .health import ProcessingHealth, processing_health
from .lanes import Lanes, Work
from .record_source import RecordSource
from .summary import ProcessSummary

__all__ = ("OnProgress", "ProcessingRun", "require_main_thread")

_log = EventLog("aiokafkawire.processing")

_PROGRESS_SECONDS: Final = 1.0
"""Seconds between two calls of ``on_progress``."""

OnProgress: TypeAlias = Callable[[ProcessSummary], object]
"""A function or coroutine function that gets what is done so far."""


class ProcessingRun:
    """One call of ``Client.process``, from its beginning to its end.

    Args:
        source: reads the records.
        prepare: is awaited before the source is opened.
        lanes: has the records to handle.
        drain_timeout: the seconds that running handlers have at the end.
        stop: ends the run when it is set.
        handle_signals: whether SIGTERM and SIGINT end the run.
        on_progress: is called regularly with what is done.
    """

    def __init__(
        self,
        source: RecordSource,
        prepare: Callable[[], Awaitable[None]],
        lanes: Lanes[Any],
        *,
        drain_timeout: float,
        stop: anyio.Event | None,
        handle_signals: bool,
        on_progress: OnProgress | None,
    ) -> None:
        self._source, self._prepare, self._lanes = source, prepare, lanes
        self._drain_timeout, self._stop = drain_timeout, stop
        self._handle_signals, self._on_progress = handle_signals, on_progress
        self._ending = anyio.Event()
        self._drain = anyio.CancelScope()
        self._error: BaseException | None = None
        self._readers: anyio.abc.TaskGroup | None = None
        self.was_cancelled: bool = False
        """Whether the run was cancelled from outside; what handlers do since then does not count."""
        self.pool: HandlerPool
        """Calls the handler; set before :meth:`run`."""

    async def run(self) -> ProcessSummary:
        """Process records until the stop event, a signal or an error; return what was done.

        Raises:
            BaseException: the error that has ended the run.
        """
        try:
            await self._run()
        except BaseException:  # all other errors are in ``_error``
            self.was_cancelled = True
            raise
        if self._error is not None:
            raise self._error
        return self.summary()

    async def _run(self) -> None:
        async with anyio.create_task_group() as tasks:
            if self._handle_signals:
                await tasks.start(self._watch_signals)
            tasks.start_soon(self._guard, self.pool.run, tasks, self._guard)
            if self._stop is not None:
                tasks.start_soon(self._watch_stop, self._stop)
            if self._on_progress is not None:
                tasks.start_soon(self._guard, self._report_progress)
            async with anyio.create_task_group() as self._readers:
                self.start(self._open)
                await self._ending.wait()
                self._readers.cancel_scope.cancel()
            await self._finish()
            tasks.cancel_scope.cancel()

    async def _open(self) -> None:
        await self._prepare()
        await self._source.open(self)

    async def _finish(self) -> None:
        """Let the running handlers finish, and commit what is finished."""
        self._lanes.close()
        with self._drain, anyio.move_on_after(self._drain_timeout):
            await self.pool.wait_until_idle()
        count = self.pool.cancel()
        if count:
            _log.warning(
                "cancelling %(count)d calls of the handler that did not end within %(elapsed)g s (drain_timeout)",
                count=count,
                elapsed=self._drain_timeout,
            )
        try:
            await self._source.close()
        except Exception as error:
            self.fail(error)

    def summary(self) -> ProcessSummary:
        """Return what is done so far."""
        return self.pool.summary(**self._source.status())

    def health(self, group: str, limit: float) -> ProcessingHealth:
        """Return the health of the handlers, none of which should run for longer than ``limit`` seconds."""
        summary = self.summary()
        return processing_health(
            group,
            running=summary.running,
            in_hand=summary.in_hand,
            waiting=summary.waiting,
            longest=summary.longest,
            abandoned=self.pool.abandoned,
            limit=limit,
            why_waiting=self.pool.why_waiting,
        )

    def start(self, function: Callable[[], Awaitable[None]]) -> None:
        """Run a function until the run ends, at the latest; its error ends the run."""
        assert self._readers is not None  # while the run is open
        self._readers.start_soon(self._guard, function)

    def fail(self, error: BaseException) -> None:
        """End the run with an error; only the first one counts."""
        if self._error is None:
            self._error = error
        self._ending.set()

    def work_failed(self, work: Work[Any], error: BaseException) -> None:
        """End the run with the final error of a handler."""
        self._source.failed(work)
        self.fail(error)

    async def _guard(self, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        try:
            await function(*args)
        except anyio.get_cancelled_exc_class() as cancelled:
            if is_being_cancelled():
                raise
            # It would end the task without an error, and the call as if it had been stopped.
            name = type(cancelled).__name__
            error = KafkaError(f"{name} was raised, and nobody has cancelled it: a handler may have cancelled its task")
            error.__cause__ = cancelled
            self.fail(error)
        except BaseException as error:  # such as SystemExit from a deserializer: what runs is finished first
            if isinstance(error, BaseExceptionGroup) and is_being_cancelled():
                found = cancellation_in(error)
                if found is not None:
                    raise found from None
            self.fail(error)

    async def _watch_stop(self, stop: anyio.Event) -> None:
        await stop.wait()
        self._ending.set()

    async def _watch_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """End the run after the first SIGTERM or SIGINT, and cancel the handlers after the second."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            task_status.started()
            is_second = False
            async for number in signals:
                _log.info(
                    "%(reason)s: no more records are read, and running handlers have %(elapsed)g s (drain_timeout)",
                    reason=signal.Signals(number).name,
                    elapsed=self._drain_timeout,
                )
                if is_second:
                    self._drain.cancel()
                is_second = True
                self._ending.set()

    async def _report_progress(self) -> None:
        assert self._on_progress is not None
        told = ProcessSummary()
        while True:
            await anyio.sleep(_PROGRESS_SECONDS)
            summary = self.summary()
            if summary != told:
                told = summary
                result = self._on_progress(summary)
                if inspect.isawaitable(result):
                    await result


def require_main_thread() -> None:
    """Raise UsageError unless this is the main thread, in which alone Python handles signals."""
    if threading.current_thread() is not threading.main_thread():
        raise UsageError(
            "handle_signals=True needs the main thread, in which alone Python handles signals: run the event loop "
            "there, or set a stop event from a handler of your own"
        )
