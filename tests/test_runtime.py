"""The owner of background tasks: opened here, closed there, on every event loop."""

import logging
import os
import subprocess
import sys
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup
from support.connecting import running_tasks
from support.patience import PATIENCE, SOON

from aiokafkawire import runtime
from aiokafkawire.errors import UsageError
from aiokafkawire.runtime import Owner, Runtime

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]


class Worker:
    """A task that runs until it is cancelled, and says so."""

    def __init__(self) -> None:
        self.began, self.ended = anyio.Event(), anyio.Event()

    async def run(self) -> None:
        self.began.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.ended.set()


async def test_tasks_run_until_the_owner_closes_and_closing_waits_for_them() -> None:
    before = running_tasks()
    owner, worker = Owner(), Worker()
    await owner.open()
    owner.spawn(worker.run)
    await worker.began.wait()
    assert not worker.ended.is_set()
    await owner.close()
    assert worker.ended.is_set()
    assert running_tasks() <= before


async def test_it_may_be_opened_in_one_task_and_closed_in_another() -> None:
    owner, worker = Owner(), Worker()

    async def open_and_leave() -> None:
        await owner.open()
        owner.spawn(worker.run)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_and_leave)
    # The group that opened it has ended, and its tasks go on.
    await worker.began.wait()
    assert not worker.ended.is_set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(owner.close)
        tasks.start_soon(owner.close)
    assert worker.ended.is_set()


async def test_cancelling_whoever_opened_it_leaves_its_tasks_alone() -> None:
    owner, worker = Owner(), Worker()
    with anyio.CancelScope() as scope:
        await owner.open()
        owner.spawn(worker.run)
        await worker.began.wait()
        scope.cancel()
        await anyio.sleep_forever()
    await anyio.wait_all_tasks_blocked()
    assert not worker.ended.is_set()
    await owner.close()


async def test_opening_that_is_cancelled_leaves_nothing_behind() -> None:
    before, owner = running_tasks(), Owner()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await owner.open()
    assert scope.cancelled_caught
    assert running_tasks() <= before
    with pytest.raises(UsageError, match="not open"):
        owner.require_open()


async def test_a_cancelled_close_still_waits_for_the_tasks() -> None:
    owner, worker = Owner(), Worker()
    await owner.open()
    owner.spawn(worker.run)
    await worker.began.wait()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await owner.close()
    assert worker.ended.is_set()


async def test_a_failing_task_is_reported_once_and_takes_nobody_down() -> None:
    faults = list[Exception]()
    owner, worker, failed = Owner(faults.append), Worker(), anyio.Event()

    async def fail(text: str) -> None:
        failed.set()
        raise ValueError(text)

    await owner.open()
    owner.spawn(worker.run)
    owner.spawn(fail, "a bug")
    await failed.wait()
    await anyio.wait_all_tasks_blocked()
    assert [str(fault) for fault in faults] == ["a bug"]
    assert not worker.ended.is_set()
    await owner.close()
    assert worker.ended.is_set()


async def test_without_anyone_to_tell_a_fault_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    owner = Owner()

    async def fail() -> None:
        raise ValueError("a bug")

    await owner.open()
    with caplog.at_level(logging.ERROR, "aiokafkawire"):
        owner.spawn(fail)
        await anyio.wait_all_tasks_blocked()
    await owner.close()
    (record,) = caplog.records
    assert record.name == "aiokafkawire.runtime"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


async def test_a_closed_or_unopened_owner_takes_no_tasks() -> None:
    owner, worker = Owner(), Worker()
    told = r"^the client is not open: use it inside its 'async with'$"
    for call in (owner.require_open, lambda: owner.spawn(worker.run)):
        with pytest.raises(UsageError, match=told):
            call()
    await owner.open()
    owner.require_open()
    await owner.close()
    for call in (owner.require_open, lambda: owner.spawn(worker.run)):
        with pytest.raises(UsageError, match=told):
            call()
    await owner.close()


async def test_a_task_that_spawns_while_the_owner_closes_is_refused() -> None:
    owner, heard = Owner(), list[Exception]()

    async def spawn_at_the_end() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            try:
                owner.spawn(anyio.sleep_forever)
            except UsageError as error:
                heard.append(error)

    await owner.open()
    owner.spawn(spawn_at_the_end)
    await anyio.wait_all_tasks_blocked()
    await owner.close()
    assert len(heard) == 1


async def test_closing_what_was_never_opened_does_nothing() -> None:
    owner = Owner()
    await owner.close()
    assert owner.loop is None


async def test_the_runtime_of_real_life() -> None:
    runtime = Runtime()
    assert runtime.now() <= anyio.current_time()
    assert runtime.wall_ms() > 1_700_000_000_000

    def join(*args: Any) -> str:
        return "".join(args)

    assert await runtime.offload(join, "a", "b") == "ab"
    assert runtime.chance is not Runtime().chance


async def test_a_worker_steps_when_it_is_woken_and_when_time_is_up() -> None:
    waits: list[float | None] = [0.0, None, None]
    stepped = [anyio.Event() for _ in waits]
    left = list(zip(waits, stepped, strict=True))

    def step(tasks: TaskGroup) -> float | None:
        wait, event = left.pop(0)
        event.set()
        return wait

    worker = runtime.Worker(step, lambda: None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        with anyio.fail_after(SOON):
            await stepped[1].wait()
            await anyio.wait_all_tasks_blocked()
            assert len(left) == 1
            worker.wake()
            worker.wake()
            await stepped[2].wait()
            await worker.stop()


async def test_a_worker_that_wakes_itself_lets_others_run() -> None:
    steps: list[int] = []

    def step(tasks: TaskGroup) -> None:
        steps.append(1)
        if len(steps) > 10_000:
            raise RuntimeError("nobody else was let run")
        worker.wake()

    worker = runtime.Worker(step, lambda: None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        assert steps
        await worker.stop()


def test_an_alarm_does_not_ring_early() -> None:
    class Loop:
        now = 0.0

        def __init__(self) -> None:
            self.calls: list[Any] = []

        def time(self) -> float:
            return self.now

        def call_at(self, at: float, call: Any) -> None:
            self.calls.append(call)

    loop, event = Loop(), anyio.Event()
    runtime._Alarm(cast("Any", loop), 1.0, event)
    loop.now = 0.9
    loop.calls.pop()()
    assert not event.is_set()
    loop.now = 1.0
    loop.calls.pop()()
    assert event.is_set()
    assert loop.calls == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_processes_that_are_forked_draw_different_random_numbers() -> None:
    """Members of the ids of one process would be one member, and transactional ids would fence each other."""
    source = """
import os
from aiokafkawire.runtime import Runtime
chance = Runtime().chance
reading, writing = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.write(writing, b"%x " % chance.getrandbits(128))
        os._exit(0)
    os.wait()
os.close(writing)
assert len(set(os.read(reading, 1000).split())) == 3
"""
    subprocess.run([sys.executable, "-c", source], check=True, timeout=PATIENCE)
