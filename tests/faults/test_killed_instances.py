"""Instances that process records on Apache Kafka, killed like the brokers: `benchmarks.process_faults`, judged.

``AIOKAFKAWIRE_FAULTS_SECONDS`` sets the seconds of each test (15 here), ``AIOKAFKAWIRE_FAULTS_SEED`` the schedule.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.apache_kafka import missing
from support.needing import require

ROOT = Path(__file__).parents[2]
SECONDS = int(os.environ.get("AIOKAFKAWIRE_FAULTS_SECONDS", "15"))
SEED = os.environ.get("AIOKAFKAWIRE_FAULTS_SEED", "1")
INSTANCES, IN_HAND = 4, 40

pytestmark = [pytest.mark.kafka, pytest.mark.faults, pytest.mark.timeout(600 + 2 * SECONDS)]


def run(folder: Path, way: str) -> dict[str, Any]:
    """Return the figures of one run; its progress and its table go where pytest keeps output."""
    require(missing())
    result = folder / "result"
    command = [sys.executable, "-m", "benchmarks.process_faults", "--ways", way, "--json", str(result)]
    sizes = ["--instances", str(INSTANCES), "--max-in-hand", str(IN_HAND), "--rate", "150"]
    subprocess.run([*command, *sizes, "--minutes", str(SECONDS / 60), "--seed", SEED], check=False, cwd=ROOT)
    (line,) = result.read_text().splitlines()
    figures: dict[str, Any] = json.loads(line)
    assert figures["problems"] == []
    assert figures["killed"] >= 2
    assert figures["brokers_killed"] >= 1
    assert figures["acknowledged"] >= 1_000
    assert figures["lost"] == 0
    return figures


def test_process_repeats_what_was_in_hand_and_keeps_the_order_of_keys(tmp_path: Path) -> None:
    figures = run(tmp_path, "process")
    assert figures["early"] == 0
    # What an instance has in hand when partitions move is repeated if the coordinator is not there for the commit.
    assert figures["repeated"] <= IN_HAND * (figures["killed"] + figures["moved"])


def test_members_of_a_share_group_repeat_what_was_in_hand(tmp_path: Path) -> None:
    figures = run(tmp_path, "share")
    # A broker that dies takes the locks of all members with it.
    ends = figures["killed"] + figures["moved"] + INSTANCES * figures["brokers_killed"]
    assert figures["repeated"] <= IN_HAND * ends


def test_transform_counts_every_record_once_and_keeps_the_order_of_keys(tmp_path: Path) -> None:
    figures = run(tmp_path, "transform")
    assert figures["handled"] >= figures["acknowledged"]
    assert (figures["doubled"], figures["early"]) == (0, 0)
