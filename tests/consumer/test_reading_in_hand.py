"""What the user has in hand: what is finished, and what is not; record by record, by batches, and by polls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, TypeVarTuple, Unpack

import anyio
import anyio.lowlevel
import pytest
from support.clusters import QUICK
from support.fetching import numbers
from support.patience import SOON

from aiokafkawire import Client, Consumer, TopicPartition, UsageError
from aiokafkawire.consumer import record_iteration
from aiokafkawire.errors import DeserializationError
from aiokafkawire.runtime import Runtime
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


@asynccontextmanager
async def running(
    *batches: int, compression: Any = "none", size: int = 0, runtime: Runtime | None = None, **options: Any
) -> AsyncIterator[Any]:
    """A consumer of a partition with batches of so many numbers, and of another with one batch of five."""
    async with Broker(port=None) as broker:
        broker.create_topic("a", partitions=2)
        async with Client(broker.bootstrap, connector=broker.connect, runtime=runtime, **QUICK) as client:
            async with client.producer(linger_ms=0, compression_type=compression) as producer:
                first = 0
                for count in batches:
                    some = [one + bytes(size) for one in numbers(first, first + count)]
                    await producer.send_many("a", some, partition=0)
                    first += count
                await producer.send_many("a", numbers(0, 5), partition=1)
            async with client.consumer(auto_offset_reset="earliest", **options) as consumer:
                with anyio.fail_after(SOON):
                    yield consumer


def finished(consumer: Consumer[Any, Any]) -> dict[TopicPartition, int]:
    return {where: at.offset for where, at in consumer._positions.finished().items()}


async def both_are_here(consumer: Consumer[Any, Any]) -> None:
    while set(consumer._fetcher.unread) != {A0, A1}:
        await consumer._fetcher.arrived.wait()


async def test_a_record_is_finished_once_the_user_comes_for_the_next() -> None:
    async with running(2, 2) as consumer:
        consumer.assign([A0])
        for offset in range(4):
            assert (await anext(consumer)).offset == offset
            assert finished(consumer) == {A0: offset}
            assert consumer.position(A0) == offset + 1
        assert await consumer.poll(timeout=0.001) == []
        assert finished(consumer) == {A0: 4}


async def test_a_batch_is_finished_as_a_whole() -> None:
    async with running(2, 3) as consumer:
        consumer.assign([A0])
        batches = consumer.batches()
        assert [record.offset for record in await anext(batches)] == [0, 1]
        assert finished(consumer) == {A0: 0}
        assert [record.offset for record in await anext(batches)] == [2, 3, 4]
        assert finished(consumer) == {A0: 2}


async def test_a_poll_is_finished_with_all_its_partitions() -> None:
    async with running(2, 3) as consumer:
        consumer.assign([A0, A1])
        await both_are_here(consumer)
        found = [(one.partition, one.offset) for one in await consumer.poll()]
        assert sorted(found) == [(0, offset) for offset in range(5)] + [(1, offset) for offset in range(5)]
        assert finished(consumer) == {A0: 0, A1: 0}
        assert await consumer.poll(timeout=0.001) == []
        assert finished(consumer) == {A0: 5, A1: 5}


@pytest.mark.parametrize("most", [1, 2, 3, 7])
async def test_a_poll_brings_no_more_than_it_was_asked_for_and_the_next_goes_on(most: int) -> None:
    async with running(2, 3) as consumer:
        consumer.assign([A0, A1])
        await both_are_here(consumer)
        found: list[tuple[int, int]] = []
        while len(found) < 10:
            some = await consumer.poll(most)
            assert 0 < len(some) <= most
            found += [(one.partition, one.offset) for one in some]
            first = {one.partition: one.offset for one in reversed(some)}
            assert all(finished(consumer)[TopicPartition("a", index)] == offset for index, offset in first.items())
        assert sorted(found) == [(index, offset) for index in range(2) for offset in range(5)]


async def test_who_changes_from_one_way_to_another_misses_nothing() -> None:
    async with running(4, 4) as consumer:
        consumer.assign([A0])
        assert (await anext(consumer)).offset == 0
        assert [one.offset for one in await consumer.poll(2)] == [1, 2]
        assert finished(consumer) == {A0: 1}
        assert [one.offset for one in await anext(consumer.batches())] == [3]
        assert finished(consumer) == {A0: 3}
        assert (await anext(consumer)).offset == 4
        assert finished(consumer) == {A0: 4}
        assert [one.offset for one in await consumer.poll()] == [5, 6, 7]
        assert finished(consumer) == {A0: 5}


@pytest.mark.parametrize("most", [0, -1])
async def test_a_poll_for_nothing_is_a_mistake(most: int) -> None:
    async with running(1) as consumer:
        with pytest.raises(UsageError, match="max_records must be at least 1"):
            await consumer.poll(most)


async def test_an_error_comes_after_the_records_before_it() -> None:
    def read(data: bytes) -> int:
        if data == b"2":
            raise ValueError("two")
        return int(data)

    async with running(4, value_deserializer=read) as consumer:
        consumer.assign([A0])
        assert [one.value for one in await consumer.poll()] == [0, 1]
        with pytest.raises(DeserializationError):
            await consumer.poll()
        assert [one.value for one in await consumer.poll()] == [3]


async def test_a_poll_that_is_cancelled_costs_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has to be inflated on a thread is waited for with empty hands alone."""
    monkeypatch.setattr(record_iteration, "needs_thread", lambda header: True)
    inflated, scopes = 0, [anyio.CancelScope()]

    async def offload(function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        nonlocal inflated
        inflated += 1
        if inflated % 2 == 0:
            scopes[-1].cancel()
        await anyio.lowlevel.checkpoint()
        return function(*args)

    async with running(3, 3, compression="gzip", size=100, runtime=Runtime(offload=offload)) as consumer:
        consumer.assign([A0, A1])
        await both_are_here(consumer)
        inflated = 0
        found: list[tuple[int, int]] = []
        while len(found) < 11:
            scopes.append(anyio.CancelScope())
            with scopes[-1]:
                found += [(one.partition, one.offset) for one in await consumer.poll()]
        assert sorted(found) == [(0, offset) for offset in range(6)] + [(1, offset) for offset in range(5)]
        assert inflated > 2


async def test_what_is_withheld_is_not_handed_out_and_what_is_in_hand_may_be_finished() -> None:
    async with running(3, 3) as consumer:
        consumer.assign([A0, A1])
        await both_are_here(consumer)
        record = await anext(consumer)
        where = TopicPartition("a", record.partition)
        place = consumer._positions.require(where)
        place.withheld = True
        released: list[int | None] = []
        consumer._iteration.on_release = lambda: released.append(place.held)
        assert (await anext(consumer)).partition == 1 - record.partition
        assert released == [None]
        assert finished(consumer)[where] == 1
        place.withheld = False
        assert {one.partition for one in await consumer.poll()} == {0, 1}
