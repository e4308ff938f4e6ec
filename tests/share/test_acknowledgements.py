"""Acknowledgements that wait to be sent, and their results."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import pytest

from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.errors import AcknowledgementFailed, KafkaError, UnsupportedVersion, broker_error
from aiokafkawire.share.acknowledgement_queue import AcknowledgementQueue
from aiokafkawire.share.acknowledgements import (
    GAP,
    Acknowledge,
    AcknowledgedOffsets,
    PendingAcknowledgements,
    as_batches,
)
from aiokafkawire.share.acquired_partition import AcquiredPartition
from aiokafkawire.share.fetch_size import FetchSize
from aiokafkawire.types import TopicPartition

ACCEPT, RELEASE, REJECT, RENEW = Acknowledge
KEY = (UUID(int=1), 0)
PARTITION = TopicPartition("t", 0)


def of_user(first: int, last: int, kind: Acknowledge = ACCEPT) -> AcknowledgedOffsets:
    return AcknowledgedOffsets(first, last, kind, by_user=True)


def sent_form(ranges: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, list[int]]]:
    batches = as_batches([AcknowledgedOffsets(*part) for part in ranges])
    return [(batch.first_offset, batch.last_offset, list(batch.acknowledge_types)) for batch in batches]


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], []),
        ([(3, 5, ACCEPT)], [(3, 5, [1])]),
        ([(3, 5, ACCEPT), (6, 6, ACCEPT)], [(3, 6, [1])]),
        ([(6, 6, REJECT), (3, 5, ACCEPT)], [(3, 6, [1, 1, 1, 3])]),
        ([(3, 3, ACCEPT), (5, 5, RELEASE)], [(3, 3, [1]), (5, 5, [2])]),
        ([(0, 1, GAP), (2, 2, RENEW)], [(0, 2, [0, 0, 4])]),
    ],
)
def test_requests_have_ordered_ranges(
    ranges: list[tuple[int, int, int]], expected: list[tuple[int, int, list[int]]]
) -> None:
    assert sent_form(ranges) == expected


def test_an_acknowledgement_replaces_a_renewal() -> None:
    pending = PendingAcknowledgements()
    pending.add(of_user(1, 3, RENEW), 1)
    pending.add(of_user(2, 2), 2)
    assert pending.renews
    assert pending.take(renewals=True) == [of_user(1, 1, RENEW), of_user(2, 2), of_user(3, 3, RENEW)]
    assert not pending
    assert pending.since is None


def test_adjacent_ranges_of_a_kind_are_one() -> None:
    pending = PendingAcknowledgements()
    for part in (of_user(3, 3), of_user(4, 6), of_user(7, 7, REJECT), AcknowledgedOffsets(8, 8, REJECT)):
        pending.add(part, 1)
    expected = [of_user(3, 6), of_user(7, 7, REJECT), AcknowledgedOffsets(8, 8, REJECT)]
    assert pending.take(renewals=True) == expected


def test_some_of_a_range_can_be_dropped() -> None:
    pending = PendingAcknowledgements()
    pending.add(AcknowledgedOffsets(0, 0, ACCEPT, by_user=True, is_late=True), 1)
    pending.add(of_user(1, 3), 2)
    assert pending.drop(2, 2) == 1
    assert pending.take(renewals=True) == [of_user(1, 1), of_user(3, 3)]


def test_renewals_can_wait() -> None:
    pending = PendingAcknowledgements()
    pending.add(of_user(1, 1, RENEW), 1)
    pending.add(of_user(2, 2), 2)
    assert pending.take(renewals=False) == [of_user(2, 2)]
    assert (bool(pending), pending.since) == (True, 1)


def queue_with(*parts: AcknowledgedOffsets, lock_end: float = 10.0) -> tuple[AcknowledgementQueue, AcquiredPartition]:
    queue, acquisition = AcknowledgementQueue(), AcquiredPartition(KEY, PARTITION, 7, lock_end)
    for part in parts:
        queue.add(acquisition, part, 0.0)
    return queue, acquisition


def test_acknowledgements_linger_until_the_first_is_due() -> None:
    queue, acquisition = queue_with()
    assert queue.flush_at is None
    assert queue.add(acquisition, of_user(0, 0), 5.0)
    assert not queue.add(acquisition, of_user(1, 1), 5.04)
    assert queue.flush_at == pytest.approx(5.05)
    assert queue.by_broker(lambda _: 3) == {3: [KEY]}
    assert queue.by_broker(lambda _: None) == {7: [KEY]}
    queue.take([KEY], renewals=True)
    assert queue.by_broker(lambda _: 3) == {}
    assert queue.flush_at is None


def test_a_commit_waits_for_what_was_acknowledged_before() -> None:
    queue, acquisition = queue_with(of_user(0, 0))
    number = queue.number
    sent = queue.take([KEY], renewals=True)
    queue.add(acquisition, of_user(1, 1), 1.0)
    assert queue.unsettled(number)
    queue.settle(sent, KEY, None)
    queue.ended(sent)
    assert not queue.unsettled(number)
    assert queue.unsettled(queue.number)
    assert queue.results.take() == {PARTITION: 1}
    assert queue.results.take() == {}


def test_what_the_client_acknowledges_itself_is_no_result() -> None:
    queue, _ = queue_with(AcknowledgedOffsets(0, 4, GAP), of_user(5, 6), AcknowledgedOffsets(7, 7, RELEASE))
    sent = queue.take([KEY], renewals=True)
    queue.settle(sent, KEY, None)
    assert queue.results.take() == {PARTITION: 2}


def test_a_refusal_is_raised_with_what_was_taken() -> None:
    queue, acquisition = queue_with(of_user(0, 1))
    queue.settle(queue.take([KEY], renewals=True), KEY, None)
    queue.add(acquisition, of_user(2, 2), 1.0)
    error: KafkaError = broker_error(ErrorCode.INVALID_RECORD_STATE, "t-0")
    queue.refused(queue.take([KEY], renewals=True), error)
    with pytest.raises(AcknowledgementFailed, match="t-0") as raised:
        queue.results.take()
    assert (raised.value.errors, raised.value.acknowledged) == ({PARTITION: error}, {PARTITION: 2})
    assert queue.results.take() == {}


@pytest.mark.parametrize(
    ("code", "now", "again"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1.0, True),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 11.0, False),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1.0, False),
        (ErrorCode.INVALID_RECORD_STATE, 1.0, False),
    ],
)
def test_errors_that_pass_are_retried_while_the_lock_holds(code: ErrorCode, now: float, again: bool) -> None:
    queue, _ = queue_with(of_user(0, 1), lock_end=10.0)
    sent = queue.take([KEY], renewals=True)
    queue.settle_or_retry(sent, KEY, broker_error(code, "t-0"), now)
    queue.ended(sent)
    assert queue.unsettled(queue.number) is again
    assert (queue.by_broker(lambda _: 1) == {1: [KEY]}) is again


def test_what_comes_after_a_request_waits_as_long_as_what_came_before() -> None:
    queue, acquisition = queue_with(of_user(0, 0))
    assert queue.flush_at == 0.05
    queue.ended(queue.take([KEY], renewals=True))
    assert queue.flush_at is None
    queue.add(acquisition, of_user(1, 1), 9.0)
    assert queue.flush_at == 9.05


def test_without_renewals_the_rest_is_sent_again() -> None:
    queue, _ = queue_with(of_user(0, 0), AcknowledgedOffsets(1, 1, RENEW))
    sent = queue.take([KEY], renewals=True)
    assert sent.renews
    queue.renewals_unsupported(sent, UnsupportedVersion("no renewals"), now=1.0)
    queue.ended(sent)
    assert queue.take([KEY], renewals=True).ranges == {KEY: [of_user(0, 0)]}


def test_a_quick_user_gets_more_and_a_slow_one_less() -> None:
    size = FetchSize(100)
    assert size.records == 1
    for _ in range(10):
        size.taken(0.1, 30.0)
    assert size.records == 400
    size.taken(5.0, 30.0)
    assert size.records == 400
    size.taken(8.0, 30.0)
    assert size.records == 200
    for _ in range(10):
        size.taken(8.0, 30.0)
    assert size.records == 1


@pytest.mark.parametrize(
    ("records", "unread", "requested", "expected"),
    [(1, 0, 0, False), (1, 0, 1, True), (8, 3, 0, True), (8, 4, 0, False), (8, 3, 5, False), (8, 0, 5, True)],
)
def test_records_are_fetched_ahead_of_a_quick_user(records: int, unread: int, requested: int, expected: bool) -> None:
    size = FetchSize(100)
    size.records = records
    assert size.wants(unread, requested) is expected


def test_half_of_a_large_fetch_is_left_when_a_quick_user_needs_the_next() -> None:
    size = FetchSize(100)
    size.arrived(9_000)
    assert not size.wants(1, 0)
    size.taken(0.1, 30.0)
    assert size.wants(4_499, 0)
    assert not size.wants(4_500, 0)
    size.taken(5.0, 30.0)
    assert not size.wants(1, 0)


def test_a_renewal_does_not_come_beside_another_acknowledgement_of_the_record() -> None:
    pending = PendingAcknowledgements()
    pending.add(AcknowledgedOffsets(1, 3, Acknowledge.ACCEPT), 2)
    pending.add(AcknowledgedOffsets(9, 9, Acknowledge.ACCEPT, is_late=True), 2)
    for offset in (3, 4, 9):
        pending.add(AcknowledgedOffsets(offset, offset, Acknowledge.RENEW), 1)
    assert [part[:3] for part in pending.take(renewals=True)] == [
        (1, 3, Acknowledge.ACCEPT),
        (4, 4, Acknowledge.RENEW),
    ]
