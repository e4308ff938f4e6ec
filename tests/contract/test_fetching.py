"""How a consumer fetches, on real brokers: sessions, leader epochs, topics that are made again."""

from collections.abc import Callable

import anyio
import pytest
from contract.conftest import Where
from support.patience import PATIENCE

from aiokafkawire import Client, TopicPartition
from aiokafkawire.consumer.consumer import Consumer

pytestmark = pytest.mark.anyio


async def take(consumer: Consumer[bytes, bytes], count: int) -> list[tuple[int, bytes | None]]:
    with anyio.fail_after(PATIENCE):
        records = [await anext(consumer) for _ in range(count)]
    return [(record.partition, record.value) for record in records]


def epochs(consumer: Consumer[bytes, bytes]) -> list[int]:
    """How far the fetch session with each broker has come."""
    return [session._epoch for session in consumer._fetcher._sessions.values()]


async def test_what_comes_to_a_few_of_many_partitions_is_read_in_one_session(
    kafka: Client, new_name: Callable[[], str]
) -> None:
    name = new_name()
    await kafka.admin.create_topics({name: 100})
    async with kafka.producer() as producer, kafka.consumer(fetch_max_wait_ms=10) as consumer:
        consumer.assign({TopicPartition(name, number): 0 for number in range(100)})
        for number in (3, 70, 3, 99, 70, 3):
            await producer.send(name, b"%d" % number, partition=number)
            assert await take(consumer, 1) == [(number, b"%d" % number)]
        assert min(epochs(consumer)) >= 6  # a broker that took it for broken would begin anew


async def test_a_session_follows_pauses_seeks_and_assignments(kafka: Client, topic: str) -> None:
    where = [TopicPartition(topic, number) for number in range(3)]
    async with kafka.producer() as producer, kafka.consumer(fetch_max_wait_ms=10) as consumer:
        consumer.assign(dict.fromkeys(where, 0))
        for number in range(3):
            await producer.send(topic, b"a%d" % number, partition=number)
        assert sorted(await take(consumer, 3)) == [(0, b"a0"), (1, b"a1"), (2, b"a2")]
        consumer.pause(where[0])
        for number in range(3):
            await producer.send(topic, b"b%d" % number, partition=number)
        assert sorted(await take(consumer, 2)) == [(1, b"b1"), (2, b"b2")]
        consumer.resume(where[0])
        assert await take(consumer, 1) == [(0, b"b0")]
        consumer.seek(where[1], 1)
        assert await take(consumer, 1) == [(1, b"b1")]
        consumer.assign(where[1:])
        await producer.send(topic, b"c0", partition=0)
        await producer.send(topic, b"c2", partition=2)
        assert await take(consumer, 1) == [(2, b"c2")]
        consumer.assign({where[0]: 0, where[2]: 2})
        assert sorted(await take(consumer, 4)) == [(0, b"a0"), (0, b"b0"), (0, b"c0"), (2, b"c2")]
        assert consumer.high_watermark(where[0]) == 3


async def test_a_topic_that_was_made_again_is_read_from_its_beginning(
    cluster: Where, kafka: Client, new_name: Callable[[], str]
) -> None:
    name = new_name()
    where = TopicPartition(name, 0)
    await kafka.admin.create_topics({name: 1})
    async with (
        cluster.client(retry_backoff_max_ms=100) as reader,
        reader.consumer(auto_offset_reset="earliest", fetch_max_wait_ms=10) as consumer,
    ):
        async with kafka.producer() as producer:
            await producer.send_many(name, [b"old"] * 5)
        consumer.assign([where])
        assert await take(consumer, 5) == [(0, b"old")] * 5
        await kafka.admin.delete_topics([name])
        await kafka.admin.create_topics({name: 1})
        async with cluster.client() as fresh, fresh.producer() as producer:
            await producer.send(name, b"new")
        assert await take(consumer, 1) == [(0, b"new")]


async def test_a_position_with_an_epoch_is_checked_and_read_on_from(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"0", b"1", b"2"], partition=0)
    async with kafka.consumer(auto_offset_reset="none") as consumer:
        consumer.assign({where: 2})
        place = consumer._positions.require(where)
        place.leader_epoch = 0
        assert await take(consumer, 1) == [(0, b"2")]
        assert place.validated is not None
