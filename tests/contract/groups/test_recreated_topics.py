"""Consumers whose topic is deleted and created anew."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from contract.conftest import Where
from contract.groups.conftest import all_of, write
from contract.test_recreated_topic import create_anew
from support.patience import PATIENCE
from support.readers import Readers, reading

from aiokafkawire import Client, Consumer, TopicPartition
from aiokafkawire.errors import CommitFailed, LogTruncated
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

SOON: dict[str, Any] = {"fetch_max_wait_ms": 100, "auto_offset_reset": "earliest"}


@pytest.fixture
async def cluster(quick_cluster: Where) -> Where:
    return quick_cluster


async def read(consumer: Consumer[bytes, bytes], count: int) -> list[int]:
    """The next numbers that it reads, in order."""
    found: list[int] = []
    with anyio.fail_after(PATIENCE):
        while len(found) < count:
            found += [int(record.value or b"") for record in await consumer.poll(count - len(found))]
    return sorted(found)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.getMessage() for line in caplog.records if line.levelno >= logging.WARNING]


async def test_the_new_topic_is_read_from_its_beginning(
    kafka: Client, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    await write(kafka, topic, 0, 30)
    async with kafka.consumer(topic, **SOON) as consumer:
        assert await read(consumer, 30) == list(range(30))
        await create_anew(kafka, topic, 3)
        # More than the old one had, so that no position is out of range.
        await write(kafka, topic, 100, 160)
        assert await read(consumer, 60) == list(range(100, 160))
    (line,) = [line for line in warned(caplog) if topic in line and "created again" in line]
    assert line.startswith(f"topic {topic!r} was deleted and created again (its id was ")
    assert f"{topic}-0" in line


async def test_without_a_reset_the_consumer_says_so_and_goes_on_after_a_seek(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await write(kafka, topic, 0, 30)
    async with kafka.consumer(**{**SOON, "auto_offset_reset": "none"}) as consumer:
        consumer.assign({where: 0})
        assert await read(consumer, 10) == list(range(0, 30, 3))
        await create_anew(kafka, topic, 3)
        await write(kafka, topic, 100, 160)
        message = f"the topic of {where} was deleted and created again after it was read up to offset 10"
        with pytest.raises(LogTruncated, match=message) as failed:
            await read(consumer, 1)
        assert (failed.value.partition, failed.value.position, failed.value.diverging_offset) == (where, 10, None)
        consumer.seek(where, 2)
        assert await read(consumer, 2) == [108, 111]


async def test_offsets_of_records_in_hand_of_the_old_topic_cannot_be_committed(kafka: Client, topic: str) -> None:
    await write(kafka, topic, 0, 30)
    async with kafka.consumer(topic, group_id=topic, enable_auto_commit=False, **SOON) as consumer:
        assert await read(consumer, 30) == list(range(30))
        metadata = kafka._cluster.metadata
        old = metadata.snapshot.topic_id(topic)
        await create_anew(kafka, topic, 3)
        with anyio.fail_after(PATIENCE):
            while metadata.snapshot.topic_id(topic) in (old, ZERO_UUID):
                await metadata.refresh(metadata.snapshot, kafka._cluster.deadline(5))
        # Either this member knows that the topic is another one, or it has heard of the new partitions before.
        with pytest.raises(CommitFailed):
            await consumer.commit(dict.fromkeys(all_of(topic), 10))
        await write(kafka, topic, 100, 160)
        assert await read(consumer, 60) == list(range(100, 160))
        await consumer.commit()
    found = await kafka.admin.list_consumer_group_offsets(topic)
    assert {where: at.offset for where, at in found.items()} == dict.fromkeys(all_of(topic), 20)


async def test_a_member_of_a_classic_group_reads_the_new_topic_and_commits_nothing_old(
    kafka: Client, topic: str, readers: Readers
) -> None:
    await write(kafka, topic, 0, 30)
    member = await readers.join(kafka, topic, topic, auto_commit_interval_ms=50)
    await readers.until(lambda: len(member.records) == 30)
    await create_anew(kafka, topic, 3)
    await write(kafka, topic, 100, 160)
    await readers.until(lambda: len(member.records) >= 90)
    assert sorted(int(value or b"") for value in member.values[30:]) == list(range(100, 160))
    await member.close()
    found = await kafka.admin.list_consumer_group_offsets(topic)
    assert {where: at.offset for where, at in found.items()} == dict.fromkeys(all_of(topic), 20)
    assert member.errors == []


async def test_a_member_of_a_consumer_group_loses_the_old_topic_and_is_assigned_the_new_one(
    kafka: Client, topic: str, readers: Readers
) -> None:
    await write(kafka, topic, 0, 30)
    member = await readers.join(kafka, topic, topic, group_protocol="consumer", auto_commit_interval_ms=50)
    await readers.until(lambda: len(member.records) == 30)
    await create_anew(kafka, topic, 3)
    await write(kafka, topic, 100, 160)
    await readers.until(lambda: len(member.records) >= 90)
    assert sorted(int(value or b"") for value in member.values[30:]) == list(range(100, 160))
    assert member.owned == all_of(topic)
    # The coordinator takes the partitions back, or the metadata has another id before that.
    assert member.words() in (["assigned", "lost", "assigned"], ["assigned", "revoked", "assigned"])
    await member.close()
    found = await kafka.admin.list_consumer_group_offsets(topic)
    assert {where: at.offset for where, at in found.items()} == dict.fromkeys(all_of(topic), 20)
    assert member.errors == []


async def test_the_metadata_shows_the_new_topic_before_the_coordinator_does(new_name: Callable[[], str]) -> None:
    """Heartbeats are a minute apart, so that only the metadata can be what the member learns it from."""
    topic = new_name()
    async with (
        Broker(port=None, group_consumer_heartbeat_interval_ms=60_000) as broker,
        Client(broker.bootstrap, connector=broker.connect) as kafka,
        reading() as readers,
    ):
        await kafka.admin.create_topics({topic: 3})
        await write(kafka, topic, 0, 30)
        member = await readers.join(kafka, topic, topic, group_protocol="consumer")
        await readers.until(lambda: len(member.records) == 30)
        await create_anew(kafka, topic, 3)
        await write(kafka, topic, 100, 160)
        await readers.until(lambda: len(member.records) >= 90)
        assert sorted(int(value or b"") for value in member.values[30:]) == list(range(100, 160))
        assert member.words() == ["assigned", "lost", "assigned"]
        assert member.errors == []
