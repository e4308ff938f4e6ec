"""The faults of a kind happen on every link at the same times, and everything works again after them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.recovering import JumpingClock

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.network_faults import schedule
from benchmarks.network_faults.kinds import CALM, KINDS
from benchmarks.network_faults.link import Rules
from benchmarks.network_faults.schedule import Network
from benchmarks.recovery import windows
from benchmarks.recovery.windows import Window

NAMES = {1: "broker-1.test", 2: "broker-2.test"}


class Link:
    """Notes what it is told, with the time."""

    def __init__(self, clock: JumpingClock) -> None:
        self._clock = clock
        self.used: list[tuple[float, Rules, bool]] = []
        self.zones: list[tuple[dict[str, list[str]], str]] = []

    def use(self, rules: Rules, *, forget: bool = False) -> None:
        self.used.append((self._clock.now, rules, forget))

    def resolve(self, zone: dict[str, list[str]], mood: str) -> None:
        self.zones.append((zone, mood))


class Cluster:
    """Broker 2 leads most."""

    def __init__(self, clock: JumpingClock) -> None:
        self._clock = clock
        self.done: list[tuple[str, int, float]] = []

    def leaders(self, topic: str) -> Counter[int]:
        return Counter({1: 1, 2: 2})

    def kill(self, node: int) -> None:
        self.done.append(("kill", node, self._clock.now))

    def restart(self, node: int) -> None:
        self.done.append(("restart", node, self._clock.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    clock = JumpingClock()
    monkeypatch.setattr(schedule, "time", clock)
    monkeypatch.setattr(windows, "time", clock)
    return clock


def run(clock: JumpingClock, name: str, faults: int) -> tuple[list[Window], Link, Cluster]:
    cluster: Any = Cluster(clock)
    first, second = Link(clock), Link(clock)
    links: Any = {"ours": first, "theirs": second}
    found = Network(cluster, links).run(KINDS[name], faults, ["t"], lambda _: None)
    assert (first.used, first.zones) == (second.used, second.zones)
    return found, first, cluster


def test_a_fault_is_healed_and_there_is_time_before_the_next(clock: JumpingClock) -> None:
    found, link, _ = run(clock, "cut", 2)
    assert found == [Window(105.0, 113.0, 124.0), Window(124.0, 132.0, 143.0)]
    cut = KINDS["cut"].rules
    assert link.used == [(105.0, cut, False), (113.0, CALM, False), (124.0, cut, False), (132.0, CALM, False)]


def test_what_nat_has_forgotten_is_not_healed(clock: JumpingClock) -> None:
    found, link, _ = run(clock, "half-open", 2)
    assert found == [Window(105.0, 105.0, 170.0), Window(170.0, 170.0, 235.0)]
    assert link.used == [(105.0, Rules(unknown="drop"), True), (170.0, Rules(unknown="drop"), True)]


def test_names_fail_only_during_the_fault(clock: JumpingClock) -> None:
    _, link, _ = run(clock, "names", 1)
    assert [mood for _, mood in link.zones] == ["fails", "answers"]
    assert [forget for _, _, forget in link.used] == [True, False]


def test_brokers_move_to_addresses_that_the_names_have_from_then_on(clock: JumpingClock) -> None:
    _, link, _ = run(clock, "move", 2)
    assert [zone[NAMES[1]] for zone, _ in link.zones] == [["10.66.0.11", "fd66::11"], ["10.66.0.21", "fd66::21"]]
    gone = [set(rules.gone) for _, rules, _ in link.used]
    assert {"10.66.0.1", "fd66::1", "10.66.0.3", "fd66::3"} < gone[0] < gone[1]
    assert "10.66.0.11" in gone[1] - gone[0]


def test_a_host_that_vanishes_comes_back_under_another_address(clock: JumpingClock) -> None:
    found, link, cluster = run(clock, "vanish", 1)
    assert found == [Window(105.0, 105.0, 150.0)]
    assert cluster.done == [("kill", 2, 105.0), ("restart", 2, 125.0)]
    assert [set(rules.gone) for _, rules, _ in link.used] == [{"10.66.0.2", "fd66::2"}] * 2
    assert link.zones[-1][0][NAMES[2]] == ["10.66.0.12", "fd66::12"]
