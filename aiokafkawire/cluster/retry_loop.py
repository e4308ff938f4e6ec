"""The attempts to send one request until its deadline, and why they failed."""

import logging
from collections.abc import Callable

import anyio

from ..errors import KafkaError, Refresh, RequestTimeout
from .retry import Backoff, Deadline, is_better_cause, retry_action

__all__ = ("Attempts",)

_log = logging.getLogger("aiokafkawire.cluster")


class Attempts:
    """The attempts of one request: waits between them, and the last cause for the timeout's message.

    Args:
        what: the request, as the error names it.
        deadline: when to give up.
        backoff: the waits.
        now: the runtime's clock, in seconds.
    """

    def __init__(self, what: str, deadline: Deadline, backoff: Backoff, now: Callable[[], float]) -> None:
        self.deadline: Deadline = deadline
        self.broker: str = ""
        """The broker that was asked last, if the error is to name it."""
        self._what, self._backoff, self._now = what, backoff, now
        self._last = "no response"
        self._cause: KafkaError | None = None

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline.passed(self._now())

    @property
    def left(self) -> float:
        """Seconds until the deadline, never negative."""
        return self.deadline.left(self._now())

    def no_broker(self) -> None:
        """Note that there was no broker to ask."""
        if self._cause is None:
            self._last = "no broker is known"

    def failed(self, error: KafkaError) -> Refresh:
        """Note why an attempt failed, and return what to refresh before the next; raise what is not retriable."""
        retry, refresh = retry_action(error)
        if not retry:
            raise error
        if is_better_cause(error, self._cause):
            self._cause, self._last = error, f"{type(error).__name__}: {error}"
        return refresh

    def reset_backoff(self) -> None:
        """Reset the wait to the shortest, since another broker is asked."""
        self._backoff.reset()

    async def wait(self) -> None:
        """Wait before the next attempt, but not beyond the deadline."""
        delay = min(self._backoff.next(), self.left)
        if _log.isEnabledFor(logging.DEBUG):
            broker = f" at {self.broker}" if self.broker else ""
            _log.debug("retrying %s%s in %.0f ms: %s", self._what, broker, delay * 1000, self._last)
        await anyio.sleep(delay)

    def timeout(self, deadline: Deadline | None = None) -> RequestTimeout:
        """Return the error of a caller that waited until the deadline, or until its own."""
        allowed = (deadline or self.deadline).allowed
        broker = f" at {self.broker}" if self.broker else ""
        timeout = RequestTimeout(f"{self._what} did not succeed within {allowed:g} s{broker}; at last {self._last}")
        timeout.__cause__ = self._cause
        return timeout
