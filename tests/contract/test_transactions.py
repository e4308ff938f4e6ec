"""What a transaction promises, whichever broker it is made on, with transaction.version 1 and 2."""

from __future__ import annotations

from contextlib import suppress
from secrets import token_hex

import anyio
import pytest
from contract.conftest import BOTH_TRANSACTION_VERSIONS, Where
from support.committed import committed, committed_offset, ended, open_from

from aiokafkawire import Client, OffsetAndMetadata, RecordTooLarge, TopicPartition, UsageError
from aiokafkawire.errors import CommitFailed, IllegalGeneration, MessageTooLarge, TransactionAborted, UnknownMemberId
from aiokafkawire.types import GroupMetadata

pytestmark = [pytest.mark.anyio, BOTH_TRANSACTION_VERSIONS]


class Undone(Exception):
    """What the body of a transaction raises to have it aborted."""


@pytest.fixture
def name() -> str:
    """A transactional id, and a group."""
    return f"id-{token_hex(6)}"


@pytest.fixture
def where(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


# --- what readers see ----------------------------------------------------------------------------------------------


async def test_readers_see_what_is_committed_and_nothing_else(kafka: Client, where: TopicPartition, name: str) -> None:
    async with kafka.producer(transactional_id=name) as producer:
        for number in range(3):
            async with producer.transaction() as tx:
                first = await tx.send(where.topic, b"%d" % number, partition=0)
                # Where the first open transaction begins, such readers stop.
                assert await open_from(kafka, where) == (first.offset, first.offset + 1)
            raised = Undone()
            with pytest.raises(Undone) as caught:
                async with producer.transaction() as tx:
                    await tx.send(where.topic, b"undone", partition=0)
                    raise raised
            assert caught.value is raised
            assert not hasattr(raised, "__notes__")
    assert await committed(kafka, where) == [b"0", b"1", b"2"]


async def test_a_transaction_of_many_partitions_and_batches_is_whole(kafka: Client, name: str) -> None:
    topic = f"many-{name}"
    await kafka.admin.create_topics({topic: 10})
    async with kafka.producer(transactional_id=name, batch_size=500) as producer:
        for undo in (True, False):
            with suppress(Undone):
                async with producer.transaction() as tx:
                    for number in range(2_000):
                        await tx.enqueue(topic, b"%s %d" % (b"no" if undo else b"yes", number), partition=number % 10)
                    if undo:
                        await producer.flush()
                        raise Undone
    for partition in range(10):
        wanted = [b"yes %d" % number for number in range(partition, 2_000, 10)]
        assert await committed(kafka, TopicPartition(topic, partition)) == wanted


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_hundred_small_transactions_one_right_after_the_other(
    kafka: Client, where: TopicPartition, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with kafka.producer(transactional_id=name) as producer:
        for number in range(100):
            async with producer.transaction() as tx:
                await tx.enqueue(where.topic, b"%d" % number, partition=0)
    assert await committed(kafka, where) == [b"%d" % number for number in range(100)]
    assert caplog.records == []


async def test_a_transaction_of_nothing_is_no_transaction(kafka: Client, where: TopicPartition, name: str) -> None:
    async with kafka.producer(transactional_id=name) as producer:
        async with producer.transaction():
            pass
        with pytest.raises(Undone):
            async with producer.transaction():
                raise Undone
        async with producer.transaction() as tx:
            # No marker was written before it.
            assert (await tx.send(where.topic, b"first", partition=0)).offset == 0


# --- aborts --------------------------------------------------------------------------------------------------------


async def test_a_cancelled_body_aborts_and_the_next_transaction_works(
    kafka: Client, where: TopicPartition, name: str
) -> None:
    async with kafka.producer(transactional_id=name) as producer:
        with anyio.CancelScope() as scope:
            async with producer.transaction() as tx:
                await tx.send(where.topic, b"cancelled", partition=0)
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        async with producer.transaction() as tx:
            await tx.send(where.topic, b"next", partition=0)
    assert await committed(kafka, where) == [b"next"]


async def test_deliveries_of_an_aborted_transaction_tell_of_it(kafka: Client, where: TopicPartition, name: str) -> None:
    async with kafka.producer(transactional_id=name, linger_ms=60_000) as producer:
        with pytest.raises(Undone):
            async with producer.transaction() as tx:
                written = await tx.enqueue(where.topic, b"written", partition=0)
                await producer.flush()
                waiting = await tx.enqueue(where.topic, b"waiting", partition=0)
                raise Undone("on second thought")
        assert (await written).offset == 0
        with pytest.raises(TransactionAborted, match=f"{where}: the transaction was aborted.*Undone: on second"):
            await waiting
        # The transaction has told of the failures: neither a flush nor leaving the producer raises them.
        await producer.flush()
    assert await committed(kafka, where) == []


async def test_a_record_that_the_broker_refuses_makes_the_commit_fail(
    kafka: Client, where: TopicPartition, name: str
) -> None:
    async with kafka.producer(transactional_id=name, max_request_size=4_000_000) as producer:
        with pytest.raises(MessageTooLarge, match=str(where)):
            async with producer.transaction() as tx:
                await tx.enqueue(where.topic, b"fine", partition=1)
                await tx.enqueue(where.topic, b"x" * 2_000_000, partition=0)
        # To look away does not help: all or nothing.
        with pytest.raises(MessageTooLarge, match=str(where)):
            async with producer.transaction() as tx:
                with pytest.raises(MessageTooLarge):
                    await tx.send(where.topic, b"x" * 2_000_000, partition=0)
                with pytest.raises(MessageTooLarge):
                    await tx.send(where.topic, b"behind", partition=1)
        async with producer.transaction() as tx:
            await tx.send(where.topic, b"next", partition=0)
    assert await committed(kafka, where) == [b"next"]
    assert await committed(kafka, TopicPartition(where.topic, 1)) == []


async def test_a_record_that_is_refused_before_it_is_sent_is_no_part_of_the_transaction(
    kafka: Client, where: TopicPartition, name: str
) -> None:
    async with kafka.producer(transactional_id=name) as producer, producer.transaction() as tx:
        with pytest.raises(RecordTooLarge, match="max_request_size"):
            await tx.send(where.topic, b"x" * 2_000_000, partition=0)
        with pytest.raises(UsageError, match="has 3 partitions, no 3"):
            await tx.send(where.topic, b"", partition=3)
        await tx.send(where.topic, b"fine", partition=0)
    assert await committed(kafka, where) == [b"fine"]


# --- offsets -------------------------------------------------------------------------------------------------------


async def test_offsets_count_once_the_transaction_is_committed(
    cluster: Where, kafka: Client, where: TopicPartition, name: str
) -> None:
    async with kafka.producer(transactional_id=name) as producer:
        async with producer.transaction() as tx:
            await tx.commit_offsets({where: 3}, group=name)
            await tx.commit_offsets({where: OffsetAndMetadata(4, "note")}, group=GroupMetadata(name))
            await tx.send(where.topic, b"4", partition=0)
        assert await committed_offset(cluster, name, where) == 4
        with pytest.raises(Undone):
            async with producer.transaction() as tx:
                await tx.commit_offsets({where: 5}, group=name)
                raise Undone
        assert await committed_offset(cluster, name, where) == 4
        async with producer.transaction() as tx:
            await tx.commit_offsets({where: 6}, group=name)  # and no record
        assert await committed_offset(cluster, name, where) == 6
    assert await committed(kafka, where) == [b"4"]


async def test_offsets_of_a_membership_that_is_over_abort_the_transaction(
    cluster: Where, kafka: Client, where: TopicPartition, name: str
) -> None:
    async with kafka.producer(transactional_id=name) as producer:
        async with producer.transaction() as tx:
            await tx.commit_offsets({where: 1}, group=name)
        for caught in (False, True):
            with pytest.raises(CommitFailed, match=f"{where} for group '{name}'") as failed:
                async with producer.transaction() as tx:
                    await tx.send(where.topic, b"lost", partition=0)
                    try:
                        await tx.commit_offsets({where: 2}, group=GroupMetadata(name, 7, "left"))
                    except CommitFailed:
                        if not caught:
                            raise
            assert isinstance(failed.value.__cause__, IllegalGeneration | UnknownMemberId)
        async with producer.transaction() as tx:
            await tx.send(where.topic, b"kept", partition=0)
    assert await committed_offset(cluster, name, where) == 1
    assert await committed(kafka, where) == [b"kept"]


# --- identity ------------------------------------------------------------------------------------------------------


async def test_another_producer_writes_into_the_open_transaction(
    cluster: Where, kafka: Client, where: TopicPartition, name: str
) -> None:
    guests = TopicPartition(where.topic, 1)
    async with (
        cluster.client() as elsewhere,
        kafka.producer(transactional_id=name) as owner,
        owner.transaction() as tx,
    ):
        await tx.send(where.topic, b"owner", partition=0)
        async with elsewhere.producer(identity=owner.identity) as guest:
            async with guest.transaction() as part:
                await part.send(where.topic, b"guest 1", partition=1)
            async with guest.transaction() as part:
                await part.enqueue(where.topic, b"guest 2", partition=1)
            # The guest's commits are parts: its records wait for the owner's.
            assert await open_from(kafka, guests) == (0, 2)
    assert await committed(kafka, where) == [b"owner"]
    assert await committed(kafka, guests) == [b"guest 1", b"guest 2"]


async def test_the_owner_ends_what_others_alone_have_written(
    cluster: Where, kafka: Client, where: TopicPartition, name: str
) -> None:
    async with cluster.client() as elsewhere, kafka.producer(transactional_id=name) as owner:
        for undo in (True, False):
            with suppress(Undone):
                async with owner.transaction(), elsewhere.producer(identity=owner.identity) as guest:
                    async with guest.transaction() as part:
                        await part.send(where.topic, b"aborted" if undo else b"kept", partition=0)
                    if undo:
                        raise Undone
            assert await ended(cluster, name) != "Ongoing"
    assert await committed(kafka, where) == [b"kept"]


async def test_others_may_write_to_the_same_partition_in_the_next_transaction(
    cluster: Where, kafka: Client, where: TopicPartition, name: str
) -> None:
    async with cluster.client() as elsewhere, kafka.producer(transactional_id=name) as owner:
        for value in (b"first", b"second"):
            async with owner.transaction() as tx, elsewhere.producer(identity=owner.identity) as guest:
                await tx.send(where.topic, value, partition=1)
                async with guest.transaction() as part:
                    await part.send(where.topic, value, partition=0)
    assert await committed(kafka, where) == [b"first", b"second"]


# --- what makes no sense -------------------------------------------------------------------------------------------


async def test_what_makes_no_sense_is_refused(kafka: Client, where: TopicPartition, name: str) -> None:
    async with kafka.producer() as plain:
        with pytest.raises(UsageError, match="needs a transactional_id for transactions"):
            plain.transaction()
        with pytest.raises(UsageError, match="an identity only while a transaction is open"):
            _ = plain.identity
    async with kafka.producer(transactional_id=name) as producer:
        await producer.partitions_for(where.topic)
        with pytest.raises(UsageError, match="an identity only while a transaction is open"):
            _ = producer.identity
        with pytest.raises(UsageError, match=r"sends inside 'async with producer\.transaction"):
            await producer.send(where.topic, b"outside")
        tx = producer.transaction()
        for early in (tx.send(where.topic, b""), tx.commit_offsets({where: 1}, group=name)):
            with pytest.raises(UsageError, match="this transaction is new"):
                await early
        async with tx:
            with pytest.raises(UsageError, match="transaction open already: one at a time"):
                async with producer.transaction():
                    raise AssertionError("two at a time")
            with pytest.raises(UsageError, match="this transaction is open"):
                await tx.__aenter__()
            with pytest.raises(UsageError, match="offsets need the group"):
                await tx.commit_offsets({where: 1})
            with pytest.raises(UsageError, match=f"offset to commit for {where.topic}"):
                await tx.commit_offsets({where: -1}, group=name)
            await tx.send(where.topic, b"in it", partition=0)
        with pytest.raises(UsageError, match="this transaction is over"):
            tx.send_nowait(where.topic, b"late")
        with pytest.raises(UsageError, match="this transaction is over: ask the producer for another"):
            await tx.__aenter__()
        left = producer.transaction()
    with pytest.raises(UsageError, match="the producer is closed"):
        await left.__aenter__()
    with pytest.raises(UsageError, match="the producer is closed"):
        producer.transaction()
    with pytest.raises(UsageError, match="the producer is new"):
        kafka.producer(transactional_id=name).transaction()
    assert await committed(kafka, where) == [b"in it"]
