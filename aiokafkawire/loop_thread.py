"""Runs an event loop on its own thread; other threads call functions on the loop, and wait for the results."""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

import anyio
import anyio.abc
import anyio.from_thread

from .errors import UsageError

__all__ = ("ThreadCall", "LoopThread")

P = ParamSpec("P")
T = TypeVar("T")

_CLOSED: Final = "this client is closed: open another"


class LoopThread:
    """An event loop on its own thread, which other threads call. ``name`` is the name of the thread."""

    def __init__(self, name: str = "aiokafkawire-blocking") -> None:
        self._name = name
        self._pid: int | None = None
        self._thread: threading.Thread | None = None
        self._running: Running | None = None
        self._stopping: Running | None = None
        self._calls: set[ThreadCall[Any]] = set()

    def start(self) -> None:
        """Start the thread, which is possible only once, even after :meth:`stop`."""
        if self._thread is not None:
            raise UsageError("this event loop was started before: make another")
        started: ThreadCall[Running] = ThreadCall()
        # A daemon thread, so that an unclosed client does not keep the interpreter from ending.
        thread = threading.Thread(target=_serve, args=(started, self._calls), name=self._name, daemon=True)
        self._thread, self._pid = thread, os.getpid()
        try:
            thread.start()
            self._running = started.wait()
        except BaseException:  # Ctrl-C; the thread may run nevertheless, and would run on
            started.give_up()
            self._running = started.result
            self.stop(0)
            raise

    def stop(self, within: float | None = None) -> None:
        """Cancel the running calls, and wait up to ``within`` seconds for the thread's end.

        It can be repeated; if Ctrl-C has interrupted it, the next call ends the thread.
        """
        self._stopping = running = self._running or self._stopping
        self._running = None
        if running is None or self.is_gone:
            return
        with suppress(RuntimeError):  # the loop is closed
            running.loop.call_soon_threadsafe(running.stop.set)
        assert self._thread is not None
        if not self.is_current:
            self._thread.join(within)

    @property
    def is_running(self) -> bool:
        """Whether the thread was started and not stopped."""
        return self._running is not None

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on this thread."""
        return self._thread is threading.current_thread()

    @property
    def in_forked_process(self) -> bool:
        """Whether this process was forked since the start, so that the thread does not exist here."""
        return self._pid is not None and os.getpid() != self._pid

    @property
    def is_gone(self) -> bool:
        """Whether the thread runs no more: in a forked process, and while the interpreter ends, which stops threads.

        Python closes abandoned generators, and calls ``__del__`` methods, even then.
        """
        return self.in_forked_process or sys.is_finalizing()

    def begin(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start to await ``function`` on the loop; return a future, whose cancellation cancels the call.

        Raises:
            UsageError: the loop is not running, or belongs to another process.
        """
        running = self.require()

        async def run() -> T:
            return await function(*args, **kwargs)

        try:
            return running.portal.start_task_soon(run)
        except RuntimeError as error:
            raise UsageError(_CLOSED) from error

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await ``function`` on the loop, and return its result. Raises the function's errors, and as :meth:`begin`.

        Ctrl-C raises KeyboardInterrupt in the calling thread, and cancels the call on the loop.
        """
        return self.run(ThreadCall(partial(function, *args, **kwargs)))

    def run(self, call: "ThreadCall[T]") -> T:
        """Run a call on the loop, and return its result. Raises as :meth:`call`."""
        running = self.require()
        self.require_other_thread()
        try:
            self._calls.add(call)
            self.post(running.tasks.start_soon, call.run)
            return call.wait()
        except BaseException:
            if not call.is_done:
                with suppress(UsageError):
                    self.post(call.give_up)
            raise
        finally:
            self._calls.discard(call)

    def call_while_running(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Call as :meth:`call`; return None if the thread was not started or is stopped, also if it is meanwhile."""
        if not self.is_running or self.is_gone:
            return None
        try:
            return self.call(function, *args, **kwargs)
        except (CancelledError, UsageError):
            if self.is_running:
                raise
            return None  # another thread has stopped it

    def call_sync(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a plain function on the loop's thread, and return its result. Raises as :meth:`call`."""

        async def run() -> T:
            return function(*args, **kwargs)

        return self.call(run)

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Schedule a function on the loop, with the context variables of the caller. Raises as :meth:`begin`."""
        running, context = self.require(), copy_context()
        for variable, value in running.variables:
            context.run(variable.set, value)
        try:
            running.loop.call_soon_threadsafe(partial(function, *args), context=context)
        except RuntimeError as error:
            raise UsageError(_CLOSED) from error

    def require_other_thread(self) -> None:
        """Raise UsageError on the loop's own thread, where waiting would never end."""
        if self.is_current:
            raise UsageError("this is the client's own thread, where waiting for a call would never end")

    def require(self) -> "Running":
        """Return the running loop. Raises as :meth:`begin`."""
        if self.in_forked_process:
            raise UsageError(f"this client was opened in process {self._pid}: after a fork, open another")
        if sys.is_finalizing():
            raise UsageError("the interpreter is ending, so the client's thread runs no more: close clients before")
        if self._running is None:
            raise UsageError("this client is not open: use it inside its 'with'")
        return self._running


class Running:
    """A running event loop, and the objects that start tasks on it."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal, tasks: anyio.abc.TaskGroup, outside: Context) -> None:
        self.portal: anyio.from_thread.BlockingPortal = portal
        self.tasks: anyio.abc.TaskGroup = tasks
        # The context variables by which anyio detects the type of the loop.
        self.variables: list[tuple[ContextVar[Any], Any]] = [
            (variable, value)
            for variable, value in copy_context().items()
            if variable not in outside or outside[variable] is not value
        ]
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.stop: anyio.Event = anyio.Event()


class ThreadCall(Generic[T]):
    """A call that runs on the loop's thread while another thread waits for it.

    Ctrl-C may interrupt the waiting thread between any two function calls. So the threads synchronize by a plain lock,
    which the loop's thread releases once. A threading.Condition would block the loop if the waiting thread was
    interrupted while holding it.
    """

    def __init__(self, function: Callable[[], Awaitable[T]] | None = None) -> None:
        self._function = function
        self._done = threading.Lock()
        self._done.acquire()
        self.is_done: bool = False
        self.is_given_up: bool = False
        """Whether the waiting thread was interrupted."""
        self._scope: anyio.CancelScope | None = None
        self._result: T | None = None
        self._error: BaseException | None = None

    async def run(self) -> None:
        """Run the call on the loop's thread, and store the outcome."""
        assert self._function is not None
        error: BaseException | None = CancelledError()
        try:
            with anyio.CancelScope() as self._scope:
                if self.is_given_up:
                    self._scope.cancel()
                self._result = await self._function()
                error = None
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as raised:
            error = raised
        finally:
            self.end(error)

    def give_up(self) -> None:
        """Cancel the call, on the loop's thread, since the waiting thread was interrupted."""
        self.is_given_up = True
        if self._scope is not None:
            self._scope.cancel()

    @property
    def result(self) -> T | None:
        """The result; None if the call has not ended, or has failed."""
        return self._result

    def end(self, error: BaseException | None, result: T | None = None) -> None:
        """Store the outcome, and wake the waiting thread; do nothing if the call has ended already."""
        if not self.is_done:
            self._error, self._result = error, result if result is not None else self._result
            self.is_done = True
            self._done.release()

    def wait(self) -> T:
        """Wait for the end of the call; return its result, or raise its error."""
        self._done.acquire()
        error, self._error = self._error, None
        if error is None:
            return cast("T", self._result)
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame, which would make a reference cycle


def _serve(started: ThreadCall[Running], calls: set[ThreadCall[Any]]) -> None:
    outside = copy_context()

    async def serve() -> None:
        async with anyio.from_thread.BlockingPortal() as portal, anyio.create_task_group() as tasks:
            running = Running(portal, tasks, outside)
            started.end(None, running)
            if started.is_given_up:
                running.stop.set()
            await running.stop.wait()
            tasks.cancel_scope.cancel()
            await portal.stop(cancel_remaining=True)

    try:
        anyio.run(serve)
    except BaseException as error:
        if started.is_done:
            raise
        started.end(error)
    finally:
        for call in list(calls):  # calls that the ended loop will not run
            call.end(CancelledError())
