"""Consumers that begin so long ago (``by_duration``, KIP-1106), whichever broker they talk to."""

import time
from collections.abc import Callable
from secrets import token_hex

import anyio
import pytest
from support.connecting import eventually
from support.patience import PATIENCE

from aiokafkawire import Client, Consumer, ConsumerRecord, TopicPartition

pytestmark = pytest.mark.anyio

DAY, HOUR, MINUTE = 86_400, 3_600, 60
AGES = [30 * DAY, 3 * HOUR, 30 * MINUTE, 2 * HOUR, 10 * MINUTE]
"""How many seconds old each record is; the fourth is older than the one before it."""


async def write(kafka: Client, where: TopicPartition, *ages: int) -> None:
    """Records so many seconds old, which is their value, too; each is a batch."""
    async with kafka.producer() as producer:
        for age in ages:
            written = round((time.time() - age) * 1000)
            await producer.send(where.topic, b"%d" % age, partition=where.partition, timestamp_ms=written)


async def take(consumer: Consumer[bytes, bytes], count: int) -> list[ConsumerRecord[bytes, bytes]]:
    with anyio.fail_after(PATIENCE):
        return [await anext(consumer) for _ in range(count)]


@pytest.mark.parametrize(
    ("duration", "first"),
    [
        ("P40D", 0),
        ("P36500D", 0),  # further back than time goes
        ("P1D", 1),
        ("PT1H", 2),  # and what comes after it, however old
        ("PT2H30M", 2),
        ("PT20M0.5S", 4),
    ],
)
@pytest.mark.parametrize("start", [None, 1_000])
async def test_reading_begins_with_the_first_record_that_is_young_enough(
    kafka: Client, topic: str, duration: str, first: int, start: int | None
) -> None:
    where = TopicPartition(topic, 0)
    await write(kafka, where, *AGES)
    async with kafka.consumer(auto_offset_reset=f"by_duration:{duration}") as consumer:
        consumer.assign([where] if start is None else {where: start})
        records = await take(consumer, len(AGES) - first)
    assert [record.offset for record in records] == list(range(first, len(AGES)))
    assert [int(record.value or b"") for record in records] == AGES[first:]


@pytest.mark.parametrize("duration", ["PT1M", "PT0S"])
async def test_where_nothing_is_young_enough_it_begins_at_the_end(kafka: Client, topic: str, duration: str) -> None:
    old, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    await write(kafka, old, *AGES)
    async with kafka.consumer(auto_offset_reset=f"by_duration:{duration}") as consumer:
        consumer.assign([old, empty])
        await eventually(lambda: None not in (consumer.position(old), consumer.position(empty)))
        assert (consumer.position(old), consumer.position(empty)) == (len(AGES), 0)
        # From here on it is the offset that counts.
        await write(kafka, old, DAY)
        await write(kafka, empty, DAY)
        records = await take(consumer, 2)
    assert sorted((record.partition, record.offset) for record in records) == [(0, len(AGES)), (1, 0)]


async def test_a_group_begins_there_and_goes_on_from_what_it_has_committed(
    kafka: Client, new_name: Callable[[], str]
) -> None:
    name, group = new_name(), f"group-{token_hex(6)}"
    await kafka.admin.create_topics({name: 1})
    where = TopicPartition(name, 0)
    await write(kafka, where, *AGES)

    def member() -> Consumer[bytes, bytes]:
        return kafka.consumer(name, group_id=group, auto_offset_reset="by_duration:PT1H", enable_auto_commit=False)

    async with member() as consumer:
        assert [record.offset for record in await take(consumer, 2)] == [2, 3]
        # What is older than an hour is as good as anything else that is committed.
        await consumer.commit({where: 1})
    async with member() as consumer:
        assert [record.offset for record in await take(consumer, 4)] == [1, 2, 3, 4]
