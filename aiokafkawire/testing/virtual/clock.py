"""A clock for trio that jumps to the next deadline when every task sleeps."""

from heapq import heappop, heappush
from math import inf
from typing import Final

import trio
from trio._core import _run  # no public name gives access: see `deadline_to_sleep_time`

__all__ = ("Alarm", "VirtualClock")

_A_WHILE: Final = 0.1


class Alarm:
    """The end of a task's sleep at a time of the clock."""

    __slots__ = ("_task", "at")

    def __init__(self, at: float, task: trio.lowlevel.Task) -> None:
        self.at: float = at
        self._task: trio.lowlevel.Task | None = task

    @property
    def has_rung(self) -> bool:
        """Whether the task was woken, or no longer sleeps."""
        return self._task is None

    def ring(self) -> None:
        """Wake the task, if it sleeps."""
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def discard(self) -> None:
        """Do nothing at that time, since the task no longer sleeps."""
        self._task = None

    def abort(self, raise_cancel: object) -> trio.lowlevel.Abort:
        """Let trio cancel the sleep at once; the task must not be woken a second time."""
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class VirtualClock(trio.abc.Clock):
    """A clock of virtual time, which starts at 0.

    It behaves as trio's MockClock with ``autojump_threshold=0``, but needs one iteration of trio's loop less per jump.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._count = 0

    def start_clock(self) -> None:
        """Do nothing: trio calls this at the start of a run, and this clock needs no preparation."""

    def current_time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._now

    def set_alarm(self, alarm: Alarm) -> None:
        """Make the alarm ring at its time; this is cheaper than a cancel scope with a deadline."""
        if alarm.at <= self._now:
            alarm.ring()
        elif alarm.at < inf:
            self._count += 1
            heappush(self._alarms, (alarm.at, self._count, alarm))

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Advance to the deadline; return the real seconds to sleep, usually 0. Trio calls this when all tasks wait."""
        if deadline <= self._now:
            return 0.0
        alarms = self._alarms
        while alarms and alarms[0][2].has_rung:
            heappop(alarms)
        at = min(deadline, alarms[0][0]) if alarms else deadline
        # Tasks that wait in wait_all_tasks_blocked run before a jump.
        if at == inf or _run.GLOBAL_RUN_CONTEXT.runner.waiting_for_idle:
            return _A_WHILE
        self._now = at
        while alarms and alarms[0][0] <= at:
            heappop(alarms)[2].ring()
        return 0.0
