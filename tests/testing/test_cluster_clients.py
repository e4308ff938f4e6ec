"""A client of ours on a cluster where leaders move and brokers stop: it goes on, and nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from support.patience import SOON

from aiokafkawire import Client, TopicPartition
from aiokafkawire.consumer.consumer import Consumer
from aiokafkawire.errors import RequestTimeout
from aiokafkawire.producer.producer import Producer
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def client_of(broker: Broker) -> AsyncIterator[Client]:
    """A client of a broker with the topic "t"."""
    with anyio.fail_after(SOON):
        async with broker:
            broker.create_topic("t")
            async with Client(broker.bootstrap, connector=broker.connect, retry_backoff_ms=1) as client:
                yield client


@asynccontextmanager
async def at_work(broker: Broker) -> AsyncIterator[tuple[Producer[bytes, bytes], Consumer[bytes, bytes]]]:
    """A producer, and a consumer of the topic "t" from its beginning."""
    async with (
        client_of(broker) as client,
        client.producer() as producer,
        client.consumer(auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([TopicPartition("t", 0)])
        yield producer, consumer


async def read(consumer: Consumer[bytes, bytes], count: int) -> list[bytes | None]:
    return [(await anext(consumer)).value for _ in range(count)]


async def test_leaders_move_under_a_producer_and_a_consumer() -> None:
    broker = Broker(3, port=None)
    async with at_work(broker) as (producer, consumer):
        for number in range(6):
            assert (await producer.send("t", b"%d" % number)).offset == number
            assert await read(consumer, 1) == [b"%d" % number]
            broker.move_leader("t", 0, number % 3 + 1)


async def test_brokers_stop_in_mid_fetch_and_return() -> None:
    broker = Broker(3, port=None)
    async with at_work(broker) as (producer, consumer):
        for number in range(3):
            await producer.send("t", b"a%d" % number)
            assert await read(consumer, 1) == [b"a%d" % number]
            stopped = broker.leader("t")
            async with anyio.create_task_group() as tasks:
                await anyio.wait_all_tasks_blocked()  # the next fetch is on its way
                await broker.stop_node(stopped)
                tasks.start_soon(producer.send, "t", b"b%d" % number)
                assert await read(consumer, 1) == [b"b%d" % number]
            await broker.start_node(stopped)
    assert broker.log("t").log_end_offset == 6
    assert sorted(broker.isr("t")) == [1, 2, 3]


async def test_acks_all_is_answered_when_the_follower_has_caught_up() -> None:
    broker = Broker(3, port=None)
    async with client_of(broker) as client, client.producer(acks="all") as producer:
        await producer.send("t", b"first")
        broker.hold_replica("t", 0, 3)
        delivery = await producer.enqueue("t", b"a")
        await anyio.wait_all_tasks_blocked()
        assert not delivery.done
        assert (broker.log("t").log_end_offset, broker.log("t").high_watermark) == (2, 1)
        broker.release_replica("t", 0, 3)
        assert (await delivery).offset == 1


async def test_a_producer_waits_for_enough_replicas() -> None:
    broker = Broker(3, port=None, min_insync_replicas=3)
    async with client_of(broker) as client:
        broker.shrink_isr("t", 0, 2)
        async with client.producer(acks="all", delivery_timeout_ms=300) as producer:
            with pytest.raises(RequestTimeout, match="NotEnoughReplicas"):
                await producer.send("t", b"lost")
        async with client.producer(acks="all") as producer:
            delivery = await producer.enqueue("t", b"a")
            await anyio.wait_all_tasks_blocked()
            broker.release_replica("t", 0, 2)
            assert (await delivery).offset == 0


async def test_a_fetcher_notices_that_the_log_was_cut_off() -> None:
    broker = Broker(3, port=None)
    async with at_work(broker) as (producer, consumer):
        await producer.send("t", b"kept")
        broker.shrink_isr("t", 0, 2)
        for number in range(3):
            await producer.send("t", b"lost %d" % number)
        assert await read(consumer, 4) == [b"kept", b"lost 0", b"lost 1", b"lost 2"]
        broker.move_leader("t", 0, 2, unclean=True)
        await producer.send("t", b"new")
        # It goes on from where the log parts from what it has read (KIP-320).
        assert await read(consumer, 1) == [b"new"]
