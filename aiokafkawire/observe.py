"""Observers: objects that a client notifies of connections, requests, batches, fetches, commits, rebalances and more.

An observer is notified once per request or batch, never per record. Events without an observer cost nothing.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final

from ._lazy_classes import frozen
from .argument_checks import methods_of, shown
from .errors import ConfigError, KafkaError
from .event_log import EventLog
from .notes import BatchNote, RequestNote
from .types import TopicPartition

__all__ = (
    "EVENTS",
    "AcknowledgementEnded",
    "BatchEnded",
    "CommitEnded",
    "ConnectionClosed",
    "ConnectionFailed",
    "ConnectionOpened",
    "CoordinatorChanged",
    "FetchEnded",
    "MetadataUpdated",
    "Observer",
    "Observers",
    "PartitionStalled",
    "PartitionsLost",
    "RebalanceEnded",
    "RequestEnded",
    "StallEnded",
    "Throttled",
    "TransactionEnded",
)

_log = EventLog("aiokafkawire.observe")


@frozen(kw_only=True)
class ConnectionOpened:
    """A connection to a broker was opened, and is authenticated."""

    broker: str
    """The address, as ``"host:port"``."""
    node_id: int | None
    """The broker's id; None for a bootstrap address that is no broker's, or not known to be one yet."""
    lane: str
    """What the connection is for: ``"control"``, ``"admin"``, or the name of a producer or consumer, such as
    ``"produce-1"``, ``"fetch-2"``, ``"commit-2"``, ``"share-3"``."""
    seconds: float
    """How long opening took."""


@frozen(kw_only=True)
class ConnectionFailed:
    """A connection to a broker could not be opened."""

    broker: str
    node_id: int | None
    lane: str
    seconds: float
    error: KafkaError


@frozen(kw_only=True)
class ConnectionClosed:
    """A connection that was open has ended."""

    broker: str
    node_id: int | None
    lane: str
    error: KafkaError | None
    """Why, also if this client has closed it; None if its task was cancelled."""


@frozen(kw_only=True)
class RequestEnded:
    """A request was answered, or its connection ended. A request without an answer (``acks=0``) ends with its write."""

    broker: str
    node_id: int | None
    """The broker's id; None for a bootstrap address that is no broker's, or not known to be one yet."""
    lane: str
    """The connection's lane, as in :class:`ConnectionOpened`."""
    api: str
    """The request's name in Kafka's protocol, such as ``"Produce"``."""
    version: int
    sent_bytes: int
    """The size of the request, with its header."""
    received_bytes: int
    """The size of the response, with its header; 0 if there was none."""
    queued_seconds: float
    """The time from the call until the request's write began: the broker throttled the client, or the socket took no
    bytes. The time of records in a producer's batch is not part of it."""
    seconds: float
    """The time from the beginning of the write until the response was received; 0 if there was no write or response."""
    throttle_seconds: float
    """The throttle time that the response names; 0 without."""
    error: KafkaError | None
    """Why there is no response; None if there is one, whatever it says."""


@frozen(kw_only=True)
class Throttled:
    """A broker throttles this client, since it has exceeded a quota (KIP-219)."""

    broker: str
    node_id: int | None
    api: str
    """The request whose response says so."""
    seconds: float


@frozen(kw_only=True)
class BatchEnded:
    """A batch of a producer was acknowledged, or has failed for good."""

    lane: str
    """The producer's name, which its connections have as well."""
    transactional_id: str | None
    """The producer's transactional id; None if it has none."""
    topic: str
    partition: int
    records: int
    size: int
    """The size of the records in bytes, before compression."""
    compressed_size: int
    """The size of the batch in bytes, as it was sent; 0 if it was never encoded."""
    codec: str
    """The compression, such as ``"zstd"``; ``"none"`` without."""
    seconds: float
    """The time from the batch's first record until its end."""
    queued_seconds: float
    """The time from the batch's first record until the batch was first sent, or has failed without being sent."""
    attempts: int
    """How often the batch was sent."""
    offset: int | None
    """The offset of the first record; None if it is unknown or the batch has failed."""
    error: KafkaError | None


@frozen(kw_only=True)
class FetchEnded:
    """A fetch of a consumer or share consumer was answered without an error."""

    broker: str
    node_id: int
    lane: str
    """The consumer's name, which its connections for fetches have as well."""
    group: str | None
    """The consumer's group; None without one."""
    partitions: Sequence[TopicPartition]
    """The partitions that have brought records."""
    records: int | None
    """How many records the received batches hold, as their headers say; a share consumer's are those that it has
    acquired. None if the batches are older than Kafka 0.11, and their headers do not say it."""
    counts: Sequence[int | None] = ()
    """The same for each of the ``partitions``, in their order."""
    size: int
    """The size of the records in bytes, as they were sent: compressed, if they are."""
    sizes: Sequence[int] = ()
    """The same for each of the ``partitions``, in their order."""
    seconds: float
    """The time from sending the fetch until its response was read; brokers wait for new records meanwhile."""


