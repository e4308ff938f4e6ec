"""A clock for trio that jumps to the next deadline when every task sleeps."""

from math import inf

import trio
from trio._core import _run  # no public name gives access: see `deadline_to_sleep_time`

__all__ = ("VirtualClock",)

_A_WHILE = 0.1


class VirtualClock(trio.abc.Clock):
    """A clock of virtual time, which starts at 0.

    It behaves as trio's MockClock with ``autojump_threshold=0``, but needs one iteration of trio's loop less per jump.
    """

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None:
        """Do nothing: trio calls this at the start of a run, and this clock needs no preparation."""

    def current_time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Advance to the deadline; return the real seconds to sleep, usually 0. Trio calls this when all tasks wait."""
        if deadline <= self._now:
            return 0.0
        # Tasks that wait in wait_all_tasks_blocked run before a jump.
        if deadline == inf or _run.GLOBAL_RUN_CONTEXT.runner.waiting_for_idle:
            return _A_WHILE
        self._now = deadline
        return 0.0
