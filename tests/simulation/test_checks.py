"""The scenario's checks can fail."""

import logging
import re
from collections.abc import Callable

import pytest
from simulation.scenario import Logs, Sent, check_origin, check_reading, check_writing, no_task_fails_unheard

from aiokafkawire import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
LOGS: Logs = {A0: [b"x", b"y", b"y", b"z"], A1: []}


def test_a_log_with_duplicates_that_was_read_and_written_in_order_is_right() -> None:
    check_reading({A0: [(0, b"x"), (1, b"y"), (2, b"y"), (3, b"z")]}, LOGS)
    sent = [Sent(b"x", A0, 0), Sent(b"failed"), Sent(b"y", A0, 2), Sent(b"z", A0, 3)]
    check_writing(sent, LOGS)
    check_origin([sent], LOGS)


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (lambda: check_reading({A0: [(0, b"x"), (1, b"y")]}, LOGS), "2 of 4"),
        (lambda: check_reading({A0: [(0, b"x"), (2, b"y"), (1, b"y"), (3, b"z")]}, LOGS), "first wrong one is 1"),
        (lambda: check_reading({}, LOGS), "0 of 4"),
        (lambda: check_writing([Sent(b"x", A0, 1)], LOGS), "was acknowledged, and there is b'y'"),
        (lambda: check_writing([Sent(b"w", A1, 0)], LOGS), "there is b'nothing'"),
        (lambda: check_writing([Sent(b"y", A0, 1), Sent(b"x", A0, 0)], LOGS), "is before what was sent before it"),
        (lambda: check_origin([[Sent(b"x"), Sent(b"y")]], LOGS), "b'z' in a-0 was never sent"),
        (lambda: check_origin([[Sent(b"x")]], {A0: [b"x"], A1: [b"x"]}), "is in a-1 and in a-0"),
    ],
)
def test_what_is_wrong_is_found(check: Callable[[], None], told: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(told)):
        check()


def test_a_background_task_that_failed_is_heard() -> None:
    with pytest.raises(AssertionError, match="a background task failed"), no_task_fails_unheard():
        logging.getLogger("aiokafkawire").error("a background task failed")