@frozen(kw_only=True)
class CommitEnded:
    """A commit of offsets, of the user or an auto-commit, was accepted, or has failed for good."""

    group: str
    partitions: int
    """How many partitions it was for."""
    seconds: float
    """The time with all retries."""
    error: KafkaError | None


@frozen(kw_only=True)
class AcknowledgementEnded:
    """Acknowledgements of a share consumer have a result: one event for those accepted, one for each partition refused.

    Acknowledgements that are sent again are reported with their last result.
    """

    group: str
    broker: str
    node_id: int
    partitions: Sequence[TopicPartition]
    records: int
    """How many records the user has acknowledged, whether accepted, released or rejected."""
    seconds: float
    """The time of the request that carried them."""
    error: KafkaError | None


@frozen(kw_only=True)
class RebalanceEnded:
    """A member of a group has its partitions: after it has joined, or after a rebalance."""

    group: str
    member_id: str
    generation: int
    """The generation of a classic group, the member epoch of a consumer group or share group."""
    reason: str
    """Why the member last joined or rejoined."""
    seconds: float
    """The time from the beginning of the rebalance; a listener's call on_assigned is not part of it."""
    assigned: Sequence[TopicPartition]
    """The partitions that are new."""
    revoked: Sequence[TopicPartition]
    """The partitions that were given back since the last event; an eager rebalance gives back all of them."""
    partitions: int
    """How many partitions the member has now."""


@frozen(kw_only=True)
class PartitionsLost:
    """A member of a group has lost partitions: its membership has ended, or their topics are gone."""

    group: str
    partitions: Sequence[TopicPartition]
    reason: str


@frozen(kw_only=True)
class CoordinatorChanged:
    """The coordinator of a group or a transactional id was found, or does not coordinate it any more."""

    kind: str
    """``"group"`` or ``"transactional id"``."""
    key: str
    broker: str
    is_lost: bool
    """Whether this broker is the coordinator no more; otherwise it is the new one."""


@frozen(kw_only=True)
class MetadataUpdated:
    """The metadata of the cluster was refreshed, or could not be."""

    brokers: int
    topics: int
    seconds: float
    error: KafkaError | None
    """Why no broker has answered; the numbers are then those of the metadata so far."""


@frozen(kw_only=True)
class TransactionEnded:
    """A transaction was committed or aborted."""

    transactional_id: str
    is_committed: bool
    seconds: float
    """The time since the transaction began."""


@frozen(kw_only=True)
class PartitionStalled:
    """A partition has made no progress for ``stall_report_ms``: records wait to be delivered, or to be received."""

    lane: str
    """The name of the producer or consumer, which its connections have as well: ``"produce-1"``, ``"fetch-2"``."""
    topic: str
    partition: int
    seconds: float
    """For how long."""
    records: int | None
    """How many records wait; None if it is not known."""
    reason: str
    """What they wait for, as in the health of the producer or consumer."""


@frozen(kw_only=True)
class StallEnded:
    """A partition that was stalled makes progress again, or has nothing left that could wait."""

    lane: str
    topic: str
    partition: int
    seconds: float
    """For how long it was stalled."""


class Observer:
    """The base of observers: override the methods of the events that you need. Other objects may have them as well.

    The methods are called in the event loop, between other work of the client: they must return soon, and must not
    wait. An observer that raises is logged once, and is removed.
    """

    def connection_opened(self, event: ConnectionOpened) -> None:
        """Take notice of a new connection."""

    def connection_failed(self, event: ConnectionFailed) -> None:
        """Take notice of a connection that could not be opened."""

    def connection_closed(self, event: ConnectionClosed) -> None:
        """Take notice of the end of a connection."""

    def request_ended(self, event: RequestEnded) -> None:
        """Take notice of a request's response, or its failure."""

    def throttled(self, event: Throttled) -> None:
        """Take notice of a broker that throttles this client."""

    def batch_ended(self, event: BatchEnded) -> None:
        """Take notice of a producer's batch that was acknowledged, or has failed."""

    def fetch_ended(self, event: FetchEnded) -> None:
        """Take notice of a consumer's fetch."""

    def commit_ended(self, event: CommitEnded) -> None:
        """Take notice of a commit of offsets."""

    def acknowledgement_ended(self, event: AcknowledgementEnded) -> None:
        """Take notice of the result of a share consumer's acknowledgements."""

    def rebalance_ended(self, event: RebalanceEnded) -> None:
        """Take notice of a member's new assignment."""

    def partitions_lost(self, event: PartitionsLost) -> None:
        """Take notice of partitions that a member has lost."""

    def coordinator_changed(self, event: CoordinatorChanged) -> None:
        """Take notice of a coordinator that was found or lost."""

    def metadata_updated(self, event: MetadataUpdated) -> None:
        """Take notice of new metadata, or of a refresh that has failed."""

    def transaction_ended(self, event: TransactionEnded) -> None:
        """Take notice of a transaction's end."""

    def partition_stalled(self, event: PartitionStalled) -> None:
        """Take notice of a partition without progress."""

    def stall_ended(self, event: StallEnded) -> None:
        """Take notice of the end of a partition's stall."""


