"""Records for partitions that were added to a topic after the producer's client has looked it up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.patience import SOON
from support.producing import Bytes

from aiokafkawire import Client, UsageError
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.records.batch import BatchBuilder
from aiokafkawire.serialization import SerializationContext
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import TopicPartition

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def outdated(**options: Any) -> AsyncIterator[tuple[Broker, Bytes]]:
    """A producer whose client knows two partitions of topic "a", which has three."""
    async with Broker() as broker, Client(broker.bootstrap) as kafka, Client(broker.bootstrap) as other:
        broker.create_topic("a", 2)
        async with kafka.producer(**options) as producer:
            await producer.send("a", b"known", partition=1)
            await other.admin.create_partitions({"a": 3})
            with anyio.fail_after(SOON):
                yield broker, producer


async def send(producer: Bytes, partition: int) -> None:
    await producer.send("a", b"v", partition=partition)


async def enqueue(producer: Bytes, partition: int) -> None:
    await (await producer.enqueue("a", b"v", partition=partition))


async def send_many(producer: Bytes, partition: int) -> None:
    await producer.send_many("a", [b"v"], partition=partition)


async def enqueue_many(producer: Bytes, partition: int) -> None:
    assert await producer.enqueue_many("a", [b"v"], partition=partition) == 1
    await producer.flush()


async def enqueue_batch(producer: Bytes, partition: int) -> None:
    builder = BatchBuilder(limit=1000)
    builder.append(1, None, b"v", ())
    result = await producer._enqueue_batch(TopicPartition("a", partition), builder, [1])
    await result.wait(0)


WAYS = pytest.mark.parametrize("way", [send, enqueue, send_many, enqueue_many, enqueue_batch])


@WAYS
async def test_it_is_looked_for(way: Callable[[Bytes, int], Awaitable[None]]) -> None:
    async with outdated() as (broker, producer):
        await way(producer, 2)
        assert broker.log("a", 2).log_end_offset == 1


@WAYS
async def test_one_that_does_not_exist_is_looked_for_once(way: Callable[[Bytes, int], Awaitable[None]]) -> None:
    async with outdated() as (broker, producer):
        broker.requests.clear()
        with pytest.raises(UsageError, match="topic 'a' has 3 partitions, no 3"):
            await way(producer, 3)
        assert len(broker.requests.of(ApiKey.METADATA)) == 1
        with pytest.raises(UsageError, match="no -1"):
            await way(producer, -1)
        assert len(broker.requests.of(ApiKey.METADATA)) == 1


@WAYS
async def test_it_is_not_there_if_no_broker_answers(way: Callable[[Bytes, int], Awaitable[None]]) -> None:
    async with outdated(max_block_ms=50) as (broker, producer):
        broker.on(ApiKey.METADATA, swallow="before", times=None)
        with pytest.raises(UsageError, match="topic 'a' has 2 partitions, no 2"):
            await way(producer, 2)


async def test_who_does_not_wait_may_try_again() -> None:
    async with outdated() as (_, producer):
        accepted = None
        while accepted is None:
            try:
                accepted = producer.send_nowait("a", b"v", partition=2)
            except UsageError as error:
                assert "topic 'a' has 2 partitions, no 2" in str(error)  # noqa: PT017
                await anyio.lowlevel.checkpoint()
        assert (await accepted).offset == 0


async def test_serializers_that_know_the_record_make_no_difference() -> None:
    class Serializer:
        def serialize(self, value: bytes, context: SerializationContext) -> bytes:
            return value

    async with outdated(value_serializer=Serializer()) as (broker, producer):
        await producer.send("a", b"v", partition=2)
        assert broker.log("a", 2).log_end_offset == 1
