"""Medians, ranges and ratios of a benchmark's rounds, as data and as text."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.cases import FIGURES, Case
from benchmarks.plots import file_name
from benchmarks.report import append_ratios, render, short, spread, summarise

CASE = Case("produce", "values of 100 B", "produce")


def measured(client: str, number: int, seconds: float, *, case: Case = CASE, way: str = "send") -> dict[str, Any]:
    """100 records in so many seconds, with a CPU that was never idle."""
    who = {"benchmark": case.benchmark, "case": case.name, "round": number, "client": client, "way": way}
    what = {"seconds": seconds, "cpu_seconds": seconds, "records": 100, "max_rss_kb": 2048, "version": "1"}
    return {**who, "loop": "asyncio", **what}


def ratios(rows: list[dict[str, Any]], metric: str = "records_per_second") -> list[dict[str, Any]]:
    found = summarise({}, [CASE], rows, [])["ratios"]
    return [one for one in found if one["metric"] == metric]


def test_ratios_are_made_within_a_round() -> None:
    # The machine was four times as slow in the second round, for both.
    rows = [measured("ours", 1, 1), measured("aiokafka", 1, 2), measured("ours", 2, 4), measured("aiokafka", 2, 8)]
    (line,) = ratios(rows)
    assert (line["ratio"], line["low"], line["high"], line["rounds"]) == (2, 2, 2, 2)
    (line,) = ratios(rows, "cpu_us_per_record")
    assert line["ratio"] == 0.5


def test_a_ratio_is_the_median_of_the_rounds_and_says_its_range() -> None:
    times = {1: 2.0, 2: 3.0, 3: 8.0}
    rows = [measured("ours", number, 1) for number in times]
    rows += [measured("aiokafka", number, seconds) for number, seconds in times.items()]
    (line,) = ratios(rows)
    assert (line["ratio"], line["low"], line["high"]) == (3, 2, 8)


def test_rounds_that_only_one_of_a_pair_has_do_not_count() -> None:
    rows = [measured("ours", 1, 1), measured("ours", 2, 1), measured("aiokafka", 2, 5)]
    (line,) = ratios(rows)
    assert (line["ratio"], line["rounds"]) == (5, 1)
    assert ratios([measured("ours", 1, 1), measured("aiokafka", 2, 5)]) == []


def test_each_of_our_rows_is_paired_with_each_of_the_peers() -> None:
    rows = [measured("ours", 1, 1, way=way) for way in ("enqueue", "send_nowait")]
    rows += [measured("aiokafka", 1, 1), measured("confluent", 1, 1)]
    pairs = {(one["ours"], one["peer"]) for one in ratios(rows)}
    assert pairs == {
        (f"{way} asyncio", f"{peer} send asyncio")
        for way in ("enqueue", "send_nowait")
        for peer in ("aiokafka", "confluent")
    }


def test_a_line_of_json_for_each_pair_and_figure(tmp_path: Path) -> None:
    result = summarise({}, [CASE], [measured("ours", 1, 1), measured("aiokafka", 1, 2)], [])
    append_ratios(result, tmp_path / "ratios")
    append_ratios(result, tmp_path / "ratios")
    lines = [json.loads(line) for line in (tmp_path / "ratios").read_text().splitlines()]
    assert len(lines) == 4
    assert lines[0] == {
        "benchmark": "produce",
        "case": "values of 100 B",
        "ours": "send asyncio",
        "peer": "aiokafka send asyncio",
        "metric": "records_per_second",
        "ratio": 2.0,
        "low": 2.0,
        "high": 2.0,
        "rounds": 1,
    }


def test_what_may_be_nothing_has_no_ratio() -> None:
    case = Case("memory", "produce", "produce", only_figures=("peak_mb", "growth_mb"))
    rows = [{**measured(client, 1, 1, case=case), "memory_mb": [30.0] * 10} for client in ("ours", "aiokafka")]
    result = summarise({}, [case], rows, [])
    assert [one["metric"] for one in result["ratios"]] == ["peak_mb"]
    assert result["tables"][0]["rows"][0]["growth_mb"]["median"] == 0


def test_growth_is_told_from_a_level() -> None:
    growth = FIGURES["growth_mb"].of
    assert growth({"memory_mb": [10.0, 20.0, 30.0, 32.0, *[40.0] * 6]}) == pytest.approx(9)
    assert growth({"memory_mb": [10.0, 20.0, 50.0, 50.0, *[40.0] * 6]}) == pytest.approx(-10)
    assert growth({"memory_mb": [float(number) for number in range(100)]}) == pytest.approx(60)
    assert growth({"memory_mb": [7.0]}) == 0


def test_the_text_has_medians_ranges_ratios_and_failures() -> None:
    rows = [measured("ours", number, number, way="enqueue") for number in (1, 2, 4)]
    rows += [measured("aiokafka", number, 1) for number in (1, 2, 4)]
    failure = {**measured("confluent", 1, 1), "error": "status 1: gone"}
    text = render(summarise({"rounds": "3"}, [CASE], rows, [failure]))
    assert "aiokafkawire enqueue asyncio  50 [25-100]" in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "enqueue asyncio 0.5 [0.25-1]" in lines
    assert "enqueue asyncio 2 [1-4]" in lines
    assert "produce: values of 100 B, round 1, confluent send asyncio: status 1: gone" in text


def test_cases_of_a_group_are_one_table() -> None:
    cases = [
        Case("scale", f"by size: {n}", "produce", group="produce, by size", place=f"{n} B", at=n) for n in (10, 100)
    ]
    rows = [measured("ours", 1, case.at or 0, case=case) for case in cases] + [
        measured("aiokafka", 1, 1, case=cases[1])
    ]
    lines = render(summarise({"a": "b"}, cases, rows, [])).splitlines()
    assert sum("SCALE" in line for line in lines) == 1
    assert [line.split() for line in lines if line.strip().startswith("10 B")] == [
        ["10", "B", "10", "-"],
        ["10", "B", "-"],
        ["10", "B", "100,000", "-"],
        ["10", "B", "-"],
    ]


def test_a_spread_is_the_median_and_both_ends() -> None:
    assert spread(iter([3.0, 1.0, 2.0, 10.0])) == {"median": 2.5, "least": 1.0, "most": 10.0}


@pytest.mark.parametrize(
    ("number", "text"), [(0.012345, "0.0123"), (12.34, "12.3"), (123.4, "123"), (1234.5, "1,234"), (-2000, "-2,000")]
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text


def test_pictures_are_named_after_what_they_show() -> None:
    assert file_name("scale", "produce, by bytes of a value") == "scale-produce-by-bytes-of-a-value.png"
