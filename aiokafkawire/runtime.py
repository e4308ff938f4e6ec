"""A client's clock, random numbers and threads, which simulations replace, and the owner of its background tasks."""

import asyncio
import inspect
import math
import os
import random
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar, TypeVarTuple, Unpack, cast
from weakref import WeakSet

import anyio
import anyio.to_thread
import attrs

from ._lazy_classes import frozen
from .errors import KafkaError, UsageError
from .event_log import EventLog
from .types import Event

if TYPE_CHECKING:  # anyio imports its classes when they are first named
    from anyio.abc import TaskGroup

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
    "is_being_cancelled",
    "loop_time",
    "new_event",
    "on_trio",
    "opened_at",
    "place_finder",
    "stray_cancellation",
    "system_wall_ms",
    "call_soon_threadsafe",
    "warn_unclosed",
    "was_cancelled",
)

_log = EventLog("aiokafkawire.runtime")
_CANCELLED_OPENING_SECONDS = 1.0
CLOSE_SECONDS: Final = 5.0
"""The time limit of closing after its caller was cancelled, in seconds."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Offload(Protocol):
    """A function that runs another function without blocking the event loop."""

    async def __call__(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T: ...


async def _on_a_thread(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    return await anyio.to_thread.run_sync(function, *args)


async def _on_an_abandonable_thread(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True)


def system_wall_ms() -> int:
    """Return the system's time in ms since the epoch. The compiled producer reads the clock without this function."""
    return time.time_ns() // 1_000_000


def on_trio() -> bool:
    """Return whether the current task belongs to trio; otherwise it belongs to asyncio."""
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_task()


def current_task() -> Any:
    """Return the current task of asyncio or trio; None outside of tasks."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        return asyncio.current_task(loop)
    return sys.modules["trio"].lowlevel.current_task() if on_trio() else None


def mark_coroutine_function(function: Callable[..., Any]) -> None:
    """Let asyncio take a plain function that returns a coroutine for a coroutine function, as mocks ask."""
    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(function)
    else:
        function._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]


def has_ended(task: Any) -> bool:
    """Return whether this task of asyncio or trio has ended."""
    if isinstance(task, asyncio.Future):
        return task.done()
    return getattr(task.coro, "cr_frame", None) is None


def _trio_token() -> object:
    """Return the token of the current trio run; None outside of trio."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        return trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None


def place_finder() -> Callable[[], object]:
    """Return a function that returns what identifies the running asyncio loop or trio run; None outside of both."""
    return _trio_token if asyncio._get_running_loop() is None else asyncio._get_running_loop


def is_being_cancelled() -> bool:
    """Return whether a cancel scope around the running task is cancelled."""
    return anyio.current_effective_deadline() == -math.inf


def was_cancelled() -> bool:
    """Return whether a cancel scope around the running task is cancelled, or asyncio has cancelled the task itself.

    ``asyncio.run`` does so with all tasks at its end.
    """
    task = current_task()
    return is_being_cancelled() or (isinstance(task, asyncio.Task) and task.cancelling() > 0)


def stray_cancellation(who: str, cancelled: BaseException) -> KafkaError:
    """Return the error of a user's function, ``who``, that raised a cancellation of its own, as of another task."""
    error = KafkaError(f"{who} has raised {type(cancelled).__name__}, and nobody has cancelled it")
    error.__cause__ = cancelled
    return error


async def finish(function: Callable[[Unpack[Ts]], Awaitable[Any]], *args: *Ts, within: float | None = None) -> None:
    """Await ``function(*args)`` even if the caller is cancelled meanwhile; raise the cancellation afterwards.

    ``function`` is cancelled after ``within`` seconds, or :data:`CLOSE_SECONDS` after the caller's first cancellation.
    A part of ``function`` that must be completed even then needs its own shield.
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
    """Return the file and line of the user's program that is calling this package, for :func:`warn_unclosed`.

    The result is empty unless tracemalloc is enabled, as for debugging a ResourceWarning.
    """
    tracemalloc = sys.modules.get("tracemalloc")
    if tracemalloc is None or not tracemalloc.is_tracing():
        return ""
    frame = sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == __package__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def warn_unclosed(unclosed: object, name: str, opened: str) -> None:
    """Warn that the ``unclosed`` object was garbage-collected; ``opened`` is the result of :func:`opened_at`."""
    line = f", opened at {opened}" if opened else ""
    message = f"unclosed {name}{line}: use it as 'async with', or await its close() in the event loop that opened it"
    warnings.warn(message, ResourceWarning, stacklevel=2, source=unclosed)


def loop_time() -> float:
    """Return the event loop's time in seconds. The function is optimized, since each request calls it several times."""
    loop = asyncio._get_running_loop()  # None in trio's tasks
    return loop.time() if loop is not None else anyio.current_time()


