"""What one more member of a group costs: the judge of its figures, and what the processes say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.group_faults.processes import Read
from benchmarks.group_growth.crowd import Job, Voice, read_job
from benchmarks.group_growth.judge import Growth, figures
from benchmarks.group_growth.processes import Process, owners, wait_shared
from benchmarks.group_growth.report import render

BEGAN = 1_000.0
"""When the producer began; other times are relative to it."""


def acknowledged(*records: tuple[int, float]) -> list[dict[str, Any]]:
    """Records with their times; partitions are even and odd numbers."""
    return [{"record": number, "partition": number % 2, "at": at} for number, at in records]


def read(number: int, at: float, member: str = "0") -> Read:
    return Read(member, number % 2, number, BEGAN + at)


GROWTH = Growth(BEGAN + 10.0, BEGAN + 15.0, {0: "0.0", 1: "0.0"}, {0: "0.0", 1: "1.0"})
"""One member more gets partition 1, from 10 s to 15 s."""


def judged(lines: list[dict[str, Any]], reads: list[Read], growth: Growth = GROWTH) -> dict[str, Any]:
    return figures(lines, reads, BEGAN, growth)


def test_partitions_with_another_owner_have_moved() -> None:
    assert GROWTH.moved == {1}
    assert judged([], [])["moved"] == 1
    assert judged([], [])["joined_s"] == 5.0


def test_gaps_are_those_of_partitions_that_stayed_and_of_those_that_moved() -> None:
    lines = acknowledged((0, 9.0), (2, 11.0), (4, 14.0), (1, 9.5), (3, 16.0))
    found = judged(lines, [read(0, 9.0), read(2, 11.0), read(4, 14.0), read(1, 9.5), read(3, 16.0)])
    assert (found["gap_stayed_s"], found["gap_moved_s"]) == (3.0, 6.5)


def test_gaps_of_the_producer_are_those_of_its_acknowledgements() -> None:
    lines = [*acknowledged((0, 9.0), (2, 11.0), (4, 13.5)), {"record": 6, "partition": 0, "at": 13.0, "error": "gone"}]
    assert judged(lines, [read(number, 14.0) for number in (0, 2, 4)])["producer_gap_s"] == 2.5


def test_gaps_before_and_after_the_growth_do_not_count() -> None:
    lines = acknowledged((0, 1.0), (2, 9.0), (4, 12.0), (6, 15.5), (8, 40.0))
    reads = [read(0, 1.0), read(2, 9.0), read(4, 12.0), read(6, 15.5), read(8, 40.0)]
    assert judged(lines, reads)["gap_stayed_s"] == 3.5


def test_records_acknowledged_meanwhile_are_late_half_a_second_afterwards() -> None:
    lines = acknowledged((0, 9.0), (1, 11.0), (2, 11.0), (3, 12.0), (4, 20.0))
    found = judged(lines, [read(0, 12.0), read(1, 11.25), read(2, 12.0), read(3, 14.0), read(4, 30.0)])
    assert (found["late"], found["latest_s"]) == (2, 2.0)


def test_the_most_unread_records_are_those_of_the_worst_moment() -> None:
    lines = acknowledged((0, 9.0), (1, 11.0), (3, 12.0), (5, 13.0), (7, 30.0), (9, 30.0), (11, 30.0), (13, 30.0))
    reads = [read(0, 9.0), read(1, 12.5), read(3, 14.0), read(5, 14.0)]
    assert judged(lines, [*reads, *(read(number, 31.0) for number in (7, 9, 11, 13))])["unread"] == 2


def test_a_record_that_is_read_before_its_acknowledgement_arrives_is_not_unread() -> None:
    assert judged(acknowledged((0, 11.0), (2, 12.0)), [read(0, 10.75), read(2, 11.5)])["unread"] == 0


def test_what_is_read_twice_or_never_is_counted() -> None:
    found = judged(acknowledged((0, 9.0), (1, 11.0)), [read(0, 9.0), read(0, 12.0, "1")])
    assert (found["redelivered"], found["lost"]) == (1, 1)


# --- processes -----------------------------------------------------------------------------------------------


def test_a_job_survives_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job("b:9092", "t", 25, "consumer", "asyncio")
    monkeypatch.setattr(sys, "argv", ["crowd", job.as_argument()])
    assert read_job() == job


def said(capfd: pytest.CaptureFixture[str]) -> list[Any]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_a_process_says_what_its_consumers_have_and_what_was_read(capfd: pytest.CaptureFixture[str]) -> None:
    voice = Voice("1.0")
    voice.assigned(3, [1, 0])
    voice.revoked(3, [1])
    voice.assigned(4, [1])
    voice.read(1, b"0000000007 ....")
    voice.flush()
    version, *shares, reads = said(capfd)
    assert version == {"version": "1.0"}
    assert [(line["consumer"], line["assigned"]) for line in shares] == [(3, [0, 1]), (3, [0]), (4, [1])]
    assert [one[:2] for one in reads["reads"]] == [[1, 7]]


def process(name: str, consumers: int, tmp_path: Path) -> Process:
    return Process(name, [], Job("", "", consumers, "consumer", "asyncio"), tmp_path / name)


def test_a_group_has_come_together_at_its_last_change(tmp_path: Path) -> None:
    crowd, newcomer = process("0", 2, tmp_path), process("1", 1, tmp_path)
    for consumer, share, at in ((0, [0], 1.0), (1, [1], 3.0)):
        crowd._take({"consumer": consumer, "assigned": share, "at": at})
    newcomer._take({"consumer": 0, "assigned": [2], "at": 2.0})
    assert wait_shared([crowd, newcomer], 3, 0.0) == 3.0
    assert owners([crowd, newcomer]) == {0: "0.0", 1: "0.1", 2: "1.0"}


# --- the report ----------------------------------------------------------------------------------------------


def test_the_report_has_a_row_for_each_client_with_all_that_was_lost() -> None:
    names = (
        "moved",
        "unread",
        "late",
        "latest_s",
        "gap_stayed_s",
        "gap_moved_s",
        "producer_gap_s",
        "redelivered",
        "closed_s",
    )
    figures = dict.fromkeys(names, 0.5)
    rows = [
        {"client": "ours", "round": number, "version": "1.0", "lost": lost, "assembled_s": 8.0, "joined_s": joined}
        | figures
        | {"problems": ["it hung"] if lost else [], "errors": {}}
        for number, lost, joined in ((1, 0, 4.0), (2, 2, 6.0), (3, 1, 7.0))
    ]
    text = render({"rounds": "3"}, rows)
    assert "  1.0       3     3           8     6 [4-7]" in text
    assert "  ours, round 2: NOT ENDED WELL: it hung" in text
