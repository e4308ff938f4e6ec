"""The scenarios' checks can fail."""

import logging
import re
from collections.abc import Callable

import pytest
from simulation.checks import (
    Journal,
    Logs,
    Sent,
    check_once_and_in_order,
    check_origin,
    check_reading,
    check_writing,
    no_task_fails_unheard,
)
from simulation.transaction_checks import End, Wrote, check_all_or_nothing, check_offsets, check_order

from aiokafkawire import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
LOGS: Logs = {A0: [(0, b"x"), (1, b"y"), (2, b"y"), (4, b"z")], A1: []}


def journal(*sent: Sent, once: bool = False, durable: bool = True, in_turn: bool = True) -> Journal:
    return Journal(once, durable, in_turn, list(sent))


def wrote(end: End, *values: bytes, turn: int = 0, offset: int | None = None) -> Wrote:
    return Wrote("w", (turn, 0), end, list(values), {} if offset is None else {A0: offset})


def test_a_log_that_was_read_and_written_in_order_is_right() -> None:
    check_reading({A0: list(LOGS[A0])}, LOGS)
    sent = journal(Sent(b"x", A0, 0), Sent(b"failed"), Sent(b"y", A0, 2), Sent(b"z", A0, -1))
    check_writing(sent, LOGS)
    check_origin([sent], LOGS)
    check_once_and_in_order(sent, LOGS)  # which it need not be


def test_one_who_asks_the_leader_alone_may_lose_what_was_acknowledged() -> None:
    check_writing(journal(Sent(b"lost", A0, 1), durable=False), LOGS)


def test_one_with_several_requests_in_flight_and_no_numbers_may_be_out_of_order() -> None:
    check_writing(journal(Sent(b"y", A0, 1), Sent(b"x", A0, 0), in_turn=False), LOGS)


def test_transactions_that_are_whole_are_right_and_doubts_are_cleared() -> None:
    logs: Logs = {A0: [(0, b"x"), (2, b"u"), (3, b"v")]}
    doubts = [wrote(End.UNKNOWN, b"u", b"v", turn=1), wrote(End.UNKNOWN, b"w", turn=2), wrote(End.UNKNOWN, turn=3)]
    mine = [wrote(End.COMMITTED, b"x"), *doubts, wrote(End.ABORTED, b"a", turn=4)]
    check_order(mine, logs)
    check_all_or_nothing(mine, logs)
    assert [one.end for one in doubts] == [End.COMMITTED, End.ABORTED, End.UNKNOWN]


def test_a_group_is_where_its_last_transaction_has_put_it_or_one_in_doubt() -> None:
    mine = [wrote(End.COMMITTED, offset=1), wrote(End.UNKNOWN, turn=1, offset=2), wrote(End.ABORTED, turn=2, offset=3)]
    for offset in (1, 2):
        check_offsets(mine, {"w": {A0: offset, A1: -1}})


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (lambda: check_reading({A0: [(0, b"x"), (1, b"y")]}, LOGS), "2 of 4"),
        (lambda: check_reading({A0: [(0, b"x"), (2, b"y"), (1, b"y"), (4, b"z")]}, LOGS), "first wrong one is 1"),
        (lambda: check_reading({}, LOGS), "0 of 4"),
        (lambda: check_writing(journal(Sent(b"x", A0, 1)), LOGS), "was acknowledged, and there is b'y'"),
        (lambda: check_writing(journal(Sent(b"w", A1, 0)), LOGS), "there is b'nothing'"),
        (lambda: check_writing(journal(Sent(b"w", A0)), LOGS), "was acknowledged, and is not there"),
        (
            lambda: check_writing(journal(Sent(b"y", A0, 1), Sent(b"x", A0, 0)), LOGS),
            "is before what was sent before it",
        ),
        (lambda: check_once_and_in_order(journal(Sent(b"y"), once=True), LOGS), "at 1 and at 2: twice"),
        (
            lambda: check_once_and_in_order(journal(Sent(b"z"), Sent(b"x"), once=True), LOGS),
            "is in a-0 at 4, behind what was sent later: b'x'",
        ),
        (lambda: check_origin([journal(Sent(b"x"), Sent(b"y"))], LOGS), "b'z' in a-0 was never sent"),
        (
            lambda: check_origin([journal(Sent(b"x"))], {A0: [(0, b"x")], A1: [(0, b"x")]}),
            "is in a-1 and in a-0",
        ),
    ],
)
def test_what_is_wrong_is_found(check: Callable[[], None], told: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(told)):
        check()


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (lambda: check_all_or_nothing([wrote(End.COMMITTED, b"x", b"u")], {A0: [(0, b"x")]}), "1 of 2 records"),
        (lambda: check_all_or_nothing([wrote(End.UNKNOWN, b"x", b"u")], {A0: [(0, b"x")]}), "1 of 2 records"),
        (lambda: check_all_or_nothing([wrote(End.ABORTED, b"x")], {A0: [(0, b"x")]}), "1 of 1 records"),
        (lambda: check_all_or_nothing([wrote(End.COMMITTED, b"x")], {A0: [(0, b"x"), (1, b"x")]}), "2 times"),
        (lambda: check_all_or_nothing([], {A0: [(0, b"x")]}), "nobody has sent it"),
        (
            lambda: check_order([wrote(End.ABORTED, b"x", b"y")], {A0: [(0, b"y"), (1, b"x")]}),
            "behind (0, 0, 1)",
        ),
        (lambda: check_order([wrote(End.ABORTED, b"x")], {A0: [(0, b"x"), (1, b"x")]}), "twice, again at 1"),
        (
            lambda: check_order(
                [wrote(End.COMMITTED, b"x", turn=1), wrote(End.COMMITTED, b"y", turn=2)], {A0: [(0, b"y"), (1, b"x")]}
            ),
            "behind (2, 0, 0)",
        ),
        (lambda: check_offsets([wrote(End.ABORTED, offset=3)], {"w": {A0: 3}}), "is at 3"),
        (
            lambda: check_offsets(
                [wrote(End.COMMITTED, offset=3), wrote(End.COMMITTED, turn=1, offset=4)], {"w": {A0: 3}}
            ),
            "is at 3",
        ),
        (lambda: check_offsets([wrote(End.COMMITTED, offset=3)], {"w": {A0: -1}}), "is at -1"),
    ],
)
def test_what_is_wrong_with_transactions_is_found(check: Callable[[], None], told: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(told)):
        check()


def test_a_background_task_that_failed_is_heard() -> None:
    with pytest.raises(AssertionError, match="a background task failed"), no_task_fails_unheard():
        logging.getLogger("aiokafkawire").error("a background task failed")