class _Futures:
    """An event on asyncio. Each waiting task awaits a future directly, without a coroutine."""

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
    """Make an event of the running event loop. It is cheaper than anyio's, since tasks make and await events often."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        return _Futures(loop)
    return sys.modules["trio"].Event() if on_trio() else anyio.Event()


def call_soon_threadsafe() -> Callable[..., object]:
    """Return the function by which other threads schedule calls on the running event loop."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        return loop.call_soon_threadsafe
    import trio

    return trio.lowlevel.current_trio_token().run_sync_soon


_chances: Final[WeakSet[random.Random]] = WeakSet()


def _new_chance() -> random.Random:
    chance = random.Random()  # noqa: S311  # draws ids and pauses, no secrets
    _chances.add(chance)
    return chance


def _seed_anew() -> None:
    """Let a forked process draw other numbers than its parent and siblings, which have the same generators."""
    for chance in list(_chances):
        chance.seed()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_seed_anew)


@frozen
class Runtime:
    """The clocks, random numbers and threads of a client, which simulations replace.

    ``now`` returns monotonic seconds; ``wall_ms`` returns ms since the epoch, for timestamps of records.
    """

    now: Callable[[], float] = loop_time
    wall_ms: Callable[[], int] = system_wall_ms
    chance: random.Random = attrs.field(factory=_new_chance)
    offload: Offload = _on_a_thread

    def clock(self) -> Callable[[], float]:
        """Return a function that returns the same as ``now`` in the running event loop, in less time if possible."""
        loop = asyncio._get_running_loop()
        if loop is None or self.now is not loop_time:
            return self.now
        is_monotonic = type(loop).__module__ == "uvloop" or type(loop).time is asyncio.BaseEventLoop.time
        return time.monotonic if is_monotonic else loop.time

    @property
    def offload_waiting(self) -> Offload:
        """The ``offload`` for functions that wait on I/O. A caller that is cancelled does not wait for the thread."""
        return _on_an_abandonable_thread if self.offload is _on_a_thread else self.offload


async def _without_interrupts(function: Callable[..., Awaitable[Any]], *args: Any) -> None:
    await function(*args)


class _ProtectedTasks:
    """A task group on trio whose tasks get no KeyboardInterrupt on Ctrl-C: the main task gets it instead.

    Tasks start in trio's nursery: anyio would make an unused cancel scope and an unused event for each.
    """

    def __init__(self) -> None:
        self._lowlevel = sys.modules["trio"].lowlevel
        self._lowlevel.enable_ki_protection(_without_interrupts)
        self._group = anyio.create_task_group()
        self._nursery: Any = None

    @property
    def cancel_scope(self) -> "anyio.CancelScope":
        return self._group.cancel_scope

    def start_soon(self, function: Callable[..., Awaitable[Any]], *args: Any, name: object = None) -> None:
        self._nursery.start_soon(_without_interrupts, function, *args, name=name or function)

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._nursery = self._lowlevel.current_task().child_nurseries[-1]
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._group.__aexit__(*raised)


def background_tasks() -> "TaskGroup":
    """Return a task group for background tasks. On trio, Ctrl-C raises KeyboardInterrupt in none of its tasks.

    By default trio raises KeyboardInterrupt in the current task. In a background task users could not catch this
    exception, which would end the whole run.
    """
    if asyncio._get_running_loop() is not None:
        return anyio.create_task_group()
    return cast("TaskGroup", _ProtectedTasks())


