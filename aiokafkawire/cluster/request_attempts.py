"""The attempts to send one request until its deadline, and the reason of the last failure."""

import logging
from collections.abc import Callable

import anyio

from ..errors import KafkaError, Refresh, RequestTimeout
from ..event_log import EventLog
from .retry import Backoff, Deadline, is_better_cause, retry_action

__all__ = ("Attempts",)

_log = EventLog("aiokafkawire.cluster")


class Attempts:
    """The attempts to send one request: their deadline, the waits between them, and the last failure's cause.

    Args:
        what: the name of the request in errors.
        deadline: the time after which no attempt is made.
        backoff: the waits between attempts.
        now: the runtime's clock, in seconds.
    """

    def __init__(self, what: str, deadline: Deadline, backoff: Backoff, now: Callable[[], float]) -> None:
        self.deadline: Deadline = deadline
        self.broker: str = ""
        """The broker of the last attempt, for errors and log lines; empty to name no broker there."""
        self._what, self._backoff, self._now = what, backoff, now
        self._last = "no response"
        self._cause: KafkaError | None = None

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline.passed(self._now())

    @property
    def left(self) -> float:
        """The seconds until the deadline, never negative."""
        return self.deadline.left(self._now())

    def no_broker(self) -> None:
        """Note that no broker was known for an attempt."""
        if self._cause is None:
            self._last = "no broker is known"

    def failed(self, error: KafkaError) -> Refresh:
        """Note a retriable error, and return what to refresh before the next attempt; raise any other error."""
        retry, refresh = retry_action(error)
        if not retry:
            raise error
        if is_better_cause(error, self._cause):
            self._cause, self._last = error, f"{type(error).__name__}: {error}"
        return refresh

    def reset_backoff(self) -> None:
        """Reset the wait to the shortest, for a broker that was not asked before."""
        self._backoff.reset()

    async def wait(self) -> None:
        """Wait before the next attempt, but not beyond the deadline."""
        delay = min(self._backoff.next(), self.left)
        if _log.is_enabled(logging.DEBUG):
            text = {"what": self._what, "at": f" at {self.broker}" if self.broker else "", "last": self._last}
            message = "retrying %(what)s%(at)s in %(delay).3f s: %(last)s"
            _log.debug(message, text=text, broker=self.broker or None, delay=delay, error=self._cause)
        await anyio.sleep(delay)

    def timeout(self, deadline: Deadline | None = None) -> RequestTimeout:
        """Return the RequestTimeout of the attempts; ``deadline`` is the caller's if another caller made them."""
        allowed = (deadline or self.deadline).allowed
        broker = f" at {self.broker}" if self.broker else ""
        timeout = RequestTimeout(f"{self._what} did not succeed within {allowed:g} s{broker}; at last {self._last}")
        timeout.__cause__ = self._cause
        return timeout
