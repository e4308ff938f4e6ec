"""A tap that runs on its own thread, for tests without an event loop."""

import os
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from inspect import isawaitable
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from ..background_faults import BackgroundRequestLog
from ..background_rules import BackgroundRules
from .tap import Tap
from .tap_events import TapEvent

__all__ = ("BackgroundTap",)

T = TypeVar("T")


class TapArguments(TypedDict, total=False):
    """The arguments of :class:`~.tap.Tap` by name, except ``to``."""

    host: str
    port: int
    advertised_host: str | None
    tls: ssl.SSLContext | None
    journal: str | os.PathLike[str] | None
    on_event: Callable[[TapEvent], None] | None
    connect_timeout_ms: int
    strict: bool


class BackgroundTap(BackgroundRules):
    """A :class:`~aiokafkawire.testing.tap.tap.Tap` that runs on a thread while its context is open.

    with BackgroundTap("kafka:9092") as tap:
        tap.on(ApiKey.PRODUCE, drop="after")
        ...  # any client, at tap.bootstrap

    Args:
        to: the brokers to connect to, as ``"host:port"``.
        options: the other arguments of Tap; invalid ones raise ConfigError. ``on_event`` is called on the tap's thread.
    """

    def __init__(self, to: str, **options: Unpack[TapArguments]) -> None:
        self._tap = Tap(to, **options)
        self._portal: BlockingPortal | None = None
        self._stack = ExitStack()

    @property
    def bootstrap(self) -> str:
        """The value for clients' ``bootstrap.servers``. Raises RuntimeError if the tap is not open."""
        return self._tap.bootstrap

    @property
    def nodes(self) -> dict[int, int]:
        """The port of the tap for each broker that a response has named, by the broker's id."""
        found: dict[int, int] = self.do(lambda tap: tap.nodes)
        return found

    @property
    def requests(self) -> BackgroundRequestLog:
        """The log of the requests received since the tap was opened."""
        return BackgroundRequestLog(self.do, self._tap.requests)

    @property
    def faults(self) -> list[Exception]:
        """The unexpected exceptions since the tap was opened."""
        return self._tap.faults

    @overload
    def do(self, function: Callable[[Tap], Awaitable[T]]) -> T: ...

    @overload
    def do(self, function: Callable[[Tap], T]) -> T: ...

    def do(self, function: Callable[[Tap], Any]) -> Any:
        """Call ``function(tap)``, which may be async, on the tap's thread, and return its result.

        Raises:
            RuntimeError: the context is not open.
        """
        if self._portal is None:
            raise RuntimeError("this tap is not open: use it as a context manager")

        async def there() -> Any:
            found = function(self._tap)
            return await found if isawaitable(found) else found

        return self._portal.call(there)

    def __enter__(self) -> Self:
        if self._portal is not None:
            raise RuntimeError("this tap is open already")
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            running: AbstractContextManager[Tap] = portal.wrap_async_context_manager(self._tap)
            stack.enter_context(running)
            self._portal, self._stack = portal, stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        try:
            return self._stack.__exit__(kind, error, traceback)
        finally:
            self._portal = None
