"""Where a consumer's position is after the last record, when what follows it is not for users."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from contract.conftest import Where
from support.committed import ended
from support.patience import PATIENCE

from aiokafkawire import Client, Consumer, OffsetSpec, TopicPartition

pytestmark = pytest.mark.anyio


class Undone(Exception):
    """What the body of a transaction raises to have it aborted."""


@pytest.fixture
async def partition(kafka: Client, new_name: Callable[[], str]) -> TopicPartition:
    name = new_name()
    await kafka.admin.create_topics({name: 1})
    return TopicPartition(name, 0)


async def write(cluster: Where, kafka: Client, partition: TopicPartition, *counts: int) -> int:
    """Write transactions of so many records, and abort those with a negative count; return the end of the log."""
    async with kafka.producer(transactional_id=partition.topic) as producer:
        for count in counts:
            with suppress(Undone):
                async with producer.transaction() as tx:
                    await tx.send_many(partition.topic, [b"%d" % count] * abs(count), partition=0)
                    if count < 0:
                        raise Undone
    # A marker, which says how it has ended, is the last record of each transaction; brokers write it a moment later.
    assert (await ended(cluster, partition.topic)).startswith("Complete")
    end = (await kafka.admin.list_offsets({partition: OffsetSpec.LATEST}))[partition]
    assert end is not None
    assert end.offset == sum(abs(count) + 1 for count in counts)
    return end.offset


def lag(consumer: Consumer[bytes, bytes], partition: TopicPartition) -> int | None:
    return consumer.health().partitions[partition].lag


@pytest.mark.parametrize("most", [100, 5, 2])
@pytest.mark.parametrize(
    ("isolation", "counts", "records"),
    [
        ("read_uncommitted", [5], 5),
        ("read_committed", [5], 5),
        ("read_uncommitted", [5, -3], 8),
        ("read_committed", [5, -3], 5),
        ("read_committed", [-3], 0),
        ("read_committed", [2, -1, -1, 3, -4, -1], 5),
    ],
)
async def test_a_loop_of_polls_ends_at_the_end(
    cluster: Where, kafka: Client, partition: TopicPartition, isolation: Any, counts: list[int], records: int, most: int
) -> None:
    end = await write(cluster, kafka, partition, *counts)
    async with kafka.consumer(isolation_level=isolation, fetch_max_wait_ms=10) as consumer:
        consumer.assign({partition: 0})
        found = 0
        with anyio.fail_after(PATIENCE):
            while (consumer.position(partition) or 0) < end:
                found += len(await consumer.poll(most, timeout=0.2))
        assert found == records
        assert consumer.position(partition) == end
        assert lag(consumer, partition) == 0
        assert consumer.health().lag == 0


@pytest.mark.parametrize("face", ["async for", "anext", "batches", "poll of exactly so many"])
async def test_what_follows_the_last_record_is_passed_as_soon_as_it_is_fetched(
    cluster: Where, kafka: Client, partition: TopicPartition, face: str
) -> None:
    end = await write(cluster, kafka, partition, 5, -2)
    async with kafka.consumer(isolation_level="read_committed", fetch_max_wait_ms=10) as consumer:
        consumer.assign({partition: 0})
        with anyio.fail_after(PATIENCE):
            if face == "async for":
                async for record in consumer:
                    assert consumer.position(partition) == (record.offset + 1 if record.offset < 4 else end)
                    if record.offset == 4:
                        break
            elif face == "anext":
                for _ in range(5):
                    await anext(consumer)
            elif face == "batches":
                assert len(list(await anext(consumer.batches()))) == 5
            else:
                assert len(await consumer.poll(5)) == 5
        # The user has these in hand, and nothing has been asked for since.
        assert consumer.position(partition) == end
        assert lag(consumer, partition) == 0
        assert consumer.positions()[partition].offset == end
        held = consumer._positions.finished()[partition].offset
        assert held == (4 if face in ("async for", "anext") else 0)
        async with kafka.producer() as producer:
            await producer.send(partition.topic, b"next", partition=0)
        with anyio.fail_after(PATIENCE):
            record = await anext(consumer)
        assert (record.offset, record.value) == (end, b"next")
        assert consumer._positions.finished()[partition].offset == end


async def test_what_is_committed_is_past_the_end_of_a_transaction(
    cluster: Where, kafka: Client, partition: TopicPartition
) -> None:
    end = await write(cluster, kafka, partition, 3, -3)
    options: Any = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with kafka.consumer(group_id=partition.topic, enable_auto_commit=False, **options) as consumer:
        consumer.assign([partition])
        with anyio.fail_after(PATIENCE):
            assert len(await consumer.poll(3)) == 3
            await consumer.commit()
        assert await kafka.admin.consumer_group_lag(partition.topic) == {partition: 0}
        found = (await consumer.committed([partition]))[partition]
        assert found is not None
        assert found.offset == end


async def test_automatic_commits_pass_it_once_the_records_before_are_finished(
    cluster: Where, kafka: Client, partition: TopicPartition
) -> None:
    end = await write(cluster, kafka, partition, 3, -3)
    name = partition.topic
    async with kafka.consumer(
        name, group_id=name, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        with anyio.fail_after(PATIENCE):
            assert len(await consumer.poll(3)) == 3
        assert consumer.position(partition) == end
    # They were in hand when it closed.
    assert (await kafka.admin.list_consumer_group_offsets(name))[partition].offset == 0
    async with kafka.consumer(
        name, group_id=name, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        with anyio.fail_after(PATIENCE):
            assert len(await consumer.poll(3)) == 3
            assert await consumer.poll(timeout=0.01) == []
    assert await kafka.admin.consumer_group_lag(name) == {partition: 0}


async def test_a_seek_is_where_the_position_is_though_no_record_is_there(
    cluster: Where, kafka: Client, partition: TopicPartition
) -> None:
    """Only what follows a record that was handed out is passed without a call that asks for records."""
    end = await write(cluster, kafka, partition, 3)
    async with kafka.consumer(fetch_max_wait_ms=10) as consumer:
        consumer.assign({partition: 3})
        with anyio.fail_after(PATIENCE):
            while not consumer._fetcher.unread:
                await consumer._fetcher.arrived.wait()
        assert consumer.position(partition) == 3
        assert lag(consumer, partition) == 1
        assert await consumer.poll(timeout=0.1) == []
        assert consumer.position(partition) == end
