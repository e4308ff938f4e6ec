"""Deadlines, backoff, and what to do about each error before the next attempt."""

from typing import NamedTuple

import attrs

from ..errors import BrokerError, ConnectionLost, Refresh, RequestTimeout
from ..types import RandomSource

__all__ = ("Backoff", "Deadline", "RetryAction", "retry_action", "is_better_cause")


class RetryAction(NamedTuple):
    """Whether to retry, and what to refresh before."""

    retry: bool
    refresh: Refresh


_RAISE = RetryAction(retry=False, refresh=Refresh.NOTHING)
_ELSEWHERE = RetryAction(retry=True, refresh=Refresh.METADATA)


def retry_action(error: Exception) -> RetryAction:
    """Return how to handle an error. After a lost connection or a timeout another broker may lead by now."""
    if isinstance(error, BrokerError):
        return RetryAction(error.retriable, error.refresh)
    if isinstance(error, ConnectionLost | RequestTimeout):
        return _ELSEWHERE
    return _RAISE


def is_better_cause(new: Exception, known: Exception | None) -> bool:
    """Return whether to report ``new`` as the cause. A timeout of the last attempt, which had little time, is none."""
    return known is None or not isinstance(new, RequestTimeout)


@attrs.frozen
class Deadline:
    """A moment to give up, in seconds of the runtime's clock, and the whole time that was allowed."""

    at: float
    allowed: float

    @classmethod
    def after(cls, allowed: float, now: float) -> "Deadline":
        """Return the deadline ``allowed`` seconds after ``now``."""
        return cls(now + allowed, allowed)

    def left(self, now: float) -> float:
        """Return the seconds until the deadline, never negative."""
        return max(0.0, self.at - now)

    def passed(self, now: float) -> bool:
        """Return whether the deadline has passed."""
        return now >= self.at


class Backoff:
    """Waits that double from ``first`` to ``limit`` seconds, each up to a fifth longer or shorter (KIP-144, KIP-580).

    Every failure makes the next wait longer, until :meth:`reset`.
    """

    def __init__(self, first: float, limit: float, chance: RandomSource) -> None:
        self._first, self._limit, self._chance = first, max(first, limit), chance
        self._failures = 0

    def next(self) -> float:
        """Return the wait after one more failure, in seconds."""
        wait = min(self._first * 2.0**self._failures, self._limit)
        # Further doubling would change nothing, and would overflow a float in the end.
        self._failures = min(self._failures + 1, 60)
        return wait * self._chance.uniform(0.8, 1.2)

    def reset(self) -> None:
        """Reset the wait to the shortest, after a success."""
        self._failures = 0
