"""What blocks the event loop is logged: once, with its place, and for how long."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from support.patience import SOON
from support.thread_clock import ThreadClock

from aiokafkawire.group.blocked_loop import BlockedLoop, Ticks

# --- when it is told -----------------------------------------------------------------------------------------------


def ticks() -> Ticks:
    return Ticks(2.0, 100.0)


def test_a_loop_ticks_four_times_within_the_threshold() -> None:
    assert ticks().period == 0.5


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (100.0, (None, 2.5)),
        (100.5, (None, 2.0)),  # the tick is due
        (102.25, (None, 0.25)),
        (102.5, (2.0, 2.0)),
        (103.0, (2.5, 2.0)),
    ],
)
def test_a_block_is_told_when_it_is_as_long_as_the_threshold(now: float, told: tuple[float | None, float]) -> None:
    assert ticks().look(now) == told


def test_a_block_is_told_once() -> None:
    lag = ticks()
    assert lag.look(102.5) == (2.0, 2.0)
    assert lag.look(104.5) == (None, 2.0)
    assert lag.tick(106.0) == 5.5
    assert lag.look(106.0) == (None, 2.5)
    assert lag.look(108.5) == (2.0, 2.0)


@pytest.mark.parametrize(("now", "blocked"), [(100.5, None), (102.25, None), (102.5, 2.0), (110.5, 10.0)])
def test_a_tick_tells_for_how_long_the_loop_was_blocked(now: float, blocked: float | None) -> None:
    assert ticks().tick(now) == blocked  # whether or not anybody has looked meanwhile


# --- on loops ------------------------------------------------------------------------------------------------------


class Ticking:
    """A detector whose ticks the test lets through, one at a time."""

    def __init__(self, clock: ThreadClock) -> None:
        self._clock, self._slept = clock, anyio.Event()
        self.sleeps = anyio.Event()
        self.lag = BlockedLoop(2.0, now=clock.now, wait=clock.wait, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        assert seconds == 0.5
        self.sleeps.set()
        await self._slept.wait()

    async def tick(self) -> None:
        """Let the loop tick now, and wait until it sleeps again."""
        await self.sleeps.wait()
        self.sleeps, slept = anyio.Event(), self._slept
        self._slept = anyio.Event()
        slept.set()
        await self.sleeps.wait()


@asynccontextmanager
async def running(run: Callable[[], Coroutine[object, object, None]]) -> AsyncIterator[None]:
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            yield
            group.cancel_scope.cancel()
    for one in threading.enumerate():
        if one.name == "aiokafkawire-loop-lag":
            one.join(SOON)
            assert not one.is_alive()


@pytest.fixture
def clock() -> ThreadClock:
    return ThreadClock()


def code_that_blocks_the_loop(clock: ThreadClock) -> None:
    clock.advance(3.0)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    ours = [record for record in caplog.records if record.name == "aiokafkawire.group"]
    assert {record.levelno for record in ours} <= {logging.WARNING}
    return [record.getMessage() for record in ours]


@pytest.mark.anyio
async def test_who_blocks_the_loop_is_named_once(clock: ThreadClock, caplog: pytest.LogCaptureFixture) -> None:
    ticking = Ticking(clock)
    async with running(ticking.lag.run):
        await ticking.tick()
        code_that_blocks_the_loop(clock)
        (told,) = logged(caplog)
        first, *stack = told.splitlines()
        assert first == "the event loop has been blocked for 2.5 s; it is at:"
        assert any("in code_that_blocks_the_loop" in line for line in stack)
        clock.advance(4.0)
        assert len(logged(caplog)) == 1
        await ticking.tick()
        assert logged(caplog)[1:] == ["the event loop was blocked for 6.5 s"]
        clock.advance(2.5)
        assert logged(caplog)[2].startswith("the event loop has been blocked for 2.0 s; it is at:\n")


@pytest.mark.anyio
async def test_a_loop_that_ticks_is_not_written_about(clock: ThreadClock, caplog: pytest.LogCaptureFixture) -> None:
    ticking = Ticking(clock)
    async with running(ticking.lag.run):
        for _ in range(5):
            await ticking.tick()
            clock.advance(2.25)
        await ticking.tick()
    assert logged(caplog) == []


@pytest.mark.anyio
async def test_it_watches_by_real_time(caplog: pytest.LogCaptureFixture) -> None:
    """The loop's thread waits until the warning is written."""
    warned, watched = threading.Event(), anyio.Event()

    async def sleep(seconds: float) -> None:
        watched.set()
        await anyio.sleep(seconds)

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warned.set()

    handler = Heard()
    logging.getLogger("aiokafkawire").addHandler(handler)
    try:
        async with running(BlockedLoop(0.125, sleep=sleep).run):
            await watched.wait()
            assert warned.wait(SOON)
            while len(logged(caplog)) < 2:
                await anyio.lowlevel.checkpoint()
    finally:
        logging.getLogger("aiokafkawire").removeHandler(handler)
    begun, ended = logged(caplog)[:2]
    assert begun.startswith("the event loop has been blocked for ")
    assert ended.startswith("the event loop was blocked for ")
