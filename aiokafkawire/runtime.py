"""The injected edge: the clock, chance, work that would block the loop, and the owner of background tasks."""

import asyncio
import logging
import math
import random
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, Final, Protocol, Self, TypeVar, TypeVarTuple, Unpack, cast

import anyio
import anyio.abc
import anyio.to_thread
import attrs

from .errors import UsageError
from .types import Event

__all__ = (
    "CLOSE_SECONDS",
    "Offload",
    "Owner",
    "Runtime",
    "Worker",
    "background_tasks",
    "current_task",
    "finish",
    "has_ended",
    "loop_time",
    "new_event",
    "on_trio",
    "opened_at",
    "system_wall_ms",
    "warn_unclosed",
)

_log = logging.getLogger("aiokafkawire.runtime")
_CANCELLED_OPENING_SECONDS = 1.0
CLOSE_SECONDS: Final = 5.0
"""How long closing may take once its caller is cancelled, in seconds."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Offload(Protocol):
    """Runs a function where it does not block the event loop."""

    async def __call__(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T: ...


async def _on_a_thread(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    return await anyio.to_thread.run_sync(function, *args)


async def _on_a_thread_that_is_left(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True)


def system_wall_ms() -> int:
    """The system's clock, in ms since the epoch. The compiled producer knows it, and reads it without the call."""
    return time.time_ns() // 1_000_000


def on_trio() -> bool:
    """Whether this is a task of trio's; otherwise it is one of asyncio's."""
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_task()


def current_task() -> Any:
    """Return the task of asyncio or trio that runs now; None where none does."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        return asyncio.current_task(loop)
    return sys.modules["trio"].lowlevel.current_task() if on_trio() else None


def has_ended(task: Any) -> bool:
    """Return whether this task of asyncio or trio has ended."""
    if isinstance(task, asyncio.Future):
        return task.done()
    return getattr(task.coro, "cr_frame", None) is None


def _trio_token() -> object:
    """Return what identifies the trio run that is under way here; None where there is none."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        return trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None


async def finish(function: Callable[[Unpack[Ts]], Awaitable[Any]], *args: *Ts, within: float | None = None) -> None:
    """Await ``function(*args)`` although the caller is cancelled meanwhile, and raise the cancellation afterwards.

    ``function`` is cancelled ``within`` so many seconds, and :data:`CLOSE_SECONDS` after the first cancellation of the
    caller. It has to shield what it must do nevertheless.
    """
    until = math.inf if within is None else anyio.current_time() + within
    limit = anyio.CancelScope(deadline=until, shield=True)
    ended = anyio.Event()
    failed: Exception | None = None
    cancelled: BaseException | None = None

    async def run() -> None:
        nonlocal failed
        try:
            with limit:
                await function(*args)
        except Exception as error:  # the task group would wrap it
            failed = error
        finally:
            ended.set()

    try:
        async with background_tasks() as tasks:
            tasks.start_soon(run)
            try:
                await ended.wait()
            except BaseException as error:
                cancelled = error
                limit.deadline = min(limit.deadline, anyio.current_time() + CLOSE_SECONDS)
                raise
    except BaseExceptionGroup:
        if cancelled is None:
            raise
        raise cancelled from None
    if failed is not None:
        raise failed


def opened_at() -> str:
    """Return the line of the user's program that opens something now, for :func:`warn_unclosed`.

    It is empty unless tracemalloc is on, as whoever looks for the cause of a ResourceWarning switches it on.
    """
    tracemalloc = sys.modules.get("tracemalloc")
    if tracemalloc is None or not tracemalloc.is_tracing():
        return ""
    frame = sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == __package__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def warn_unclosed(what: object, kind: str, opened: str) -> None:
    """Warn that ``what`` is collected and was not closed, and where it was ``opened``, if that is known."""
    where = f", opened at {opened}" if opened else ""
    message = f"unclosed {kind}{where}: use it as 'async with', or await its close() in the event loop that opened it"
    warnings.warn(message, ResourceWarning, stacklevel=2, source=what)


def loop_time() -> float:
    """The event loop's clock, in seconds. It is read several times for every request, and in callbacks too."""
    loop = asyncio._get_running_loop()  # trio's tasks have none
    return loop.time() if loop is not None else anyio.current_time()


