"""Calls to be made later, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint
from support.virtual_time import virtual_time

from aiokafkawire.testing.cluster.timers import Timers

pytestmark = [pytest.mark.anyio, virtual_time]


@asynccontextmanager
async def running(on_fault: Callable[[Exception], None] | None = None) -> AsyncIterator[Timers]:
    timers = Timers()
    async with anyio.create_task_group() as group:
        group.start_soon(timers.run, on_fault)
        yield timers
        group.cancel_scope.cancel()


async def test_a_call_that_is_made_again_at_once_lets_others_run() -> None:
    made: list[int] = []

    async with running() as timers:

        def again() -> None:
            assert len(made) < 1000, "nobody else gets a turn"
            made.append(len(made))
            timers.after(0, again)

        again()
        for _ in range(5):
            await checkpoint()
        assert len(made) > 1


async def test_a_call_that_fails_stops_no_other() -> None:
    faults: list[Exception] = []
    made: list[float] = []

    def fail() -> None:
        raise RuntimeError("no")

    async with running(faults.append) as timers:
        timers.after(1, fail)
        timers.after(1, lambda: made.append(timers.now()))
        began = timers.now()
        timers.after(2, lambda: made.append(timers.now()))
        await anyio.sleep(3)
        assert made == [began + 1, began + 2]
        assert [str(fault) for fault in faults] == ["no"]


async def test_calls_of_one_time_may_cancel_each_other() -> None:
    made: list[str] = []
    async with running() as timers:
        timers.after(1, lambda: last.cancel())
        last = timers.after(1, lambda: made.append("cancelled"))
        await anyio.sleep(2)
    assert made == []


async def test_cancelled_calls_are_not_kept() -> None:
    timers = Timers()
    kept = [timers.after(1000 + index, lambda: None) for index in range(100)]
    for _ in range(10_000):
        timers.after(1800, lambda: None).cancel()
    assert len(timers._heap) <= 2 * len(kept) + 1
    assert sum(entry[2].pending for entry in timers._heap) == len(kept)
