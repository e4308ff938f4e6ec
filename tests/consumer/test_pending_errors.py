"""Errors are kept back while a retry may mend them, for each partition and no longer than allowed."""

from aiokafkawire.consumer.pending_errors import PendingErrors
from aiokafkawire.consumer.subscription_state import PartitionState, SubscriptionState
from aiokafkawire.errors import (
    ConnectionLost,
    ErrorCode,
    OffsetOutOfRange,
    RequestTimeout,
    TopicAuthorizationFailed,
    broker_error,
)
from aiokafkawire.types import TopicPartition

ONE, TWO = TopicPartition("a", 0), TopicPartition("a", 1)
GONE = ConnectionLost("b:1 closed the connection")


def troubles(limit: float = 10.0) -> tuple[PendingErrors, PartitionState, PartitionState, SubscriptionState]:
    positions = SubscriptionState(None)
    positions.assign({ONE: 0, TWO: 0})
    return PendingErrors(positions, limit), positions.require(ONE), positions.require(TWO), positions


def test_what_a_retry_mends_is_told_when_it_lasts() -> None:
    kept, one, _, _ = troubles()
    kept.failed([one], GONE, began=0.0, now=9.9)
    assert kept.next() is None
    kept.failed([one], GONE, began=9.9, now=10.0)
    told = kept.next()
    assert isinstance(told, RequestTimeout)
    assert str(told) == "cannot fetch a-0 for 10 s (default_api_timeout_ms): b:1 closed the connection"
    assert told.__cause__ is GONE
    assert kept.next() is None


def test_trouble_that_goes_on_is_told_again_after_as_long() -> None:
    kept, one, _, _ = troubles()
    kept.failed([one], GONE, began=0.0, now=10.0)
    assert kept.next() is not None
    kept.failed([one], GONE, began=10.0, now=19.9)
    assert kept.next() is None
    kept.failed([one], GONE, began=19.9, now=20.0)
    assert kept.next() is not None


def test_an_answer_ends_it_for_its_partition_alone() -> None:
    kept, one, two, _ = troubles()
    kept.failed([one, two], GONE, began=0.0, now=5.0)
    kept.clear(ONE)
    kept.failed([one, two], GONE, began=9.0, now=10.0)
    told = kept.next()
    assert told is not None
    assert "cannot fetch a-1 for" in str(told)
    assert kept.next() is None


def test_what_no_retry_mends_is_told_at_once() -> None:
    kept, one, _, _ = troubles()
    kept.failed([one], broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "a"), began=0.0, now=0.1)
    assert isinstance(kept.next(), TopicAuthorizationFailed)


def test_an_offset_out_of_range_is_looked_up_anew_and_so_may_mend() -> None:
    kept, one, _, _ = troubles()
    kept.failed([one], OffsetOutOfRange("a-0 at offset 5"), began=0.0, now=0.1)
    assert kept.next() is None


def test_nobody_hears_of_a_place_that_was_left() -> None:
    kept, one, two, positions = troubles()
    kept.report(one, GONE)
    kept.report(two, GONE)
    positions.seek(ONE, 7)
    positions.assign({ONE: None})
    assert kept.next() is None


def test_partitions_that_nobody_reads_are_not_in_trouble() -> None:
    kept, one, _, _ = troubles()
    kept.failed([one], GONE, began=0.0, now=5.0)
    kept.forget_all_but([TWO])
    kept.failed([one], GONE, began=9.0, now=10.0)
    assert kept.next() is None


def test_a_failure_that_concerns_no_place_is_nobodys() -> None:
    kept, _, _, _ = troubles()
    kept.failed([], broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED), began=0.0, now=99.0)
    assert kept.next() is None
