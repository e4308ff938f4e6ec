"""Fault rules, holds and the request log of a broker that runs on a thread, for callers on other threads.

Each class wraps an object of the broker. The object's async methods block here, for ``timeout`` seconds at most.
"""

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Protocol, Self, Unpack

from ..protocol.api import ApiKey
from .faults.request_log import PATIENCE, LoggedRequest, RequestLog, Which
from .faults.rules import FaultRule, Hold

__all__ = ("BackgroundHold", "BackgroundRequestLog", "BackgroundFaultRule", "Calls")


class Calls(Protocol):
    """The type of ``BackgroundBroker.do``, which calls ``function(broker)`` on the broker's thread for the result."""

    def __call__(self, function: Callable[[Any], Any], /) -> Any: ...


class BackgroundFaultRule:
    """A fault rule of a broker on a thread; see :class:`~.faults.rules.FaultRule`."""

    def __init__(self, do: Calls, rule: FaultRule) -> None:
        self._do, self._rule = do, rule

    @property
    def count(self) -> int:
        """The number of requests that the rule was applied to."""
        return self._rule.count

    @property
    def is_met(self) -> bool:
        """Whether the rule was applied to ``times`` requests, or to at least one if ``times`` is None."""
        return self._rule.is_met

    def remove(self) -> None:
        """Remove the rule, unless it was removed already."""
        self._do(lambda _: self._rule.remove())

    def met(self, count: int | None = None, *, timeout: float = PATIENCE) -> None:
        """Wait until the rule was applied to ``count`` requests: by default ``times``, or 1 if ``times`` is None.

        Raises:
            TimeoutError: the rule was applied to fewer requests within ``timeout`` seconds.
        """
        self._do(lambda _: self._rule.met(count, timeout=timeout))

    def __repr__(self) -> str:
        return repr(self._rule)


class BackgroundHold:
    """A context in which a broker on a thread holds certain requests; see :class:`~.faults.rules.Hold`."""

    def __init__(self, do: Calls, hold: Hold) -> None:
        self._do, self._hold = do, hold

    @property
    def requests(self) -> list[LoggedRequest]:
        """All requests that the context has held, including released ones."""
        return list(self._hold.requests)

    @property
    def waiting(self) -> list[LoggedRequest]:
        """The requests that are held now."""
        return list(self._hold.waiting)

    def arrived(self, count: int = 1, *, timeout: float = PATIENCE) -> LoggedRequest:
        """Wait until the context has held ``count`` requests, including released ones, and return the ``count``-th.

        Raises:
            TimeoutError: fewer requests arrived within ``timeout`` seconds.
            RuntimeError: the context was not entered.
        """
        found: LoggedRequest = self._do(lambda _: self._hold.arrived(count, timeout=timeout))
        return found

    def release(self, count: int | None = None) -> None:
        """Release the ``count`` oldest held requests; without ``count`` release all, and hold no further ones.

        Raises:
            RuntimeError: the context was not entered.
        """
        self._do(lambda _: self._hold.release(count))

    def __enter__(self) -> Self:
        self._do(lambda _: self._hold.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(lambda _: self._hold.release())


class BackgroundRequestLog:
    """The requests that a broker on a thread has received; see :class:`~.faults.request_log.RequestLog`."""

    def __init__(self, do: Calls, request_log: RequestLog) -> None:
        self._do, self._request_log = do, request_log

    def of(self, api: ApiKey | None = None, **which: Unpack[Which]) -> list[LoggedRequest]:
        """Return the logged requests that match the API and the selectors. Raises as :meth:`RequestLog.of`."""
        found: list[LoggedRequest] = self._do(lambda _: self._request_log.of(api, **which))
        return found

    def wait_for(
        self, api: ApiKey | None = None, count: int = 1, *, timeout: float = PATIENCE, **which: Unpack[Which]
    ) -> list[LoggedRequest]:
        """Wait until ``count`` matching requests are in the log, old ones included; return all matching requests.

        Raises:
            TimeoutError: the log had fewer matching requests after ``timeout`` seconds.
            TypeError, ValueError: as :meth:`RequestLog.of`.
        """
        found: list[LoggedRequest] = self._do(
            lambda _: self._request_log.wait_for(api, count, timeout=timeout, **which)
        )
        return found

    def clear(self) -> None:
        """Delete all logged requests."""
        self._do(lambda _: self._request_log.clear())

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self.of())

    def __len__(self) -> int:
        return len(self._request_log)

    def __getitem__(self, index: int) -> LoggedRequest:
        return self.of()[index]
