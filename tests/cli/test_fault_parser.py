"""Faults in plain words are the orders of a tap."""

from __future__ import annotations

from typing import Any

import pytest

from aiokafkawire.cli.exit_status import MISSING, CommandFailed
from aiokafkawire.cli.tap.fault_parser import parse_fault
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey

P, F = ApiKey.PRODUCE, ApiKey.FETCH


@pytest.mark.parametrize(
    ("text", "api", "action", "which", "limits"),
    [
        ("Produce delay 500ms", P, {"delay": 0.5}, {}, (None, 0)),
        ("produce delay answer 2s", P, {"delay_answer": 2.0}, {}, (None, 0)),
        ("0 delay 1.5s delay answer 1m once", P, {"delay": 1.5, "delay_answer": 60.0}, {}, (1, 0)),
        ("any cut times 3 skip 10", None, {"cut": True}, {}, (3, 10)),
        ("Fetch drop before topic t partition 2", F, {"drop": "before"}, {"topic": "t", "partition": 2}, None),
        ("Fetch swallow after client me", F, {"swallow": "after"}, {"client_id": "me"}, None),
        ("Fetch corrupt records", F, {"corrupt": "records"}, {}, None),
        ("Fetch corrupt -1 version 12", F, {"corrupt": -1}, {"version": 12}, None),
        ("Fetch:12 cut", F, {"cut": True}, {"version": 12}, None),
        ("Produce answer not_leader_or_follower", P, {"answer": ErrorCode.NOT_LEADER_OR_FOLLOWER}, {}, None),
        (
            "FindCoordinator group g answer COORDINATOR_NOT_AVAILABLE node 2",
            ApiKey.FIND_COORDINATOR,
            {"answer": ErrorCode.COORDINATOR_NOT_AVAILABLE},
            {"group": "g", "node": 2},
            None,
        ),
        ("EndTxn transactional-id x drop after", ApiKey.END_TXN, {"drop": "after"}, {"transactional_id": "x"}, None),
    ],
)
def test_words_are_arguments(
    text: str, api: ApiKey | None, action: dict[str, Any], which: dict[str, Any], limits: tuple[int | None, int] | None
) -> None:
    fault = parse_fault(text)
    assert (fault.api, fault.action, fault.which) == (api, action, which)
    assert (fault.times, fault.after) == (limits or (None, 0))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the API is missing"),
        ("Produce", "an action is missing"),
        ("Prodce cut", "unknown API 'Prodce'; did you mean Produce"),
        ("Produce dealy 5ms", "unknown word 'dealy'; did you mean 'delay'?"),
        ("Produce xyz", "unknown word 'xyz'; known: answer,"),
        ("Produce delay", "'delay' needs a time"),
        ("Produce delay soon", "'soon' is not a time, as 500ms"),
        ("Produce delay 500", "'500' is not a time"),
        ("Produce answer", "'answer' needs an error"),
        ("Produce answer NOT_LEADER", "unknown error NOT_LEADER"),
        ("Produce answer NONE", "unknown error NONE"),
        ("Produce drop", "'drop' needs before or after"),
        ("Produce drop now", "'drop' needs before or after, got 'now'"),
        ("Produce cut drop after", "exclude each other"),
        ("Produce cut cut", "'cut' is given twice"),
        ("Produce cut once times 2", "'times' is given twice"),
        ("Produce cut times 0", "times=0"),
        ("Produce cut partition 1", "partition needs topic"),
        ("Produce cut partition one", "'partition' needs a number, got 'one'"),
        ("Produce:99 cut", "Produce v99 is unknown"),
    ],
)
def test_words_that_cannot_be_are_wrong_usage(text: str, why: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        parse_fault(text)
    assert str(caught.value).startswith(f"--fault {text!r}: ")
    assert why in str(caught.value)
    assert caught.value.status == MISSING
