"""Faults of brokers begin and are healed when they are due, and every kind has a run that ends."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.recovering import JumpingClock

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.broker_faults import schedule
from benchmarks.broker_faults.cluster import Place
from benchmarks.broker_faults.kinds import KINDS, Kind, duration
from benchmarks.recovery import windows
from benchmarks.recovery.windows import Window


def run(monkeypatch: pytest.MonkeyPatch, healing: float) -> tuple[list[Window], list[tuple[str, float]]]:
    """Two faults that last for 10 s, with 20 s of rest; their healing takes so long."""
    clock = JumpingClock()
    for module in (schedule, windows):
        monkeypatch.setattr(module, "time", clock)
    done: list[tuple[str, float]] = []

    def fault(_: Place) -> Iterator[None]:
        done.append(("caused", clock.now))
        clock.now += 1
        yield
        done.append(("healing", clock.now))
        clock.now += healing

    place: Any = None
    return schedule.run(Kind("it fails", 10, 20, fault), place, 2, lambda _: None), done


def test_a_fault_lasts_as_long_as_its_kind_says_and_is_followed_by_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    found, done = run(monkeypatch, 3)
    assert done == [("caused", 105), ("healing", 115), ("caused", 135), ("healing", 145)]
    assert found == [Window(105, 118, 135), Window(135, 148, 165)]


def test_a_healing_that_takes_longer_than_the_rest_delays_the_next_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    found, done = run(monkeypatch, 30)
    assert done == [("caused", 105), ("healing", 115), ("caused", 145), ("healing", 155)]
    assert found[0] == Window(105, 145, 145)


def test_the_busiest_broker_leads_most_partitions_of_all_topics() -> None:
    class Cluster:
        def leaders(self, topic: str) -> Counter[int]:
            return Counter({"a": {1: 2, 2: 1}, "b": {2: 1, 3: 1}, "c": {2: 1, 3: 1}}[topic])

    cluster: Any = Cluster()
    assert Place(cluster, ["a", "b", "c"]).busiest() == 2
    assert Place(cluster, ["a"]).busiest() == 1


def test_the_run_of_every_kind_ends() -> None:
    for kind in KINDS.values():
        assert 0 < duration(kind, 1) <= 180
