"""One seed is one run: in this process and in others, whatever the hashes of strings are there."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import anyio
import anyio.lowlevel
import pytest
from simulation import groups, scenario, transactions
from simulation.quick_loop import quick_loop
from trio._core import _run

from aiokafkawire.testing.simulation import Simulation, simulate

TESTS = Path(__file__).parents[1]
SEED = 103  # one of those where the order of topics once came from the hashes of their names


def digest_elsewhere(scenario: str, hash_seed: str) -> str:
    code = f"from {scenario} import run; print(run({SEED}).trace.digest)"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    "played",
    [scenario, *(pytest.param(one, marks=pytest.mark.thorough) for one in (transactions, groups))],
    ids=lambda one: one.__name__,
)
def test_a_seed_gives_the_same_run_in_every_process(played: ModuleType) -> None:
    here = played.run(SEED).trace
    elsewhere = {digest_elsewhere(played.__name__, hash_seed) for hash_seed in ("1", "2")}
    assert {*elsewhere, played.run(SEED).trace.digest} == {here.digest}


@pytest.mark.slow
@pytest.mark.parametrize(
    "played",
    [transactions, *(pytest.param(one, marks=pytest.mark.thorough) for one in (scenario, groups))],
    ids=lambda one: one.__name__,
)
def test_the_quick_loop_changes_no_run(played: ModuleType) -> None:
    with quick_loop():
        quick = played.run(SEED).trace
    assert quick.digest == played.run(SEED).trace.digest


@pytest.mark.slow
def test_another_seed_is_another_run() -> None:
    assert scenario.run(SEED).trace.digest != scenario.run(SEED + 1).trace.digest


async def order_of_tasks(sim: Simulation) -> list[int]:
    ran = list[int]()

    async def one(number: int) -> None:
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
            ran.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(one, number)
    return ran


def test_trio_runs_tasks_in_an_order_that_follows_from_the_seed() -> None:
    orders = [simulate(order_of_tasks, seed=seed).value for seed in (1, 1, 2, 3)]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 3


def test_trio_is_left_as_it_was() -> None:
    before = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate()
    simulate(order_of_tasks, seed=1)
    assert (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate()) == before


def test_whoever_waits_for_all_to_be_blocked_comes_before_the_next_moment() -> None:
    async def main(sim: Simulation) -> list[str]:
        told = list[str]()

        async def sleep() -> None:
            await anyio.sleep(1)
            told.append("a second is over")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleep)
            await anyio.wait_all_tasks_blocked()
            told.append("all are blocked")
        return told

    assert simulate(main).value == ["all are blocked", "a second is over"]


def test_topic_ids_and_clocks_are_the_seeds() -> None:
    async def main(sim: Simulation) -> tuple[object, int]:
        await anyio.sleep(1.5)
        return sim.broker.create_topic("a").topic_id, sim.wall_ms()

    (one, then), (same, _), (other, _) = (simulate(main, seed=seed).value for seed in (1, 1, 2))
    assert one == same != other
    assert then == 1_700_000_001_500


@pytest.mark.parametrize("name", ["main", "network"])
def test_chance_depends_on_seed_and_name_alone(name: str) -> None:
    async def main(sim: Simulation) -> float:
        return sim.chance(name).random()

    first, second, third = (simulate(main, seed=seed).value for seed in (1, 1, 2))
    assert first == second != third