class _Futures:
    """An event on asyncio. Waiting is awaiting a future, with no coroutine around it."""

    __slots__ = ("_futures", "_is_set", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._is_set = loop, False
        self._futures: list[asyncio.Future[None]] = []

    def set(self) -> None:
        self._is_set = True
        futures, self._futures = self._futures, []
        for future in futures:
            if not future.done():  # its task was cancelled
                future.set_result(None)

    def wait(self) -> asyncio.Future[None]:
        future = self._loop.create_future()
        if self._is_set:
            future.set_result(None)
        else:
            self._futures.append(future)
        return future


def new_event() -> Event:
    """An event that is made and waited for often, as by workers."""
    loop = asyncio._get_running_loop()
    return anyio.Event() if loop is None else _Futures(loop)


@attrs.frozen
class Runtime:
    """Time, chance and threads as arguments, so that a simulation can give its own.

    ``now`` is monotonic, in seconds; ``wall_ms`` is ms since the epoch, for timestamps of records.
    """

    now: Callable[[], float] = loop_time
    wall_ms: Callable[[], int] = system_wall_ms
    chance: random.Random = attrs.field(factory=random.Random)
    offload: Offload = _on_a_thread

    @property
    def offload_waiting(self) -> Offload:
        """As ``offload``, for what waits for others: a caller that gives up does not wait for the thread."""
        return _on_a_thread_that_is_left if self.offload is _on_a_thread else self.offload


async def _keep_interrupts_out(function: Callable[..., Awaitable[Any]], *args: Any) -> None:
    await function(*args)


class _ProtectedTasks:
    """A task group on trio in whose tasks Ctrl-C raises no KeyboardInterrupt: trio raises it in the main task."""

    def __init__(self) -> None:
        sys.modules["trio"].lowlevel.enable_ki_protection(_keep_interrupts_out)
        self._group = anyio.create_task_group()

    @property
    def cancel_scope(self) -> anyio.CancelScope:
        return self._group.cancel_scope

    def start_soon(self, function: Callable[..., Awaitable[Any]], *args: Any, name: object = None) -> None:
        self._group.start_soon(_keep_interrupts_out, function, *args, name=name or function)

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._group.__aexit__(*raised)


def background_tasks() -> anyio.abc.TaskGroup:
    """Return a task group for what runs in the background, or on its behalf.

    Trio raises KeyboardInterrupt in whatever task runs when Ctrl-C comes, and one in a background task, which nobody
    can catch, would take the whole run down.
    """
    if asyncio._get_running_loop() is not None:
        return anyio.create_task_group()
    return cast("anyio.abc.TaskGroup", _ProtectedTasks())


class Owner:
    """Holds background tasks apart from the task that made them.

    A client may be opened in one task and closed in another (fixtures, start and stop hooks), which a task group of
    its own could not: so a detached task holds the group, and ends when :meth:`close` is called from anywhere.
    A task that fails takes nobody down: ``on_fault`` hears of it, once.
    """

    def __init__(self, on_fault: Callable[[Exception], None] | None = None) -> None:
        self._on_fault = on_fault
        self._group: anyio.abc.TaskGroup | None = None
        self._closing = anyio.Event()
        self._ended = anyio.Event()
        self._detached: asyncio.Task[None] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        """The asyncio loop on which it was opened; None on trio. Hot paths compare it with the running one."""
        self._was_opened = False
        self._trio: object = None

    async def open(self) -> None:
        """Start the detached task, and wait until it can take others."""
        started = anyio.Event()
        self.loop, self._trio, self._was_opened = asyncio._get_running_loop(), _trio_token(), True
        if on_trio():
            import trio

            trio.lowlevel.spawn_system_task(self._hold, started, context=copy_context())
        else:
            # The loop keeps only weak references to tasks.
            self._detached = asyncio.create_task(self._hold(started))
        try:
            await started.wait()
        except BaseException:  # nobody will close what was not opened
            self._closing.set()
            # Not for ever: a loop that ends may have cancelled the detached task before it began.
            with anyio.move_on_after(_CANCELLED_OPENING_SECONDS, shield=True):
                await self._ended.wait()
            raise

    async def _hold(self, started: anyio.Event) -> None:
        try:
            async with background_tasks() as group:
                self._group = group
                started.set()
                await self._closing.wait()
                group.cancel_scope.cancel()
        finally:
            self._group = None
            self._ended.set()

    def require_open(self) -> None:
        """Refuse what needs an open client.

        Raises:
            UsageError: the client is not open, or closed already, or was opened on another event loop.
        """
        if not self._closing.is_set():
            self.require_own_loop()
        if self._group is None or self._closing.is_set():
            raise UsageError("the client is not open: use it inside its 'async with'")

    def require_own_loop(self) -> None:
        """Refuse what happens on another event loop than the one on which it was opened.

        Raises:
            UsageError: that is so.
        """
        running = asyncio._get_running_loop()
        if running is self.loop and (running is not None or self._trio is None or _trio_token() is self._trio):
            return
        if self._was_opened:
            raise UsageError(_elsewhere(self.has_lost_loop))

    def require_loop(self, made: str) -> None:
        """Refuse to have something ``made`` outside of an event loop, or on another one.

        Raises:
            UsageError: that is so.
        """
        if asyncio._get_running_loop() is None and _trio_token() is None:
            raise UsageError(f"a {made} is made in the event loop that uses it: call client.{made}() in a coroutine")
        self.require_own_loop()

    @property
    def has_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closing.is_set()

    @property
    def has_lost_loop(self) -> bool:
        """Whether the event loop on which it was opened runs no more, and never will."""
        has_ended = self._ended.is_set() and not self._closing.is_set()
        return has_ended or (self.loop is not None and self.loop.is_closed())

    def spawn(self, function: Callable[[Unpack[Ts]], Awaitable[Any]], *args: *Ts) -> None:
        """Run ``function(*args)`` in the background.

        Raises:
            UsageError: the client is not open, or closed already.
        """
        self.require_open()
        assert self._group is not None
        self._group.start_soon(self._guarded, function, args)

    async def _guarded(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        try:
            await function(*args)
        except Exception as fault:
            self.faulted(fault)
        except BaseExceptionGroup as group:
            # A task group that fails while it is cancelled raises both at once: the fault ends here, and only the
            # cancellation goes on. On trio anything else would take the whole run down.
            faults, rest = group.split(Exception)
            if faults is not None:
                self.faulted(faults)
            if rest is not None:
                raise rest from None

    def faulted(self, fault: Exception) -> None:
        """Something failed that nobody waits for."""
        if self._on_fault is None:
            _log.error("a background task failed", exc_info=fault)
        else:
            self._on_fault(fault)

    async def close(self) -> None:
        """Cancel every background task and wait until all have ended. May be called again, and when cancelled.

        Raises:
            UsageError: it was opened on another event loop; nothing is waited for.
        """
        self.require_own_loop()
        self._closing.set()
        if self._group is not None:
            with anyio.CancelScope(shield=True):
                await self._ended.wait()


def _elsewhere(is_lost: bool) -> str:
    if is_lost:
        return (
            "this client is used outside of the event loop on which it was opened, and that loop has ended: close a "
            "client before its loop ends, and make another in the loop that uses it"
        )
    return (
        "this client is used outside of the event loop on which it was opened: make the client in the loop that uses "
        "it. With pytest-asyncio give the fixture that opens it and the tests that use it one loop_scope, as in "
        "@pytest_asyncio.fixture(loop_scope='session') and @pytest.mark.asyncio(loop_scope='session')"
    )


class _Alarm:
    """Sets an event at a time of the loop's clock, and never before, as loops that round to ms would."""

    def __init__(self, loop: asyncio.AbstractEventLoop, at: float, event: Event) -> None:
        self._loop, self._at, self._event = loop, at, event
        self._timer = loop.call_at(at, self._ring)

    def _ring(self) -> None:
        if self._loop.time() < self._at:
            self._timer = self._loop.call_at(self._at, self._ring)
        else:
            self._event.set()

    def cancel(self) -> None:
        self._timer.cancel()


class Worker:
    """A background task that takes a step whenever it is woken, or the time is up that its last step named.

    Args:
        step: is given a task group for what takes longer, and says how long nothing will be due, in seconds; None for
            until it is woken.
        on_end: runs when it ends, whatever ends it.
    """

    def __init__(self, step: Callable[[anyio.abc.TaskGroup], float | None], on_end: Callable[[], None]) -> None:
        self._step, self._on_end = step, on_end
        self._wake: Event = new_event()
        self._woken = False
        self._scope = anyio.CancelScope()
        self.ended: anyio.Event = anyio.Event()
        """Set once no step will be taken any more."""
        self.has_ended: bool = False
        """Whether it is set; producers ask for every batch."""

    def wake(self) -> None:
        """There may be something to do."""
        self._woken = True
        self._wake.set()

    async def run(self) -> None:
        """Take steps until stopped."""
        try:
            with self._scope:
                async with background_tasks() as tasks:
                    while True:
                        await self._pause(self._step(tasks))
                        self._wake, self._woken = new_event(), False
        finally:
            self.has_ended = True
            self.ended.set()
            self._on_end()

    async def _pause(self, seconds: float | None) -> None:
        loop = asyncio._get_running_loop()
        if self._woken:
            await anyio.lowlevel.checkpoint()
        elif loop is None:
            with anyio.move_on_after(seconds):
                await self._wake.wait()
        else:  # a busy producer's steps are many, and a cancel scope for each would cost as much as the step
            alarm = None if seconds is None else _Alarm(loop, loop.time() + seconds, self._wake)
            try:
                await self._wake.wait()
            finally:
                if alarm is not None:
                    alarm.cancel()

    async def stop(self) -> None:
        """End it with everything that its steps began; it must have been spawned. May be called again."""
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.ended.wait()
