"""Failures that repeat: which of them are reported, with which counts, and when."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from aiokafkawire.repeated_trouble import RepeatedTrouble, TroubleReport


def failing(trouble: RepeatedTrouble, times: Iterable[float], key: str = "a") -> list[tuple[float, TroubleReport]]:
    """What is reported of failures at these times."""
    return [(now, report) for now in times if (report := trouble.failed(key, now)) is not None]


def test_an_hour_of_failures_has_a_report_at_its_beginning_and_at_growing_intervals() -> None:
    trouble = RepeatedTrouble()
    reports = failing(trouble, range(7200))
    assert [now for now, _ in reports] == [0, 10, 60, 600, 600 + 3600]
    assert [report.count for _, report in reports] == [1, 11, 61, 601, 4201]
    assert trouble.ended("a", 7200) == TroubleReport(7200, 7200)
    assert trouble.ended("a", 7201) is None


def test_a_key_that_has_not_failed_has_no_end() -> None:
    trouble = RepeatedTrouble()
    assert not trouble
    assert trouble.ended("a", 0) is None


def test_a_failure_long_after_the_end_is_another_trouble() -> None:
    trouble = RepeatedTrouble()
    assert trouble.failed("a", 0) == TroubleReport(1, 0)
    assert trouble.ended("a", 5) == TroubleReport(1, 5)
    assert trouble.failed("a", 65) == TroubleReport(1, 0)


def test_what_fails_and_works_by_turns_is_reported_as_seldom_as_what_fails() -> None:
    trouble = RepeatedTrouble()
    reports, ends = 0, 0
    for now in range(3600):
        reports += trouble.failed("a", now) is not None
        ends += trouble.ended("a", now + 0.5) is not None
    # The beginning, 10 s, 1 min, 10 min, and at most one a minute since each end.
    assert reports == ends
    assert 4 <= reports <= 65


def test_trouble_that_lasts_after_an_end_is_reported_within_a_minute() -> None:
    trouble = RepeatedTrouble()
    failing(trouble, range(1000))
    assert trouble.ended("a", 1000) is not None
    reports = failing(trouble, range(1001, 1200))
    assert [now for now, _ in reports] == [1061]


def test_what_is_expected_is_reported_only_once_it_has_lasted() -> None:
    trouble = RepeatedTrouble(at_once=False)
    assert failing(trouble, range(10)) == []
    assert trouble.ended("a", 10) is None
    assert not trouble
    assert [now for now, _ in failing(trouble, range(20, 60))] == [30]
    assert trouble.ended("a", 60) == TroubleReport(40, 40)


def test_a_hundred_keys_are_five_and_the_others() -> None:
    trouble = RepeatedTrouble()
    keys = [f"b{number}" for number in range(100)]
    reports: list[tuple[int, TroubleReport]] = []
    for now in range(601):
        for key in keys:
            report = trouble.failed(key, now)
            if report is not None:
                reports.append((now, report))
    assert [now for now, _ in reports] == [now for now in (0, 10, 60, 600) for _ in range(6)]
    assert [report.others for now, report in reports if now == 10] == [0, 0, 0, 0, 0, 94]
    ends = [report for key in keys if (report := trouble.ended(key, 700)) is not None]
    assert [end.others for end in ends] == [0, 0, 0, 0, 0, 94]
    assert sum(end.count for end in ends) == 100 * 601


def test_keys_that_ended_or_that_nobody_tries_leave_their_place() -> None:
    trouble = RepeatedTrouble()
    for key in "abcde":
        assert trouble.failed(key, 0) is not None
    trouble.failed("f", 1)
    assert trouble.failed("g", 2) is None  # shares the reports of f
    trouble.ended("a", 3)
    assert trouble.failed("h", 100) == TroubleReport(1, 0)  # has the place of a
    assert trouble.failed("i", 700) == TroubleReport(1, 0)  # b to e were last tried 700 s ago


@pytest.mark.parametrize("keys", [5_000])
def test_many_keys_take_no_more_memory(keys: int) -> None:
    trouble = RepeatedTrouble()
    for key in range(keys):
        trouble.failed(key, 0)
    assert len(trouble._apart) + len(trouble._others) <= 1_005
