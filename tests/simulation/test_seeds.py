"""The scenario with as many seeds as there is time for in every run of the tests; `nox -s simulate` runs more."""

import pytest
from simulation.scenario import run

SEEDS = 25


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_acknowledged_is_there_in_order_and_seen_once(seed: int) -> None:
    done = run(seed)
    assert done.value.sent
    assert done.value.faults
