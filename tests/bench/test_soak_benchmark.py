"""A soak finds what grows, and what nobody has read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.soak.churn import Seen
from benchmarks.soak.judge import Sample, growth, table, verdicts


def samples(**figures: list[float]) -> list[Sample]:
    flat: dict[str, list[float]] = {"rss_mb": [60.0] * 20, "tasks": [30] * 20, "files": [40] * 20}
    found = flat | figures
    return [
        Sample(30.0 * number, number, 2 * number, 100 * number, rss, int(tasks), int(files))
        for number, (rss, tasks, files) in enumerate(zip(*(found[name] for name in flat), strict=True), 1)
    ]


def bad(found: dict[str, tuple[bool, str]]) -> list[str]:
    return [name for name, (good, _) in found.items() if not good]


def test_a_level_after_the_start_is_flat() -> None:
    settling = [40.0, 50.0, 58.0, 59.0, *[60.0] * 16]
    assert bad(verdicts(samples(rss_mb=settling), 0)) == []


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rss_mb", [60.0 + number for number in range(20)]),
        ("tasks", [30 + number for number in range(20)]),
        ("files", [40.0] * 10 + [50.0] * 10),
    ],
)
def test_what_grows_is_named(name: str, values: list[float]) -> None:
    given: dict[str, Any] = {name: values}
    found = verdicts(samples(**given), 0)
    assert bad(found) == [name]
    assert found[name][1].startswith("GROWING: +")


def test_one_high_sample_is_no_growth() -> None:
    assert growth([60.0] * 19 + [90.0]) == 0.0


def test_a_lost_record_is_bad_whatever_the_memory() -> None:
    assert bad(verdicts(samples(), 1)) == ["records"]


def test_the_table_has_a_line_for_each_sample() -> None:
    lines = table(samples())
    assert len(lines) == 21
    assert lines[1].split() == ["0.5", "min", "1", "2", "100", "60.0", "30", "40"]


def test_records_that_nobody_has_read_are_missing() -> None:
    seen = Seen(10)
    seen.written = 4
    for number in (0, 1, 3, 3):
        seen.read(b"%d" % number)
    assert (seen.records, seen.missing) == (4, 1)
    seen.read(b"2")
    seen.read(b"7")
    assert seen.missing == 0
