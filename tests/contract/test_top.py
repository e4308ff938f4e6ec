"""What ``aiokafkawire top`` reads from a cluster, whichever broker it talks to."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Literal

import pytest
from support.kafka_releases import number_of
from support.transactional import settled

from aiokafkawire import Client, OffsetAndMetadata, TopicPartition
from aiokafkawire.cli.top.detail_rows import record_text
from aiokafkawire.cli.top.details import read_group, read_newest_records
from aiokafkawire.cli.top.options import Pattern
from aiokafkawire.cli.top.rows import GroupRow, History, TopicRow
from aiokafkawire.cli.top.sampler import Sampler

pytestmark = pytest.mark.anyio

LIMIT = 20.0


@pytest.fixture
def group() -> str:
    """A group that no other test uses."""
    return f"group-{token_hex(6)}"


@pytest.fixture
async def sampler(kafka: Client, topic: str, group: str) -> Sampler:
    """A sampler of the test's topic and group."""
    topics, groups = Pattern(re.compile(topic)), Pattern(re.compile(f"{group}.*"))
    return Sampler(kafka, topics=topics, groups=groups, timeout=LIMIT)


async def write(kafka: Client, topic: str, count: int) -> None:
    """Write records to partition 0."""
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"value"] * count, partition=0)


async def taken(sampler: Sampler, once: Callable[[History], bool]) -> History:
    """The samples, once they show this: Apache Kafka tells of new topics and groups a moment later."""
    history = History()

    async def ask() -> History:
        history.add(await sampler.sample())
        return history

    ask_again: Callable[[], Awaitable[History]] = ask
    return await settled(ask_again, once)


def topic_row(history: History) -> TopicRow | None:
    return next(iter(history.topic_rows()), None)


def group_row(history: History) -> GroupRow | None:
    return next(iter(history.group_rows()), None)


async def test_brokers_and_topics_are_sampled(kafka: Client, topic: str, sampler: Sampler) -> None:
    await write(kafka, topic, 10)
    history = await taken(sampler, lambda one: (row := topic_row(one)) is not None and row.unread == 0)
    newest = history.newest
    assert newest is not None
    assert newest.ends == {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 0, TopicPartition(topic, 2): 0}
    assert newest.broker_errors == {}
    row = topic_row(history)
    assert row is not None
    assert (row.name, row.partitions, row.under_replicated, row.leaderless) == (topic, 3, 0, 0)
    (broker,) = history.broker_rows()
    assert broker.address is not None
    assert broker.is_controller
    assert broker.leads >= 3
    assert (broker.in_sync, broker.error) == (broker.replicas, None)


async def test_the_rate_is_that_of_new_records(kafka: Client, topic: str, sampler: Sampler) -> None:
    history = await taken(sampler, lambda one: (row := topic_row(one)) is not None and row.unread == 0)
    await write(kafka, topic, 100)
    history.add(await sampler.sample())
    row = topic_row(history)
    assert row is not None
    assert row.rate is not None
    assert history.seconds is not None
    assert row.rate * history.seconds == pytest.approx(100)


async def test_the_lag_of_a_group_without_members_is_sampled(
    kafka: Client, topic: str, group: str, sampler: Sampler
) -> None:
    await write(kafka, topic, 30)
    await kafka.admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): 12})
    history = await taken(sampler, lambda one: (row := group_row(one)) is not None and row.lag is not None)
    row = group_row(history)
    assert row is not None
    assert (row.group_id, row.state, row.type, row.members, row.lag) == (group, "Empty", "classic", 0, 18)
    assert row.error is None
    assert row.unknown == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_members_and_their_partitions_are_read(
    kafka: Client,
    topic: str,
    group: str,
    sampler: Sampler,
    protocol: Literal["classic", "consumer"],
    kafka_release: str | None,
) -> None:
    if protocol == "consumer" and kafka_release is not None and number_of(kafka_release) < (4, 0):
        pytest.skip("brokers have consumer groups since 4.0 (KIP-848)")
    await write(kafka, topic, 5)
    async with kafka.consumer(
        topic,
        group_id=group,
        group_protocol=protocol,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        assert len(await consumer.poll(timeout=LIMIT)) == 5
        await consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(2)})
        history = await taken(
            sampler, lambda one: (row := group_row(one)) is not None and row.state == "Stable" and row.lag is not None
        )
        row = group_row(history)
        assert row is not None
        assert (row.type, row.members, row.lag) == (protocol, 1, 3)
        found = await read_group(kafka, group, row.type, timeout=LIMIT)
        assert found.members is not None
        assert [one.partitions for one in found.members] == [3]
        assert [(one.partition.partition, one.committed, one.end, one.lag) for one in found.partitions] == [
            (0, 2, 5, 3),
            (1, None, 0, None),
            (2, None, 0, None),
        ]
        assert {one.client_id for one in found.partitions} == {found.members[0].client_id}


async def test_the_lag_of_a_share_group_is_sampled(
    kafka: Client, topic: str, group: str, sampler: Sampler, kafka_release: str | None
) -> None:
    if kafka_release is not None and number_of(kafka_release) < (4, 2):
        pytest.skip("brokers have share groups since 4.2 (KIP-932)")
    await write(kafka, topic, 5)
    await kafka.admin.alter_share_group_offsets(group, {TopicPartition(topic, 0): 2})
    history = await taken(sampler, lambda one: (row := group_row(one)) is not None and row.lag == 3)
    row = group_row(history)
    assert row is not None
    assert (row.state, row.type, row.members, row.error) == ("Empty", "share", 0, None)
    found = await read_group(kafka, group, row.type, timeout=LIMIT)
    assert found.members == ()
    assert [(one.partition, one.committed, one.end, one.lag) for one in found.partitions] == [
        (TopicPartition(topic, 0), 2, 5, 3)
    ]


async def test_groups_that_the_pattern_does_not_match_are_left_out(kafka: Client, topic: str, group: str) -> None:
    await kafka.admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): 0})
    sampler = Sampler(kafka, topics=Pattern(re.compile("-")), groups=Pattern(re.compile("-")), timeout=LIMIT)
    sample = await sampler.sample()
    assert (sample.groups, sample.ends, sample.layout.topics) == ({}, {}, {})


async def test_the_lag_needs_no_pattern_that_shows_the_topic(kafka: Client, topic: str, group: str) -> None:
    await write(kafka, topic, 4)
    await kafka.admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): 1})
    sampler = Sampler(kafka, topics=Pattern(re.compile("-")), groups=Pattern(re.compile(group)), timeout=LIMIT)
    history = await taken(sampler, lambda one: (row := group_row(one)) is not None and row.lag == 3)
    assert history.topic_rows() == []


async def test_the_newest_records_are_read(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        for number in range(30):
            await producer.send(
                topic,
                b"%d" % number,
                key=b"\x1b",
                partition=number % 2,
                headers=[("h", b"1")],
                timestamp_ms=1000 * number,
            )
    rows = await read_newest_records(kafka, topic, 8, timeout=LIMIT)
    assert sorted((row.partition, row.offset) for row in rows) == [
        (partition, offset) for partition in (0, 1) for offset in range(11, 15)
    ]
    newest = max(rows, key=lambda row: row.timestamp)
    assert record_text(newest) == (
        "partition 1, offset 14, 1970-01-01 00:00:29.000\nkey     \\x1b\nheader  h: 1\nvalue   29"
    )


async def test_an_empty_topic_has_no_records(kafka: Client, topic: str) -> None:
    assert await read_newest_records(kafka, topic, 8, timeout=LIMIT) == []
