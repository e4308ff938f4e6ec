"""The nightly run: its seeds, the tests that it writes, and what it tells apart."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from histories.anomalies import AnomaliesFound, Anomaly, Kind
from simulation import one_seed
from simulation.coverage import codes_of, missed_codes, missed_transitions, watching_transitions
from simulation.failures import TakesTooLong, limited, name_of
from simulation.night_run import NightRun, run_one
from simulation.nightly import WEIGHTS, jobs, shares, written
from simulation.one_seed import RUN, replay
from support.patience import PATIENCE

from aiokafkawire.testing.virtual.study import Study, studying

FOUND = Path(__file__).parent / "found" / "test_plain_4.py"
MUTATION = "retry gets a new sequence number"


def test_every_scenario_has_a_share() -> None:
    assert WEIGHTS.keys() == RUN.keys()


def test_all_seeds_are_shared_by_weight() -> None:
    assert shares(10, {"a": 3, "b": 1, "c": 1}) == {"a": 6, "b": 2, "c": 2}
    assert sum(shares(9_999, WEIGHTS).values()) == 9_999


def test_scenarios_take_turns() -> None:
    assert list(jobs({"a": 2, "b": 1}, 7)) == [("a", 7), ("b", 7), ("a", 8)]


def test_a_failure_is_written_as_a_test(tmp_path: Path) -> None:
    run = NightRun("plain", 4, failure="duplicate", happened=5, kept=["chaos 2"])
    assert written(run, tmp_path).read_text() == FOUND.read_text()


@pytest.mark.slow
def test_the_written_test_fails_with_the_mutation_that_it_was_found_with() -> None:
    code = f"from simulation.night_run import mutate; mutate({MUTATION!r}); from simulation.found import test_plain_4"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; test_plain_4.test_seed_4_of_plain()"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        timeout=PATIENCE,
    )
    assert "AnomaliesFound" in done.stderr
    assert "duplicate" in done.stderr


def test_faults_that_are_left_out_leave_the_others_as_they_are() -> None:
    with studying(Study()) as whole:
        done = RUN["plain"](4)
    kept = whole.happened[1:3]
    with studying(Study(kept)) as part:
        RUN["plain"](4)
    assert part.happened == kept
    assert replay("plain", 4, whole.happened).trace.digest == done.trace.digest
    assert replay("plain", 4, ()).trace.faults.total() < done.trace.faults.total()


def test_transitions_and_error_codes_are_counted() -> None:
    with watching_transitions() as met, studying(Study()) as study:
        RUN["groups"](4)
    assert met["classic member", "SYNCING to STABLE"]
    assert ("classic member", "SYNCING to STABLE") not in missed_transitions(met)
    assert study.broker is not None
    codes = codes_of(study.broker)
    assert codes["JOIN_GROUP", "MEMBER_ID_REQUIRED"]
    assert ("JOIN_GROUP", "MEMBER_ID_REQUIRED") in missed_codes(met)
    assert ("JOIN_GROUP", "MEMBER_ID_REQUIRED") not in missed_codes(codes)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (AnomaliesFound([Anomaly(Kind.DUPLICATE, "b'1'", ())]), "duplicate"),
        (AssertionError("3 of 'a' are left after 12 s"), "# of # are left after # s"),
        (ExceptionGroup("", [ValueError("1"), ExceptionGroup("", [AssertionError("wrong")])]), "wrong"),
        (TimeoutError("1"), "TimeoutError"),
    ],
)
def test_two_failures_are_the_same_by_their_name(error: Exception, name: str) -> None:
    assert name_of(error) == name


def test_a_run_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(TakesTooLong, match=r"longer than 0\.05 s"), limited(0.05):
        while True:
            pass


def test_a_run_that_takes_too_long_in_a_task_group_is_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(seed: int) -> NoReturn:
        raise BaseExceptionGroup("of a task group", [TakesTooLong("a run takes longer than 60 s")])

    monkeypatch.setattr(one_seed, "RUN", {"plain": endless})
    assert run_one("plain", 1, seconds=60, tries=1).failure == "TakesTooLong"
