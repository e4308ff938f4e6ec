"""What one question went through until its deadline: how often it failed, and why."""

import logging
from collections.abc import Callable

import anyio

from ..errors import KafkaError, Refresh, RequestTimeout
from .retry import Backoff, Deadline, remedy, tells_more

__all__ = ("Attempts",)

_log = logging.getLogger("aiokafkawire.cluster")


class Attempts:
    """Waits between the tries of one question, and tells the cause when there are no more.

    Args:
        what: the question, as the error in the end names it.
        deadline: when to give up.
        backoff: the waits.
        now: the runtime's clock, in seconds.
    """

    def __init__(self, what: str, deadline: Deadline, backoff: Backoff, now: Callable[[], float]) -> None:
        self.deadline: Deadline = deadline
        self.where: str = ""
        """Who was asked last, where the error in the end shall say so."""
        self._what, self._backoff, self._now = what, backoff, now
        self._last = "nothing was answered"
        self._cause: KafkaError | None = None

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline.passed(self._now())

    @property
    def left(self) -> float:
        """Seconds until the deadline, never negative."""
        return self.deadline.left(self._now())

    def nobody(self) -> None:
        """There was nobody to ask."""
        if self._cause is None:
            self._last = "no broker is known"

    def failed(self, error: KafkaError) -> Refresh:
        """Note why a try failed, and say what to look up before the next; what no retry mends is raised."""
        retry, refresh = remedy(error)
        if not retry:
            raise error
        if tells_more(error, self._cause):
            self._cause, self._last = error, f"{type(error).__name__}: {error}"
        return refresh

    def begin_anew(self) -> None:
        """Somebody else is asked: the failures before do not make the waits longer."""
        self._backoff.reset()

    async def wait(self) -> None:
        """Wait before the next try, but not beyond the deadline."""
        delay = min(self._backoff.next(), self.left)
        if _log.isEnabledFor(logging.DEBUG):
            where = f" at {self.where}" if self.where else ""
            _log.debug("retrying %s%s in %.0f ms: %s", self._what, where, delay * 1000, self._last)
        await anyio.sleep(delay)

    def late(self, deadline: Deadline | None = None) -> RequestTimeout:
        """The error of who waited until the deadline, or until an own one."""
        allowed = (deadline or self.deadline).allowed
        where = f" at {self.where}" if self.where else ""
        late = RequestTimeout(f"{self._what} did not succeed within {allowed:g} s{where}; at last {self._last}")
        late.__cause__ = self._cause
        return late
