"""Transactions from InitProducerId to EndTxn, as Apache Kafka coordinates them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.raw_client import RawClient, batch_of, produce_request, records_of
from support.transactional import (
    READ_COMMITTED,
    TransactionalProducer,
    aborted_of,
    coordinated,
    producers_of,
    settled,
    state_of,
)

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.transactions import InitProducerIdRequest
from aiokafkawire.records.batch import RecordBatch, split

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

MAX_TIMEOUT = 900_000


@pytest.fixture
async def producer(client: RawClient) -> TransactionalProducer:
    """A new transactional id, initialized."""
    return await TransactionalProducer(client).initialized()


# --- InitProducerId ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
async def test_each_initialization_bumps_the_epoch(client: RawClient, version: int) -> None:
    producer = TransactionalProducer(client)
    await coordinated(client, producer.transactional_id)
    await producer.initialized()
    assert producer.epoch == 0
    again = await producer.initialize(version)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, producer.producer_id, 1)
    other = await TransactionalProducer(client).initialized()
    assert (other.producer_id != producer.producer_id, other.epoch) == (True, 0)


@pytest.mark.parametrize("timeout", [0, -1, MAX_TIMEOUT + 1])
async def test_timeouts_have_bounds(client: RawClient, timeout: int) -> None:
    producer = TransactionalProducer(client, timeout_ms=timeout)
    answer = await producer.initialize()
    assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
    producer.timeout_ms = MAX_TIMEOUT
    assert (await producer.initialized()).epoch == 0


async def test_the_empty_id_is_no_id(client: RawClient) -> None:
    answer = await client.ask(InitProducerIdRequest(transactional_id="", transaction_timeout_ms=0), 5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize(("producer_id", "epoch"), [(1, -1), (-1, 1)])
async def test_an_id_goes_with_an_epoch(client: RawClient, producer_id: int, epoch: int) -> None:
    answer = await TransactionalProducer(client).initialize(producer_id=producer_id, producer_epoch=epoch)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


async def test_a_producer_goes_on_from_the_epoch_it_has(producer: TransactionalProducer) -> None:
    had = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    for _ in range(2):  # the second is a retry of the first
        answer = await producer.initialize(**had)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, producer.producer_id, 1)
    assert (await producer.initialize()).producer_epoch == 2
    assert (await producer.initialize(**had)).error_code == ErrorCode.PRODUCER_FENCED
    assert (await producer.initialize(3, **had)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    other = {"producer_id": producer.producer_id + 1000, "producer_epoch": 2}
    assert (await producer.initialize(**other)).error_code == ErrorCode.PRODUCER_FENCED


async def test_an_id_that_is_not_known_begins_anew_whatever_the_producer_had(client: RawClient) -> None:
    producer = TransactionalProducer(client)
    await coordinated(client, producer.transactional_id)
    await TransactionalProducer(client).initialized()  # the coordinator has loaded
    answer = await settled(
        lambda: producer.initialize(producer_id=12345, producer_epoch=7),
        lambda answer: answer.error_code != ErrorCode.NOT_COORDINATOR,
    )
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id != 12345


async def test_an_open_transaction_is_aborted_and_its_producer_fenced(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    await producer.send(name, b"old")
    assert (await producer.initialize()).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    newer = await TransactionalProducer(client, producer.transactional_id).initialized()
    # One epoch was for the abort, and nobody has it.
    assert (newer.producer_id, newer.epoch) == (producer.producer_id, 2)
    assert (await state_of(client, producer.transactional_id)).transaction_state == "Empty"
    data = await client.fetch(name, 0, isolation_level=READ_COMMITTED)
    assert aborted_of(data) == [(producer.producer_id, 0)]

    late = await producer.produce(name, producer.batch(name, b"late"))
    assert late.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert (await producer.add((name, 0)))[name, 0] == ErrorCode.PRODUCER_FENCED
    assert (await producer.add((name, 0), version=1))[name, 0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.add_offsets("g") == ErrorCode.PRODUCER_FENCED
    assert await producer.add_offsets("g", version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    for version, error in [(0, "INVALID_PRODUCER_EPOCH"), (1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED")]:
        assert (await producer.end(True, version)).error_code == ErrorCode[error]
    for version in (4, 5):
        assert (await producer.end(False, version)).error_code == ErrorCode.PRODUCER_FENCED


# --- what is in the log --------------------------------------------------------------------------------------------


async def test_a_commit_with_version_2(client: RawClient, producer: TransactionalProducer, name: str) -> None:
    sent = await producer.send(name, b"a", b"b")
    assert (sent.error_code, sent.base_offset) == (0, 0)
    open_now = await client.fetch(name, 0, isolation_level=READ_COMMITTED)
    assert (open_now.high_watermark, open_now.last_stable_offset, records_of(open_now)) == (2, 0, [])
    assert aborted_of(open_now) == []
    answer = await producer.end(True)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, producer.producer_id, 1)
    await state_of(client, producer.transactional_id)
    data = await client.fetch(name, 0, isolation_level=READ_COMMITTED)
    assert (data.high_watermark, data.last_stable_offset, aborted_of(data)) == (3, 3, [])
    batches = list(split(memoryview(data.records or b"")))
    assert [batch.header.is_control for batch in batches] == [False, True]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [4, 5])
async def test_the_marker_byte_for_byte(
    client: RawClient, producer: TransactionalProducer, name: str, commit: bool, version: int
) -> None:
    await producer.add((name, 0))
    await producer.send(name, b"a", version=11)
    await producer.ended(commit, version)
    data = await client.fetch(name, 1)
    batch = RecordBatch.parse(memoryview(data.records or b""))
    header = batch.header
    assert (header.base_offset, header.leader_epoch, header.attributes, header.count) == (1, 0, 0x30, 1)
    assert (header.producer_id, header.producer_epoch) == (producer.producer_id, 1 if version == 5 else 0)
    assert (header.base_sequence, header.base_timestamp) == (-1, header.max_timestamp)
    coordinator_epoch = (await producers_of(client, name)).active_producers[0].coordinator_epoch
    key = bytes.fromhex("0000") + int(commit).to_bytes(2)
    value = bytes.fromhex("0000") + coordinator_epoch.to_bytes(4)
    assert bytes(batch.view[61:]) == bytes.fromhex("20000000 08") + key + b"\x0c" + value + b"\0"
    batch.records("", 0, check_crcs=True)


async def test_a_commit_with_version_0(client: RawClient, producer: TransactionalProducer, name: str) -> None:
    for round_ in range(2):
        assert await producer.add((name, 0)) == {(name, 0): 0}
        assert (await producer.send(name, b"x", version=11)).base_offset == 2 * round_
        answer = await producer.end(True, 4)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, -1, -1)
        state = await state_of(client, producer.transactional_id)
        assert (state.transaction_state, state.producer_epoch) == ("CompleteCommit", 0)
    data = await client.fetch(name, 0, isolation_level=READ_COMMITTED)
    batches = [one for one in split(memoryview(data.records or b"")) if isinstance(one, RecordBatch)]
    assert [(one.header.producer_epoch, one.header.base_sequence) for one in batches] == [
        (0, 0),
        (0, -1),
        (0, 1),
        (0, -1),
    ]


async def test_the_last_stable_offset_is_that_of_the_oldest_open_transaction(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    other = await TransactionalProducer(client).initialized()
    await producer.send(name, b"0")
    await other.send(name, b"1")
    await client.produce(name, batch_of(b"2"))
    first_ids = producer.producer_id, other.producer_id

    async def seen() -> tuple[int, int, list[tuple[int, int]]]:
        data = await client.fetch(name, 0, isolation_level=READ_COMMITTED)
        return data.last_stable_offset, data.high_watermark, aborted_of(data)

    assert await seen() == (0, 3, [])
    await other.ended(False)  # its marker is at 3
    assert await seen() == (0, 4, [])
    await producer.ended(False)  # at 4
    assert await seen() == (5, 5, [(first_ids[1], 1), (first_ids[0], 0)])
    await other.send(name, b"5")
    assert await seen() == (5, 6, [(first_ids[1], 1), (first_ids[0], 0)])
    await other.ended(True)
    assert await seen() == (7, 7, [(first_ids[1], 1), (first_ids[0], 0)])
    later = await client.fetch(name, 5, isolation_level=READ_COMMITTED)
    assert aborted_of(later) == []
    assert (await client.fetch(name, 0)).aborted_transactions is None


async def test_a_new_epoch_begins_new_sequences(client: RawClient, producer: TransactionalProducer, name: str) -> None:
    await producer.send(name, b"a")
    await producer.ended(True)
    wrong = batch_of(b"b", producer_id=producer.producer_id, producer_epoch=1, base_sequence=1, transactional=True)
    answer = await producer.produce(name, wrong)
    assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    right = await producer.send(name, b"b")
    assert (right.error_code, right.base_offset) == (0, 2)


async def test_a_producer_with_version_2_begins_at_sequence_0(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    batch = batch_of(b"b", producer_id=producer.producer_id, producer_epoch=0, base_sequence=3, transactional=True)
    assert (await producer.produce(name, batch)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    await producer.add((name, 0))
    assert (await producer.produce(name, batch, version=11)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_a_batch_outside_of_the_open_transaction(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    await producer.send(name, b"a")
    plain = producer.batch(name, b"b", transactional=False)
    assert (await client.produce(name, plain)).error_code == ErrorCode.INVALID_TXN_STATE
    assert (await producer.produce(name, plain)).error_code == ErrorCode.INVALID_TXN_STATE


async def test_a_batch_sent_again_in_a_transaction(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    batch = producer.batch(name, b"a")
    for _ in range(2):
        answer = await producer.produce(name, batch)
        assert (answer.error_code, answer.base_offset) == (0, 0)
    await producer.end(True)
    await state_of(client, producer.transactional_id)
    assert (await producer.produce(name, batch)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


# --- what Produce asks the coordinator -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "error", "message"),
    [
        (10, "INVALID_TXN_STATE", "Partition was not added to the transaction"),
        (11, "TRANSACTION_ABORTABLE", None),
    ],
)
async def test_a_partition_must_be_in_the_transaction(
    client: RawClient, producer: TransactionalProducer, name: str, version: int, error: str, message: str | None
) -> None:
    answer = await producer.produce(name, producer.batch(name, b"a"), version=version)
    assert (answer.error_code, answer.error_message) == (ErrorCode[error], message)
    assert (answer.base_offset, answer.log_start_offset) == (-1, -1)
    assert (await state_of(client, producer.transactional_id)).transaction_state == "Empty"


async def test_produce_version_12_adds_its_partitions(client: RawClient, kafka: Kafka) -> None:
    producer = await TransactionalProducer(client).initialized()
    topic = await kafka.topic(2)
    assert topic.name is not None
    await producer.send(topic.name, b"a", partition=1)
    await producer.send(topic.name, b"b", partition=1)
    state = await state_of(client, producer.transactional_id)
    assert (state.transaction_state, state.producer_epoch) == ("Ongoing", 0)
    assert [(each.topic, each.partitions) for each in state.topics] == [(topic.name, [1])]


@pytest.mark.parametrize("version", [3, 11, 12])
async def test_transactional_batches_need_an_id(client: RawClient, name: str, version: int) -> None:
    batch = batch_of(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    answer = await client.produce(name, batch, version=version)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert (answer.base_offset, answer.log_start_offset) == (-1, -1)
    assert answer.error_message is None


async def test_one_request_is_of_one_producer(client: RawClient, kafka: Kafka) -> None:
    topic = await kafka.topic(2)
    request = produce_request(topic.name or "", None, transactional_id="one")
    first, second = (
        produce_request(
            topic.name or "",
            batch_of(b"a", producer_id=index, producer_epoch=0, base_sequence=0, transactional=True),
            partition=index,
        )
        for index in (0, 1)
    )
    request.topic_data[0].partition_data = [
        first.topic_data[0].partition_data[0],
        second.topic_data[0].partition_data[0],
    ]
    answer = await client.ask(request, 12)
    errors = [(each.error_code, each.error_message) for each in answer.responses[0].partition_responses]
    several = "Transactional records contained more than one producer ID"
    assert errors == [(ErrorCode.INVALID_PRODUCER_ID_MAPPING, several)] * 2


@pytest.mark.parametrize("version", [10, 11, 12])
async def test_the_coordinator_knows_another_producer(
    client: RawClient, producer: TransactionalProducer, name: str, version: int
) -> None:
    known = producer.producer_id
    producer.producer_id += 1000
    answer = await producer.produce(name, producer.batch(name, b"a"), version=version)
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer.producer_id, producer.epoch = known, 1
    answer = await producer.produce(name, producer.batch(name, b"a"), version=version)
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_a_batch_without_a_transaction_may_carry_an_id(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    plain = producer.batch(name, b"b", transactional=False)
    assert (await producer.produce(name, plain)).error_code == 0
    assert (await state_of(client, producer.transactional_id)).transaction_state == "Empty"
