"""Quicker ways through anyio and trio, for runs of many seeds. A run has the same trace without them.

A third of the time of a seed is spent in these two, much of it on generality that a simulation does not need: anyio
asks for every scope and event on which loop it is, and trio looks for events of sockets in every turn of its loop.
What a release of anyio or trio lacks stays as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import inf
from random import Random
from typing import Any, Final
from unittest.mock import patch

import anyio
import trio
from anyio._backends._trio import TrioBackend
from anyio._core import _eventloop, _synchronization, _tasks
from trio._core import _io_epoll, _run

from aiokafkawire.testing.virtual.clock import Alarm, VirtualClock

__all__ = ("quick_loop",)

_POLL_EVERY: Final = 64
"""The number of turns of the loop after which it looks for signals; a simulation has no sockets."""
_NO_EVENTS: Final = list[Any]()


@contextmanager
def quick_loop() -> Iterator[None]:
    """Let simulations that run while the context is open take the quicker ways."""
    with ExitStack() as patches:
        for owner, name, quick in _quicker():
            if hasattr(owner, name):
                patches.enter_context(patch.object(owner, name, quick))
        yield


def _quicker() -> Iterator[tuple[object, str, object]]:
    """Yield the objects to change, the names of their attributes, and the new values."""
    for module in (_eventloop, _synchronization, _tasks):
        yield module, "get_async_backend", _finder(_eventloop.get_async_backend)
    # trio's scopes and events have the same methods as anyio's, which only call them.
    yield TrioBackend, "create_cancel_scope", trio.CancelScope
    yield TrioBackend, "create_event", trio.Event
    yield anyio, "CancelScope", trio.CancelScope
    yield anyio, "Event", trio.Event
    yield anyio, "current_time", trio.current_time
    yield anyio, "move_on_after", _move_on_after
    yield anyio, "sleep", _sleep
    yield TrioBackend, "sleep", _sleep
    run: Any = _run
    scope: Any = _run.CancelScope
    yield run, "Instruments", _instruments(run.Instruments)
    yield run, "_r", _Shuffle(run._r)
    yield run.Runner, "reschedule", _reschedule
    yield scope, "_might_change_registered_deadline", lambda changed: _Change(changed)
    yield scope, "__enter__", _enter(scope.__enter__)
    yield scope, "__exit__", _exit(scope.__exit__)
    yield _io_epoll.EpollIOManager, "get_events", _poll_now_and_then(_io_epoll.EpollIOManager.get_events)


# --- anyio -----------------------------------------------------------------------------------------------------


def _finder(slow: Callable[[str | None], Any]) -> Callable[..., Any]:
    running = _run.GLOBAL_RUN_CONTEXT

    def get_async_backend(asynclib_name: str | None = None) -> Any:
        return TrioBackend if hasattr(running, "task") else slow(asynclib_name)

    return get_async_backend


def _move_on_after(delay: float | None, shield: bool = False) -> trio.CancelScope:
    return trio.CancelScope(deadline=inf if delay is None else trio.current_time() + delay, shield=shield)


async def _sleep(delay: float) -> None:
    """Sleep without a cancel scope, whose deadline would raise an exception."""
    clock = trio.lowlevel.current_clock()
    if delay <= 0 or not isinstance(clock, VirtualClock):
        await trio.sleep(delay)
        return
    task: Any = trio.lowlevel.current_task()
    alarm = Alarm(clock.current_time() + delay, task)
    clock.set_alarm(alarm)
    await trio.lowlevel.wait_task_rescheduled(alarm.abort)
    if task._cancel_status.effectively_cancelled:  # at the moment when the sleep ended
        raise trio.Cancelled._create(source="deadline")


# --- trio's loop -----------------------------------------------------------------------------------------------


def _instruments(slow: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A dict is quicker to ask than trio's class, which it asks eight times for each step of a task."""
    return lambda instruments: slow(instruments) if instruments else {}


class _Shuffle:
    """trio's random numbers, which are not asked for the order of a single task."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.random, self.seed = chance.random, chance.seed
        self.getstate, self.setstate = chance.getstate, chance.setstate

    def shuffle(self, tasks: list[Any]) -> None:
        if len(tasks) > 1:
            self._chance.shuffle(tasks)


class _Nothing:
    """What a task gets that is woken without a value; trio makes an object each time."""

    def unwrap(self) -> None:
        pass


_NOTHING: Final = _Nothing()
_NO_SEND: Final[Any] = _run._NO_SEND


def _reschedule(runner: Any, task: Any, next_send: Any = _NO_SEND) -> None:
    assert task._runner is runner
    assert task._next_send_fn is None
    task._next_send_fn = task.coro.send
    task._next_send = _NOTHING if next_send is _NO_SEND else next_send
    task._abort_func = task.custom_sleep_data = None
    runner.runq.append(task)
    if "task_scheduled" in runner.instruments:
        runner.instruments.call("task_scheduled", task)


def _poll_now_and_then(poll: Callable[[Any, float], Any]) -> Callable[[Any, float], Any]:
    turns = 0

    def get_events(manager: Any, timeout: float) -> Any:
        nonlocal turns
        turns += 1
        return poll(manager, timeout) if timeout > 0 or turns % _POLL_EVERY == 0 else _NO_EVENTS

    return get_events


# --- trio's cancel scopes --------------------------------------------------------------------------------------


class _Change:
    """The context in which the deadline of a scope may change; trio has a generator, which is slow."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Any) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        _register(self._scope)


def _register(scope: Any) -> None:
    """Register the deadline of a scope if it is open and not cancelled, and no other deadline."""
    old = scope._registered_deadline
    new = inf if scope._cancel_status is None or scope._cancel_called else scope._deadline
    if old != new:
        scope._registered_deadline = new
        deadlines = _run.GLOBAL_RUN_CONTEXT.runner.deadlines
        if old != inf:
            deadlines.remove(old, scope)
        if new != inf:
            deadlines.add(new, scope)


def _enter(slow: Callable[[Any], Any]) -> Callable[[Any], Any]:
    running: Any = _run.GLOBAL_RUN_CONTEXT

    def enter(scope: Any) -> Any:
        task, now = running.task, running.runner.clock.current_time()
        outer = task._cancel_status
        is_special = scope._has_been_entered or scope._cancel_called or outer is None or outer.effectively_cancelled
        if is_special or now >= scope._deadline or scope._relative_deadline <= 0:
            return slow(scope)
        if scope._relative_deadline != inf:
            scope._deadline, scope._relative_deadline = now + scope._relative_deadline, inf
        scope._has_been_entered = True
        inner = scope._cancel_status = task._cancel_status = _run.CancelStatus(scope=scope)
        inner._parent = outer
        outer._children.add(inner)
        outer._tasks.remove(task)
        inner._tasks.add(task)
        _register(scope)
        return scope

    return enter


def _exit(slow: Callable[..., bool]) -> Callable[..., bool]:
    running: Any = _run.GLOBAL_RUN_CONTEXT

    def leave(scope: Any, kind: type[BaseException] | None, raised: BaseException | None, traceback: Any) -> bool:
        inner, task = scope._cancel_status, running.task
        if raised is not None or inner is not task._cancel_status or len(inner._tasks) > 1 or inner._children:
            return slow(scope, kind, raised, traceback)
        outer = task._cancel_status = inner._parent
        inner._parent = scope._cancel_status = None
        outer._children.remove(inner)
        inner._tasks.remove(task)
        outer._tasks.add(task)
        _register(scope)
        return True

    return leave
