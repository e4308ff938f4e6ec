"""Tasks that await a batch's records are resumed, cancelled and timed as futures would have it, by either twin."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from aiokafkawire.producer import _implementation, _pure
from aiokafkawire.records import batch

BOTH: list[Any] = (
    [_pure.BatchEvent, _implementation.BatchEvent] if batch.IMPLEMENTATION == "cython" else [_pure.BatchEvent]
)
NAME: ContextVar[str] = ContextVar("name", default="nobody")
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=BOTH, ids=lambda twin: twin.__module__.rpartition(".")[2])
def waiters(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "asyncio":
        return asyncio.run
    uvloop = pytest.importorskip("uvloop")

    def run(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main)

    return run


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_all_are_resumed_in_order_each_in_its_own_context(run: Run, waiters: Any) -> None:
    heard: list[tuple[int, str]] = []

    async def main() -> None:
        event = waiters(asyncio.get_running_loop())

        async def wait(index: int) -> None:
            NAME.set(f"task {index}")
            await event.wait()
            current = asyncio.current_task()
            assert current is not None
            assert current.get_name() == NAME.get()
            heard.append((index, NAME.get()))

        tasks = [asyncio.create_task(wait(index), name=f"task {index}") for index in range(5)]
        await turns(2)
        event.set()
        assert not heard, "nobody runs inside the call"
        event.set()  # once more does nothing
        await asyncio.gather(*tasks)
        assert NAME.get() == "nobody"

    run(main())
    assert heard == [(index, f"task {index}") for index in range(5)]


def test_who_comes_later_does_not_wait(run: Run, waiters: Any) -> None:
    async def main() -> None:
        event = waiters(asyncio.get_running_loop())
        event.set()
        waiting = asyncio.create_task(event_in(event))
        await turns(1)
        assert waiting.done()

    run(main())


async def event_in(event: Any) -> str:
    await event.wait()
    return "heard"


def test_a_task_is_cancelled_at_once_with_its_message_and_the_others_wait_on(run: Run, waiters: Any) -> None:
    async def main() -> None:
        event = waiters(asyncio.get_running_loop())
        one, other = (asyncio.create_task(event_in(event)) for _ in range(2))
        await turns(1)
        one.cancel("enough")
        with pytest.raises(asyncio.CancelledError) as caught:
            await one
        assert caught.value.args == ("enough",)
        assert not other.done()
        event.set()
        assert await other == "heard"

    run(main())


def test_a_task_that_is_cancelled_before_it_has_waited_never_waits(run: Run, waiters: Any) -> None:
    async def main() -> None:
        event = waiters(asyncio.get_running_loop())

        async def cancel_and_wait() -> None:
            current = asyncio.current_task()
            assert current is not None
            current.cancel("before")
            await event.wait()

        waiting = asyncio.create_task(cancel_and_wait())
        with pytest.raises(asyncio.CancelledError):
            await waiting
        event.set()
        await turns(2)

    run(main())


def test_a_task_that_is_cancelled_once_the_event_is_set_is_cancelled_all_the_same(run: Run, waiters: Any) -> None:
    async def main() -> None:
        event = waiters(asyncio.get_running_loop())
        one, other = (asyncio.create_task(event_in(event)) for _ in range(2))
        await turns(1)
        event.set()
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        assert await other == "heard"

    run(main())


def test_a_task_may_cancel_one_that_is_resumed_behind_it(run: Run, waiters: Any) -> None:
    async def main() -> None:
        event = waiters(asyncio.get_running_loop())

        async def first() -> None:
            await event.wait()
            other.cancel()

        one = asyncio.create_task(first())
        await turns(1)
        other = asyncio.create_task(event_in(event))
        await turns(1)
        event.set()
        await one
        with pytest.raises(asyncio.CancelledError):
            await other

    run(main())


def test_time_limits_hold(run: Run, waiters: Any) -> None:
    async def main() -> None:
        event = waiters(asyncio.get_running_loop())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await event.wait()
        with anyio.move_on_after(0.001) as scope:
            await event.wait()
        assert scope.cancelled_caught
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(event_in, event)
            await turns(2)
            tasks.cancel_scope.cancel()
        event.set()

    run(main())


def test_who_fails_takes_nobody_along(run: Run, waiters: Any) -> None:
    async def main() -> None:
        event = waiters(asyncio.get_running_loop())

        async def fail() -> None:
            await event.wait()
            raise ValueError("a task's own")

        tasks = [asyncio.create_task(one) for one in (event_in(event), fail(), event_in(event))]
        await turns(1)
        event.set()
        told = await asyncio.gather(*tasks, return_exceptions=True)
        assert [told[0], str(told[1]), told[2]] == ["heard", "a task's own", "heard"]

    run(main())


def test_who_interrupts_the_loop_leaves_the_others_to_be_resumed(waiters: Any) -> None:
    loop = asyncio.new_event_loop()
    event = waiters(loop)

    async def interrupt() -> None:
        await event.wait()
        raise KeyboardInterrupt

    tasks = [loop.create_task(one) for one in (event_in(event), interrupt(), event_in(event))]
    loop.call_later(0, event.set)
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(asyncio.wait(tasks[2:]))
        loop.run_until_complete(asyncio.wait(tasks))
        assert [tasks[0].result(), tasks[2].result()] == ["heard", "heard"]
        assert isinstance(tasks[1].exception(), KeyboardInterrupt)
    finally:
        loop.close()


def test_one_is_awaited_by_tasks_alone(run: Run, waiters: Any) -> None:
    async def main() -> None:
        event = waiters(asyncio.get_running_loop())
        waiting = event_in(event)
        waiting.send(None)
        with pytest.raises(RuntimeError):
            waiting.send(None)  # it is not there yet

    run(main())
