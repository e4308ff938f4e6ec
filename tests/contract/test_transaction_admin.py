"""What the admin does with producers and transactions (KIP-664), whichever broker it talks to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
from contract.conftest import Where
from support.admin_errors import failing
from support.committed import committed, open_from, raw
from support.hanging import HOUR, hang, unverified
from support.raw_client import RawClient
from support.transactional import TransactionalProducer, settled

from aiokafkawire import (
    AbortTransactionSpec,
    Client,
    FencedProducer,
    HangingTransaction,
    OffsetSpec,
    ProducerFenced,
    ProducerState,
    TopicNotReady,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
    UsageError,
)
from aiokafkawire.errors import (
    BrokerNotAvailable,
    InvalidProducerEpoch,
    InvalidRegularExpression,
    TransactionalIdNotFound,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(cluster: Where) -> AsyncIterator[RawClient]:
    async with raw(cluster) as client:
        yield client


@pytest.fixture
async def producer(client: RawClient) -> TransactionalProducer:
    """A new transactional id, initialized."""
    return await TransactionalProducer(client).initialized()


@pytest.fixture
async def where(kafka: Client, topic: str) -> TopicPartition:
    """A partition; all partitions of its topic have leaders that are ready."""
    await kafka.admin.list_offsets({TopicPartition(topic, index): OffsetSpec.LATEST for index in range(3)})
    return TopicPartition(topic, 0)


async def state(kafka: Client, transactional_id: str, expected: str) -> TransactionDescription:
    """The description of an id once it is in this state: the markers are written a moment after the answer."""

    async def ask() -> TransactionDescription:
        return (await kafka.admin.describe_transactions(transactional_id))[transactional_id]

    return await settled(ask, lambda found: found.state == expected)


# --- producers -----------------------------------------------------------------------------------------------------


async def test_producers_of_partitions_are_described(
    kafka: Client, producer: TransactionalProducer, where: TopicPartition
) -> None:
    other = TopicPartition(where.topic, 1)
    assert await kafka.admin.describe_producers([other, where]) == {other: (), where: ()}
    before = time.time_ns() // 1_000_000
    await producer.send(where.topic, b"a", b"b")
    (active,) = (await kafka.admin.describe_producers(where))[where]
    assert (active.producer_id, active.producer_epoch) == (producer.producer_id, 0)
    assert (active.last_sequence, active.coordinator_epoch, active.current_transaction_start_offset) == (1, None, 0)
    assert before <= active.last_timestamp <= time.time_ns() // 1_000_000 + 1
    assert await kafka.admin.describe_producers([where], broker_id=1) == {where: (active,)}
    await producer.ended(True)
    (active,) = (await kafka.admin.describe_producers(where))[where]
    assert (active.producer_epoch, active.current_transaction_start_offset) == (1, None)
    assert active.coordinator_epoch is not None
    assert await kafka.admin.describe_producers([]) == {}


async def test_partitions_without_producers_to_describe(kafka: Client, where: TopicPartition) -> None:
    missing = TopicPartition(where.topic, 9)
    with pytest.raises(UsageError, match="has 3 partitions, no 9"):
        await kafka.admin.describe_producers(missing)
    with pytest.raises(UnknownTopicOrPartition, match=f"DescribeProducers of {missing}"):
        await kafka.admin.describe_producers(missing, broker_id=1)
    with failing("describing producers failed for 1 of 2: ") as failed:
        await kafka.admin.describe_producers([where, missing], broker_id=1)
    assert failed.value.results == {where: ()}
    assert isinstance(failed.value.errors[missing], UnknownTopicOrPartition)
    with pytest.raises(BrokerNotAvailable, match="broker 99 is not in the cluster"):
        await kafka.admin.describe_producers(where, broker_id=99)
    with pytest.raises(TopicNotReady, match="no-such-topic"):
        await kafka.admin.describe_producers(TopicPartition("no-such-topic", 0), timeout=0.5)


# --- transactional ids ---------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_transactions_are_listed_by_state_producer_duration_and_pattern(
    client: RawClient, kafka: Client, producer: TransactionalProducer, where: TopicPartition
) -> None:
    other = await TransactionalProducer(client).initialized()
    await other.send(where.topic, b"a")
    empty = TransactionListing(producer.transactional_id, 1, producer.producer_id, "Empty")
    ongoing = TransactionListing(other.transactional_id, 1, other.producer_id, "Ongoing")

    async def listed(**filters: object) -> list[TransactionListing]:
        found = await kafka.admin.list_transactions(**filters)  # type: ignore[arg-type]
        names = [one.transactional_id for one in found]
        assert names == sorted(names)
        return [one for one in (empty, ongoing) if one in found]

    assert await listed() == [empty, ongoing]
    assert await listed(states=["Ongoing", "PrepareAbort"]) == [ongoing]
    assert await listed(producer_ids=[producer.producer_id]) == [empty]
    assert await listed(producer_ids=[other.producer_id], states=["Empty"]) == []
    # An id that has never had a transaction counts as one that has run for ever.
    assert await listed(running_longer_than_ms=HOUR) == [empty]
    assert await listed(running_longer_than_ms=HOUR, states=["Ongoing"]) == []
    assert await listed(transactional_id_pattern=f"{other.transactional_id[:-1]}.") in ([ongoing], [empty, ongoing])
    assert await listed(transactional_id_pattern=other.transactional_id[:-1]) == []
    with pytest.raises(InvalidRegularExpression, match="ListTransactions of broker 1"):
        await kafka.admin.list_transactions(transactional_id_pattern="[")
    with pytest.raises(UsageError, match=r"states has 'ongoing', which broker 1 does not know; .* Empty, Ongoing"):
        await kafka.admin.list_transactions(states=["Empty", "ongoing"])


async def test_transactions_are_described(
    kafka: Client, producer: TransactionalProducer, where: TopicPartition
) -> None:
    name = producer.transactional_id
    (empty,) = (await kafka.admin.describe_transactions(name)).values()
    assert empty == TransactionDescription(name, 1, "Empty", producer.producer_id, 0, 60_000, None, ())
    before = time.time_ns() // 1_000_000
    await producer.send(where.topic, b"a")
    await producer.send(where.topic, b"a", partition=2)
    found = (await kafka.admin.describe_transactions([name]))[name]
    assert (found.state, found.topic_partitions) == ("Ongoing", (where, TopicPartition(where.topic, 2)))
    assert before <= (found.transaction_start_time_ms or 0) <= time.time_ns() // 1_000_000
    await producer.ended(True)
    done = await state(kafka, name, "CompleteCommit")
    assert (done.topic_partitions, done.transaction_start_time_ms) == ((), found.transaction_start_time_ms)


async def test_a_transactional_id_that_is_not_there(kafka: Client, producer: TransactionalProducer) -> None:
    with pytest.raises(TransactionalIdNotFound, match="DescribeTransactions of transactional id 'no-such-id'"):
        await kafka.admin.describe_transactions("no-such-id")
    name = producer.transactional_id
    with failing("describing transactions failed for 1 of 2") as failed:
        await kafka.admin.describe_transactions("no-such-id", name)
    assert list(failed.value.results) == [name]
    assert {key: type(error) for key, error in failed.value.errors.items()} == {"no-such-id": TransactionalIdNotFound}
    assert await kafka.admin.describe_transactions() == {}


# --- ending others' transactions -----------------------------------------------------------------------------------


async def test_fenced_producers_lose_their_transactions(
    client: RawClient, kafka: Client, producer: TransactionalProducer, where: TopicPartition
) -> None:
    other = await TransactionalProducer(client).initialized()
    await producer.send(where.topic, b"lost")
    fenced = await kafka.admin.fence_producers(other.transactional_id, producer.transactional_id)
    assert list(fenced) == [other.transactional_id, producer.transactional_id]
    assert fenced[other.transactional_id] == FencedProducer(other.producer_id, 1)
    new = fenced[producer.transactional_id]
    assert (new.producer_id, new.producer_epoch > producer.epoch) == (producer.producer_id, True)
    assert (await producer.end(True)).error_code != 0
    described = await kafka.admin.describe_transactions(producer.transactional_id)
    (found,) = described.values()
    assert (found.state, found.producer_epoch, found.topic_partitions) == ("Empty", new.producer_epoch, ())
    assert await committed(kafka, where) == []


async def test_a_producer_of_ours_is_fenced(kafka: Client, where: TopicPartition) -> None:
    async with kafka.producer(transactional_id=f"fenced-{where.topic}") as producer:
        with pytest.raises(ProducerFenced):
            async with producer.transaction() as tx:
                await tx.send(where.topic, b"lost", partition=0)
                await kafka.admin.force_terminate_transaction(f"fenced-{where.topic}")
    assert await committed(kafka, where) == []


# --- hanging transactions ------------------------------------------------------------------------------------------


async def test_hanging_transactions_are_found_and_aborted(
    client: RawClient, kafka: Client, producer: TransactionalProducer, where: TopicPartition
) -> None:
    known, other = TopicPartition(where.topic, 1), TopicPartition(where.topic, 2)
    async with unverified(kafka):
        lost = await hang(client, where.topic)
        await hang(client, where.topic, partition=2, producer_id=producer.producer_id)
    # The coordinator will end this one, however old its records are.
    coordinated = await TransactionalProducer(client).initialized()
    await coordinated.send(where.topic, b"a", partition=1)

    async def found(**arguments: object) -> list[tuple[TopicPartition, int, str | None]]:
        hanging = await kafka.admin.find_hanging_transactions(where.topic, **arguments)  # type: ignore[arg-type]
        return [(one.topic_partition, one.producer.producer_id, one.transactional_id) for one in hanging]

    both = [(where, lost, None), (other, producer.producer_id, producer.transactional_id)]
    assert await found() == both
    assert await found(broker_id=1) == both
    assert await found(max_transaction_timeout_ms=2 * HOUR) == []
    assert await found(max_transaction_timeout_ms=0) == both
    assert known not in [one[0] for one in await found(max_transaction_timeout_ms=0)]
    everywhere = await kafka.admin.find_hanging_transactions()
    assert [one.topic_partition for one in everywhere if one.topic_partition.topic == where.topic] == [where, other]
    (first, second) = await kafka.admin.find_hanging_transactions([where.topic])
    assert (first.start_offset, first.abort_spec) == (0, AbortTransactionSpec(where, lost, 0, 0))
    assert (await open_from(kafka, where)) == (0, 1)
    await kafka.admin.abort_transaction(first)
    assert await found() == both[1:]
    assert (await open_from(kafka, where)) == (2, 2)
    (ended,) = (await kafka.admin.describe_producers(other))[other]
    assert ended == second.producer
    await kafka.admin.abort_transaction(AbortTransactionSpec.of(other, second.producer))
    assert await found() == []
    assert await committed(kafka, where) == []


async def test_an_abort_is_refused(client: RawClient, kafka: Client, where: TopicPartition) -> None:
    async with unverified(kafka):
        lost = await hang(client, where.topic)
    await kafka.admin.abort_transaction(AbortTransactionSpec(where, lost, 3, coordinator_epoch=5))
    with pytest.raises(InvalidProducerEpoch, match=f"WriteTxnMarkers in {where} for producer id {lost}"):
        await kafka.admin.abort_transaction(AbortTransactionSpec(where, lost, 2, coordinator_epoch=5))
    with pytest.raises(TransactionCoordinatorFenced):
        await kafka.admin.abort_transaction(AbortTransactionSpec(where, lost, 3, coordinator_epoch=4))
    with pytest.raises(UsageError, match="has 3 partitions, no 9"):
        await kafka.admin.abort_transaction(AbortTransactionSpec(TopicPartition(where.topic, 9), lost, 3))
    missing = HangingTransaction(TopicPartition("no-such-topic", 0), ProducerState(1, 0, 0, 0, None, 0), None)
    with pytest.raises(TopicNotReady, match="no-such-topic"):
        await kafka.admin.abort_transaction(missing, timeout=0.5)
    with pytest.raises(UnknownTopicOrPartition, match="Metadata of topic 'no-such-topic'"):
        await kafka.admin.find_hanging_transactions("no-such-topic")
