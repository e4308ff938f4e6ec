"""A clock for trio that jumps to the next deadline as soon as every task sleeps."""

from math import inf

import trio
from trio._core import _run  # for what no public name tells: see `deadline_to_sleep_time`

__all__ = ("VirtualClock",)

_A_WHILE = 0.1


class VirtualClock(trio.abc.Clock):
    """Virtual time, from 0 on.

    As trio's MockClock with ``autojump_threshold=0``, which takes one more turn of the loop for each jump.
    """

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None:
        """The run begins."""

    def current_time(self) -> float:
        """The virtual time, in seconds."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Trio asks this when no task can run: instead of sleeping, time has passed."""
        if deadline <= self._now:
            return 0.0
        # Those in wait_all_tasks_blocked come first: that is now.
        if deadline == inf or _run.GLOBAL_RUN_CONTEXT.runner.waiting_for_idle:
            return _A_WHILE
        self._now = deadline
        return 0.0
