"""The sums of a client's events: sampled values by part, topic and broker, counters and histograms."""

from collections.abc import Callable, Mapping, Sequence
from operator import mul, sub, truediv
from typing import Any, Final, TypeVar

from ..errors import AuthenticationFailed
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
from .windows import LATENCY_BUCKETS, SIZE_BUCKETS, Histogram, summary

__all__ = ("MAX_GROUPS", "MAX_TOPICS", "Measurements")

MAX_TOPICS: Final = 5_000
"""The number of topics with values of their own, of producers and of consumers; those unused longest are dropped."""
MAX_GROUPS: Final = 1_000
"""The number of groups with values of their own; that which was unused longest is dropped."""
_JOINS: Final = frozenset({"JoinGroup", "SyncGroup"})
_TXN_APIS: Final = frozenset({"InitProducerId", "AddOffsetsToTxn", "TxnOffsetCommit"})

K = TypeVar("K")
T = TypeVar("T")
N = TypeVar("N", int, float)
NoteT = TypeVar("NoteT", RequestNote, BatchNote)


class Measurements:
    """The measurements of one client. Its methods take notes, or events and their time."""

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
        self._groups: dict[str, None] = {}
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

    def requests_ended(self, notes: Sequence[RequestNote]) -> None:
        """Count requests and their responses, in the order in which they ended."""
        now = notes[-1][-1]
        for kind, same in _grouped(notes).items():
            part = part_of_request(kind.lane, kind.api)
            sensors = _entry(self.requests, part, RequestSensors)
            of_node = _entry(self.node_requests, (part, kind.node_id), RequestSensors)
            _, sent, received, _, _, errors, _ = zip(*same, strict=True)
            sizes = summary(sent)
            sensors.sent.record_many(sizes, now)
            of_node.sent.record_many(sizes, now)
            if failed := len(errors) - errors.count(None):
                _add(self.failed_requests, kind.api, failed)
            # Produce with acks=0 has no response.
            if answered := same if all(received) else [note for note in same if note[2]]:
                self._answered(kind.api, part, (sensors, of_node), answered, now)

    def _answered(
        self,
        api: str,
        part: str,
        each_of: tuple[RequestSensors, RequestSensors],
        notes: Sequence[RequestNote],
        now: float,
    ) -> None:
        """Count responses to the requests of one API."""
        _, _, received, seconds, throttled, _, times = zip(*notes, strict=True)
        sensors, of_node = each_of
        sizes = summary(received)
        sensors.received.record_many(sizes, now)
        of_node.received.record_many(sizes, now)
        _entry(self.request_seconds, api, _latencies).record_many(seconds)
        delays = 0.0, 0.0
        if any(throttled):
            delays = sum(throttled), max(throttled)
            _add(self.throttled_seconds, api, delays[0])
        count, total, largest = summary(seconds)
        latency = count, total * 1000, largest * 1000
        if api == "Produce" or api in FETCHES:
            sensors.latency.record_many(latency, now)
            of_node.latency.record_many(latency, now)
            throttle = self.producer.throttle
            if api != "Produce":
                throttle = self.fetches.throttle if api == "Fetch" else self.share_fetches.throttle
            throttle.record_many((count, delays[0] * 1000, delays[1] * 1000), now)
        elif part == ADMIN:
            of_node.latency.record_many(latency, now)
        elif api == "ShareGroupHeartbeat":
            self.share_coordinator.heartbeat.record_many(latency, now)
            self.last_share_heartbeat = times[-1] - seconds[-1]
        elif api in HEARTBEATS:
            self.coordinator.heartbeat.record_many(latency, now)
            self.last_heartbeat = times[-1] - seconds[-1]
        elif api in _JOINS:
            sensor = self.coordinator.join if api == "JoinGroup" else self.coordinator.sync
            sensor.record_many(latency, now)
        elif api == "EndTxn":
            self._end_txn += total  # the transaction's own event says whether it was committed
        elif api in _TXN_APIS:
            sensor = self.producer.txn_init if api == "InitProducerId" else self.producer.txn_send_offsets
            sensor.record_many((count, total * 1e9, largest * 1e9), now)

    def metadata_updated(self, event: MetadataUpdated) -> None:
        """Count a refresh of the metadata."""
        if event.error is None:
            self.metadata_refreshes += 1
        else:
            self.failed_metadata_refreshes += 1

    # --- producers ---------------------------------------------------------------------------------------

    def batches_ended(self, notes: Sequence[BatchNote]) -> None:
        """Count batches, in the order in which they ended."""
        now, producer = notes[-1][-1], self.producer
        for name, same in _grouped(notes).items():
            topic = self.produced.get(name)
            if topic is None:
                topic = _with_room(self.produced, name, TopicProduced(), lambda sensors: sensors.records.last)
            _, _, _, _, attempts, began, _, have_failed, ended = zip(*same, strict=True)
            if sent := same if all(attempts) else [note for note in same if note[4]]:
                self._sent(topic, sent, now)
            seconds = list(map(sub, ended, began))
            if any(have_failed):
                failed = summary([note[1] for note in same if note[7]])
                producer.errors.record_many(failed, now)
                topic.errors.record_many(failed, now)
                seconds = [each for each, has_failed in zip(seconds, have_failed, strict=True) if not has_failed]
            if seconds:
                self.batch_seconds.record_many(seconds)

    def _sent(self, topic: TopicProduced, notes: Sequence[BatchNote], now: float) -> None:
        """Count batches of one topic that were sent."""
        _, records, before, sizes, attempts, began, sent, _, _ = zip(*notes, strict=True)
        producer = self.producer
        producer.batch_size.record_many(summary(sizes), now)
        self.batch_bytes.record_many(sizes)
        queued = list(map(sub, sent, began))
        count, total, largest = summary(queued)
        producer.queue.record_many((count, total * 1000, largest * 1000), now)
        self.batch_queue_seconds.record_many(queued)
        ratios = summary(list(map(truediv, sizes, before)))
        producer.compression.record_many(ratios, now)
        topic.compression.record_many(ratios, now)
        producer.record_size.record_many(summary(list(map(truediv, before, records))), now)
        if max(attempts) > 1:
            again = summary([note[1] * (note[4] - 1) for note in notes if note[4] > 1])
            producer.retries.record_many(again, now)
            topic.retries.record_many(again, now)
            records, sizes = tuple(map(mul, records, attempts)), tuple(map(mul, sizes, attempts))
        sums = summary(records)
        producer.records.record_many(sums, now)
        topic.records.record_many(sums, now)
        topic.bytes.record_many(summary(sizes), now)

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
        self._use_group(event.group)
        self.coordinator.commit.record(event.seconds * 1000, now)
        if event.error is None:
            _entry(self.commit_seconds, event.group, _latencies).record(event.seconds)
        else:
            _add(self.failed_commits, event.group, 1)

    def acknowledgement_ended(self, event: AcknowledgementEnded, now: float) -> None:
        """Count acknowledgements of a share consumer."""
        self._use_group(event.group)
        self.share_fetches.acknowledgements.record(event.records, now)
        if event.error is None:
            _add(self.acknowledged, event.group, event.records)
        else:
            self.share_fetches.acknowledgement_errors.record(event.records, now)
            _add(self.failed_acknowledgements, event.group, event.records)

    def rebalance_ended(self, event: RebalanceEnded, now: float, *, is_share: bool) -> None:
        """Count a rebalance; ``is_share`` says whether the group is a share group."""
        self._use_group(event.group)
        if is_share:
            self.share_coordinator.rebalance.record(event.seconds * 1000, now)
        else:
            self.coordinator.rebalance.record(event.seconds * 1000, now)
            self.last_rebalance = now
        _entry(self.rebalance_seconds, event.group, _latencies).record(event.seconds)

    def partitions_lost(self, event: PartitionsLost) -> None:
        """Count lost partitions."""
        self._use_group(event.group)
        _add(self.lost_partitions, event.group, len(event.partitions))

    def _use_group(self, group: str) -> None:
        """Drop the values of the group that was unused longest, if there are too many: programs may make new ones."""
        self._groups.pop(group, None)
        self._groups[group] = None
        if len(self._groups) <= MAX_GROUPS:
            return
        oldest = next(iter(self._groups))
        del self._groups[oldest]
        for times in (self.commit_seconds, self.rebalance_seconds):
            times.pop(oldest, None)
        for totals in (self.failed_commits, self.lost_partitions, self.acknowledged, self.failed_acknowledgements):
            totals.pop(oldest, None)


def _grouped(notes: Sequence[NoteT]) -> Mapping[Any, Sequence[NoteT]]:
    """Return the notes, of which there is at least one, by what each begins with."""
    keys = [note[0] for note in notes]
    if keys.count(keys[0]) == len(keys):  # as mostly, and counted in a fraction of the time
        return {keys[0]: notes}
    groups: dict[Any, list[NoteT]] = {}
    for note in notes:
        same = groups.get(note[0])
        if same is None:
            groups[note[0]] = [note]
        else:
            same.append(note)
    return groups


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
