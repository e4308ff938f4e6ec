"""Consumers, producers and transforms whose body is cancelled end as they do otherwise, on every broker and loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from secrets import token_hex
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import pytest
import sniffio
from support.patience import PATIENCE
from support.reading import take

from aiokafkawire import Client, ConsumerRecord, OutgoingRecord, TopicPartition
from aiokafkawire.errors import GroupIdNotFound

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]

Body: TypeAlias = Callable[[anyio.Event], Coroutine[Any, Any, None]]
"""Sets the event, and goes on for ever."""


async def by_a_scope(body: Body) -> None:
    ready = anyio.Event()

    async def cancel() -> None:
        await ready.wait()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        with anyio.CancelScope() as scope:
            await body(ready)
    assert scope.cancelled_caught


async def by_a_task_group(body: Body) -> None:
    ready = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(body, ready)
        await ready.wait()
        tasks.cancel_scope.cancel()


async def by_task_cancel(body: Body) -> None:
    ready = anyio.Event()
    task = asyncio.ensure_future(body(ready))
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_task_cancel_again_and_again(body: Body) -> None:
    ready = anyio.Event()
    task = asyncio.ensure_future(body(ready))
    await ready.wait()
    count = 0
    while not task.done():
        task.cancel()
        count += 1
        await asyncio.sleep(0)
    assert count > 3
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_asyncio_timeout(body: Body) -> None:
    ready = anyio.Event()

    async def expire() -> None:
        await ready.wait()
        timeout.reschedule(asyncio.get_running_loop().time())

    async with asyncio.TaskGroup() as tasks:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as timeout:
                tasks.create_task(expire())
                await body(ready)


async def by_a_sibling_that_fails(body: Body) -> None:
    ready = anyio.Event()

    async def fail() -> None:
        await ready.wait()
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as failed:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(body(ready))
            tasks.create_task(fail())
    assert [type(error) for error in failed.value.exceptions] == [ZeroDivisionError]


WAYS = pytest.mark.parametrize(
    "cancelled",
    [
        by_a_scope,
        by_a_task_group,
        by_task_cancel,
        by_task_cancel_again_and_again,
        by_asyncio_timeout,
        by_a_sibling_that_fails,
    ],
    ids=lambda way: way.__name__.replace("_", " "),
)
Cancelled: TypeAlias = Callable[[Body], Awaitable[None]]


def for_asyncio_alone(cancelled: Cancelled) -> None:
    if cancelled not in (by_a_scope, by_a_task_group) and sniffio.current_async_library() != "asyncio":
        pytest.skip("is a way of asyncio's")


async def fill(kafka: Client, topic: str, count: int) -> None:
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"%d" % number for number in range(count)], partition=0)


async def left_in(kafka: Client, group: str) -> int:
    try:
        return len((await kafka.admin.describe_groups(group))[group].members)
    except GroupIdNotFound:
        return 0


@WAYS
@pytest.mark.parametrize("face", ["records", "batches", "poll"])
async def test_a_cancelled_consumer_commits_what_is_finished_and_leaves_its_group(
    kafka: Client, topic: str, cancelled: Cancelled, face: str
) -> None:
    for_asyncio_alone(cancelled)
    group, where = f"group-{token_hex(6)}", TopicPartition(topic, 0)
    await fill(kafka, topic, 10)

    async def body(ready: anyio.Event) -> None:
        async with kafka.consumer(topic, group_id=group, auto_offset_reset="earliest") as consumer:
            seen = 0
            while face == "poll":
                seen += len(await consumer.poll(3))
                if seen == 10:
                    ready.set()
            if face == "batches":
                async for batch in consumer.batches():
                    seen += len(list(batch))
                    if seen == 10:
                        ready.set()
            async for record in consumer:
                if record.offset == 7:
                    ready.set()
                    await anyio.sleep_forever()

    began = time.monotonic()
    with anyio.fail_after(PATIENCE):
        await cancelled(body)
    assert time.monotonic() - began < 40  # a session lasts 45 s
    assert await left_in(kafka, group) == 0
    committed = (await kafka.admin.list_consumer_group_offsets(group))[where].offset
    # Record 7 is in hand when it happens, and so may be the last that were polled.
    assert committed == 7 if face == "records" else committed <= 10


@WAYS
async def test_a_cancelled_producer_sends_what_it_has_accepted(kafka: Client, topic: str, cancelled: Cancelled) -> None:
    for_asyncio_alone(cancelled)

    async def body(ready: anyio.Event) -> None:
        async with kafka.producer(linger_ms=60_000) as producer:
            deliveries.append(await producer.enqueue(topic, b"accepted", partition=0))
            ready.set()
            await anyio.sleep_forever()

    deliveries: list[Any] = []
    with anyio.fail_after(PATIENCE):
        await cancelled(body)
    assert (await deliveries[0]).offset == 0
    async with kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [record.value for record in await take(consumer, 1)] == [b"accepted"]


@WAYS
async def test_a_cancelled_transform_ends_and_is_begun_again(
    kafka: Client, topic: str, new_name: Callable[[], str], cancelled: Cancelled
) -> None:
    for_asyncio_alone(cancelled)
    name, results = f"group-{token_hex(6)}", new_name()
    await kafka.admin.create_topics({results: 1})
    await fill(kafka, topic, 10)
    seen: list[int] = []

    async def transform(process: Any, **options: Any) -> int:
        return await kafka.transform(
            topic, process, group_id=name, transactional_id=name, max_records=4, commit_interval_ms=10, **options
        )

    async def body(ready: anyio.Event) -> None:
        async def process(records: list[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
            if len(seen) >= 4:
                ready.set()
                await anyio.sleep_forever()
            seen.extend(record.offset for record in records)
            return [OutgoingRecord(results, record.value) for record in records]

        await transform(process)

    with anyio.fail_after(PATIENCE):
        await cancelled(body)
        assert seen == [0, 1, 2, 3]
        count = await transform(
            lambda records: [OutgoingRecord(results, record.value) for record in records], until_end=True
        )
        assert count == 6
        async with kafka.consumer(isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(results, 0)])
            assert [record.value for record in await take(consumer, 10)] == [b"%d" % number for number in range(10)]


@pytest.mark.parametrize("face", ["records", "in a record", "anext", "batches", "poll"])
async def test_close_by_another_task_ends_what_takes_records_and_leaves_the_group(
    kafka: Client, topic: str, face: str
) -> None:
    group = f"group-{token_hex(6)}"
    await fill(kafka, topic, 10)
    ready, goes_on, ended = anyio.Event(), anyio.Event(), anyio.Event()

    async def use() -> None:
        if face == "poll":
            while await consumer.poll():
                ready.set()
        elif face == "anext":
            with pytest.raises(StopAsyncIteration):
                while True:
                    if (await anext(consumer)).offset == 9:
                        ready.set()
        elif face == "batches":
            async for batch in consumer.batches():
                if batch.next_offset == 10:
                    ready.set()
        else:
            seen = []
            async for record in consumer:
                seen.append(record.offset)
                if face == "in a record" and record.offset == 4:
                    ready.set()
                    await goes_on.wait()
                elif record.offset == 9:
                    ready.set()
            assert seen == list(range(5 if face == "in a record" else 10))
        ended.set()

    consumer = kafka.consumer(topic, group_id=group, auto_offset_reset="earliest")
    await consumer.__aenter__()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use)
            await ready.wait()
            await anyio.wait_all_tasks_blocked()
            await consumer.close()
            assert ended.is_set() == (face != "in a record")
            goes_on.set()
    assert ended.is_set()
    assert await left_in(kafka, group) == 0
