"""A thread with an event loop in it, for callers that have none: what they ask runs there, and they wait for it."""

import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from typing import ParamSpec, TypeVar

import anyio
import anyio.from_thread

from .errors import UsageError

__all__ = ("Loop",)

P = ParamSpec("P")
T = TypeVar("T")


class Loop:
    """An event loop on a thread of its own, which other threads call into."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._portal: anyio.from_thread.BlockingPortal | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread. Once it is running, or was stopped, it cannot be started again."""
        if self._thread is not None:
            raise UsageError("this event loop was started before: make another")
        ready: Future[anyio.from_thread.BlockingPortal] = Future()
        # A daemon: who forgets to close a client must not wait for ever when the interpreter ends.
        self._thread = threading.Thread(target=_serve, args=(ready,), name="aiokafkawire-blocking", daemon=True)
        self._thread.start()
        self._portal = ready.result()

    def stop(self) -> None:
        """Cancel what still runs there, and wait until the thread has ended. May be called again."""
        portal, self._portal = self._portal, None
        if portal is None or self.is_elsewhere:
            return
        portal.call(portal.stop, True)
        assert self._thread is not None
        self._thread.join()

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._portal is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether this is a forked process, in which the thread does not exist."""
        return os.getpid() != self._pid

    def begin(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start it on the loop; to cancel the future cancels it there.

        Raises:
            UsageError: the loop is not running, or is of another process.
        """
        portal = self._running()

        async def run() -> T:
            return await function(*args, **kwargs)

        return portal.start_task_soon(run)

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it on the loop and wait for it. Raises what it raises, and as :meth:`begin`."""
        portal, giving_up = self._running(), _GivingUp()

        async def run() -> T:
            with giving_up.scope():
                return await function(*args, **kwargs)
            raise CancelledError  # whoever waited has left

        future: Future[T] | None = None
        try:
            future = portal.start_task_soon(run)
            return future.result()
        except BaseException:
            # Ctrl-C is raised here, perhaps before there is a future, and not where the call runs.
            if self._portal is not None and (future is None or not future.done()):
                portal.start_task_soon(giving_up.now)
            raise

    def _running(self) -> anyio.from_thread.BlockingPortal:
        if self.is_elsewhere:
            raise UsageError(f"this client was opened in process {self._pid}: after a fork, open another")
        if self._portal is None:
            raise UsageError("this client is not open: use it inside its 'with'")
        return self._portal

    def here(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what waits for nothing, but has to run on the loop's thread: it makes or wakes what lives there."""

        async def run() -> T:
            return function(*args, **kwargs)

        return self.call(run)


class _GivingUp:
    """Cancels a call on the loop, however far it has come."""

    def __init__(self) -> None:
        self._wanted = False
        self._scope: anyio.CancelScope | None = None

    def scope(self) -> anyio.CancelScope:
        """What the call has to run in."""
        self._scope = anyio.CancelScope()
        if self._wanted:
            self._scope.cancel()
        return self._scope

    async def now(self) -> None:
        """Give it up."""
        self._wanted = True
        if self._scope is not None:
            self._scope.cancel()


def _serve(ready: "Future[anyio.from_thread.BlockingPortal]") -> None:
    async def serve() -> None:
        async with anyio.from_thread.BlockingPortal() as portal:
            ready.set_result(portal)
            await portal.sleep_until_stopped()

    try:
        anyio.run(serve)
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)
