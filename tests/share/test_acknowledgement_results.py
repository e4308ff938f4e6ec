"""The acknowledgements of a share consumer: what a request carries, and what a commit returns."""

from __future__ import annotations

from uuid import UUID

import pytest

from aiokafkawire import Acknowledge, AcknowledgementFailed, KafkaError, TopicPartition
from aiokafkawire.errors import ErrorCode, UnsupportedVersion, broker_error
from aiokafkawire.share.acknowledgement_queue import AcknowledgementQueue
from aiokafkawire.share.acknowledgements import GAP, AcknowledgedOffsets
from aiokafkawire.share.acquired_partition import AcquiredPartition

KEY = (UUID(int=1), 0)
PARTITION = TopicPartition("topic", 0)
ACQUISITION = AcquiredPartition(KEY, PARTITION, node_id=1, lock_end=30.0)
REFUSED = broker_error(ErrorCode.INVALID_RECORD_STATE, "topic-0")


def accept(offset: int, *, is_late: bool = False) -> AcknowledgedOffsets:
    return AcknowledgedOffsets(offset, offset, Acknowledge.ACCEPT, by_user=True, is_late=is_late)


def renew(offset: int, *, by_user: bool = False) -> AcknowledgedOffsets:
    return AcknowledgedOffsets(offset, offset, Acknowledge.RENEW, by_user=by_user)


def queue_of(*parts: AcknowledgedOffsets) -> AcknowledgementQueue:
    queue = AcknowledgementQueue()
    for part in parts:
        queue.add(ACQUISITION, part, now=0.0)
    return queue


def test_late_acknowledgements_have_a_request_of_their_own() -> None:
    queue = queue_of(accept(1, is_late=True), accept(2), accept(3))
    assert queue.needs_two_requests([KEY])
    first = queue.take([KEY], renewals=True)
    assert first.ranges == {KEY: [accept(2)._replace(last=3)]}
    assert not queue.needs_two_requests([KEY])
    queue.settle(first, KEY, None)
    queue.ended(first)
    assert queue.unsettled(queue.number)
    second = queue.take([KEY], renewals=True)
    assert second.ranges == {KEY: [accept(1, is_late=True)]}
    queue.settle(second, KEY, REFUSED)
    queue.ended(second)
    assert not queue.unsettled(queue.number)
    with pytest.raises(AcknowledgementFailed) as raised:
        queue.results.take()
    assert raised.value.acknowledged == {PARTITION: 2}


def test_a_commit_returns_nothing_of_what_the_client_has_sent_itself() -> None:
    queue = queue_of(renew(1), AcknowledgedOffsets(2, 5, GAP))
    sent = queue.take([KEY], renewals=True)
    queue.settle(sent, KEY, REFUSED)
    assert queue.results.take() == {}
    queue.settle(sent, KEY, None)
    assert queue.results.take() == {}


def test_acknowledgements_that_were_put_back_are_due_without_a_fetch() -> None:
    queue = queue_of(accept(1))
    sent = queue.take([KEY], renewals=True)
    queue.by_broker(lambda partition: 1)
    assert queue.flush_at is None
    queue.put_back(sent, now=5.0)
    queue.ended(sent)
    assert queue.flush_at is not None
    assert queue.by_broker(lambda partition: 1) == {1: [KEY]}


def test_acknowledgements_after_an_error_that_may_pass_are_due_without_a_fetch() -> None:
    queue = queue_of(accept(1))
    sent = queue.take([KEY], renewals=True)
    queue.by_broker(lambda partition: 1)
    queue.settle_or_retry(sent, KEY, broker_error(ErrorCode.COORDINATOR_NOT_AVAILABLE, "topic-0"), now=5.0)
    queue.ended(sent)
    assert queue.flush_at is not None
    assert queue.by_broker(lambda partition: 1) == {1: [KEY]}


def test_a_renewal_of_the_user_fails_if_the_broker_has_no_renewals() -> None:
    queue = queue_of(renew(1, by_user=True), renew(2), accept(3))
    sent = queue.take([KEY], renewals=True)
    error: KafkaError = UnsupportedVersion("no renewals")
    queue.by_broker(lambda partition: 1)
    queue.renewals_unsupported(sent, error, now=5.0)
    queue.ended(sent)
    again = queue.take([KEY], renewals=True)
    assert again.ranges == {KEY: [accept(3)]}
    queue.settle(again, KEY, None)
    queue.ended(again)
    with pytest.raises(AcknowledgementFailed) as raised:
        queue.results.take()
    assert (raised.value.errors, raised.value.acknowledged) == ({PARTITION: error}, {PARTITION: 1})


def test_only_acknowledgements_without_a_result_are_refused_or_put_back() -> None:
    other = (UUID(int=2), 0)
    queue = queue_of(accept(1))
    queue.add(AcquiredPartition(other, TopicPartition("other", 0), node_id=1, lock_end=30.0), accept(7), now=0.0)
    sent = queue.take([KEY, other], renewals=True)
    queue.settle(sent, KEY, None)
    queue.refused(sent, REFUSED)
    queue.put_back(sent, now=5.0)
    queue.ended(sent)
    assert queue.by_broker(lambda partition: 1) == {}
    with pytest.raises(AcknowledgementFailed) as raised:
        queue.results.take()
    assert (raised.value.errors, raised.value.acknowledged) == ({("other", 0): REFUSED}, {PARTITION: 1})


def test_acknowledgements_that_are_never_sent_fail() -> None:
    queue = queue_of(accept(1), accept(2, is_late=True), renew(3))
    queue.abandon(REFUSED)
    assert not queue.unsettled(queue.number)
    with pytest.raises(AcknowledgementFailed):
        queue.results.take()
