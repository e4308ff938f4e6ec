"""Ratios of the benchmark in Spark, and the CPU of a process with those under it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.spark.__main__ import ratios_of, render
from benchmarks.spark.arms import CASES
from benchmarks.spark.session import cpu_seconds

WRITE = CASES["write"]


def measured(arm: int, pair: int, rate: float) -> dict[str, object]:
    row = {"case": "write", "arm": WRITE.arms[arm].label, "pair": pair}
    return {**row, "records_per_second": rate, "cpu_us_per_record": 1 / rate}


def test_ratios_are_made_within_a_pair() -> None:
    # The machine was four times as slow in the second pair, for all.
    rates = {1: (8, 4, 2, 16), 2: (2, 1, 0.5, 4)}
    rows = [measured(arm, pair, rate) for pair, arms in rates.items() for arm, rate in enumerate(arms)]
    lines = list(ratios_of(WRITE, rows))
    assert [(one["peer"], one["metric"], one["ratio"], one["low"], one["high"]) for one in lines] == [
        ("kafka", "records_per_second", 2, 2, 2),
        ("kafka linger 5 ms, batches of 128 KiB", "records_per_second", 4, 4, 4),
        ("ready counter", "records_per_second", 0.5, 0.5, 0.5),
        ("kafka", "cpu_us_per_record", 0.5, 0.5, 0.5),
        ("kafka linger 5 ms, batches of 128 KiB", "cpu_us_per_record", 0.25, 0.25, 0.25),
        ("ready counter", "cpu_us_per_record", 2, 2, 2),
    ]
    text = "\n".join(render({"machine": "this"}, [WRITE], rows, lines))
    assert "ours divided by kafka" in text
    assert "5 [2-8]" in text


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_the_cpu_of_those_under_a_process_counts_after_their_end() -> None:
    work = "import time\nwhile time.process_time() < 0.3: pass"
    before = cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", work], check=True)
    assert cpu_seconds(os.getpid()) - before >= 0.25
