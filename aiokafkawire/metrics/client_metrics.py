"""What a client has done: gathered from its events, and read as Java's metrics or as instruments for exporters."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from ..observe import (
    BatchEnded,
    CommitEnded,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionOpened,
    FetchEnded,
    MetadataUpdated,
    PartitionsLost,
    RebalanceEnded,
    RequestEnded,
    Throttled,
    TransactionEnded,
)
from .instrument import Instrument
from .java_names import java_metrics
from .live import LiveClient, part_of
from .measurements import Measurements
from .metric import Metric
from .raw_instruments import raw_instruments

if TYPE_CHECKING:
    from ..blocking import Client as BlockingClient
    from ..client import Client

__all__ = ("ClientMetrics", "metrics_of")


def metrics_of(kafka: "Client | BlockingClient") -> "ClientMetrics":
    """Return the measurements of a client, for exporters; the client counts from now on."""
    asynchronous: Client | None = getattr(kafka, "asynchronous", None)
    client = cast("Client", kafka) if asynchronous is None else asynchronous
    return client._client_metrics()


class ClientMetrics:
    """The measurements of one client, which counts from :meth:`start` on. Any thread may read the values."""

    def __init__(self, live: LiveClient) -> None:
        self._live = live
        self._now = live.cluster.runtime.now
        # The runtime's clock, less the system's monotonic clock.
        self._offset = 0.0
        self._measured = Measurements()
        self._has_started = False

    def start(self) -> None:
        """Count from now on, as an observer of the client. Repeated calls have no effect."""
        if not self._has_started:
            self._has_started = True
            self._live.cluster.observers.add(self)

    def metrics(self) -> tuple[Metric, ...]:
        """Return the current values under the names of the Java client."""
        return tuple(java_metrics(self._measured, self._live, self._read()))

    def instruments(self) -> Iterable[Instrument]:
        """Return the current values for exporters: counters since the start, gauges, and histograms."""
        return tuple(raw_instruments(self._measured, self._live, self._read()))

    def _read(self) -> float:
        """Return the time, in seconds of the runtime's clock; in the client's loop, bring the positions up to date."""
        try:
            now = self._now()
        except RuntimeError:  # no event loop runs in this thread
            return time.monotonic() + self._offset
        self._offset = now - time.monotonic()
        self._live.settle()
        return now

    def connection_opened(self, event: ConnectionOpened) -> None:
        """Count a connection."""
        self._measured.connection_opened(part_of(event.lane), self._now())

    def connection_failed(self, event: ConnectionFailed) -> None:
        """Count a connection that could not be opened."""
        self._measured.connection_failed(part_of(event.lane), event, self._now())

    def connection_closed(self, event: ConnectionClosed) -> None:
        """Count the end of a connection."""
        self._measured.connection_closed("admin-client", self._now())

    def request_ended(self, event: RequestEnded) -> None:
        """Count a request."""
        self._measured.request_ended(event, self._now())

    def throttled(self, event: Throttled) -> None:
        """Count the time for which a broker throttles the client."""
        self._measured.throttled(event, self._now())

    def batch_ended(self, event: BatchEnded) -> None:
        """Count a batch."""
        self._measured.batch_ended(event, self._now())

    def fetch_ended(self, event: FetchEnded) -> None:
        """Count a fetch."""
        self._measured.fetch_ended(event, self._now())

    def commit_ended(self, event: CommitEnded) -> None:
        """Count a commit."""
        self._measured.commit_ended(event, self._now())

    def rebalance_ended(self, event: RebalanceEnded) -> None:
        """Count a rebalance."""
        self._measured.rebalance_ended(event, self._now())

    def partitions_lost(self, event: PartitionsLost) -> None:
        """Count lost partitions."""
        self._measured.partitions_lost(event)

    def metadata_updated(self, event: MetadataUpdated) -> None:
        """Count a refresh of the metadata."""
        self._measured.metadata_updated(event)

    def transaction_ended(self, event: TransactionEnded) -> None:
        """Count a transaction."""
        self._measured.transaction_ended(event, self._now())
