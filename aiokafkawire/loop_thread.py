"""A thread with an event loop in it, for callers that have none: what they ask runs there, and they wait for it."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, cast

import anyio
import anyio.abc
import anyio.from_thread

from .errors import UsageError

__all__ = ("ThreadCall", "LoopThread")

P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """An event loop on a thread of its own, with this ``name``, which other threads call into."""

    def __init__(self, name: str = "aiokafkawire-blocking") -> None:
        self._name = name
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None
        self._running: Running | None = None
        self._calls: set[ThreadCall[Any]] = set()

    def start(self) -> None:
        """Start the thread. Once it is running, or was stopped, it cannot be started again."""
        if self._thread is not None:
            raise UsageError("this event loop was started before: make another")
        started: ThreadCall[Running] = ThreadCall()
        # A daemon: who forgets to close a client must not wait for ever when the interpreter ends.
        thread = threading.Thread(target=_serve, args=(started, self._calls), name=self._name, daemon=True)
        thread.start()
        self._thread = thread
        self._running = started.wait()

    def stop(self, within: float | None = None) -> None:
        """Cancel what still runs there, and wait, ``within`` so many seconds, for the thread's end. May be repeated."""
        running, self._running = self._running, None
        if running is None or self.is_elsewhere:
            return
        with suppress(RuntimeError):  # the loop is closed
            running.loop.call_soon_threadsafe(running.stop.set)
        assert self._thread is not None
        self._thread.join(within)

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._running is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether this is a forked process, in which the thread does not exist."""
        return os.getpid() != self._pid

    def begin(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start it on the loop; to cancel the future cancels it there.

        Raises:
            UsageError: the loop is not running, or is of another process.
        """
        running = self.require()

        async def run() -> T:
            return await function(*args, **kwargs)

        return running.portal.start_task_soon(run)

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it on the loop and wait for it. Raises what it raises, and as :meth:`begin`.

        Ctrl-C is raised here, at any moment, and not where the call runs: the call is cancelled then.
        """
        running = self.require()
        if self._thread is threading.current_thread():
            raise UsageError("this is the client's own thread, where waiting for a call would take for ever")
        call: ThreadCall[T] = ThreadCall(partial(function, *args, **kwargs))
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

    def here(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what waits for nothing, but has to run on the loop's thread: it makes or wakes what lives there."""

        async def run() -> T:
            return function(*args, **kwargs)

        return self.call(run)

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Have the loop call it soon, with the context variables of the caller. Raises as :meth:`begin`."""
        running, context = self.require(), copy_context()
        for variable, value in running.variables:
            context.run(variable.set, value)
        try:
            running.loop.call_soon_threadsafe(partial(function, *args), context=context)
        except RuntimeError as error:
            raise UsageError("this client is closed: open another") from error

    def require(self) -> "Running":
        """Return the running loop. Raises as :meth:`begin`."""
        if self.is_elsewhere:
            raise UsageError(f"this client was opened in process {self._pid}: after a fork, open another")
        if self._running is None:
            raise UsageError("this client is not open: use it inside its 'with'")
        return self._running


class Running:
    """What a thread calls into: the loop, and those who start tasks on it."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal, tasks: anyio.abc.TaskGroup, outside: Context) -> None:
        self.portal: anyio.from_thread.BlockingPortal = portal
        self.tasks: anyio.abc.TaskGroup = tasks
        # By these anyio knows which kind of loop it is on.
        self.variables: list[tuple[ContextVar[Any], Any]] = [
            (variable, value)
            for variable, value in copy_context().items()
            if variable not in outside or outside[variable] is not value
        ]
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.stop: anyio.Event = anyio.Event()


class ThreadCall(Generic[T]):
    """A call that one thread waits for and the loop's thread makes.

    Ctrl-C may interrupt the waiting thread between any two calls of functions. So the two threads share a plain lock,
    which the loop's thread releases once; a condition that is interrupted while it is held would stop the loop.
    """

    def __init__(self, function: Callable[[], Awaitable[T]] | None = None) -> None:
        self._function = function
        self._done = threading.Lock()
        self._done.acquire()
        self.is_done: bool = False
        self._is_given_up = False
        self._scope: anyio.CancelScope | None = None
        self._result: T | None = None
        self._error: BaseException | None = None

    async def run(self) -> None:
        """Make the call, on the loop."""
        assert self._function is not None
        error: BaseException | None = CancelledError()
        try:
            with anyio.CancelScope() as self._scope:
                if self._is_given_up:
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
        """Cancel the call, on the loop, however far it has come: whoever waited has left."""
        self._is_given_up = True
        if self._scope is not None:
            self._scope.cancel()

    def end(self, error: BaseException | None, result: T | None = None) -> None:
        """Let the waiting thread go on."""
        if not self.is_done:
            self._error, self._result = error, result if result is not None else self._result
            self.is_done = True
            self._done.release()

    def wait(self) -> T:
        """Wait for the end of the call, return what it returns, and raise what it raises."""
        self._done.acquire()
        error, self._error = self._error, None
        if error is None:
            return cast("T", self._result)
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame


def _serve(started: ThreadCall[Running], calls: set[ThreadCall[Any]]) -> None:
    outside = copy_context()

    async def serve() -> None:
        async with anyio.from_thread.BlockingPortal() as portal, anyio.create_task_group() as tasks:
            running = Running(portal, tasks, outside)
            started.end(None, running)
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
        for call in list(calls):  # posted when the loop did not run any more
            call.end(CancelledError())
