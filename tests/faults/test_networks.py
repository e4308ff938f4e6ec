"""Our clients on networks that fail: nothing is lost, doubled, disordered or stuck, and every client recovers.

It is the program that docs/faults.md describes, one kind of fault after the other. Beside Java it needs root and
/dev/net/tun; without them the tests are skipped, and fail where AIOKAFKAWIRE_REQUIRE_NETWORKS is 1.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.apache_kafka import missing as missing_kafka
from support.needing import require
from support.recovering import check, run

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.network_faults.kinds import KINDS
from benchmarks.network_faults.namespaces import missing

pytestmark = [pytest.mark.kafka, pytest.mark.networks, pytest.mark.timeout(500)]

SEED = os.environ.get("AIOKAFKAWIRE_FAULTS_SEED", "1")


@pytest.fixture(autouse=True)
def _networks_may_be_made() -> None:
    lacks = missing_kafka() or missing()
    require(lacks and f"NETWORKS NOT TESTED. {lacks}", "AIOKAFKAWIRE_REQUIRE_NETWORKS")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_doubled_disordered_or_stuck(tmp_path: Path, kind: str) -> None:
    check(run("benchmarks.network_faults", tmp_path, kind, "--seed", SEED))


@pytest.mark.parametrize("kind", ["loss-30", "cut", "half-open", "names"])
def test_nor_on_trio(tmp_path: Path, kind: str) -> None:
    check(run("benchmarks.network_faults", tmp_path, kind, "--seed", SEED, "--loop", "trio"))
