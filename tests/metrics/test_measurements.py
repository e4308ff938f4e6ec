"""What a client's events add up to: by producer, consumer and admin, by topic, broker and group."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from aiokafkawire import TopicPartition
from aiokafkawire.errors import AuthenticationFailed, ConnectionLost, KafkaError, RequestTimeout
from aiokafkawire.metrics import measurements
from aiokafkawire.metrics.definitions import DEFINITIONS
from aiokafkawire.metrics.measurements import Measurements
from aiokafkawire.metrics.parts import ADMIN, CONSUMER, PRODUCER, part_of, part_of_request
from aiokafkawire.metrics.windows import Histogram, SampledValue
from aiokafkawire.notes import BatchNote, ConnectionApi, RequestNote
from aiokafkawire.observe import (
    AcknowledgementEnded,
    CommitEnded,
    ConnectionFailed,
    ConnectionOpened,
    FetchEnded,
    PartitionsLost,
    RebalanceEnded,
    TransactionEnded,
)
from aiokafkawire.types import Address

BROKER = Address("b", 1)


def batch(
    topic: str = "orders",
    *,
    size: int = 1000,
    compressed: int = 500,
    attempts: int = 1,
    seconds: float = 0.25,
    queued: float = 0.125,
    failed: bool = False,
    now: float = 1.0,
) -> BatchNote:
    """Return the note of a batch of ten records."""
    return topic, 10, size, compressed, attempts, now - seconds, now - seconds + queued, failed, now


def request(
    api: str,
    lane: str = "control",
    *,
    received: int = 40,
    seconds: float = 0.5,
    throttle: float = 0.0,
    error: KafkaError | None = None,
    now: float = 1.0,
) -> RequestNote:
    """Return the note of a request of 100 bytes."""
    return kind(api, lane), 100, received, seconds, throttle, error, now


def rebalance(group: str) -> RebalanceEnded:
    return RebalanceEnded(
        group=group, member_id="m", generation=1, reason="", seconds=2.0, assigned=(), revoked=(), partitions=0
    )


def acknowledgement(group: str, error: KafkaError | None) -> AcknowledgementEnded:
    return AcknowledgementEnded(
        group=group, broker="b:1", node_id=1, partitions=(), records=3, seconds=0.1, error=error
    )


def kind(api: str, lane: str) -> ConnectionApi:
    return ConnectionApi(lane, api, 1, BROKER, {BROKER: 1}, throttle_leads=True)


def fetch(sizes: Mapping[TopicPartition, tuple[int, int | None]], lane: str = "fetch-1") -> FetchEnded:
    counts = [count for _, count in sizes.values()]
    return FetchEnded(
        broker="b:1",
        node_id=1,
        lane=lane,
        group="g",
        partitions=tuple(sizes),
        records=None if None in counts else sum(count or 0 for count in counts),
        counts=counts,
        size=sum(size for size, _ in sizes.values()),
        sizes=[size for size, _ in sizes.values()],
        seconds=0.25,
    )


def test_retries_count_as_sent_again() -> None:
    measured = Measurements()
    measured.batches_ended([batch(attempts=3), batch("other"), batch()])
    assert (measured.producer.records.total, measured.producer.retries.total) == (50, 20)
    orders = measured.produced["orders"]
    assert (orders.records.total, orders.retries.total, orders.bytes.total) == (40, 20, 2000)
    assert measured.producer.errors.total == 0


def test_a_batch_that_was_never_sent_has_only_failed() -> None:
    measured = Measurements()
    measured.batches_ended([batch(attempts=0, failed=True)])
    assert (measured.producer.errors.total, measured.produced["orders"].errors.total) == (10, 10)
    assert (measured.producer.records.count, measured.batch_seconds.count, measured.batch_bytes.count) == (0, 0, 0)


def test_sizes_and_times_of_batches() -> None:
    measured = Measurements()
    measured.batches_ended([batch()])
    producer = measured.producer
    assert (producer.batch_size.maximum(1.0), producer.queue.maximum(1.0)) == (500, 125)
    assert (producer.compression.average(1.0), producer.record_size.average(1.0)) == (0.5, 100)


@pytest.mark.parametrize(
    ("lane", "api", "part"),
    [
        ("produce-1", "Produce", PRODUCER),
        ("produce-1", "ApiVersions", PRODUCER),
        ("control", "EndTxn", PRODUCER),
        ("fetch-2", "Fetch", CONSUMER),
        ("group-2", "Heartbeat", CONSUMER),
        ("join-2", "JoinGroup", CONSUMER),
        ("commit-2", "OffsetCommit", CONSUMER),
        ("share-3", "ShareFetch", CONSUMER),
        ("control", "OffsetFetch", CONSUMER),
        ("control", "Metadata", ADMIN),
        ("admin", "OffsetFetch", ADMIN),
    ],
)
def test_requests_belong_to_a_part(lane: str, api: str, part: str) -> None:
    assert part_of_request(lane, api) == part
    measured = Measurements()
    measured.requests_ended([request(api, lane)])
    assert list(measured.requests) == [part]
    assert measured.node_requests[part, 1].sent.total == 100


@pytest.mark.parametrize(("lane", "part"), [("control", ADMIN), ("admin", ADMIN), ("produce-12", PRODUCER)])
def test_connections_belong_to_a_part(lane: str, part: str) -> None:
    measured = Measurements(uses_sasl=True)
    measured.connection_opened(ConnectionOpened(broker="b:1", node_id=1, lane=lane, seconds=0.1), 1.0)
    assert part_of(lane) == part
    assert (measured.connections[part].created.count, measured.connections[part].authentication.count) == (1, 1)


def test_refused_logins_are_counted_apart() -> None:
    measured = Measurements()
    for error in (ConnectionLost("gone"), AuthenticationFailed("wrong password")):
        failed = ConnectionFailed(broker="b:1", node_id=None, lane="control", seconds=0.1, error=error)
        measured.connection_failed(failed, 1.0)
    assert measured.failed_connections == {ADMIN: 2}
    assert measured.connections[ADMIN].failed_authentication.count == 1


def test_a_request_without_a_response_has_no_latency() -> None:
    measured = Measurements()
    failed = request("Produce", "produce-1", received=0, error=RequestTimeout("late"))
    unanswered = request("Produce", "produce-1", received=0, seconds=0.0)  # acks=0
    measured.requests_ended([failed, unanswered])
    sensors = measured.requests[PRODUCER]
    assert (sensors.sent.count, sensors.received.count, sensors.latency.count) == (2, 0, 0)
    assert (measured.failed_requests, measured.request_seconds) == ({"Produce": 1}, {})


def test_throttle_times_are_those_of_produce_and_fetch() -> None:
    measured = Measurements()
    admin = request("CreateTopics", "admin", throttle=2.0)
    measured.requests_ended([request("Produce", "produce-1", throttle=0.5), request("Fetch", "fetch-1"), admin])
    assert measured.producer.throttle.average(1.0) == 500
    assert measured.fetches.throttle.average(1.0) == 0
    assert measured.throttled_seconds == {"Produce": 0.5, "CreateTopics": 2.0}


def test_times_of_transactions() -> None:
    measured = Measurements()
    measured.requests_ended([request("InitProducerId"), request("EndTxn")])
    measured.transaction_ended(TransactionEnded(transactional_id="t", is_committed=False, seconds=3.0), 1.0)
    measured.requests_ended([request("EndTxn", seconds=0.25, now=2.0)])
    measured.transaction_ended(TransactionEnded(transactional_id="t", is_committed=True, seconds=4.0), 2.0)
    producer = measured.producer
    assert (producer.txn_init.total, producer.txn_abort.total, producer.txn_commit.total) == (5e8, 5e8, 2.5e8)
    assert {name: seconds.sum for name, seconds in measured.transaction_seconds.items()} == {
        "aborted": 3.0,
        "committed": 4.0,
    }


def test_a_fetch_is_divided_among_topics() -> None:
    measured = Measurements()
    sizes = {TopicPartition("a", 0): (100, 1), TopicPartition("a", 1): (200, 2), TopicPartition("b", 0): (400, 4)}
    measured.fetch_ended(fetch(sizes), 1.0)
    measured.fetch_ended(fetch({}), 2.0)
    assert (measured.fetches.bytes.maximum(2.0), measured.fetches.records.total) == (700, 7)
    assert measured.fetches.latency.count == 2
    found = {
        topic: (each.bytes.total, each.records.total, each.bytes.count) for topic, each in measured.fetched.items()
    }
    assert found == {"a": (300, 3, 1), "b": (400, 4, 1)}


def test_share_consumers_have_values_of_their_own() -> None:
    measured = Measurements()
    measured.fetch_ended(fetch({TopicPartition("a", 0): (100, 1)}, lane="share-1"), 1.0)
    measured.requests_ended([request("ShareGroupHeartbeat", "group-1", now=5.0)])
    measured.acknowledgement_ended(acknowledgement("s", RequestTimeout("late")), 5.0)
    assert (measured.share_fetches.records.total, measured.fetches.records.total) == (1, 0)
    assert (measured.last_share_heartbeat, measured.last_heartbeat) == (4.5, None)
    assert measured.share_fetches.acknowledgement_errors.total == 3
    assert (measured.acknowledged, measured.failed_acknowledgements) == ({}, {"s": 3})


def test_waits_of_producers_count_from_the_first_reading() -> None:
    measured = Measurements(waited=(5.0, 2, 1.0))
    measured.producers_waited(5.0, 2, 1.0, 10.0)
    measured.producers_waited(8.0, 3, 1.0, 40.0)
    measured.producers_waited(8.0, 3, 1.5, 70.0)
    producer = measured.producer
    assert (producer.buffer_wait.total, producer.exhausted.total, producer.metadata_wait.total) == (3e9, 1, 5e8)
    assert producer.buffer_wait.rate(40.0) == 3e9 / 30


def test_commits_and_rebalances_by_group() -> None:
    measured = Measurements()
    measured.commit_ended(CommitEnded(group="g", partitions=2, seconds=0.5, error=None), 1.0)
    measured.commit_ended(CommitEnded(group="g", partitions=2, seconds=0.5, error=RequestTimeout("late")), 1.0)
    measured.rebalance_ended(rebalance("g"), 1.0, is_share=False)
    assert measured.coordinator.commit.count == 2
    assert (measured.commit_seconds["g"].count, measured.failed_commits) == (1, {"g": 1})
    assert (measured.coordinator.rebalance.total, measured.last_rebalance) == (2000, 1.0)


def test_many_together_add_up_to_the_same_as_one_by_one() -> None:
    together, apart = Measurements(), Measurements()
    batches = [
        batch(
            f"t{number % 3}", compressed=64 << number % 5, attempts=number % 4, seconds=number / 8, failed=number == 9
        )
        for number in range(1, 25)
    ]
    apis = ["Produce", "Fetch", "ShareFetch", "Metadata", "Heartbeat", "JoinGroup", "SyncGroup", "AddOffsetsToTxn"]
    kinds = [kind(api, lane) for api in apis for lane in ("produce-1", "fetch-2", "admin")]
    late = RequestTimeout("late")
    requests: list[RequestNote] = [
        (kinds[number % 23], number, number % 5 * 100, number / 8, number % 3 / 4, None if number % 5 else late, 1.0)
        for number in range(100)
    ]
    together.batches_ended(batches)
    together.requests_ended(requests)
    for each in batches:
        apart.batches_ended([each])
    for one in requests:
        apart.requests_ended([one])
    assert contents(together) == contents(apart)


def contents(it: object) -> object:
    """Return all values that an object holds, in a form that compares."""
    if isinstance(it, SampledValue):
        return it.count, contents(it.total), it.last, it.maximum(it.last) if it.count else None
    if isinstance(it, Histogram):
        return it.counts, contents(it.sum)
    if isinstance(it, dict):
        return {key: contents(value) for key, value in it.items()}
    names = [*getattr(it, "__slots__", ()), *getattr(it, "__dict__", ())]
    if isinstance(it, float):
        return f"{it:.12g}"  # sum() of CPython 3.12 rounds less often than + does
    return {name: contents(getattr(it, name)) for name in names} if names else it


def test_topics_that_are_unused_longest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "MAX_TOPICS", 20)
    measured = Measurements()
    for number in range(100):
        measured.batches_ended([batch(f"t{number}", now=float(number)), batch("busy", now=float(number))])
        measured.fetch_ended(fetch({TopicPartition(f"t{number}", 0): (100, 1)}), float(number))
    assert 18 <= len(measured.produced) <= 20
    assert 18 <= len(measured.fetched) <= 20
    assert measured.produced["busy"].records.total == 1000
    assert {"t99", "t98"} <= measured.produced.keys() & measured.fetched.keys()
    assert measured.producer.records.total == 2000


def test_groups_that_are_unused_longest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "MAX_GROUPS", 20)
    measured = Measurements()
    error = ConnectionLost("gone")
    for number in range(100):
        for group in (f"g{number}", "busy"):
            measured.commit_ended(CommitEnded(group=group, partitions=1, seconds=0.1, error=None), 1.0)
            measured.commit_ended(CommitEnded(group=group, partitions=1, seconds=0.1, error=error), 1.0)
            measured.rebalance_ended(rebalance(group), 1.0, is_share=False)
            measured.partitions_lost(PartitionsLost(group=group, partitions=[TopicPartition("t", 0)], reason=""))
            for refusal in (None, error):
                measured.acknowledgement_ended(acknowledgement(group, refusal), 1.0)
    kept = {"busy", *(f"g{number}" for number in range(81, 100))}
    totals = (measured.failed_commits, measured.lost_partitions, measured.acknowledged)
    for by_group in (measured.commit_seconds, measured.rebalance_seconds, *totals, measured.failed_acknowledgements):
        assert by_group.keys() == kept
    assert measured.commit_seconds["busy"].count == 100


def test_every_metric_has_one_definition_and_a_sentence() -> None:
    keys = [(each.group, each.tags, each.name) for each in DEFINITIONS]
    assert len(keys) == len(set(keys))
    assert all(each.description for each in DEFINITIONS)
