"""When heartbeats are sent for a member whose loop is blocked, and until when."""

from __future__ import annotations

import attrs
import pytest

from aiokafkawire.errors import ConnectionLost, ErrorCode
from aiokafkawire.group.background_heartbeat_schedule import (
    LINGER,
    HeartbeatAction,
    HeartbeatMember,
    HeartbeatReport,
    HeartbeatSchedule,
)
from aiokafkawire.protocol.messages.group import HeartbeatRequest
from aiokafkawire.types import Address

REQUEST = HeartbeatRequest(group_id="g", generation_id=7, member_id="m")
MEMBER = HeartbeatMember(Address("b", 1), REQUEST, "g", 7, "m", interval=2.0, request_timeout=32.0)
NEXT = attrs.evolve(MEMBER, generation_id=8)
LOST = ConnectionLost("gone")


def made(member: HeartbeatMember | None = MEMBER) -> HeartbeatSchedule:
    schedule = HeartbeatSchedule(max_poll_interval=20.0, backoff=0.5, backoff_max=1.0)
    schedule.set_member(member, 0.0)
    return schedule


def test_nothing_is_due_without_a_member() -> None:
    assert made(None).step(100.0) == (HeartbeatAction.WAIT, None)


@pytest.mark.parametrize(
    ("now", "due"),
    [
        (0.0, (HeartbeatAction.WAIT, 3.0)),  # one and a half intervals after the membership was confirmed
        (2.5, (HeartbeatAction.WAIT, 0.5)),
        (3.0, (HeartbeatAction.SEND, 0.0)),
        (19.5, (HeartbeatAction.SEND, 0.0)),
        (20.0, (HeartbeatAction.WAIT, None)),
    ],
)
def test_a_silent_loop_is_helped_until_the_poll_interval_is_over(
    now: float, due: tuple[HeartbeatAction, float]
) -> None:
    assert made().step(now) == due


def test_a_loop_that_is_heard_of_needs_no_help() -> None:
    schedule = made()
    for now in (2.0, 4.0, 6.0):
        schedule.record_heartbeat(now)
        assert schedule.step(now + 1.0) == (HeartbeatAction.WAIT, 2.0)
    assert schedule.step(9.0) == (HeartbeatAction.SEND, 0.0)


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS])
def test_an_answer_counts_as_a_sign_of_life_from_when_it_was_asked_for(code: ErrorCode) -> None:
    schedule = made()
    assert schedule.answered(MEMBER, code, 3.0, 3.5) == HeartbeatReport(MEMBER, 3.5, code)
    assert schedule.step(5.0) == (HeartbeatAction.WAIT, 1.0)
    assert schedule.step(6.0) == (HeartbeatAction.SEND, 0.0)


def test_an_answer_does_not_make_the_loop_older_than_it_is() -> None:
    schedule = made()
    schedule.record_heartbeat(3.5)
    schedule.answered(MEMBER, ErrorCode.NONE, 3.0, 4.0)
    assert schedule.step(4.0) == (HeartbeatAction.WAIT, 2.5)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        999,
    ],
)
def test_what_ends_the_membership_ends_the_heartbeats(code: int) -> None:
    schedule = made()
    report = schedule.answered(MEMBER, code, 3.0, 3.0)
    assert report is not None
    assert (report.code, report.error is not None) == (code, True)
    assert schedule.step(15.0) == (HeartbeatAction.WAIT, LINGER - 12.0)
    assert not schedule.set_member(MEMBER, 15.0)  # it is not less over for being said again
    assert schedule.step(15.0) == (HeartbeatAction.WAIT, LINGER - 12.0)
    assert schedule.set_member(NEXT, 15.0)
    assert schedule.step(15.0) == (HeartbeatAction.WAIT, 3.0)


def test_the_end_of_another_membership_is_not_the_end_of_this() -> None:
    schedule = made()
    schedule.set_member(NEXT, 1.0)
    schedule.answered(MEMBER, ErrorCode.ILLEGAL_GENERATION, 1.0, 1.0)
    assert schedule.failed(MEMBER, LOST, 1.0) is None
    assert schedule.step(3.5) == (HeartbeatAction.WAIT, 0.5)
    assert schedule.step(4.0) == (HeartbeatAction.SEND, 0.0)


def test_after_failures_come_rests_that_double_and_one_report() -> None:
    schedule = made()
    assert schedule.failed(MEMBER, LOST, 3.0) == HeartbeatReport(MEMBER, 3.0, error=LOST)
    assert schedule.step(3.0) == (HeartbeatAction.WAIT, 0.5)
    assert schedule.failed(MEMBER, LOST, 3.5) is None
    assert schedule.step(3.5) == (HeartbeatAction.WAIT, 1.0)
    assert schedule.failed(MEMBER, LOST, 4.5) is None
    assert schedule.step(4.5) == (HeartbeatAction.WAIT, 1.0)  # the longest
    schedule.answered(MEMBER, ErrorCode.NONE, 5.5, 5.5)
    assert schedule.failed(MEMBER, LOST, 8.5) is not None
    assert schedule.step(8.5) == (HeartbeatAction.WAIT, 0.5)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS],
)
def test_a_coordinator_that_is_elsewhere_is_asked_again(code: ErrorCode) -> None:
    schedule = made()
    report = schedule.answered(MEMBER, code, 3.0, 3.0)
    assert report is not None
    assert (report.code, report.error is not None) == (None, True)
    assert schedule.step(3.0) == (HeartbeatAction.WAIT, 0.5)
    assert schedule.answered(MEMBER, code, 3.5, 3.5) is None
    assert schedule.step(4.5) == (HeartbeatAction.SEND, 0.0)


def test_heartbeats_end_with_the_poll_interval_and_begin_again_with_a_poll() -> None:
    schedule = made()
    assert schedule.step(20.0) == (HeartbeatAction.WAIT, None)
    schedule.record_poll(21.0)
    assert schedule.step(21.0) == (HeartbeatAction.SEND, 0.0)
    schedule.record_heartbeat(38.0)
    assert schedule.step(38.0) == (HeartbeatAction.WAIT, None)  # the next would be due when the poll interval is over
    schedule.record_poll(39.0)
    assert schedule.step(39.0) == (HeartbeatAction.WAIT, 2.0)


def test_another_generation_is_no_poll() -> None:
    schedule = made()
    schedule.set_member(NEXT, 19.0)
    assert schedule.step(19.0) == (HeartbeatAction.WAIT, None)


def test_a_connection_that_is_not_needed_is_closed_after_a_while() -> None:
    schedule = made()
    schedule.answered(MEMBER, ErrorCode.NONE, 3.0, 3.0)
    schedule.set_member(None, 4.0)
    assert schedule.step(4.0) == (HeartbeatAction.WAIT, LINGER - 1.0)
    assert schedule.step(3.0 + LINGER) == (HeartbeatAction.DISCONNECT, 0.0)
    assert schedule.step(3.0 + LINGER) == (HeartbeatAction.WAIT, None)
