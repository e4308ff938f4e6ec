"""One task at a time takes a consumer's records: who else does so gets an error, and nothing is committed too far."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import pytest
import sniffio
from support.patience import SOON

from aiokafkawire import Client, Consumer, TopicPartition, UsageError
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

A0 = TopicPartition("a", 0)
COUNT = 100

Take: TypeAlias = Callable[[Consumer[bytes, bytes]], Coroutine[Any, Any, Any]]


@pytest.fixture
async def kafka() -> AsyncIterator[Client]:
    """A partition of 100 records in ten batches, and an empty topic."""
    async with Broker(port=None) as broker, Client(broker.bootstrap, connector=broker.connect) as client:
        await client.admin.create_topics({"a": 1, "empty": 1})
        async with client.producer() as producer:
            for first in range(0, COUNT, 10):
                await producer.send_many("a", [b"%d" % number for number in range(first, first + 10)])
        yield client


@pytest.fixture
async def consumer(kafka: Client) -> AsyncIterator[Consumer[bytes, bytes]]:
    async with kafka.consumer("a", group_id="g", auto_offset_reset="earliest", auto_commit_interval_ms=10) as consumer:
        with anyio.fail_after(SOON):
            yield consumer


async def by_loop(consumer: Consumer[bytes, bytes]) -> int:
    async for record in consumer:
        return record.offset
    raise AssertionError


async def by_anext(consumer: Consumer[bytes, bytes]) -> int:
    return (await anext(consumer)).offset


async def by_poll(consumer: Consumer[bytes, bytes]) -> int:
    return (await consumer.poll(1))[0].offset


async def by_batches(consumer: Consumer[bytes, bytes]) -> int:
    return next(iter(await anext(consumer.batches()))).offset


FACES = [by_loop, by_anext, by_poll, by_batches]
faces = pytest.mark.parametrize("take", FACES, ids=lambda face: face.__name__)


class Elsewhere:
    """A task that takes once when it is told to, and goes on living."""

    def __init__(self) -> None:
        self._go, self.took, self._end = anyio.Event(), anyio.Event(), anyio.Event()

    async def run(self, consumer: Consumer[bytes, bytes], take: Take) -> None:
        await self._go.wait()
        await take(consumer)
        self.took.set()
        await self._end.wait()

    async def take(self) -> None:
        self._go.set()
        await self.took.wait()

    def end(self) -> None:
        self._end.set()


@faces
@pytest.mark.parametrize("other", FACES, ids=lambda face: face.__name__)
async def test_a_second_task_is_refused_while_the_first_has_records_in_hand(
    consumer: Consumer[bytes, bytes], take: Take, other: Take
) -> None:
    one = Elsewhere()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run, consumer, take)
        await one.take()
        with pytest.raises(UsageError, match="another task has records of this consumer in hand"):
            await other(consumer)
        with pytest.raises(UsageError, match=r"commit\(\) without offsets .* pass the offsets"):
            await consumer.commit()
        await consumer.commit({A0: 0})  # what is said outright is the user's own matter
        one.end()
    await other(consumer)  # a task that has ended has nothing in hand
    await consumer.commit()


@faces
async def test_a_second_task_is_refused_while_the_first_waits(kafka: Client, take: Take) -> None:
    async with kafka.consumer("empty", group_id="g") as consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(take, consumer)
        while not (consumer._iteration.waiting and consumer.assignment):
            await anyio.lowlevel.checkpoint()
        for other in FACES:
            with pytest.raises(UsageError, match="another task is waiting for records of this consumer"):
                await other(consumer)
        with pytest.raises(UsageError, match="pass the offsets"):
            await consumer.commit()
        await consumer.commit({TopicPartition("empty", 0): 0})
        tasks.cancel_scope.cancel()


async def test_of_two_loops_that_never_wait_at_the_same_time_one_is_refused(consumer: Consumer[bytes, bytes]) -> None:
    """Auto-commit would cover what one has in hand as soon as the other comes for more."""
    held, refused = set[int](), list[UsageError]()
    resume = anyio.Event()

    async def work(slow: bool) -> None:
        try:
            async for record in consumer:
                held.add(record.offset)
                if slow and record.offset == 3:
                    await resume.wait()
                await anyio.sleep(0.001)
                held.discard(record.offset)
                if record.offset == COUNT - 1:
                    break
        except UsageError as error:
            refused.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, True)
        while held != {3}:
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(work, False)
        while not refused:
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(0.05)  # several intervals of the auto-commit
        committed = (await consumer.committed([A0]))[A0]
        assert committed is None or committed.offset <= 3
        resume.set()
    assert len(refused) == 1


@faces
async def test_a_task_that_has_committed_hands_over_and_may_not_simply_go_on(
    consumer: Consumer[bytes, bytes], take: Take
) -> None:
    one = Elsewhere()
    iterator = aiter(consumer)

    async def begin(consumer: Consumer[bytes, bytes]) -> None:
        assert (await anext(iterator)).offset == 0
        await consumer.commit()

    async def go_on() -> None:
        await one.take()
        await take(consumer)  # this task takes over
        assert consumer._iteration._has_in_hand()

    refused = anyio.Event()

    async def live() -> None:
        await one.run(consumer, begin)
        with pytest.raises(UsageError, match="in hand"):
            await anext(iterator)  # which has records of its batch at hand
        refused.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live)
        await go_on()
        one.end()
        await refused.wait()


async def test_a_poll_without_records_holds_nothing(consumer: Consumer[bytes, bytes]) -> None:
    async def poll_in_vain(consumer: Consumer[bytes, bytes]) -> None:
        left = COUNT
        while left:
            left -= len(await consumer.poll(timeout=SOON))
        assert await consumer.poll(timeout=0.05) == []

    one = Elsewhere()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run, consumer, poll_in_vain)
        await one.take()
        assert await consumer.poll(timeout=0.01) == []
        await consumer.commit()
        one.end()


async def test_a_task_for_each_call_is_as_good_as_one(consumer: Consumer[bytes, bytes]) -> None:
    seen: list[int] = []

    async def poll() -> None:
        seen.extend(record.offset for record in await consumer.poll(7))

    while len(seen) < COUNT:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(poll)
    assert seen == list(range(COUNT))


async def test_a_task_acts_for_the_one_that_started_it(consumer: Consumer[bytes, bytes]) -> None:
    """``asyncio.wait_for`` makes a task for what it waits for, and so do gather and shield."""
    iterator = aiter(consumer)
    seen = [(await anext(iterator)).offset]

    async def step() -> None:
        seen.append((await anext(iterator)).offset)

    for count in range(COUNT - 1):
        if count % 3:
            await step()
            continue
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(step)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consumer.commit)
    if sniffio.current_async_library() == "asyncio":
        await asyncio.wait_for(consumer.commit(), 5)
        await asyncio.shield(consumer.commit())
    assert seen == list(range(COUNT))


async def test_a_task_still_acts_for_another_after_it_has_read_another_consumer(
    kafka: Client, consumer: Consumer[bytes, bytes]
) -> None:
    assert len(await consumer.poll(2)) == 2

    async def handle() -> None:
        assert len([record async for record in kafka.read_records("a")]) == COUNT
        await consumer.commit()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(handle)
    assert (await consumer.committed([A0]))[A0] is not None


async def test_listeners_commit_what_was_handed_out(kafka: Client) -> None:
    """They run in a task of their own."""
    committed = anyio.Event()

    async def commit(going: Any) -> None:
        await member.commit()
        committed.set()

    member = kafka.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    async with member:
        member.subscribe("a", on_revoked=commit)
        async for record in member:
            if record.offset == 4:
                break
    assert committed.is_set()
    assert (await kafka.admin.list_consumer_group_offsets("g"))[A0].offset == 5


async def test_a_listener_cannot_close_the_consumer(kafka: Client) -> None:
    refused: list[str] = []

    async def close(coming: Any) -> None:
        with pytest.raises(UsageError, match="a listener cannot close the consumer") as error:
            await member.close()
        refused.append(str(error.value))

    async with kafka.consumer(group_id="g", auto_offset_reset="earliest") as member:
        member.subscribe("a", on_assigned=close)
        with anyio.fail_after(SOON):
            assert (await anext(member)).offset == 0
    assert len(refused) == 1


@faces
async def test_a_call_after_closing_is_refused(kafka: Client, take: Take) -> None:
    consumer = kafka.consumer("a", group_id="g", auto_offset_reset="earliest")
    async with consumer:
        await take(consumer)
    with pytest.raises(UsageError, match="the consumer is closed"):
        await take(consumer)


async def test_two_tasks_may_close(kafka: Client) -> None:
    """The second waits for the end of the first: what comes after it may close the client."""
    consumer = kafka.consumer("a", group_id="g", auto_offset_reset="earliest")
    await consumer.__aenter__()
    assert (await anext(consumer)).offset == 0
    ended: list[str] = []

    async def close() -> None:
        await consumer.close()
        ended.append(consumer._iteration.state)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(close)
    assert ended == ["closed"] * 3
