"""What the loop over records takes by itself, and what it leaves to the consumer."""

import time
from collections.abc import AsyncIterator, Generator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokafkawire import Client, Consumer, TopicPartition
from aiokafkawire.consumer._implementation import RecordIterator
from aiokafkawire.errors import DeserializationError
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

compiled_only = pytest.mark.skipif(
    RecordIterator.__module__.endswith("_pure"), reason="a step of the pure iterator is a coroutine of Python's"
)

ONE, TWO = TopicPartition("a", 0), TopicPartition("a", 1)
COUNT = 100


@pytest.fixture
async def kafka() -> AsyncIterator[Client]:
    """Two partitions of 100 numbered records each, in batches of all."""
    async with Broker() as broker, Client(broker.bootstrap, connector=broker.connect) as client:
        await client.admin.create_topics({"a": 2})
        async with client.producer(linger_ms=100) as producer:
            for where in (ONE, TWO):
                deliveries = [
                    await producer.enqueue("a", b"%d" % number, partition=where.partition) for number in range(COUNT)
                ]
                await producer.flush()
                assert (await deliveries[-1]).offset == COUNT - 1
        yield client


def reading(consumer: Consumer[Any, Any]) -> Any:
    consumer.assign({ONE: 0})
    return aiter(consumer)


async def test_every_record_comes_once_and_the_position_is_behind_it(kafka: Client) -> None:
    async with kafka.consumer() as consumer:
        iterator = reading(consumer)
        for number in range(COUNT):
            record = await anext(iterator)
            assert (record.offset, record.value) == (number, b"%d" % number)
            assert consumer.position(ONE) == number + 1
            place = consumer._positions.require(ONE)
            assert place.held == number


async def test_every_record_counts_as_a_sign_of_life(kafka: Client) -> None:
    async with kafka.consumer() as consumer:
        iterator = reading(consumer)
        for number in range(COUNT):
            await anext(iterator)
            assert consumer._iteration.polls()[0] == number + 1


@compiled_only
async def test_a_step_that_is_never_awaited_costs_no_record(kafka: Client) -> None:
    async with kafka.consumer() as consumer:
        iterator = reading(consumer)
        assert (await anext(iterator)).offset == 0
        dropped = iterator.__anext__()
        del dropped
        closed = iterator.__anext__()
        closed.close()
        thrown = iterator.__anext__()
        with pytest.raises(LookupError):
            thrown.throw(LookupError())
        for used_up in (closed, thrown):
            with pytest.raises(RuntimeError, match="has been awaited before"):
                await used_up
        assert (await anext(iterator)).offset == 1


async def test_a_cancellation_costs_no_record(kafka: Client) -> None:
    async with kafka.consumer() as consumer:
        iterator = reading(consumer)
        assert (await anext(iterator)).offset == 0
        seen = []
        for _ in range(40):
            with anyio.CancelScope() as scope:
                scope.cancel()
                seen.append((await anext(iterator)).offset)
            with anyio.CancelScope():
                seen.append((await anext(iterator)).offset)
        assert seen == list(range(1, 1 + len(seen)))


@pytest.mark.parametrize("what", ["seek", "pause", "assign", "batches", "poll", "other iterator"])
async def test_whatever_changes_what_comes_next_counts_at_once(kafka: Client, what: str) -> None:
    async with kafka.consumer() as consumer:
        iterator = reading(consumer)
        for _ in range(3):
            record = await anext(iterator)
        assert record.offset == 2
        expected = ONE, 3
        if what == "seek":
            consumer.seek(ONE, 50)
            expected = ONE, 50
        elif what == "pause":
            consumer.assign({ONE: None, TWO: 0})
            consumer.pause(ONE)
            expected = TWO, 0
        elif what == "assign":
            consumer.assign({TWO: 7})
            expected = TWO, 7
        elif what == "batches":
            batch = await anext(consumer.batches())
            assert [one.offset for one in batch] == list(range(3, COUNT))
            consumer.seek(ONE, 99)
            expected = ONE, 99
        elif what == "poll":
            assert [one.offset for one in await consumer.poll(5)] == [3, 4, 5, 6, 7]
            expected = ONE, 8
        else:
            assert (await anext(consumer)).offset == 3
            assert (await anext(aiter(consumer))).offset == 4
            expected = ONE, 5
        record = await anext(iterator)
        assert (TopicPartition(record.topic, record.partition), record.offset) == expected


async def test_a_deserializer_that_fails_leaves_the_position_behind_the_record(kafka: Client) -> None:
    def number(raw: bytes) -> int:
        if raw.endswith(b"7"):
            raise LookupError(raw)
        return int(raw)

    async with kafka.consumer(value_deserializer=number) as consumer:
        iterator = reading(consumer)
        values: list[int | None] = []
        while len(values) < COUNT:
            try:
                values.append((await anext(iterator)).value)
            except DeserializationError:
                assert consumer.position(ONE) == len(values) + 1
                values.append(None)
        assert values == [None if number % 10 == 7 else number for number in range(COUNT)]


class Stepped:
    """Awaits something by hand, as a library would that is older than the ``await`` slots."""

    def __init__(self, awaitable: Any) -> None:
        self._inner = awaitable.__await__()

    def __await__(self) -> Generator[Any, Any, Any]:
        value = None
        while True:
            try:
                value = yield self._inner.send(value)
            except StopIteration as end:
                return end.value


@compiled_only
async def test_a_step_may_be_taken_by_hand(kafka: Client) -> None:
    async with kafka.consumer() as consumer:
        iterator = reading(consumer)
        assert [(await Stepped(iterator.__anext__())).offset for _ in range(3)] == [0, 1, 2]
        step = iterator.__anext__()
        with pytest.raises(StopIteration) as end:
            next(step)
        assert end.value.value.offset == 3


async def test_a_loop_that_never_waits_lets_others_run(kafka: Client) -> None:
    """The looks at the clock are counted, not the time: every record is made to take longer than a turn may."""
    async with kafka.consumer() as consumer:
        ran = 0

        async def other() -> None:
            nonlocal ran
            while True:
                ran += 1
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            iterator = reading(consumer)
            await anext(iterator)
            tasks.start_soon(other)
            await anyio.lowlevel.checkpoint()
            before, read = ran, 0
            while ran == before:
                consumer._iteration._yielded_at = float("-inf")
                busy(0.001)
                await anext(iterator)
                read += 1
            assert 1 <= read <= 40
            tasks.cancel_scope.cancel()


def busy(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
