"""How many workers run a handler: few if it does not wait, and as many as may be if it does."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from aiokafkawire.processing.handler_pool import HandlerPool
from aiokafkawire.processing.lanes import Lanes
from aiokafkawire.processing.retry import Retry
from aiokafkawire.processing.retry_topics import RetryTopics
from aiokafkawire.types import TopicPartition

pytestmark = pytest.mark.anyio

CONCURRENCY = 64
RECORDS = 500


class Call:
    """Calls a coroutine function, on no thread."""

    group = "g"

    def __init__(self, handle: Callable[[], Awaitable[None]]) -> None:
        self.handle = handle

    def check_threads(self) -> None: ...

    def __call__(self, _: list[Any]) -> Awaitable[None]:
        return self.handle()


def pool_of(handle: Callable[[], Awaitable[None]]) -> HandlerPool:
    """Return a pool with records to handle, for which time stands still."""
    lanes: Lanes[int] = Lanes("key", CONCURRENCY)
    for number in range(RECORDS):
        lanes.add(TopicPartition("orders", 0), b"%d" % number, number)
    source: Any = SimpleNamespace(finished=lambda _: None)
    parts: Any = SimpleNamespace(runtime=SimpleNamespace(now=lambda: 0.0)), lanes, Call(handle), Retry()

    def failed(_: object, error: BaseException) -> None:
        raise error

    return HandlerPool(
        *parts,
        retry_topics=RetryTopics(),
        dead_letter_topic=None,
        writer=None,
        concurrency=CONCURRENCY,
        skipped=None,
        source=source,
        on_failed=failed,
    )


async def unguarded(function: Callable[[], Awaitable[None]]) -> None:
    await function()


def processed(pool: HandlerPool) -> int:
    return pool.summary(skipped=0, in_hand=0, waiting=0).processed


async def test_a_handler_that_does_not_wait_needs_few_workers() -> None:
    workers = set()

    async def handle() -> None:
        workers.add(anyio.get_current_task().id)

    pool = pool_of(handle)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.run, tasks, unguarded)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert processed(pool) == RECORDS
    assert len(workers) == 1


async def test_as_many_calls_run_at_once_as_may_be_while_the_handler_waits() -> None:
    running = most = 0
    go_on = anyio.Event()

    async def handle() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go_on.wait()
        running -= 1

    pool = pool_of(handle)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.run, tasks, unguarded)
        await anyio.wait_all_tasks_blocked()
        assert running == CONCURRENCY
        go_on.set()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert processed(pool) == RECORDS
    assert most == CONCURRENCY
