"""Brokers that lag behind, and give other ids for topics than the rest of the cluster, for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import anyio
import pytest
from support.readers import reading
from support.virtual_time import virtual_time

from aiokafkawire import Client, Consumer, TopicPartition
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, virtual_time]

WHERE = TopicPartition("t", 0)


def other_ids(_: Any, response: Any) -> Any:
    """The answer of a broker that knows a topic of the same name, which was deleted before."""
    for topic in response.topics:
        topic.topic_id = UUID(int=7)
    return response


@asynccontextmanager
async def cluster(nodes: int = 1) -> AsyncIterator[tuple[Broker, Client]]:
    async with Broker(port=None, nodes=nodes) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, connector=broker.connect) as kafka:
            await write(kafka, 0)
            yield broker, kafka


async def write(kafka: Client, *numbers: int) -> None:
    async with kafka.producer() as producer:
        for number in numbers:
            await producer.send("t", b"%d" % number)


async def refresh(kafka: Client) -> None:
    metadata = kafka._cluster.metadata
    await metadata.refresh(metadata.snapshot, kafka._cluster.deadline(5))
    await anyio.sleep(0.01)


async def lag(broker: Broker, kafka: Client, node: int = 1) -> int:
    """Have one broker give another id, and then the true one again; return how often it was asked meanwhile."""
    rule = broker.on(ApiKey.METADATA, answer=other_ids, times=None, node=node)
    await refresh(kafka)
    rule.remove()
    await refresh(kafka)
    return rule.count


async def read(consumer: Consumer[bytes, bytes], count: int) -> list[int]:
    found: list[int] = []
    with anyio.fail_after(10):
        while len(found) < count:
            found += [record.offset for record in await consumer.poll()]
    return found


async def test_what_is_read_after_the_true_id_has_come_back_is_committed() -> None:
    async with (
        cluster() as (broker, kafka),
        kafka.consumer(group_id="g", enable_auto_commit=False, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([WHERE])
        assert await read(consumer, 1) == [0]
        assert await lag(broker, kafka)
        await write(kafka, 1)
        assert await read(consumer, 2) == [0, 1]
        await consumer.commit()
        assert (await kafka.admin.list_consumer_group_offsets("g"))[WHERE].offset == 2


async def test_a_member_reads_on_after_the_true_id_has_come_back() -> None:
    async with cluster() as (broker, kafka), reading() as readers:
        member = await readers.join(kafka, "g", "t", group_protocol="consumer")
        await readers.until(lambda: len(member.records) == 1)
        assert await lag(broker, kafka)
        await write(kafka, 1)
        await readers.until(lambda: bool(member.records) and member.records[-1].offset == 1)
        assert member.words() == ["assigned", "lost", "assigned"]
        assert member.owned == {WHERE}


async def test_one_broker_alone_makes_no_topic_a_new_one() -> None:
    async with cluster(nodes=2) as (broker, kafka), kafka.consumer(auto_offset_reset="latest") as consumer:
        consumer.assign({WHERE: 0})
        assert await read(consumer, 1) == [0]
        consumer.pause(WHERE)
        await write(kafka, 1, 2, 3)
        assert await lag(broker, kafka, 1) + await lag(broker, kafka, 2)
        consumer.resume(WHERE)
        assert await read(consumer, 3) == [1, 2, 3]


async def test_what_two_brokers_say_makes_a_topic_a_new_one() -> None:
    async with cluster(nodes=2) as (broker, kafka), kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign({WHERE: 0})
        assert await read(consumer, 1) == [0]
        broker.delete_topic("t")
        broker.create_topic("t")
        await write(kafka, 1)
        assert await read(consumer, 1) == [0]
