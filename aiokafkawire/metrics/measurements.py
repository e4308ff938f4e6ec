"""The sums of a client's events: sampled values by part, topic and broker, counters and histograms."""

from collections.abc import Callable
from typing import Final, TypeVar

from ..errors import AuthenticationFailed
from ..observe import (
    AcknowledgementEnded,
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
    TransactionEnded,
)
from .parts import ADMIN, FETCHES, HEARTBEATS, part_of, part_of_request
from .sensors import (
    ConnectionSensors,
    CoordinatorSensors,
    FetchSensors,
    ProducerSensors,
    RequestSensors,
    TopicFetched,
    TopicProduced,
)
from .windows import LATENCY_BUCKETS, SIZE_BUCKETS, Histogram

__all__ = ("MAX_TOPICS", "Measurements")

MAX_TOPICS: Final = 5_000
"""The number of topics with values of their own, of producers and of consumers; those unused longest are dropped."""
_GROUP_APIS: Final = HEARTBEATS | {"JoinGroup", "SyncGroup"}
_TXN_APIS: Final = frozenset({"InitProducerId", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"})

K = TypeVar("K")
T = TypeVar("T")
N = TypeVar("N", int, float)


class Measurements:
    """The measurements of one client. Its methods take the events of :mod:`aiokafkawire.observe`, and their time."""

    def __init__(self, *, uses_sasl: bool = False, waited: tuple[float, int, float] = (0.0, 0, 0.0)) -> None:
        self._uses_sasl = uses_sasl
        self.requests: dict[str, RequestSensors] = {}
        """By part of the client."""
        self.node_requests: dict[tuple[str, int | None], RequestSensors] = {}
        """By part and the broker's id; None stands for bootstrap addresses."""
        self.connections: dict[str, ConnectionSensors] = {}
        """By part."""
        self.failed_connections: dict[str, int] = {}
        """By part."""
        self.request_seconds: dict[str, Histogram] = {}
        """By API."""
        self.failed_requests: dict[str, int] = {}
        """By API."""
        self.throttled_seconds: dict[str, float] = {}
        """By API."""
        self.metadata_refreshes: int = 0
        self.failed_metadata_refreshes: int = 0
        self.producer: ProducerSensors = ProducerSensors()
        self.produced: dict[str, TopicProduced] = {}
        """By topic."""
        self.batch_seconds: Histogram = Histogram(LATENCY_BUCKETS)
        self.batch_queue_seconds: Histogram = Histogram(LATENCY_BUCKETS)
        self.batch_bytes: Histogram = Histogram(SIZE_BUCKETS)
        self.transaction_seconds: dict[str, Histogram] = {}
        """By result: ``"committed"`` or ``"aborted"``."""
        self.fetches: FetchSensors = FetchSensors()
        self.fetched: dict[str, TopicFetched] = {}
        """By topic."""
        self.share_fetches: FetchSensors = FetchSensors()
        self.fetch_seconds: Histogram = Histogram(LATENCY_BUCKETS)
        self.coordinator: CoordinatorSensors = CoordinatorSensors()
        self.share_coordinator: CoordinatorSensors = CoordinatorSensors()
        self.last_heartbeat: float | None = None
        self.last_share_heartbeat: float | None = None
        self.last_rebalance: float | None = None
        self.commit_seconds: dict[str, Histogram] = {}
        """By group; likewise the next ones."""
        self.failed_commits: dict[str, int] = {}
        self.rebalance_seconds: dict[str, Histogram] = {}
        self.lost_partitions: dict[str, int] = {}
        self.acknowledged: dict[str, int] = {}
        self.failed_acknowledgements: dict[str, int] = {}
        self._end_txn = 0.0
        self._waited: tuple[float, int, float] = waited

    # --- connections and requests ------------------------------------------------------------------------

    def connection_opened(self, event: ConnectionOpened, now: float) -> None:
        """Count a connection."""
        sensors = _entry(self.connections, part_of(event.lane), ConnectionSensors)
        sensors.created.record(1, now)
        if self._uses_sasl:
            sensors.authentication.record(1, now)

    def connection_failed(self, event: ConnectionFailed, now: float) -> None:
        """Count a connection that could not be opened."""
        part = part_of(event.lane)
        _add(self.failed_connections, part, 1)
        if isinstance(event.error, AuthenticationFailed):
            _entry(self.connections, part, ConnectionSensors).failed_authentication.record(1, now)

    def connection_closed(self, event: ConnectionClosed, now: float) -> None:
        """Count the end of a connection."""
        _entry(self.connections, part_of(event.lane), ConnectionSensors).closed.record(1, now)

    def request_ended(self, event: RequestEnded, now: float) -> None:
        """Count a request and its response."""
        api, sent, received, seconds = event.api, event.sent_bytes, event.received_bytes, event.seconds
        part = part_of_request(event.lane, api)
        of_node = self.node_requests.get((part, event.node_id))
        if of_node is None:
            of_node = self.node_requests[part, event.node_id] = RequestSensors()
        sensors = _entry(self.requests, part, RequestSensors)
        sensors.sent.record(sent, now)
        of_node.sent.record(sent, now)
        if event.error is not None:
            _add(self.failed_requests, api, 1)
            return
        if not received:  # Produce with acks=0 has no response
            return
        sensors.received.record(received, now)
        of_node.received.record(received, now)
        _entry(self.request_seconds, api, _latencies).record(seconds)
        if event.throttle_seconds:
            _add(self.throttled_seconds, api, event.throttle_seconds)
        if api == "Produce":
            sensors.latency.record(seconds * 1000, now)
            of_node.latency.record(seconds * 1000, now)
            self.producer.throttle.record(event.throttle_seconds * 1000, now)
        elif api in FETCHES:
            sensors.latency.record(seconds * 1000, now)
            of_node.latency.record(seconds * 1000, now)
            fetches = self.fetches if api == "Fetch" else self.share_fetches
            fetches.throttle.record(event.throttle_seconds * 1000, now)
        elif part == ADMIN:
            of_node.latency.record(seconds * 1000, now)
        elif api in _GROUP_APIS:
            self._group_request(api, seconds, now)
        elif api in _TXN_APIS:
            self._transaction_request(api, seconds, now)

    def _group_request(self, api: str, seconds: float, now: float) -> None:
        if api == "ShareGroupHeartbeat":
            self.share_coordinator.heartbeat.record(seconds * 1000, now)
            self.last_share_heartbeat = now - seconds
        elif api in HEARTBEATS:
            self.coordinator.heartbeat.record(seconds * 1000, now)
            self.last_heartbeat = now - seconds
        else:
            sensor = self.coordinator.join if api == "JoinGroup" else self.coordinator.sync
            sensor.record(seconds * 1000, now)

    def _transaction_request(self, api: str, seconds: float, now: float) -> None:
        if api == "EndTxn":
            self._end_txn += seconds  # the transaction's own event says whether it was committed
        else:
            sensor = self.producer.txn_init if api == "InitProducerId" else self.producer.txn_send_offsets
            sensor.record(seconds * 1e9, now)

    def metadata_updated(self, event: MetadataUpdated) -> None:
        """Count a refresh of the metadata."""
        if event.error is None:
            self.metadata_refreshes += 1
        else:
            self.failed_metadata_refreshes += 1

    # --- producers ---------------------------------------------------------------------------------------

    def batch_ended(self, event: BatchEnded, now: float) -> None:
        """Count a batch."""
        records, size, attempts = event.records, event.compressed_size or event.size, event.attempts
        topic = self.produced.get(event.topic)
        if topic is None:
            topic = _with_room(self.produced, event.topic, TopicProduced(), lambda sensors: sensors.records.last)
        producer = self.producer
        if attempts:
            queued, ratio, sent = event.queued_seconds, size / event.size, records * attempts
            producer.batch_size.record(size, now)
            producer.queue.record(queued * 1000, now)
            producer.compression.record(ratio, now)
            producer.records.record(sent, now)
            producer.record_size.record(event.size / records, now)
            topic.bytes.record(size * attempts, now)
            topic.compression.record(ratio, now)
            topic.records.record(sent, now)
            self.batch_queue_seconds.record(queued)
            self.batch_bytes.record(size)
            if attempts > 1:
                producer.retries.record(sent - records, now)
                topic.retries.record(sent - records, now)
        if event.error is None:
            self.batch_seconds.record(event.seconds)
        else:
            producer.errors.record(records, now)
            topic.errors.record(records, now)

    def producers_waited(self, space_seconds: float, exhausted: int, metadata_seconds: float, now: float) -> None:
        """Count what producers have waited for, in all, since the client began."""
        before, self._waited = self._waited, (space_seconds, exhausted, metadata_seconds)
        producer = self.producer
        for sensor, value, known, scale in (
            (producer.buffer_wait, space_seconds, before[0], 1e9),
            (producer.exhausted, exhausted, before[1], 1),
            (producer.metadata_wait, metadata_seconds, before[2], 1e9),
        ):
            if value > known:
                sensor.record((value - known) * scale, now)

    def transaction_ended(self, event: TransactionEnded, now: float) -> None:
        """Count a transaction."""
        sensor = self.producer.txn_commit if event.is_committed else self.producer.txn_abort
        sensor.record(self._end_txn * 1e9, now)
        self._end_txn = 0.0
        result = "committed" if event.is_committed else "aborted"
        _entry(self.transaction_seconds, result, _latencies).record(event.seconds)

    # --- consumers ---------------------------------------------------------------------------------------

    def fetch_ended(self, event: FetchEnded, now: float) -> None:
        """Count a fetch."""
        is_share = event.lane.startswith("share-")
        fetches = self.share_fetches if is_share else self.fetches
        fetches.latency.record(event.seconds * 1000, now)
        self.fetch_seconds.record(event.seconds)
        if not event.size:
            return
        fetches.bytes.record(event.size, now)
        if event.records is not None:
            fetches.records.record(event.records, now)
        if is_share:
            return  # Java has no values by topic here
        by_topic: dict[str, list[int]] = {}
        for partition, size, count in zip(event.partitions, event.sizes, event.counts, strict=True):
            total = by_topic.get(partition.topic)
            if total is None:
                by_topic[partition.topic] = [size, count or 0]
            else:
                total[0] += size
                total[1] += count or 0
        for name, (size, count) in by_topic.items():
            topic = self.fetched.get(name)
            if topic is None:
                topic = _with_room(self.fetched, name, TopicFetched(), lambda sensors: sensors.bytes.last)
            topic.bytes.record(size, now)
            topic.records.record(count, now)

    def commit_ended(self, event: CommitEnded, now: float) -> None:
        """Count a commit."""
        self.coordinator.commit.record(event.seconds * 1000, now)
        if event.error is None:
            _entry(self.commit_seconds, event.group, _latencies).record(event.seconds)
        else:
            _add(self.failed_commits, event.group, 1)

    def acknowledgement_ended(self, event: AcknowledgementEnded, now: float) -> None:
        """Count acknowledgements of a share consumer."""
        self.share_fetches.acknowledgements.record(event.records, now)
        if event.error is None:
            _add(self.acknowledged, event.group, event.records)
        else:
            self.share_fetches.acknowledgement_errors.record(event.records, now)
            _add(self.failed_acknowledgements, event.group, event.records)

    def rebalance_ended(self, event: RebalanceEnded, now: float, *, is_share: bool) -> None:
        """Count a rebalance; ``is_share`` says whether the group is a share group."""
        if is_share:
            self.share_coordinator.rebalance.record(event.seconds * 1000, now)
        else:
            self.coordinator.rebalance.record(event.seconds * 1000, now)
            self.last_rebalance = now
        _entry(self.rebalance_seconds, event.group, _latencies).record(event.seconds)

    def partitions_lost(self, event: PartitionsLost) -> None:
        """Count lost partitions."""
        _add(self.lost_partitions, event.group, len(event.partitions))


def _latencies() -> Histogram:
    return Histogram(LATENCY_BUCKETS)


def _entry(entries: dict[K, T], key: K, make: Callable[[], T]) -> T:
    found = entries.get(key)
    if found is None:
        found = entries[key] = make()
    return found


def _with_room(entries: dict[K, T], key: K, new: T, last: Callable[[T], float]) -> T:
    """Add an entry; if there are too many, drop the tenth that was unused longest before."""
    if len(entries) >= MAX_TOPICS:
        for each in sorted(entries, key=lambda known: last(entries[known]))[: MAX_TOPICS // 10]:
            del entries[each]
    entries[key] = new
    return new


def _add(totals: dict[K, N], key: K, value: N) -> None:
    totals[key] = totals[key] + value if key in totals else value
