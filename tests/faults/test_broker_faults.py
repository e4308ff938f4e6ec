"""Our clients whose brokers freeze, crash, throttle and are upgraded: nothing is lost, doubled, disordered or stuck.

It is the program that docs/faults.md describes, one kind of fault after the other. Beside Java it needs root for a
disk that fills up, gcc for one that is slow, and libfaketime for a wrong clock; without them these kinds are skipped,
and fail where AIOKAFKAWIRE_REQUIRE_BROKER_FAULTS is 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.apache_kafka import missing
from support.needing import require
from support.recovering import check, run

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.broker_faults.cluster import small_disk
from benchmarks.broker_faults.kinds import KINDS

pytestmark = [pytest.mark.kafka, pytest.mark.brokers, pytest.mark.timeout(600)]

_REQUIRED = "AIOKAFKAWIRE_REQUIRE_BROKER_FAULTS"


@pytest.fixture(autouse=True)
def _kafka_is_there() -> None:
    require(missing(), _REQUIRED)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_doubled_disordered_or_stuck(tmp_path: Path, kind: str) -> None:
    with small_disk() as disk:
        lacks = KINDS[kind].lacks(disk)
    require(lacks and f"{kind} IS NOT TESTED: {lacks}", _REQUIRED)
    check(run("benchmarks.broker_faults", tmp_path, kind))


@pytest.mark.parametrize("kind", ["freeze-20", "crash-loop", "quota"])
def test_nor_on_trio(tmp_path: Path, kind: str) -> None:
    check(run("benchmarks.broker_faults", tmp_path, kind, "--loop", "trio"))
