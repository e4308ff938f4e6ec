"""The judge of a group under fault finds what was lost, read again or read late, and nothing else."""

from __future__ import annotations

import json
import logging
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.faults.report import label
from benchmarks.group_faults.__main__ import _group_properties, _options
from benchmarks.group_faults.judge import check, figures, first_reads, rebalances
from benchmarks.group_faults.member import Membership, Voice, read_membership
from benchmarks.group_faults.processes import Read
from benchmarks.group_faults.report import summary
from benchmarks.rebalance.program import is_stable

BEGAN = 1_000.0


def acknowledged(number: int, at: float = 0.0) -> dict[str, Any]:
    return {"record": number, "partition": number % 2, "at": at, "offset": number // 2}


def failed(number: int) -> dict[str, Any]:
    return {"record": number, "partition": number % 2, "at": 0.0, "error": "RequestTimeout"}


def read(number: int, at: float = 0.0, member: str = "1.0", partition: int | None = None) -> Read:
    return Read(member, number % 2 if partition is None else partition, number, BEGAN + at)


def wrongs(lines: list[dict[str, Any]], reads: list[Read]) -> dict[str, int]:
    return {name: count for name, count in check(lines, reads, 4).items() if count}


def judged(lines: list[dict[str, Any]], reads: list[Read], ended: float = 100.0) -> dict[str, Any]:
    return figures(lines, reads, BEGAN, BEGAN + ended)


ALL = [acknowledged(number) for number in range(4)]


@pytest.mark.parametrize(
    ("reads", "found"),
    [
        ([read(0), read(1), read(2), read(3)], {}),
        ([read(0), read(1), read(3)], {"lost": 1}),
        ([], {"lost": 4}),
        ([read(0), read(1), read(2), read(3), read(4)], {"unknown": 1}),
        ([read(0), read(1), read(2), read(3, partition=0)], {"elsewhere": 1}),
        ([read(0), read(0, 1.0, "2.0"), read(1), read(2), read(3)], {}),
    ],
)
def test_what_was_acknowledged_is_read_by_somebody(reads: list[Read], found: dict[str, int]) -> None:
    assert wrongs(ALL, reads) == found


@pytest.mark.parametrize("seen", [[], [read(3)]])
def test_what_failed_may_be_read_or_not(seen: list[Read]) -> None:
    assert wrongs([*ALL[:3], failed(3)], [read(0), read(1), read(2), *seen]) == {}


def test_every_read_after_the_first_is_a_redelivery() -> None:
    reads = [read(0), read(1), read(2), read(2, 1.0), read(3), read(2, 2.0, "2.0"), read(3, 2.0, "2.0")]
    assert (judged(ALL, reads)["read"], judged(ALL, reads)["redelivered"]) == (4, 3)


def test_the_first_read_is_the_earliest_whoever_told_it_first() -> None:
    assert first_reads([read(0, 2.0, "1.0"), read(0, 1.0, "2.0")])[0].member == "2.0"


def test_a_gap_of_the_group_ends_with_whoever_reads_next() -> None:
    reads = [read(0, 1.0), read(1, 2.0), read(2, 7.0, "2.0"), read(3, 8.0)]
    found = judged(ALL, reads)
    assert (found["gap_s"], found["partition_gap_s"]) == (5.0, 6.0)


def test_a_gap_may_be_at_the_beginning() -> None:
    assert judged(ALL, [read(number, 9.0) for number in range(4)])["gap_s"] == 9.0


def test_reading_again_does_not_end_a_gap() -> None:
    reads = [read(0, 0.5), read(1, 1.0), read(0, 3.0), read(1, 3.0), read(2, 6.0), read(3, 6.0)]
    assert judged(ALL, reads)["gap_s"] == 5.0


def test_when_all_has_been_read_nothing_more_is_waited_for() -> None:
    reads = [*(read(number, 1.0) for number in range(4)), read(3, 60.0)]
    assert judged(ALL, reads)["gap_s"] == 1.0


def test_what_is_never_read_makes_a_gap_up_to_the_end() -> None:
    found = judged(ALL, [read(0, 1.0), read(1, 1.0), read(2, 1.5)], ended=61.0)
    assert (found["gap_s"], found["partition_gap_s"]) == (59.5, 60.0)


def test_records_are_late_from_their_acknowledgement_on() -> None:
    lines = [acknowledged(number, at=float(number)) for number in range(4)]
    found = judged(lines, [read(0, 0.5), read(1, 1.25), read(2, 6.0), read(3, 3.75), read(0, 50.0)])
    assert (found["late_p50_s"], found["late_max_s"]) == (0.75, 4.0)


def test_what_nobody_read_has_no_times() -> None:
    assert judged([], [])["late_max_s"] is None
    assert judged([], [])["partition_gap_s"] is None


def test_each_generation_of_the_group_is_counted_once() -> None:
    logs = [
        "INFO Stabilized group readers generation 1 with 3 members.\nINFO Stabilized group others generation 7 with 1",
        "INFO Stabilized group readers generation 2 with 3 members.\nINFO Stabilized group readers generation 1 with 3",
    ]
    assert rebalances(logs, "readers") == 2


def test_each_epoch_of_a_consumer_group_is_counted_once() -> None:
    logs = [
        "INFO [GroupId readers] Bumped group epoch to 1.\nINFO [GroupId others] Bumped group epoch to 7.",
        "INFO [GroupId readers] Bumped group epoch to 12.\nINFO [GroupId readers] Bumped group epoch to 1.",
    ]
    assert rebalances(logs, "readers") == 2


def test_a_summary_has_the_median_of_each_client_and_all_that_was_lost() -> None:
    figures = {
        "redelivered": 1_000,
        "partition_gap_s": None,
        "late_p99_s": None,
        "slowest_close_s": 0.4,
        "log_lines": 0,
    }
    gaps = [("ours", 9.0, 0), ("java", 20.0, 3), ("ours", 12.0, 0), ("java", 10.0, 4), ("ours", 10.0, 0)]
    rows = [{"client": client, "gap_s": gap, "lost": lost, **figures} for client, gap, lost in gaps]
    head, ours, java = summary(rows)
    assert (head[1:5], ours[:5]) == (
        ["runs", "lost", "redelivered", "gap s"],
        ["ours", "3", "0", "1,000 [1,000-1,000]", "10.0 [9.0-12.0]"],
    )
    assert java[:3] == ["java", "2", "7"]
    assert dict(zip(head, java, strict=True))["of a partition s"] == "-"


def test_rows_are_named_by_their_seeds_only_if_there_are_several() -> None:
    one, other = {"client": "ours", "seed": 1}, {"client": "ours", "seed": 2}
    assert (label(one, [one]), label(other, [one, other])) == ("ours", "ours, seed 2")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_membership_survives_the_command_line(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    membership = Membership("b:9092", "t", "g", "range", 6_000, 2_000, 1_000, "asyncio", protocol)
    monkeypatch.setattr(sys, "argv", ["member", membership.as_argument()])
    assert read_membership() == membership


@pytest.mark.parametrize(
    ("given", "protocol", "assignor"),
    [
        ("", "classic", "range"),
        ("--assignor cooperative-sticky", "classic", "cooperative-sticky"),
        ("--protocol consumer", "consumer", "uniform"),
        ("--protocol consumer --assignor range", "consumer", "range"),
    ],
)
def test_each_protocol_has_its_assignors(
    monkeypatch: pytest.MonkeyPatch, given: str, protocol: str, assignor: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["group_faults", "--clients", "ours", *given.split()])
    options = _options()
    assert (options.protocol, options.assignor, options.clients) == (protocol, assignor, ("ours",))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("--protocol consumer --clients ours,aiokafka", "aiokafka does not know it"),
        ("--protocol consumer --clients ours --assignor cooperative-sticky", "not in the consumer protocol"),
        ("--clients ours --assignor uniform", "not in the classic protocol"),
        ("--clients ours --members 7", "a partition for each"),
    ],
)
def test_settings_that_exclude_one_another_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: str, problem: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["group_faults", *given.split()])
    with pytest.raises(SystemExit):
        _options()
    assert problem in capsys.readouterr().err