EVENTS: Final = tuple(name for name, value in vars(Observer).items() if inspect.isfunction(value))
"""The names of an observer's methods."""


_NEARLY: Final = 0.9
"""How similar the name of a method must be to that of an event to be a misspelt one; 1 for equal names."""


class Observers:
    """The observers of one client. For each event, an attribute notifies the observers of it; None if there are none.

    Callers write ``if (notify := observers.request_ended) is not None: notify(RequestEnded(...))``.

    Raises:
        ConfigError: an observer has no method of :class:`Observer`, or one that is misspelt or a coroutine function.
    """

    __slots__ = (*EVENTS, "_observers", "note_batch", "note_request", "on_change")

    connection_opened: Callable[[ConnectionOpened], None] | None
    connection_failed: Callable[[ConnectionFailed], None] | None
    connection_closed: Callable[[ConnectionClosed], None] | None
    request_ended: Callable[[RequestEnded], None] | None
    throttled: Callable[[Throttled], None] | None
    batch_ended: Callable[[BatchEnded], None] | None
    fetch_ended: Callable[[FetchEnded], None] | None
    commit_ended: Callable[[CommitEnded], None] | None
    acknowledgement_ended: Callable[[AcknowledgementEnded], None] | None
    rebalance_ended: Callable[[RebalanceEnded], None] | None
    partitions_lost: Callable[[PartitionsLost], None] | None
    coordinator_changed: Callable[[CoordinatorChanged], None] | None
    metadata_updated: Callable[[MetadataUpdated], None] | None
    transaction_ended: Callable[[TransactionEnded], None] | None
    partition_stalled: Callable[[PartitionStalled], None] | None
    stall_ended: Callable[[StallEnded], None] | None

    def __init__(self, observers: Iterable[object] = ()) -> None:
        self.note_request: Callable[[RequestNote], None] | None = None
        """Takes a note of each request that has ended, for metrics; None if there are none."""
        self.note_batch: Callable[[BatchNote], None] | None = None
        """The same for each batch."""
        self.on_change: Callable[[], object] | None = None
        """Called after an observer was added or removed, in the thread that does this."""
        self._observers: list[object] = []
        self._update()
        if isinstance(observers, str) or not isinstance(observers, Iterable):
            raise ConfigError(f"observers must be a list of objects, such as [MyObserver()], got {shown(observers)}")
        for observer in observers:
            self.add(observer)

    def add(self, observer: object) -> None:
        """Notify this observer, too, from now on."""
        _check_names(observer)
        wanted = [name for name in EVENTS if callable(getattr(observer, name, None))]
        if not wanted or isinstance(observer, type):
            raise ConfigError(
                f"an observer must be an object with methods of aiokafkawire.observe.Observer, got {shown(observer)}"
            )
        for name in wanted:
            if inspect.iscoroutinefunction(getattr(observer, name)):
                raise ConfigError(
                    f"{name} of {type(observer).__name__} must not be a coroutine function: observers do not wait"
                )
        self._observers.append(observer)
        self._update()

    def remove(self, observer: object) -> None:
        """Notify this observer no more; ignore an observer that was never added."""
        self._observers = [known for known in self._observers if known is not observer]
        self._update()

    def _update(self) -> None:
        for name in EVENTS:
            found = ((observer, getattr(observer, name, None)) for observer in self._observers)
            methods = [(observer, method) for observer, method in found if method is not None and _is_wanted(method)]
            setattr(self, name, self._notifier(name, methods) if methods else None)
        if self.on_change is not None:
            self.on_change()

    def _notifier(self, name: str, methods: list[tuple[object, Callable[[Any], None]]]) -> Callable[[Any], None]:
        def notify(event: Any) -> None:
            for observer, method in methods:
                try:
                    method(event)
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:  # a CancelledError would end the task that notifies the observer
                    message = "%(event)s of the observer %(observer)r has failed; the observer is removed"
                    text = {"event": name, "observer": observer}
                    _log.error(message, text=text, error=error, exc_info=error)
                    self.remove(observer)

        return notify


def _check_names(observer: object) -> None:
    """Raise ConfigError if an observer has a method that is nearly called like an event, and would never be called."""
    for name in methods_of(observer):
        near = get_close_matches(name.removeprefix("on_"), EVENTS, 1, _NEARLY)
        if near and name not in EVENTS:
            raise ConfigError(
                f"{type(observer).__name__} has an unknown method {name} of observers: did you mean {near[0]}?"
            )


def _is_wanted(method: object) -> bool:
    """Return whether this is a method, and not only the one that does nothing."""
    return callable(method) and getattr(method, "__func__", None) not in vars(Observer).values()
