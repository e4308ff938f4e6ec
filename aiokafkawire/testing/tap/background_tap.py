"""A tap that runs on its own thread, for tests without an event loop."""

import os
import ssl
from collections.abc import Callable
from typing import TypedDict, Unpack

from ..background_faults import BackgroundRequestLog
from ..background_rules import BackgroundRules
from ..background_thread import BackgroundThread
from .tap import Tap
from .tap_events import TapEvent

__all__ = ("BackgroundTap",)


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


class BackgroundTap(BackgroundThread[Tap], BackgroundRules):
    """A :class:`~aiokafkawire.testing.tap.tap.Tap` that runs on a thread while its context is open.

    with BackgroundTap("kafka:9092") as tap:
        tap.on(ApiKey.PRODUCE, drop="after")
        ...  # any client, at tap.bootstrap

    Args:
        to: the brokers to connect to, as ``"host:port"``.
        options: the other arguments of Tap; invalid ones raise ConfigError. ``on_event`` is called on the tap's thread.
    """

    def __init__(self, to: str, **options: Unpack[TapArguments]) -> None:
        super().__init__(Tap(to, **options), "tap")

    @property
    def bootstrap(self) -> str:
        """The value for clients' ``bootstrap.servers``. Raises RuntimeError if the tap is not open."""
        return self._target.bootstrap

    @property
    def nodes(self) -> dict[int, int]:
        """The port of the tap for each broker that a response has named, by the broker's id."""
        found: dict[int, int] = self.do(lambda tap: tap.nodes)
        return found

    @property
    def requests(self) -> BackgroundRequestLog:
        """The log of the requests received since the tap was opened."""
        return BackgroundRequestLog(self.do, self._target.requests)

    @property
    def faults(self) -> list[Exception]:
        """The unexpected exceptions since the tap was opened."""
        return self._target.faults