def test_brokers_give_members_of_both_protocols_the_same_times() -> None:
    found = _group_properties(Namespace(member_timeout_ms=9_000))
    assert found["group.consumer.session.timeout.ms"] == "9000"
    assert found["group.consumer.heartbeat.interval.ms"] == "3000"
    assert found["group.min.session.timeout.ms"] == "6000"


def test_a_member_tells_what_changed_of_its_partitions(capfd: pytest.CaptureFixture[str]) -> None:
    voice = Voice(logging.getLogger("member"), "1.0")
    for partitions in ([], [1, 0], [0, 1], []):
        voice.assigned(partitions)
    voice.read(1, b"0000000007 ....")
    *told, (partition, number, _) = map(json.loads, capfd.readouterr().out.splitlines())
    assert told == [{"version": "1.0"}, {"assigned": [0, 1]}, {"assigned": []}]
    assert (partition, number) == (1, 7)


@pytest.mark.parametrize(
    ("shares", "stable"),
    [
        ([{0, 1}, {2, 3}, {4}], True),
        ([{0, 1, 2}, {3, 4}], False),
        ([{0, 1}, {1, 2}, {3, 4}], False),
        ([{0, 1}, {2, 3}, {3}], False),
        ([{0, 1}, {2, 3}, set()], False),
        ([{0, 1, 2}, {3}, {4}], False),
        ([{0, 1}, {2}, {4}], False),
    ],
)
def test_a_group_is_stable_when_each_partition_has_one_owner_and_all_have_their_share(
    shares: list[set[int]], stable: bool
) -> None:
    assert is_stable([frozenset(share) for share in shares], 3, 5) is stable
