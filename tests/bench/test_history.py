"""The history of benchmarks: what is kept of each run, and the page of all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.history import Entry, add, got_worse, page_of

ROOT = Path(__file__).parents[2]


def line(ratio: float, *, metric: str = "records_per_second", peer: str = "aiokafka send asyncio") -> dict[str, Any]:
    who = {"benchmark": "produce", "case": "values of 100 B", "ours": "enqueue asyncio", "peer": peer}
    return {**who, "metric": metric, "ratio": ratio, "low": ratio - 0.1, "high": ratio + 0.1, "rounds": 5}


def test_a_run_is_added_to_those_before(tmp_path: Path) -> None:
    for number, ratio in enumerate((2.0, 2.5, 3.0)):
        page = add(tmp_path / "pages", [line(ratio)], commit=f"c{number}", date=f"2026-01-0{number + 1}")
    kept = [json.loads(one) for one in (tmp_path / "pages" / "history.jsonl").read_text().splitlines()]
    assert [(one["commit"], one["ratios"][0]["ratio"]) for one in kept] == [("c0", 2.0), ("c1", 2.5), ("c2", 3.0)]
    text = page.read_text()
    assert "3 runs, the newest of 2026-01-03, commit c2" in text
    assert "3.00 [2.90-3.10]" in text
    assert 'aria-label="3 runs, from 2.00 to 3.00"' in text


def test_a_pair_that_a_run_has_not_measured_has_a_gap() -> None:
    runs = [
        {"date": "2026-01-01", "commit": "a", "ratios": [line(2.0), line(4.0, peer="kio send asyncio")]},
        {"date": "2026-01-02", "commit": "b", "ratios": [line(2.0)]},
    ]
    rows = re.findall(r"<tr><td>.*?</tr>", page_of(runs))
    assert len(rows) == 2
    assert "not measured" not in rows[0]
    assert "not measured" in rows[1]


def test_what_got_worse_is_said() -> None:
    before: list[Entry | None] = [Entry(2.0, 1.9, 2.1), None, Entry(2.2, 2.1, 2.3)]
    assert not got_worse([*before, Entry(2.0, 1.9, 2.15)], less_is_better=False)
    assert got_worse([*before, Entry(1.9, 1.8, 2.0)], less_is_better=False)
    assert not got_worse([*before, Entry(1.9, 1.8, 2.0)], less_is_better=True)
    assert got_worse([*before, Entry(2.4, 2.3, 2.5)], less_is_better=True)
    assert not got_worse([Entry(0.1, 0.1, 0.1)], less_is_better=False)
    assert not got_worse([*before, None], less_is_better=False)


def test_figures_say_which_way_is_better() -> None:
    runs = [
        {"date": "2026-01-01", "commit": "a", "ratios": [line(2.0, metric="sends_per_second")]},
        {"date": "2026-01-02", "commit": "b", "ratios": [line(3.0, metric="sends_per_second")]},
    ]
    assert 'class="worse"></td>' in page_of(runs)
    assert 'class="worse">worse</td>' in page_of(runs[::-1])


def test_names_are_shown_as_they_are() -> None:
    runs = [{"date": "2026-01-01", "commit": "<script>", "ratios": [line(1.0, peer="a & b")]}]
    assert "<script>" not in page_of(runs)
    assert "a &amp; b" in page_of(runs)


def test_the_command_draws_the_page(tmp_path: Path) -> None:
    ratios = tmp_path / "ratios.jsonl"
    ratios.write_text(json.dumps(line(1.5)) + "\n")
    command = [sys.executable, "-m", "benchmarks.history", str(tmp_path / "pages"), "--ratios", str(ratios)]
    done = subprocess.run([*command, "--commit", "abc"], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == f"drawn: {tmp_path / 'pages' / 'index.html'}\n"
    assert "1.50 [1.40-1.60]" in (tmp_path / "pages" / "index.html").read_text()
