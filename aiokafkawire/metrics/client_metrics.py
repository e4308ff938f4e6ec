"""The measurements of a client: gathered from its events, read as Java's metrics or as instruments for exporters."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from ..errors import UsageError
from ..event_log import EventLog
from ..notes import BatchNote, RequestNote
from ..observe import (
    AcknowledgementEnded,
    CommitEnded,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionOpened,
    FetchEnded,
    MetadataUpdated,
    PartitionsLost,
    RebalanceEnded,
    TransactionEnded,
)
from .instrument import Instrument
from .java_names import java_metrics
from .live import LiveClient
from .measurements import Measurements
from .metric import Metric
from .raw_instruments import raw_instruments
from .reentrant_lock import ReentrantLock

__all__ = ("ClientMetrics",)

T = TypeVar("T")

_log = EventLog("aiokafkawire.observe")

_AT_ONCE: Final = 512
"""The number of requests, or batches, that are counted together at most."""
_WAIT_SECONDS: Final = 1.0
"""The time between those that are counted together, at most: they count as if they had ended with the last of them."""


class ClientMetrics:
    """The measurements of one client, which counts from :meth:`start` on. Any thread may read the values."""

    def __init__(self, live: LiveClient) -> None:
        self._live = live
        self._now = live.cluster.runtime.now
        # The runtime's clock, less the system's monotonic clock.
        self._offset = 0.0
        self._waits = live.cluster.producer_waits
        waited = (self._waits.space_seconds, self._waits.exhausted, self._waits.metadata_seconds)
        self._measured = Measurements(uses_sasl=live.cluster.config.uses_sasl, waited=waited)
        self._has_started = False
        # The notes that are not counted yet: many at once take a fraction of the time.
        self._requests: list[RequestNote] = []
        self._batches: list[BatchNote] = []
        self._due = -math.inf
        # A signal handler may read the values while its own thread counts, and a forked process may read them.
        self._counting = ReentrantLock()
        self.on_requests: Callable[[Sequence[RequestNote]], None] | None = None
        """Gets the notes of requests once they are counted, for an exporter of single requests. It must not raise."""

    def start(self) -> None:
        """Count from now on, as an observer of the client. Repeated calls have no effect."""
        if not self._has_started:
            self._has_started = True
            observers = self._live.cluster.observers
            observers.add(self)
            observers.note_request, observers.note_batch = self._note_request, self._note_batch
            self._time()

    def metrics(self) -> tuple[Metric, ...]:
        """Return the current values under the names of the Java client."""
        return tuple(java_metrics(self._measured, self._live, self._read()))

    def instruments(self) -> Iterable[Instrument]:
        """Return the current values for exporters: counters since the start, gauges, and histograms."""
        return tuple(raw_instruments(self._measured, self._live, self._read()))

    def _read(self) -> float:
        """Update the values, and return the time, in seconds of the runtime's clock."""
        self._catch_up()
        now, waits = self._time(), self._waits
        with self._counting:
            self._measured.producers_waited(waits.space_seconds, waits.exhausted, waits.metadata_seconds, now)
        return now

    def _time(self) -> float:
        """Return the time of the runtime's clock; in the client's loop, bring the positions up to date."""
        try:
            self._live.cluster.owner.require_own_loop()
            now = self._now()
        except (RuntimeError, UsageError):  # another thread, which may have a loop of its own
            return time.monotonic() + self._offset
        self._offset = now - time.monotonic()
        self._live.settle()
        return now

    def connection_opened(self, event: ConnectionOpened) -> None:
        """Count a connection."""
        self._measured.connection_opened(event, self._now())

    def connection_failed(self, event: ConnectionFailed) -> None:
        """Count a connection that could not be opened."""
        self._measured.connection_failed(event, self._now())

    def connection_closed(self, event: ConnectionClosed) -> None:
        """Count the end of a connection."""
        self._measured.connection_closed(event, self._now())

    def _note_request(self, note: RequestNote) -> None:
        """Count a request together with others."""
        if len(self._requests) >= _AT_ONCE or note[-1] >= self._due:
            self._count_noted(note[-1])
        self._requests.append(note)

    def _note_batch(self, note: BatchNote) -> None:
        """Count a batch together with others."""
        if len(self._batches) >= _AT_ONCE or note[-1] >= self._due:
            self._count_noted(note[-1])
        self._batches.append(note)

    def _count_noted(self, now: float) -> None:
        self._due = now + _WAIT_SECONDS
        try:
            self._catch_up()
        except Exception as error:
            message = "cannot count requests and batches for metrics; they are not counted any more"
            _log.error(message, error=error, exc_info=error)
            observers = self._live.cluster.observers
            observers.note_request = observers.note_batch = None

    def _catch_up(self) -> None:
        """Count the requests and batches that were noted."""
        with self._counting:
            if requests := _taken(self._requests):
                self._measured.requests_ended(requests)
            if batches := _taken(self._batches):
                self._measured.batches_ended(batches)
        if requests and self.on_requests is not None:
            self.on_requests(requests)

    def fetch_ended(self, event: FetchEnded) -> None:
        """Count a fetch."""
        self._measured.fetch_ended(event, self._now())

    def commit_ended(self, event: CommitEnded) -> None:
        """Count a commit."""
        self._measured.commit_ended(event, self._now())

    def acknowledgement_ended(self, event: AcknowledgementEnded) -> None:
        """Count acknowledgements of a share consumer."""
        self._measured.acknowledgement_ended(event, self._now())

    def rebalance_ended(self, event: RebalanceEnded) -> None:
        """Count a rebalance."""
        is_share = self._live.is_share_group(event.group)
        self._measured.rebalance_ended(event, self._now(), is_share=is_share)

    def partitions_lost(self, event: PartitionsLost) -> None:
        """Count lost partitions."""
        self._measured.partitions_lost(event)

    def metadata_updated(self, event: MetadataUpdated) -> None:
        """Count a refresh of the metadata."""
        self._time()  # the first one comes before other threads need the clock
        self._measured.metadata_updated(event)

    def transaction_ended(self, event: TransactionEnded) -> None:
        """Count a transaction."""
        self._catch_up()  # with the requests that have ended it
        self._measured.transaction_ended(event, self._now())


def _taken(notes: list[T]) -> list[T]:
    """Return the notes, and remove them; those that another thread appends meanwhile stay."""
    taken = notes[:]
    del notes[: len(taken)]
    return taken
