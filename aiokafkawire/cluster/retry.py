"""Deadlines, backoff, and the decision after an error: whether to retry, and what to refresh before the retry."""

from typing import NamedTuple

from .._lazy_classes import frozen
from ..config import ClientConfig
from ..errors import BrokerError, ConnectionLost, Refresh, RequestTimeout
from ..types import RandomSource

__all__ = ("Backoff", "Deadline", "RetryAction", "retry_action", "is_better_cause", "new_backoff")


class RetryAction(NamedTuple):
    """The decision whether to retry a request, and what to refresh before the next attempt."""

    retry: bool
    refresh: Refresh


_RAISE = RetryAction(retry=False, refresh=Refresh.NOTHING)
_ELSEWHERE = RetryAction(retry=True, refresh=Refresh.METADATA)


def retry_action(error: Exception) -> RetryAction:
    """Return whether to retry after an error, and what to refresh (the metadata after a lost connection or timeout)."""
    if isinstance(error, BrokerError):
        return RetryAction(error.retriable, error.refresh)
    if isinstance(error, ConnectionLost | RequestTimeout):
        return _ELSEWHERE
    return _RAISE


def is_better_cause(new: Exception, known: Exception | None) -> bool:
    """Return whether to report ``new`` instead of ``known``. A timeout replaces no error, since it explains less."""
    return known is None or not isinstance(new, RequestTimeout)


@frozen
class Deadline:
    """The time at which a call gives up, in seconds of the runtime's clock.

    ``allowed`` is the number of seconds that the call has in total.
    """

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
    """Exponential backoff: waits that double from ``first`` to ``limit`` seconds, with 20 % jitter (KIP-144, KIP-580).

    Each call of :meth:`next` makes the next wait longer, until :meth:`reset`.
    """

    def __init__(self, first: float, limit: float, chance: RandomSource) -> None:
        self._first, self._limit, self._chance = first, max(first, limit), chance
        self._failures = 0

    def next(self) -> float:
        """Return the seconds to wait after another failure."""
        wait = min(self._first * 2.0**self._failures, self._limit)
        # More doublings would not change the wait, and would finally overflow the float.
        self._failures = min(self._failures + 1, 60)
        return wait * self._chance.uniform(0.8, 1.2)

    def reset(self) -> None:
        """Make the next wait as short as the first wait again."""
        self._failures = 0


def new_backoff(config: ClientConfig, chance: RandomSource) -> Backoff:
    """Return the waits between retries (``retry_backoff_ms``, ``retry_backoff_max_ms``)."""
    return Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000, chance)
