"""What a client's events amount to: sampled values by part, topic and broker, counters and histograms."""

from collections.abc import Callable
from typing import Final, TypeVar

from ..errors import AuthenticationFailed
from ..observe import (
    BatchEnded,
    CommitEnded,
    ConnectionFailed,
    FetchEnded,
    MetadataUpdated,
    PartitionsLost,
    RebalanceEnded,
    RequestEnded,
    Throttled,
    TransactionEnded,
)
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

__all__ = ("MAX_TOPICS", "Measurements", "part_of_api")

MAX_TOPICS: Final = 5_000
"""The number of topics, or of topics and groups, with values of their own; the one unused longest is dropped."""
_PRODUCER_APIS: Final = frozenset(
    {"Produce", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"}
)
_CONSUMER_APIS: Final = frozenset(
    {
        "ConsumerGroupHeartbeat",
        "Fetch",
        "Heartbeat",
        "JoinGroup",
        "LeaveGroup",
        "OffsetCommit",
        "OffsetFetch",
        "OffsetForLeaderEpoch",
        "ShareAcknowledge",
        "ShareFetch",
        "ShareGroupHeartbeat",
        "SyncGroup",
    }
)
_HEARTBEATS: Final = frozenset({"ConsumerGroupHeartbeat", "Heartbeat", "ShareGroupHeartbeat"})
_GROUP_APIS: Final = _HEARTBEATS | {"JoinGroup", "SyncGroup"}
_TXN_APIS: Final = frozenset({"InitProducerId", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"})
_FETCHES: Final = frozenset({"Fetch", "ShareFetch"})

K = TypeVar("K")
T = TypeVar("T")


def part_of_api(api: str) -> str:
    """Return what a request is for: ``"producer"``, ``"consumer"`` or ``"admin-client"``."""
    if api in _PRODUCER_APIS:
        return "producer"
    return "consumer" if api in _CONSUMER_APIS else "admin-client"


class Measurements:
    """The measurements of one client. Its methods take the events of :mod:`aiokafkawire.observe`, and their time."""

    def __init__(self) -> None:
        self.requests: dict[str, RequestSensors] = {}
        """By part of the client: ``"producer"``, ``"consumer"``, ``"admin-client"``."""
        self.node_requests: dict[tuple[str, str], RequestSensors] = {}
        """By part and the broker's address."""
        self.connections: dict[str, ConnectionSensors] = {}
        """By part."""
        self.producer: ProducerSensors = ProducerSensors()
        self.produced: dict[str, TopicProduced] = {}
        """By topic."""
        self.fetches: FetchSensors = FetchSensors()
        self.fetched: dict[str, TopicFetched] = {}
        """By topic."""
        self.coordinator: CoordinatorSensors = CoordinatorSensors()
        self.last_heartbeat: float | None = None
        self.last_rebalance: float | None = None
        self.request_seconds: dict[str, Histogram] = {}
        """By API."""
        self.failed_requests: dict[str, int] = {}
        """By API."""
        self.throttled_seconds: dict[str, float] = {}
        """By API."""
        self.failed_connections: dict[str, int] = {}
        """By part."""
        self.batch_seconds: Histogram = Histogram(LATENCY_BUCKETS)
        self.batch_bytes: Histogram = Histogram(SIZE_BUCKETS)
        self.fetch_seconds: Histogram = Histogram(LATENCY_BUCKETS)
        self.commit_seconds: dict[str, Histogram] = {}
        """By group."""
        self.failed_commits: dict[str, int] = {}
        """By group."""
        self.rebalance_seconds: dict[str, Histogram] = {}
        """By group."""
        self.lost_partitions: dict[str, int] = {}
        """By group."""
        self.transaction_seconds: dict[str, Histogram] = {}
        """By result: ``"committed"`` or ``"aborted"``."""
        self.metadata_refreshes: int = 0
        self.failed_metadata_refreshes: int = 0
        self._end_txn = 0.0

    # --- connections and requests ------------------------------------------------------------------------

    def connection_opened(self, part: str, now: float) -> None:
        """Count a connection."""
        self._connections(part).created.record(1, now)

    def connection_failed(self, part: str, event: ConnectionFailed, now: float) -> None:
        """Count a connection that could not be opened."""
        self.failed_connections[part] = self.failed_connections.get(part, 0) + 1
        if isinstance(event.error, AuthenticationFailed):
            self._connections(part).failed_authentication.record(1, now)

    def connection_closed(self, part: str, now: float) -> None:
        """Count the end of a connection."""
        self._connections(part).closed.record(1, now)

    def _connections(self, part: str) -> ConnectionSensors:
        return _entry(self.connections, part, ConnectionSensors)

    def request_ended(self, event: RequestEnded, now: float) -> None:
        """Count a request and its response."""
        api, sent, received, seconds = event.api, event.sent_bytes, event.received_bytes, event.seconds
        histogram = self.request_seconds.get(api)
        if histogram is None:
            histogram = self.request_seconds[api] = Histogram(LATENCY_BUCKETS)
        part = part_of_api(api)
        has_latency = api == "Produce" or api in _FETCHES
        sensors = _entry(self.requests, part, RequestSensors)
        of_node = _entry(self.node_requests, (part, event.broker), RequestSensors)
        for each in (sensors, of_node):
            each.sent.record(sent, now)
            if received:
                each.received.record(received, now)
                if has_latency:
                    each.latency.record(seconds * 1000, now)
        if event.error is not None:
            self.failed_requests[api] = self.failed_requests.get(api, 0) + 1
            return
        histogram.record(seconds)
        if api in _GROUP_APIS:
            self._group_request(api, seconds, now)
        elif api in _TXN_APIS:
            self._transaction_request(api, seconds, now)

    def _group_request(self, api: str, seconds: float, now: float) -> None:
        if api in _HEARTBEATS:
            self.coordinator.heartbeat.record(seconds * 1000, now)
            self.last_heartbeat = now - seconds
        else:
            sensor = self.coordinator.join if api == "JoinGroup" else self.coordinator.sync
            sensor.record(seconds * 1000, now)

    def _transaction_request(self, api: str, seconds: float, now: float) -> None:
        if api == "EndTxn":
            self._end_txn += seconds  # committed or aborted: the event of the transaction will say
        else:
            sensor = self.producer.txn_init if api == "InitProducerId" else self.producer.txn_send_offsets
            sensor.record(seconds * 1e9, now)

    def throttled(self, event: Throttled, now: float) -> None:
        """Count the time for which a broker throttles the client."""
        self.throttled_seconds[event.api] = self.throttled_seconds.get(event.api, 0.0) + event.seconds
        if event.api == "Produce":
            self.producer.throttle.record(event.seconds * 1000, now)
        elif event.api in _FETCHES:
            self.fetches.throttle.record(event.seconds * 1000, now)

    def metadata_updated(self, event: MetadataUpdated) -> None:
        """Count a refresh of the metadata."""
        if event.error is None:
            self.metadata_refreshes += 1
        else:
            self.failed_metadata_refreshes += 1

    # --- producers ---------------------------------------------------------------------------------------

    def batch_ended(self, event: BatchEnded, now: float) -> None:
        """Count a batch."""
        records, size, attempts = event.records, event.size, event.attempts
        topic = self.produced.get(event.topic)
        if topic is None:
            topic = self.produced[event.topic] = TopicProduced()
            self._drop_unused(self.produced, lambda sensors: sensors.records.last)
        producer = self.producer
        if attempts:
            sent = records * attempts
            producer.batch_size.record(size, now)
            producer.records.record(sent, now)
            producer.record_size.record(size / records, now)
            topic.bytes.record(size, now)
            topic.records.record(sent, now)
            if attempts > 1:
                producer.retries.record(sent - records, now)
                topic.retries.record(sent - records, now)
        if event.error is not None:
            producer.errors.record(records, now)
            topic.errors.record(records, now)
            return
        self.batch_seconds.record(event.seconds)
        self.batch_bytes.record(size)

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
        fetches = self.fetches
        fetches.latency.record(event.seconds * 1000, now)
        self.fetch_seconds.record(event.seconds)
        if not event.size:
            return
        fetches.bytes.record(event.size, now)
        name = event.partitions[0].topic
        topic = self.fetched.get(name)
        if topic is None:
            topic = self.fetched[name] = TopicFetched()
            self._drop_unused(self.fetched, lambda sensors: sensors.bytes.last)
        topic.bytes.record(event.size, now)

    def commit_ended(self, event: CommitEnded, now: float) -> None:
        """Count a commit."""
        self.coordinator.commit.record(event.seconds * 1000, now)
        if event.error is None:
            _entry(self.commit_seconds, event.group, _latencies).record(event.seconds)
        else:
            self.failed_commits[event.group] = self.failed_commits.get(event.group, 0) + 1

    def rebalance_ended(self, event: RebalanceEnded, now: float) -> None:
        """Count a rebalance."""
        self.coordinator.rebalance.record(event.seconds * 1000, now)
        self.last_rebalance = now
        _entry(self.rebalance_seconds, event.group, _latencies).record(event.seconds)

    def partitions_lost(self, event: PartitionsLost) -> None:
        """Count lost partitions."""
        self.lost_partitions[event.group] = self.lost_partitions.get(event.group, 0) + len(event.partitions)

    @staticmethod
    def _drop_unused(entries: dict[K, T], last: Callable[[T], float]) -> None:
        """Drop the entry that was unused longest if there are too many."""
        if len(entries) > MAX_TOPICS:
            del entries[min(entries, key=lambda key: last(entries[key]))]


def _latencies() -> Histogram:
    return Histogram(LATENCY_BUCKETS)


def _entry(entries: dict[K, T], key: K, make: Callable[[], T]) -> T:
    found = entries.get(key)
    if found is None:
        found = entries[key] = make()
    return found
