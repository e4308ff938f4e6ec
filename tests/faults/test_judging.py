"""The judge of a run under fault finds what is wrong, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.faults.journal import Job, command_of, read_job
from benchmarks.faults.judge import count_wrongs, figures, find_anomalies

Log = list[tuple[int, int]]


def job(transactions: int = 0) -> Job:
    return Job("b:9092", "t", Path("journal"), 2, 6.0, 1, 100, transactions, "asyncio")


def acknowledged(number: int, offset: int | None = None, at: float = 0.0) -> dict[str, Any]:
    return {"record": number, "partition": number % 2, "at": at, "offset": offset}


def failed(number: int) -> dict[str, Any]:
    return {"record": number, "partition": number % 2, "at": 0.0, "error": "RequestTimeout"}


def transaction(first: int, outcome: str) -> dict[str, Any]:
    return {"transaction": first, "records": 2, "began": 0.0, "at": 1.0, "outcome": outcome}


def wrongs(lines: list[dict[str, Any]], logs: dict[int, Log], *, transactions: int = 0) -> dict[str, int]:
    anomalies = find_anomalies(job(transactions), lines, 4, logs)
    return {name: count for name, count in count_wrongs(job(transactions), lines, 4, anomalies).items() if count}


ALL = [acknowledged(number, number // 2) for number in range(4)]
EVEN, ODD = [(0, 0), (1, 2)], [(0, 1), (1, 3)]


@pytest.mark.parametrize(
    ("even", "odd", "found"),
    [
        (EVEN, ODD, {}),
        ([(0, 0)], ODD, {"lost": 1}),
        ([*EVEN, (2, 2)], ODD, {"doubled": 1}),
        ([*EVEN, (2, 0)], ODD, {"doubled": 1}),
        ([(0, 2), (1, 0)], ODD, {"out_of_order": 1, "elsewhere": 2}),
        ([(0, 0), (2, 2)], ODD, {"elsewhere": 1}),
        ([(0, 0)], [*ODD, (2, 2)], {"out_of_order": 1, "elsewhere": 2}),
        ([(0, 3), (1, 0), (2, 2)], ODD[:1], {"out_of_order": 2, "elsewhere": 4}),
        ([*EVEN, (2, 4)], ODD, {"unknown": 1}),
    ],
)
def test_of_what_was_acknowledged_nothing_is_missing_or_more_than_once(
    even: Log, odd: Log, found: dict[str, int]
) -> None:
    assert wrongs(ALL, {0: even, 1: odd}) == found


@pytest.mark.parametrize("even", [EVEN, [(0, 0)]])
def test_what_failed_may_have_been_written_or_not(even: Log) -> None:
    lines = [failed(2) if line["record"] == 2 else line for line in ALL]
    assert wrongs(lines, {0: even, 1: ODD}) == {}
    assert figures(job(), lines, {0: even, 1: ODD})["failed_but_written"] == len(even) - 1


def test_a_counterexample_has_the_acknowledgement_and_the_log_around_its_place() -> None:
    (anomaly,) = find_anomalies(job(), ALL, 4, {0: [(0, 0)], 1: ODD})
    assert str(anomaly).splitlines() == [
        "lost write: 2 is acknowledged at 0:1, and is not there",
        "    the client sends 2 to 0",
        "    2 is acknowledged at 0:1",
        "    log of 0 from 0 to 1: 0 0",
    ]


def test_a_record_without_an_outcome_is_found() -> None:
    assert wrongs(ALL[:3], {0: EVEN, 1: ODD}) == {"silent": 1}


def test_an_acknowledgement_may_be_for_either_of_two() -> None:
    lines = [acknowledged(0, 5), *ALL[1:]]
    assert wrongs(lines, {0: [*EVEN, (5, 0)], 1: ODD}) == {"doubled": 1}


def test_an_acknowledgement_without_an_offset_says_nothing_of_it() -> None:
    assert wrongs([acknowledged(number) for number in range(4)], {0: [(7, 0), (8, 2)], 1: ODD}) == {}


@pytest.mark.parametrize(
    ("outcome", "seen", "found"),
    [
        ("committed", (0, 1), {}),
        ("committed", (0,), {"lost": 1}),
        ("committed", (), {"lost": 2}),
        ("aborted", (), {}),
        ("aborted", (0,), {"undead": 1}),
        ("failed", (), {}),
        ("failed", (0, 1), {"undead": 2}),
        ("unsure", (), {}),
        ("unsure", (0, 1), {}),
        ("unsure", (1,), {"torn": 1}),
    ],
)
def test_transactions_are_whole_or_not_there(outcome: str, seen: tuple[int, ...], found: dict[str, int]) -> None:
    logs = {partition: [(0, number) for number in seen if number % 2 == partition] for partition in range(2)}
    assert wrongs([transaction(0, outcome)], logs, transactions=2) == found


def test_a_record_of_no_transaction_is_found() -> None:
    assert wrongs([transaction(0, "aborted")], {0: [(0, 2)], 1: []}, transactions=2) == {"unknown": 1}


def test_times_run_from_when_a_record_was_due() -> None:
    lines = [acknowledged(number, at=at) for number, at in enumerate((0.5, 1.5, 5.0, 5.5))]
    found = figures(job(), lines, {0: EVEN, 1: ODD})
    assert (found["gap_s"], found["partition_gap_s"]) == (3.5, 4.5)
    assert (found["p50_s"], found["max_s"]) == (1.5, 3.0)


def test_what_has_not_happened_has_no_times() -> None:
    assert figures(job(), [failed(0)], {0: [], 1: []})["gap_s"] is None
    assert figures(job(2), [], {0: [], 1: []})["max_s"] is None


def test_every_tenth_transaction_is_aborted_on_purpose() -> None:
    assert [first for first in range(0, 60, 2) if job(2).is_to_abort(first)] == [18, 38, 58]


def test_a_job_survives_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["client", *command_of(job(100))])
    assert read_job("") == job(100)