class Owner:
    """The owner of background tasks, independent of the task that starts them.

    A client may be opened in one task and closed in another (fixtures, start and stop hooks), which a task group does
    not allow. So the task group is in a detached task, which ends when any task calls :meth:`close`. A background task
    that fails does not cancel other tasks: ``on_fault`` is called with its error.
    """

    def __init__(self, on_fault: Callable[[Exception], None] | None = None) -> None:
        self._on_fault = on_fault
        self._group: TaskGroup | None = None
        self._closing = anyio.Event()
        self._ended = anyio.Event()
        self._detached: asyncio.Task[None] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        """The asyncio loop on which the owner was opened; None on trio. Hot paths compare it with the running loop."""
        self._was_opened = False
        self.fault: Exception | None = None
        """The error of the last background task that has failed; None if none has."""
        self._trio: object = None

    async def open(self) -> None:
        """Start the detached task, and wait until its task group is open."""
        started = anyio.Event()
        self.loop, self._trio, self._was_opened = asyncio._get_running_loop(), _trio_token(), True
        if on_trio():
            import trio

            trio.lowlevel.spawn_system_task(self._hold, started, context=copy_context())
        else:
            # A reference to the task is kept, since the loop has only weak references to tasks.
            self._detached = asyncio.create_task(self._hold(started))
        try:
            await started.wait()
        except BaseException:  # close() is never called for an owner that was not opened
            self._closing.set()
            # With a limit: a loop that ends may have cancelled the detached task before it began.
            with anyio.move_on_after(_CANCELLED_OPENING_SECONDS, shield=True):
                await self._ended.wait()
            raise

    async def _hold(self, started: "anyio.Event") -> None:
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
        """Raise UsageError unless the client is open, and was opened on the current event loop."""
        if not self._closing.is_set():
            self.require_own_loop()
        if self._group is None or self._closing.is_set():
            raise UsageError("the client is not open: use it inside its 'async with'")

    def require_own_loop(self) -> None:
        """Raise UsageError if the client was opened on another event loop than the current one."""
        running = asyncio._get_running_loop()
        if running is self.loop and (running is not None or self._trio is None or _trio_token() is self._trio):
            return
        if self._was_opened:
            raise UsageError(_other_loop(self.has_lost_loop))

    def require_loop(self, made: str) -> None:
        """Raise UsageError if no event loop is running, or if the client was opened on another event loop.

        ``made`` is the object to make, for the message: "producer" or "consumer".
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
        """Whether the event loop on which the client was opened has ended."""
        has_ended = self._ended.is_set() and not self._closing.is_set()
        return has_ended or (self.loop is not None and self.loop.is_closed())

    def spawn(self, function: Callable[[Unpack[Ts]], Awaitable[Any]], *args: *Ts) -> None:
        """Run ``function(*args)`` in the background. Raises as :meth:`require_open`."""
        self.require_open()
        assert self._group is not None
        self._group.start_soon(self._guarded, function, args)

    async def _guarded(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        try:
            await function(*args)
        except Exception as fault:
            self.faulted(fault)
        except BaseExceptionGroup as group:
            # A task group that fails while it is cancelled raises the errors and the cancellation together: report the
            # errors, and raise only the cancellation, since on trio any other exception would end the whole run.
            faults, rest = group.split(Exception)
            if faults is not None:
                self.faulted(faults)
            if rest is not None:
                raise rest from None

    def faulted(self, fault: Exception) -> None:
        """Report the error of a background task."""
        self.fault = fault
        if self._on_fault is None:
            _log.error("a background task failed: %(error)r", error=fault, exc_info=fault)
        else:
            self._on_fault(fault)

    async def close(self) -> None:
        """Cancel all background tasks, and wait until they have ended, even if the caller is cancelled.

        Repeated calls are allowed. Raises as :meth:`require_own_loop`; in this case no task is cancelled.
        """
        self.require_own_loop()
        self._closing.set()
        if self._group is not None:
            with anyio.CancelScope(shield=True):
                await self._ended.wait()


def _other_loop(is_lost: bool) -> str:
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
    """A timer that sets an event at the time ``at``, never earlier, even on event loops that round times to ms."""

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
    """A background task that calls a function when it is woken, or when the delay returned by the last call is over.

    Args:
        step: the function to call. Its argument is a task group, for longer work. Its result is the seconds until the
            next call, or None to wait until the worker is woken.
        on_end: called when the task ends, for any reason.
    """

    def __init__(self, step: "Callable[[TaskGroup], float | None]", on_end: Callable[[], None]) -> None:
        self._step, self._on_end = step, on_end
        self._wake: Event = new_event()
        self._woken = False
        self._scope = anyio.CancelScope()
        self.ended: anyio.Event = anyio.Event()
        """Set when the task has ended."""
        self.has_ended: bool = False
        """Whether the task has ended; an attribute instead of a property, since producers check it for every batch."""

    def wake(self) -> None:
        """Wake the worker, since there may be work to do."""
        self._woken = True
        self._wake.set()

    async def run(self) -> None:
        """Call the function again and again until :meth:`stop`."""
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
        elif seconds is None:
            await self._wake.wait()
        elif loop is None:
            with anyio.move_on_after(seconds):
                await self._wake.wait()
        else:  # a cancel scope for each step would cost as much as the step
            alarm = _Alarm(loop, loop.time() + seconds, self._wake)
            try:
                await self._wake.wait()
            finally:
                alarm.cancel()

    async def stop(self) -> None:
        """Stop the worker and the tasks that its steps started. The worker must be running, or have ended."""
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.ended.wait()
