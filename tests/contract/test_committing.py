"""What a consumer of a group promises that assigns its partitions itself, whichever broker it talks to."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import anyio
import pytest
from contract.conftest import Where
from support.committed import open_from, raw
from support.fetching import numbers, take, values
from support.group_members import GroupMember
from support.patience import PATIENCE, SOON

from aiokafkawire import (
    Client,
    ConfigError,
    Consumer,
    OffsetAndMetadata,
    OffsetSpec,
    RequestTimeout,
    TopicPartition,
    UsageError,
)
from aiokafkawire.errors import OffsetMetadataTooLarge, UnknownMemberId
from aiokafkawire.types import GroupMetadata

pytestmark = pytest.mark.anyio


@pytest.fixture
def group() -> str:
    """A group that no other test uses."""
    return f"group-{token_hex(6)}"


@pytest.fixture
async def where(kafka: Client, topic: str) -> TopicPartition:
    """A partition of 30 records; the topic's others are empty."""
    async with kafka.producer(batch_size=200) as producer:
        await producer.send_many(topic, numbers(0, 30), partition=0)
    return TopicPartition(topic, 0)


async def test_reading_goes_on_at_what_was_committed(kafka: Client, where: TopicPartition, group: str) -> None:
    other = TopicPartition(where.topic, 1)
    async with kafka.consumer(group_id=group, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.assign([where, other])
        assert await values(consumer, 12) == numbers(0, 12)
        await consumer.commit()
        assert await values(consumer, 3) == numbers(12, 15)  # and of this nobody knows
    async with kafka.consumer(group_id=group, auto_offset_reset="latest") as consumer:
        consumer.assign([where])
        assert await values(consumer, 18) == numbers(12, 30)
        assert (await consumer.committed([where]))[where].offset == 12  # type: ignore[union-attr]


async def test_where_nothing_is_committed_the_reset_says_where_to_begin(
    kafka: Client, where: TopicPartition, group: str
) -> None:
    async with kafka.consumer(group_id=group, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.assign([where])
        assert await values(consumer, 1) == [b"0"]
    async with kafka.consumer(group_id=group, auto_offset_reset="none") as consumer:
        consumer.assign([where])
        with pytest.raises(UsageError, match=rf"{where} has no position, and auto_offset_reset is 'none'"):
            await take(consumer, 1)
        consumer.seek(where, 29)
        assert await values(consumer, 1) == [b"29"]


async def test_an_explicit_start_or_a_seek_comes_before_what_is_committed(
    kafka: Client, where: TopicPartition, group: str
) -> None:
    async with kafka.consumer(group_id=group) as consumer:
        await consumer.commit({where: 20})
        consumer.assign({where: OffsetSpec.EARLIEST})
        assert await values(consumer, 1) == [b"0"]
        consumer.assign([])
        consumer.assign([where])
        consumer.seek(where, 5)
        assert await values(consumer, 1) == [b"5"]
        consumer.assign([])
        consumer.assign([where])
        assert await values(consumer, 1) == [b"20"]


async def test_a_committed_offset_that_is_out_of_range_is_reset(
    kafka: Client, where: TopicPartition, group: str
) -> None:
    async with kafka.consumer(group_id=group, auto_offset_reset="earliest") as consumer:
        await consumer.commit({where: 99})
        consumer.assign([where])
        assert await values(consumer, 1) == [b"0"]


async def test_what_is_committed_comes_back_as_it_was(kafka: Client, where: TopicPartition, group: str) -> None:
    one, two = TopicPartition(where.topic, 1), TopicPartition(where.topic, 2)
    async with kafka.consumer(group_id=group) as consumer:
        assert await consumer.committed([where, one]) == {where: None, one: None}
        assert await consumer.committed([]) == {}
        noted = OffsetAndMetadata(7, "on time", leader_epoch=0)
        await consumer.commit({where: noted, one: 3})
        assert await consumer.committed([where, one, two]) == {where: noted, one: OffsetAndMetadata(3), two: None}
        await consumer.commit({where: 8})
        assert await consumer.committed([where]) == {where: OffsetAndMetadata(8)}
    async with kafka.consumer(group_id=f"{group}-other") as consumer:
        assert await consumer.committed([where]) == {where: None}


async def test_positions_are_after_the_last_record_handed_out(kafka: Client, where: TopicPartition, group: str) -> None:
    async with kafka.consumer(group_id=group) as consumer:
        assert consumer.positions() == {}
        await consumer.commit()  # nothing
        consumer.assign({where: 4, TopicPartition(where.topic, 1): OffsetSpec.EARLIEST})
        assert consumer.positions() == {where: OffsetAndMetadata(4)}
        last = (await take(consumer, 3))[-1]
        assert (last.offset, last.leader_epoch) == (6, 0)
        assert consumer.positions()[where] == OffsetAndMetadata(7, leader_epoch=0)
        async for batch in consumer.batches():
            assert consumer.positions()[where].offset == batch.next_offset
            break
        await consumer.commit()
        assert await consumer.committed([where]) == {where: consumer.positions()[where]}
        consumer.seek(where, 2)
        assert consumer.positions()[where] == OffsetAndMetadata(2)
        assert consumer.group_metadata() == GroupMetadata(group)


async def test_positions_are_beyond_the_markers_of_transactions(
    kafka: Client, where: TopicPartition, group: str
) -> None:
    async with kafka.producer(transactional_id=group) as producer, producer.transaction() as tx:
        await tx.send(where.topic, b"30", partition=0)
    with anyio.fail_after(PATIENCE):
        while (await open_from(kafka, where))[0] < 32:  # Apache Kafka writes the marker a moment after the commit
            pass
    async with kafka.producer() as plain:
        await plain.send(where.topic, b"32", partition=0)
    async with kafka.consumer(group_id=group, isolation_level="read_committed") as consumer:
        consumer.assign({where: 30})
        assert await values(consumer, 2) == [b"30", b"32"]
        assert consumer.positions() == {where: OffsetAndMetadata(33, leader_epoch=0)}


# --- with transactions ---------------------------------------------------------------------------------------------


async def test_offsets_of_a_transaction_count_once_it_is_committed(
    kafka: Client, where: TopicPartition, group: str
) -> None:
    async with (
        kafka.producer(transactional_id=group) as producer,
        kafka.consumer(group_id=group, auto_offset_reset="earliest") as consumer,
        kafka.consumer(group_id=group, auto_offset_reset="earliest") as later,
    ):
        consumer.assign([where])
        await take(consumer, 10)
        async with producer.transaction() as tx:
            await tx.commit_offsets(consumer)
            with pytest.raises(RequestTimeout, match="UNSTABLE_OFFSET_COMMIT"):
                await consumer.committed([where], timeout=0.2)
            later.assign([where])  # it waits for the end of the transaction
            await take(consumer, 1)
        assert await values(later, 1) == [b"10"]
        assert await consumer.committed([where]) == {where: OffsetAndMetadata(10, leader_epoch=0)}
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction() as tx:
                await tx.commit_offsets(consumer)
                raise ZeroDivisionError
        assert await consumer.committed([where]) == {where: OffsetAndMetadata(10, leader_epoch=0)}


async def go_back(consumer: Consumer[bytes, bytes]) -> None:
    """Seek as the docs recommend after an aborted transaction."""
    for partition, offset in (await consumer.committed(consumer.assignment)).items():
        consumer.seek(partition, OffsetSpec.EARLIEST if offset is None else offset.offset)


async def test_records_of_an_aborted_transaction_are_written_again_or_read_again(
    kafka: Client, where: TopicPartition, group: str
) -> None:
    async with (
        kafka.producer(transactional_id=group) as producer,
        kafka.consumer(group_id=group, auto_offset_reset="earliest", enable_auto_commit=False) as consumer,
    ):
        consumer.assign([where])
        assert await values(consumer, 4) == numbers(0, 4)
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction() as tx:
                await tx.commit_offsets(consumer)
                raise ZeroDivisionError
        # The same records again: their offsets are committed, since the abort has not moved the consumer.
        async with producer.transaction() as tx:
            await tx.commit_offsets(consumer)
        assert await consumer.committed([where]) == {where: OffsetAndMetadata(4, leader_epoch=0)}
        assert await values(consumer, 4) == numbers(4, 8)
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction():
                raise ZeroDivisionError
        await go_back(consumer)
        assert await values(consumer, 4) == numbers(4, 8)


async def test_an_aborted_first_transaction_is_read_again_from_the_beginning(
    kafka: Client, where: TopicPartition, group: str
) -> None:
    async with (
        kafka.producer(transactional_id=group) as producer,
        kafka.consumer(group_id=group, auto_offset_reset="earliest", enable_auto_commit=False) as consumer,
    ):
        consumer.assign([where])
        assert await values(consumer, 4) == numbers(0, 4)
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction() as tx:
                await tx.commit_offsets(consumer)
                raise ZeroDivisionError
        await go_back(consumer)
        assert await values(consumer, 4) == numbers(0, 4)


# --- what is refused -----------------------------------------------------------------------------------------------


async def test_a_group_with_members_is_theirs(cluster: Where, kafka: Client, where: TopicPartition, group: str) -> None:
    async with kafka.consumer(group_id=group) as consumer, raw(cluster) as client:
        await consumer.commit({where: 3})
        await GroupMember(client, group).settle()
        with pytest.raises(UnknownMemberId, match=f"OffsetCommit of {where} for group '{group}'"):
            await consumer.commit({where: 5})
        assert await consumer.committed([where]) == {where: OffsetAndMetadata(3)}


async def test_what_the_broker_refuses_is_an_error(kafka: Client, where: TopicPartition, group: str) -> None:
    async with kafka.consumer(group_id=group) as consumer:
        with pytest.raises(OffsetMetadataTooLarge, match=f"OffsetCommit of {where} for group"):
            await consumer.commit({where: OffsetAndMetadata(1, "x" * 5_000)})
        with pytest.raises(RequestTimeout, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await consumer.commit({TopicPartition(where.topic, 9): 1}, timeout=0.2)


@pytest.mark.parametrize("offset", [-1, True, "1", None, 1.5, OffsetAndMetadata(-1)])
async def test_what_is_no_offset_is_not_committed(kafka: Client, topic: str, group: str, offset: Any) -> None:
    async with kafka.consumer(group_id=group) as consumer:
        with pytest.raises(UsageError, match="the offset to commit for"):
            await consumer.commit({TopicPartition(topic, 0): offset})


async def test_without_a_group_nothing_is_committed(kafka: Client, topic: str) -> None:
    async with kafka.consumer() as consumer:
        for call in (consumer.commit, lambda: consumer.committed([])):
            with pytest.raises(UsageError, match="make the consumer with a group_id"):
                await call()
        with pytest.raises(UsageError, match="make the consumer with a group_id"):
            consumer.group_metadata()


async def test_a_group_has_a_name(kafka: Client) -> None:
    with pytest.raises(ConfigError, match="group_id must not be empty"):
        kafka.consumer(group_id="")


async def test_what_is_finished_is_committed_by_itself_on_closing(
    kafka: Client, where: TopicPartition, group: str
) -> None:
    async with kafka.consumer(group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.assign([where])
        assert await values(consumer, 3) == numbers(0, 3)
    async with kafka.consumer(group_id=group) as consumer:
        # The third is still in the user's hands.
        assert (await consumer.committed([where]))[where].offset == 2  # type: ignore[union-attr]


async def test_a_consumer_that_is_closed_commits_nothing(kafka: Client, where: TopicPartition, group: str) -> None:
    async with kafka.consumer(group_id=group) as consumer:
        pass
    for call in (lambda: consumer.commit({where: 1}), lambda: consumer.committed([where])):
        with pytest.raises(UsageError, match="the consumer is closed"), anyio.fail_after(SOON):
            await call()
