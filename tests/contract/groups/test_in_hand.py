"""Records in hand belong to the membership under which they were handed out: a later one must not commit them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

import anyio
import pytest
from contract.groups.conftest import SOME_CLUSTERS
from support.patience import PATIENCE
from support.readers import QUICK

from aiokafkawire import (
    Client,
    CommitFailed,
    Consumer,
    ConsumerBatch,
    ConsumerRecord,
    OffsetAndMetadata,
    TopicPartition,
    UsageError,
)

pytestmark = [pytest.mark.anyio, SOME_CLUSTERS]

Bytes: TypeAlias = Consumer[bytes, bytes]
Loss: TypeAlias = Literal["evicted", "removed"]
USUAL = QUICK
"""What a member has unless a test says otherwise."""
LOSSES = pytest.mark.parametrize("loss", ["evicted", "removed"])

EXPECTED = {"evicted": "max_poll_interval_ms", "removed": "UnknownMemberId"}


class Member:
    """A consumer that loses its partitions on demand, and what its listeners were called with."""

    def __init__(self, kafka: Client, group: str, topic: str, loss: Loss, **options: Any) -> None:
        interval = {"max_poll_interval_ms": 1_500} if loss == "evicted" else {}
        options = {**USUAL, "enable_auto_commit": False, **interval, **options}
        self.consumer: Bytes = kafka.consumer(group_id=group, **options)
        self._kafka, self._group, self._topic, self._loss = kafka, group, topic, loss
        self._assigned, self._lost = anyio.Event(), anyio.Event()

    def subscribe(self) -> None:
        def assigned(_: tuple[TopicPartition, ...]) -> None:
            self._assigned.set()
            self._lost = anyio.Event()  # it may have been lost before, by somebody slow

        def lost(_: tuple[TopicPartition, ...]) -> None:
            self._lost.set()
            self._assigned = anyio.Event()

        self.consumer.subscribe(self._topic, on_assigned=assigned, on_lost=lost)

    async def wait_for_assignment(self) -> None:
        await self._assigned.wait()

    async def lose(self) -> None:
        """Lose everything that is in hand, and be assigned it again if the consumer rejoins by itself."""
        lost = self._lost
        with anyio.fail_after(PATIENCE):
            if self._loss == "removed":
                await self._kafka.admin.remove_members(self._group)
            await lost.wait()
            if self._loss == "removed":
                await self._assigned.wait()


@asynccontextmanager
async def joined(kafka: Client, group: str, topic: str, loss: Loss, **options: Any) -> AsyncIterator[Member]:
    member = Member(kafka, group, topic, loss, **options)
    async with member.consumer:
        member.subscribe()
        yield member


async def got(consumer: Bytes, count: int) -> list[ConsumerRecord[bytes, bytes]]:
    """The next records, as many as asked for."""
    with anyio.fail_after(PATIENCE):
        return [await anext(consumer) for _ in range(count)]


async def read_all(kafka: Client, topic: str, count: int) -> list[bytes | None]:
    """The values that readers of committed records see."""
    async with kafka.consumer(topic, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        return [record.value for record in await got(consumer, count)] + [
            record.value for record in await consumer.poll(timeout=0.2)
        ]


@pytest.mark.slow
@LOSSES
async def test_a_commit_of_what_was_taken_away_fails(kafka: Client, filled: str, group: str, loss: Loss) -> None:
    async with joined(kafka, group, filled, loss) as member:
        consumer = member.consumer
        (record,) = await got(consumer, 1)
        partition = TopicPartition(record.topic, record.partition)
        assert consumer.owns(record)
        assert not consumer.health().lost_in_hand
        await member.lose()
        assert not consumer.owns(record)
        assert EXPECTED[loss] in consumer.health().lost_in_hand[partition]
        for offsets in (None, {partition: record.offset + 1}):
            for _ in range(2):
                with pytest.raises(CommitFailed, match=EXPECTED[loss]) as failed:
                    await consumer.commit(offsets)
                assert str(partition) in str(failed.value)
        assert await consumer.committed([partition]) == {partition: None}
        (again,) = await got(consumer, 1)
        assert not consumer.health().lost_in_hand
        assert consumer.owns(again)
        assert again.offset == 0
        await consumer.commit()
        assert (await consumer.committed([TopicPartition(filled, again.partition)])).popitem()[1] is not None


@pytest.mark.slow
@LOSSES
@pytest.mark.parametrize("caught", [False, True])
async def test_a_transaction_with_what_was_taken_away_aborts(
    kafka: Client, filled: str, new_name: Any, group: str, loss: Loss, caught: bool
) -> None:
    out = new_name()
    await kafka.admin.create_topics({out: 1})
    async with joined(kafka, group, filled, loss) as member, kafka.producer(transactional_id=group) as producer:
        consumer = member.consumer
        records = await got(consumer, 3)
        with pytest.raises(CommitFailed, match=EXPECTED[loss]):
            async with producer.transaction() as transaction:
                await transaction.send(out, b"too late")
                await member.lose()
                try:
                    await transaction.commit_offsets(consumer)
                except CommitFailed:
                    if not caught:
                        raise
        records = await consumer.poll(timeout=PATIENCE)
        assert records[0].offset == 0
        async with producer.transaction() as transaction:
            await transaction.send(out, b"counts")
            await transaction.commit_offsets(consumer)
        assert consumer.owns(records[0])
    assert await read_all(kafka, out, 1) == [b"counts"]


@pytest.mark.slow
@LOSSES
async def test_group_metadata_is_of_the_membership_that_got_the_records(
    kafka: Client, filled: str, new_name: Any, group: str, loss: Loss
) -> None:
    out = new_name()
    await kafka.admin.create_topics({out: 1})
    async with joined(kafka, group, filled, loss) as member, kafka.producer(transactional_id=group) as producer:
        consumer = member.consumer
        (record,) = await got(consumer, 1)
        partition, before = TopicPartition(record.topic, record.partition), consumer.group_metadata()
        await member.lose()
        assert consumer.group_metadata() == before
        assert consumer.positions()[partition].offset == record.offset + 1
        with pytest.raises(CommitFailed, match=r"UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION"):
            async with producer.transaction() as transaction:
                await transaction.send(out, b"too late")
                await transaction.commit_offsets({partition: record.offset + 1}, group=consumer.group_metadata())
        await got(consumer, 1)
        assert consumer.group_metadata() != before
        async with producer.transaction() as transaction:
            await transaction.send(out, b"counts")
            await transaction.commit_offsets(consumer.positions(), group=consumer.group_metadata())
    assert await read_all(kafka, out, 1) == [b"counts"]


@pytest.mark.slow
@LOSSES
async def test_automatic_commits_leave_out_what_was_taken_away(
    kafka: Client, filled: str, group: str, loss: Loss
) -> None:
    async with joined(kafka, group, filled, loss, enable_auto_commit=True, auto_commit_interval_ms=50) as member:
        consumer = member.consumer
        batch: ConsumerBatch[bytes, bytes] = await anext(consumer.batches())
        assert consumer.owns(batch)
        await member.lose()
        assert not consumer.owns(batch)
    found = await kafka.admin.list_consumer_group_offsets(group)
    assert {where: at.offset for where, at in found.items() if at.offset} == {}


@pytest.mark.slow
@LOSSES
async def test_a_seek_does_not_hide_that_records_in_hand_were_taken_away(
    kafka: Client, filled: str, group: str, loss: Loss
) -> None:
    async with joined(kafka, group, filled, loss) as member, kafka.producer(transactional_id=group) as producer:
        consumer = member.consumer
        (record,) = await got(consumer, 1)
        partition, before = TopicPartition(record.topic, record.partition), consumer.group_metadata()
        consumer.seek(partition, record.offset + 1)
        await member.lose()
        assert partition in consumer.health().lost_in_hand
        assert consumer.group_metadata() == before
        for offsets in (None, {partition: record.offset + 1}):
            with pytest.raises(CommitFailed):
                await consumer.commit(offsets)
        with pytest.raises(CommitFailed):
            async with producer.transaction() as transaction:
                await transaction.commit_offsets(consumer)
    assert not await kafka.admin.list_consumer_group_offsets(group)


@pytest.mark.slow
@LOSSES
async def test_a_transaction_that_takes_records_twice_aborts_if_the_first_were_taken_away(
    kafka: Client, filled: str, new_name: Any, group: str, loss: Loss
) -> None:
    out = new_name()
    await kafka.admin.create_topics({out: 1})
    async with joined(kafka, group, filled, loss) as member, kafka.producer(transactional_id=group) as producer:
        with pytest.raises(CommitFailed, match="handed out in this transaction"):
            async with producer.transaction() as transaction:
                await got(member.consumer, 3)
                await transaction.send(out, b"too late")
                await member.lose()
                await got(member.consumer, 3)
                await transaction.commit_offsets(member.consumer)
        records = await member.consumer.poll(timeout=PATIENCE)
        async with producer.transaction() as transaction:
            await transaction.send(out, b"counts")
            await transaction.commit_offsets(member.consumer)
        assert member.consumer.owns(records[0])
    assert await read_all(kafka, out, 1) == [b"counts"]


async def test_what_stays_through_a_cooperative_rebalance_is_committed_in_the_next_generation(
    kafka: Client, filled: str, group: str
) -> None:
    options: dict[str, Any] = {"partition_assignment_strategy": ["cooperative-sticky"]}
    async with joined(kafka, group, filled, "removed", **options) as one:
        partition = TopicPartition(filled, 0)  # of three partitions, a second member gets the last
        (record,) = await got(one.consumer, 1)
        while record.partition != partition.partition:
            (record,) = await got(one.consumer, 1)
        before = one.consumer.group_metadata()
        async with joined(kafka, group, filled, "removed", **options) as two:
            with anyio.fail_after(PATIENCE):
                await two.wait_for_assignment()
            assert one.consumer.group_metadata().generation_id > before.generation_id
            assert one.consumer.owns(record)
            await one.consumer.commit()
        found = await one.consumer.committed([partition])
        assert found[partition] == OffsetAndMetadata(record.offset + 1, leader_epoch=record.leader_epoch)


async def test_a_listener_may_commit_in_a_task_of_its_own_and_may_not_unsubscribe(
    kafka: Client, filled: str, group: str
) -> None:
    refused = list[str]()

    async def revoked(_: tuple[TopicPartition, ...]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consumer.commit)
        for refuse in (consumer.unsubscribe, consumer.close):
            try:
                await refuse()
            except UsageError as error:
                refused.append(str(error))

    options = {**QUICK, "enable_auto_commit": False}
    async with (
        kafka.consumer(group_id=group, **options) as consumer,
        kafka.consumer(group_id=group, **options) as other,
        anyio.create_task_group() as tasks,
    ):
        assigned = anyio.Event()
        consumer.subscribe(filled, on_revoked=revoked)
        await got(consumer, 10)
        other.subscribe(filled, on_assigned=lambda _: assigned.set())

        async def read_on() -> None:
            async for _ in consumer:
                pass

        tasks.start_soon(read_on)
        with anyio.fail_after(PATIENCE):
            await assigned.wait()
        tasks.cancel_scope.cancel()
    assert [told.partition(":")[0] for told in refused[:2]] == [
        "a listener cannot unsubscribe the consumer",
        "a listener cannot close the consumer",
    ]
    assert sum(at.offset for at in (await kafka.admin.list_consumer_group_offsets(group)).values()) >= 10


async def test_a_commit_after_unsubscribing_says_so(kafka: Client, filled: str, group: str) -> None:
    async with joined(kafka, group, filled, "removed") as member:
        (record,) = await got(member.consumer, 1)
        await member.consumer.unsubscribe()
        with pytest.raises(CommitFailed, match="the consumer has unsubscribed"):
            await member.consumer.commit({TopicPartition(record.topic, record.partition): OffsetAndMetadata(1)})
        assert not member.consumer.owns(record)


async def test_owns_asks_for_what_was_handed_out(kafka: Client, filled: str) -> None:
    partition, other = TopicPartition(filled, 0), TopicPartition(filled, 1)
    async with kafka.consumer() as one, kafka.consumer() as two:
        one.assign({partition: 0, other: 0})
        two.assign({partition: 0, other: 0})
        records = await one.poll(timeout=PATIENCE)
        assert [one.owns(record) for record in records] == [True] * len(records)
        assert not any(two.owns(record) for record in records)
        one.seek(partition, 0)
        assert all(one.owns(record) for record in records)
        one.assign([other])
        assert not any(one.owns(record) for record in records if record.partition == 0)
