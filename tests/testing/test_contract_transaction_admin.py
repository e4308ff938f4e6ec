"""DescribeProducers, DescribeTransactions, ListTransactions and WriteTxnMarkers, as Apache Kafka answers them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from support.raw_client import RawClient, batch_of
from support.transactional import READ_COMMITTED, TransactionalProducer, aborted_of, producers_of, state_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TopicRequest,
)
from aiokafkawire.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio


@pytest.fixture
async def producer(client: RawClient) -> TransactionalProducer:
    """A new transactional id, initialized."""
    return await TransactionalProducer(client).initialized()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- DescribeProducers ---------------------------------------------------------------------------------------------


async def test_producers_are_described(client: RawClient, producer: TransactionalProducer, name: str) -> None:
    assert (await producers_of(client, name)).active_producers == []
    before = now_ms()
    await producer.send(name, b"a", b"b")
    (active,) = (await producers_of(client, name)).active_producers
    assert (active.producer_id, active.producer_epoch, active.last_sequence) == (producer.producer_id, 0, 1)
    assert before <= active.last_timestamp <= now_ms() + 1
    assert (active.coordinator_epoch, active.current_txn_start_offset) == (-1, 0)
    await producer.ended(True)
    (active,) = (await producers_of(client, name)).active_producers
    assert (active.producer_id, active.producer_epoch, active.last_sequence) == (producer.producer_id, 1, -1)
    assert (active.coordinator_epoch >= 0, active.current_txn_start_offset) == (True, -1)
    assert before <= active.last_timestamp <= now_ms()


async def test_a_producer_keeps_its_sequences_after_a_marker_of_its_epoch(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    await producer.add((name, 0))
    await producer.send(name, b"a", b"b", version=11)
    await producer.ended(True, 4)
    (active,) = (await producers_of(client, name)).active_producers
    assert (active.producer_epoch, active.last_sequence, active.current_txn_start_offset) == (0, 1, -1)


async def test_producers_of_no_partition(client: RawClient, name: str) -> None:
    topics = [
        TopicRequest(name=name, partition_indexes=[0, 1]),
        TopicRequest(name="no-such-topic", partition_indexes=[0]),
        TopicRequest(name="no topic", partition_indexes=[0]),
    ]
    answer = await client.ask(DescribeProducersRequest(topics=topics), 0)
    found = [
        (one.error_code, one.error_message, one.active_producers) for topic in answer.topics for one in topic.partitions
    ]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    invalid = (
        "Topic name is invalid: 'no topic' contains one or more characters other than ASCII alphanumerics, "
        "'.', '_' and '-'"
    )
    assert found == [
        (0, None, []),
        (unknown, None, []),
        (unknown, "This server does not host this topic-partition.", []),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, invalid, []),
    ]


# --- DescribeTransactions ------------------------------------------------------------------------------------------


async def test_transactions_are_described(client: RawClient, producer: TransactionalProducer, name: str) -> None:
    empty = await state_of(client, producer.transactional_id)
    assert (empty.error_code, empty.transactional_id, empty.transaction_state) == (
        0,
        producer.transactional_id,
        "Empty",
    )
    assert (empty.producer_id, empty.producer_epoch, empty.topics) == (producer.producer_id, 0, [])
    assert (empty.transaction_timeout_ms, empty.transaction_start_time_ms) == (60_000, -1)
    before = now_ms()
    await producer.send(name, b"a")
    ongoing = await state_of(client, producer.transactional_id)
    assert ongoing.transaction_state == "Ongoing"
    assert before <= ongoing.transaction_start_time_ms <= now_ms()
    await producer.ended(True)
    done = await state_of(client, producer.transactional_id)
    assert (done.transaction_state, done.producer_epoch, done.topics) == ("CompleteCommit", 1, [])
    assert done.transaction_start_time_ms == ongoing.transaction_start_time_ms
    await producer.send(name, b"a")
    await producer.ended(False)
    assert (await state_of(client, producer.transactional_id)).transaction_state == "CompleteAbort"


async def test_ids_that_are_not_there(client: RawClient, producer: TransactionalProducer) -> None:
    request = DescribeTransactionsRequest(transactional_ids=["", "no-such-id", producer.transactional_id])
    states = (await client.ask(request, 0)).transaction_states
    assert [(one.error_code, one.transactional_id, one.transaction_state) for one in states] == [
        (ErrorCode.INVALID_REQUEST, "", ""),
        (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "no-such-id", ""),
        (0, producer.transactional_id, "Empty"),
    ]
    assert (await client.ask(DescribeTransactionsRequest(transactional_ids=[]), 0)).transaction_states == []


# --- ListTransactions ----------------------------------------------------------------------------------------------


async def listed(client: RawClient, version: int = 2, **filters: object) -> ListTransactionsResponse:
    request = ListTransactionsRequest(**{"state_filters": [], "producer_id_filters": []} | filters)  # type: ignore[arg-type]
    return await client.ask(request, version)


def found_in(answer: ListTransactionsResponse, producers: Sequence[TransactionalProducer]) -> list[str]:
    """Which of these are listed, in their own order."""
    states = {one.transactional_id: one for one in answer.transaction_states}
    found = [(states[one.transactional_id], one) for one in producers if one.transactional_id in states]
    assert all(state.producer_id == one.producer_id for state, one in found)
    return [state.transaction_state for state, _ in found]


async def test_transactions_are_listed(client: RawClient, producer: TransactionalProducer, name: str) -> None:
    other = await TransactionalProducer(client).initialized()
    both = [producer, other]
    await other.send(name, b"a")
    for version in range(3):
        assert found_in(await listed(client, version), both) == ["Empty", "Ongoing"]
        assert found_in(await listed(client, version, state_filters=["Ongoing"]), both) == ["Ongoing"]
        assert found_in(await listed(client, version, producer_id_filters=[producer.producer_id]), both) == ["Empty"]
    unknown = await listed(client, state_filters=["Strange", "Empty", "Dead"])
    assert (unknown.error_code, unknown.unknown_state_filters) == (0, ["Strange"])
    assert found_in(unknown, both) == ["Empty"]
    only = await listed(client, state_filters=["Strange"])
    assert (only.unknown_state_filters, only.transaction_states) == (["Strange"], [])
    # What has no transaction has one that began at -1.
    assert found_in(await listed(client, duration_filter=3_600_000), both) == ["Empty"]
    assert found_in(await listed(client, duration_filter=-1), both) == ["Empty", "Ongoing"]


async def test_transactions_are_listed_by_pattern(client: RawClient, producer: TransactionalProducer) -> None:
    whole = producer.transactional_id
    for pattern, matches in [(whole, True), (f"{whole[:-1]}.", True), (whole[:-1], False), ("", True), (None, True)]:
        answer = await listed(client, transactional_id_pattern=pattern)
        assert (found_in(answer, [producer]) == ["Empty"]) is matches
    wrong = await listed(client, transactional_id_pattern="[")
    assert (wrong.error_code, wrong.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])


# --- what is for brokers and operators -----------------------------------------------------------------------------


def marker(producer_id: int, epoch: int, topic: str, *partitions: int, **fields: int) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))],
        coordinator_epoch=fields.pop("coordinator_epoch", 0),
        **fields,
    )


async def marked(client: RawClient, version: int, *markers: WritableTxnMarker) -> list[int]:
    answer = await client.ask(WriteTxnMarkersRequest(markers=list(markers)), version)
    return [one.error_code for result in answer.markers for topic in result.topics for one in topic.partitions]


@pytest.mark.parametrize("version", [1, 2])
async def test_an_operator_aborts_a_hanging_transaction(
    client: RawClient, producer: TransactionalProducer, name: str, version: int
) -> None:
    await producer.send(name, b"a")
    abort = marker(producer.producer_id, producer.epoch, name, 0)
    assert await marked(client, version, abort) == [0]
    data = await client.fetch(name, 0, isolation_level=READ_COMMITTED)
    assert (data.last_stable_offset, aborted_of(data)) == (2, [(producer.producer_id, 0)])
    assert (await state_of(client, producer.transactional_id)).transaction_state == "Ongoing"
    assert await marked(client, version, marker(producer.producer_id, 0, name, 0, 1)) in (
        [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0],
    )
    later = marker(producer.producer_id, 3, name, 0, coordinator_epoch=5)
    assert await marked(client, version, later) == [0]
    assert await marked(client, version, abort) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    zombie = marker(producer.producer_id, 3, name, 0, coordinator_epoch=4)
    assert await marked(client, version, zombie) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    assert await marked(client, version) == []


async def test_a_marker_of_version_2_has_a_newer_epoch(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    await producer.send(name, b"a")
    same = marker(producer.producer_id, 0, name, 0, transaction_version=2)
    assert await marked(client, 2, same) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    newer = marker(producer.producer_id, 1, name, 0, transaction_version=2)
    for _ in range(2):  # a retry does no harm
        assert await marked(client, 2, newer) == [0]


async def test_a_marker_of_nobody(client: RawClient, name: str) -> None:
    assert await marked(client, 2, marker(-1, 0, name, 0)) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert (await client.fetch(name, 0)).high_watermark == 0


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_add_partitions_for_many_producers(client: RawClient, kafka: Kafka, version: int) -> None:
    producers = [await TransactionalProducer(client).initialized() for _ in range(2)]
    name = (await kafka.topic(2)).name
    assert name is not None
    asked = [
        AddPartitionsToTxnTransaction(
            transactional_id=one.transactional_id,
            producer_id=one.producer_id,
            producer_epoch=one.epoch,
            topics=[AddPartitionsToTxnTopic(name=name, partitions=[0])],
        )
        for one in producers
    ]
    asked[1].producer_epoch = 4

    async def added() -> dict[str, list[tuple[int, int]]]:
        answer = await client.ask(AddPartitionsToTxnRequest(transactions=asked), version)
        assert (answer.error_code, answer.results_by_topic_v3_and_below) == (0, [])
        return {
            one.transactional_id: sorted(
                (each.partition_index, each.partition_error_code)
                for topic in one.topic_results
                for each in topic.results_by_partition
            )
            for one in answer.results_by_transaction
        }

    first, second = (one.transactional_id for one in producers)
    fenced = [(0, ErrorCode.PRODUCER_FENCED)]
    assert await added() == {first: [(0, 0)], second: fenced}
    asked[0].verify_only = True
    asked[0].topics[0].partitions = [0, 1]
    assert await added() == {first: [(0, 0), (1, ErrorCode.TRANSACTION_ABORTABLE)], second: fenced}
    assert (await client.ask(AddPartitionsToTxnRequest(transactions=[]), 3)).error_code == 0


async def test_idempotent_producers_are_described_as_well(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"a", b"b", producer_id=9000, producer_epoch=3, base_sequence=5))
    (active,) = (await producers_of(client, name)).active_producers
    assert (active.producer_id, active.producer_epoch, active.last_sequence) == (9000, 3, 6)
    assert active.last_timestamp == 1001
    assert (active.coordinator_epoch, active.current_txn_start_offset) == (-1, -1)
