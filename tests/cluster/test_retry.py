"""Deadlines, waits and remedies: decided from numbers alone."""

from random import Random

import pytest
from support.rows import every_row

from aiokafkawire import errors
from aiokafkawire.cluster.retry import Backoff, Deadline, retry_action
from aiokafkawire.errors import (
    BrokerError,
    ConnectionLost,
    ErrorCode,
    InvalidMessage,
    NoBrokerReachable,
    Refresh,
    RequestTimeout,
    TopicNotReady,
    UnsupportedVersion,
    UsageError,
    WireError,
    broker_error,
)


def test_waits_double_up_to_their_limit_give_or_take_a_fifth() -> None:
    backoff = Backoff(0.1, 1.0, Random(3))
    for around in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0):
        assert 0.8 * around <= backoff.next() <= 1.2 * around


def test_waits_differ_from_one_client_to_the_next() -> None:
    waits = [Backoff(0.1, 1.0, Random(seed)).next() for seed in range(200)]
    assert len(set(waits)) == 200
    assert min(waits) < 0.085
    assert max(waits) > 0.115


def test_a_success_begins_the_waits_anew() -> None:
    backoff = Backoff(0.1, 1.0, Random(3))
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 0.12


def test_a_limit_below_the_first_wait_does_not_shorten_it() -> None:
    backoff = Backoff(0.5, 0.1, Random(3))
    assert all(0.4 <= backoff.next() <= 0.6 for _ in range(10))


def test_waits_never_overflow() -> None:
    backoff = Backoff(0.1, 1.0, Random(3))
    assert max(backoff.next() for _ in range(5000)) <= 1.2


def test_no_wait_stays_no_wait() -> None:
    backoff = Backoff(0, 0, Random(3))
    assert [backoff.next() for _ in range(3)] == [0, 0, 0]


def test_a_deadline_counts_down_to_zero_and_no_further() -> None:
    deadline = Deadline.after(30, now=100.0)
    assert (deadline.at, deadline.allowed) == (130.0, 30)
    assert [deadline.left(now) for now in (100.0, 129.0, 130.0, 140.0)] == [30, 1, 0, 0]
    assert [deadline.passed(now) for now in (100.0, 129.9, 130.0, 140.0)] == [False, False, True, True]


@pytest.mark.parametrize("error", [ConnectionLost("x"), RequestTimeout("x"), NoBrokerReachable("x")], ids=repr)
def test_a_broken_or_silent_connection_is_tried_elsewhere(error: Exception) -> None:
    assert retry_action(error) == (True, Refresh.METADATA)


@pytest.mark.parametrize(
    "error",
    [
        WireError("x"),
        UsageError("x"),
        InvalidMessage("x"),
        UnsupportedVersion("x"),
        TopicNotReady("x"),
        ValueError("x"),
    ],
    ids=repr,
)
def test_what_no_retry_mends_is_raised(error: Exception) -> None:
    assert retry_action(error) == (False, Refresh.NOTHING)


@every_row("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_what_a_broker_answers_is_retried_as_its_error_says(code: ErrorCode) -> None:
    error = broker_error(code)
    assert isinstance(error, BrokerError)
    assert retry_action(error) == (error.retriable, error.refresh)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NotLeaderOrFollower", (True, Refresh.METADATA)),
        ("NotCoordinator", (True, Refresh.COORDINATOR)),
        ("NotEnoughReplicas", (True, Refresh.NOTHING)),
        ("TopicAuthorizationFailed", (False, Refresh.NOTHING)),
    ],
)
def test_the_remedies_that_everything_rests_on(name: str, expected: tuple[bool, Refresh]) -> None:
    assert retry_action(getattr(errors, name)("x")) == expected
