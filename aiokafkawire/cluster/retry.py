"""When to give up, how long to wait, and what each error asks for before the next try."""

from typing import NamedTuple

import attrs

from ..errors import BrokerError, ConnectionLost, Refresh, RequestTimeout
from ..types import Random

__all__ = ("Backoff", "Deadline", "RetryAction", "remedy", "tells_more")


class RetryAction(NamedTuple):
    """Whether to try again, and what to look up before."""

    retry: bool
    refresh: Refresh


_RAISE = RetryAction(retry=False, refresh=Refresh.NOTHING)
_ELSEWHERE = RetryAction(retry=True, refresh=Refresh.METADATA)


def remedy(error: Exception) -> RetryAction:
    """What an error asks for. A broken or silent connection may mean that another broker leads by now."""
    if isinstance(error, BrokerError):
        return RetryAction(error.retriable, error.refresh)
    if isinstance(error, ConnectionLost | RequestTimeout):
        return _ELSEWHERE
    return _RAISE


def tells_more(new: Exception, known: Exception | None) -> bool:
    """Whether ``new`` is the cause to name. The last of many tries has little time: that it ran out tells little."""
    return known is None or not isinstance(new, RequestTimeout)


@attrs.frozen
class Deadline:
    """A moment to give up at, in seconds of the runtime's clock, and the whole time that was allowed."""

    at: float
    allowed: float

    @classmethod
    def after(cls, allowed: float, now: float) -> "Deadline":
        """``allowed`` seconds from ``now``."""
        return cls(now + allowed, allowed)

    def left(self, now: float) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self.at - now)

    def passed(self, now: float) -> bool:
        """Whether it is over."""
        return now >= self.at


class Backoff:
    """Waits that double from ``first`` to ``limit`` seconds, each up to a fifth longer or shorter (KIP-144, KIP-580).

    Every failure makes the next wait longer, until something succeeds.
    """

    def __init__(self, first: float, limit: float, chance: Random) -> None:
        self._first, self._limit, self._chance = first, max(first, limit), chance
        self._failures = 0

    def next(self) -> float:
        """The wait after one more failure, in seconds."""
        wait = min(self._first * 2.0**self._failures, self._limit)
        # Beyond this the doubling changes nothing, and a float would overflow one day.
        self._failures = min(self._failures + 1, 60)
        return wait * self._chance.uniform(0.8, 1.2)

    def reset(self) -> None:
        """Something succeeded: begin anew."""
        self._failures = 0
