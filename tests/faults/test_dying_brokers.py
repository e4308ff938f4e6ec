"""A minute and more of brokers that die and come back: what was acknowledged is there, once, in order.

It is the program that is described in docs/faults.md, held to what it says of our client.
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
from support.kafka_cluster import KafkaCluster
from support.needing import require

pytestmark = [pytest.mark.kafka, pytest.mark.faults, pytest.mark.timeout(500)]

ROOT = Path(__file__).parent.parent.parent
SECONDS = os.environ.get("AIOKAFKAWIRE_FAULTS_SECONDS", "60")
SEED = os.environ.get("AIOKAFKAWIRE_FAULTS_SEED", "1")


@pytest.fixture(autouse=True)
def _kafka_is_there() -> None:
    require(missing())


def run(tmp_path: Path, *options: str) -> dict[str, Any]:
    """Our client's figures. What the program tells is shown if the test fails."""
    result = tmp_path / "result"
    command = [sys.executable, "-m", "benchmarks.faults", "--clients", "ours", "--json", str(result)]
    subprocess.run([*command, "--seconds", SECONDS, "--seed", SEED, *options], check=False, cwd=ROOT)
    (line,) = result.read_text().splitlines()
    figures: dict[str, Any] = json.loads(line)
    assert len(figures["kills"]) >= 2
    return figures


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_every_record_is_acknowledged_and_there_once_and_in_order(tmp_path: Path, loop: str) -> None:
    figures = run(tmp_path, "--loop", loop)
    assert (figures["problems"], figures["wrong"], figures["failed"]) == ([], 0, 0)
    assert figures["acknowledged"] == figures["handed"] == 2_000 * int(SECONDS)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_transactions_are_seen_whole_or_not_at_all(tmp_path: Path, loop: str) -> None:
    figures = run(tmp_path, "--loop", loop, "--transactions", "100")
    # Brokers may well make an end to a transaction of which they lost sight; then that is told, and holds.
    assert (figures["problems"], figures["wrong"]) == ([], 0)
    assert figures["committed"] > figures["aborted"] > 0


def test_a_killed_broker_leads_nothing_and_comes_back() -> None:
    with KafkaCluster() as kafka:
        kafka.kill(2)
        assert kafka.bootstrap.count(",") == 2
        kafka.restart(2)
        kafka.wait_whole()
