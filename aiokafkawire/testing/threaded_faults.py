"""Orders, holds and the journal of a broker that runs on a thread, for code on any other thread.

What is awaited at a :class:`~.broker.Broker` blocks here, until it is there or ``timeout`` seconds are over.
"""

from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, Unpack

import anyio

from ..protocol.api import ApiKey
from .faults.request_log import LoggedRequest, RequestLog, Which
from .faults.rules import FaultRule, Hold

__all__ = ("BackgroundHold", "BackgroundJournal", "BackgroundOrder", "Calls")

T = TypeVar("T")

_PATIENCE = 30.0
"""Seconds that a call waits unless told otherwise."""


class Calls(Protocol):
    """Calls a function on the broker's thread."""

    def __call__(self, function: Callable[[Any], Any], /) -> Any: ...


def _within(timeout: float, wait: Callable[[], Awaitable[T]]) -> Callable[[object], Awaitable[T]]:
    """Return a function for the broker's thread that waits no longer than so many seconds."""

    async def waited(_: object) -> T:
        with anyio.fail_after(timeout):
            return await wait()

    return waited


class BackgroundOrder:
    """An order that a broker on a thread was given; see :class:`~.orders.orders.Order`."""

    def __init__(self, do: Calls, order: FaultRule) -> None:
        self._do, self._order = do, order

    @property
    def count(self) -> int:
        """On how many requests it has acted."""
        return self._order.count

    @property
    def is_met(self) -> bool:
        """Whether it has acted as often as it was to; one without an end, whether it has acted at all."""
        return self._order.is_met

    def remove(self) -> None:
        """Act no more. May be called again."""
        self._do(lambda _: self._order.remove())

    def met(self, count: int | None = None, *, timeout: float = _PATIENCE) -> None:
        """Wait until it has acted ``count`` times; without a number as often as it was to.

        Raises:
            TimeoutError: it has not, within ``timeout`` seconds.
        """
        self._do(_within(timeout, lambda: self._order.met(count)))

    def __repr__(self) -> str:
        return repr(self._order)


class BackgroundHold:
    """Requests that a broker on a thread holds while this context is open; see :class:`~.orders.orders.Hold`."""

    def __init__(self, do: Calls, hold: Hold) -> None:
        self._do, self._hold = do, hold

    @property
    def requests(self) -> list[LoggedRequest]:
        """All that it has held, those that were let go included."""
        return list(self._hold.requests)

    @property
    def waiting(self) -> list[LoggedRequest]:
        """The requests that are held now."""
        return list(self._hold.waiting)

    def arrived(self, count: int = 1, *, timeout: float = _PATIENCE) -> LoggedRequest:
        """Wait until ``count`` requests have come in all, and return the last of them.

        Raises:
            TimeoutError: they have not come within ``timeout`` seconds.
            RuntimeError: the context was not entered.
        """
        found: LoggedRequest = self._do(_within(timeout, lambda: self._hold.arrived(count)))
        return found

    def release(self, count: int | None = None) -> None:
        """Let the first ``count`` of those held go on; without a number all, and those to come are not held.

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


class BackgroundJournal:
    """The requests that a broker on a thread has received; see :class:`~.orders.journal.Journal`."""

    def __init__(self, do: Calls, journal: RequestLog) -> None:
        self._do, self._journal = do, journal

    def of(self, api: ApiKey | None = None, **which: Unpack[Which]) -> list[LoggedRequest]:
        """Return the requests of an API, narrowed down by the selectors of orders. Raises as :meth:`RequestLog.of`."""
        found: list[LoggedRequest] = self._do(lambda _: self._journal.of(api, **which))
        return found

    def wait_for(
        self, api: ApiKey | None = None, count: int = 1, *, timeout: float = _PATIENCE, **which: Unpack[Which]
    ) -> list[LoggedRequest]:
        """Wait until there are ``count`` such requests, earlier ones included, and return all of them.

        Raises:
            TimeoutError: there are not so many within ``timeout`` seconds.
            TypeError, ValueError: as :meth:`RequestLog.of`.
        """
        found: list[LoggedRequest] = self._do(_within(timeout, lambda: self._journal.wait_for(api, count, **which)))
        return found

    def clear(self) -> None:
        """Forget all requests."""
        self._do(lambda _: self._journal.clear())

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self.of())

    def __len__(self) -> int:
        return len(self._journal)

    def __getitem__(self, index: int) -> LoggedRequest:
        return self.of()[index]
