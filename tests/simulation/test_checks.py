"""The checks of what is left after a run, and of background tasks, can fail."""

import logging

import anyio
import anyio.lowlevel
import pytest
from simulation.checks import no_task_fails_unheard
from simulation.leftovers import check_nothing_is_left, tasks

from aiokafkawire.testing.simulation import Simulation, simulate


def test_a_background_task_that_failed_is_heard() -> None:
    with pytest.raises(AssertionError, match="a background task failed"), no_task_fails_unheard():
        logging.getLogger("aiokafkawire").error("a background task failed")


@pytest.mark.parametrize("leave_open", [True, False])
def test_connections_and_tasks_that_are_left_are_found(leave_open: bool) -> None:
    async def main(sim: Simulation) -> None:
        before = tasks()
        client = sim.client("who stays")
        await client.open()
        if not leave_open:
            await client.close()
        await anyio.sleep(1)
        try:
            check_nothing_is_left(sim, before)
        finally:
            await client.close()

    if not leave_open:
        simulate(main)
        return
    with pytest.raises(AssertionError, match="who stays"):
        simulate(main)


def test_a_task_that_is_left_is_found() -> None:
    async def main(sim: Simulation) -> None:
        before = tasks()
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 10)
            await anyio.lowlevel.checkpoint()
            check_nothing_is_left(sim, before)

    with pytest.raises(ExceptionGroup) as raised:
        simulate(main)
    assert "sleep" in str(raised.value.exceptions[0])
