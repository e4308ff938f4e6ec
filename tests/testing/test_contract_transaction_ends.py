"""What belongs to a transaction, and how it ends: AddPartitionsToTxn and EndTxn as Apache Kafka answers them."""

from __future__ import annotations

import pytest
from support.raw_client import RawClient
from support.transactional import READ_COMMITTED, TransactionalProducer, coordinated, state_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataResponseTopic

pytestmark = pytest.mark.anyio


@pytest.fixture
async def producer(client: RawClient) -> TransactionalProducer:
    """A new transactional id, initialized."""
    return await TransactionalProducer(client).initialized()


# --- EndTxn --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
async def test_what_never_began_cannot_end(client: RawClient, producer: TransactionalProducer, commit: bool) -> None:
    for version in (0, 4):
        assert (await producer.end(commit, version)).error_code == ErrorCode.INVALID_TXN_STATE
    if commit:
        assert (await producer.end(commit, 5)).error_code == ErrorCode.INVALID_TXN_STATE
        return
    await producer.ended(False)  # with version 2 who does not know may abort
    assert producer.epoch == 1
    state = await state_of(client, producer.transactional_id)
    assert (state.transaction_state, state.transaction_start_time_ms > 0) == ("CompleteAbort", True)


@pytest.mark.parametrize("done", [True, False])
async def test_the_end_again_with_version_0(producer: TransactionalProducer, name: str, done: bool) -> None:
    await producer.add((name, 0))
    await producer.ended(done, 4)
    assert (await producer.end(done, 4)).error_code == 0
    assert (await producer.end(not done, 4)).error_code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("done", "retried", "asked", "outcome"),
    [
        (True, True, True, 1),
        (True, True, False, "INVALID_TXN_STATE"),
        (True, False, True, "INVALID_TXN_STATE"),
        (True, False, False, 2),
        (False, True, True, "INVALID_TXN_STATE"),
        (False, True, False, 1),
        (False, False, True, "INVALID_TXN_STATE"),
        (False, False, False, 2),
    ],
)
async def test_the_end_again_with_version_2(
    producer: TransactionalProducer, name: str, done: bool, retried: bool, asked: bool, outcome: int | str
) -> None:
    await producer.send(name, b"a")
    await producer.ended(done)
    if retried:
        producer.epoch -= 1
    answer = await producer.end(asked)
    if isinstance(outcome, str):
        assert (answer.error_code, answer.producer_epoch) == (ErrorCode[outcome], -1)
    else:
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, producer.producer_id, outcome)


@pytest.mark.parametrize("version", [4, 5])
async def test_only_the_producer_ends_its_transaction(
    client: RawClient, producer: TransactionalProducer, name: str, version: int
) -> None:
    await producer.send(name, b"a")
    for epoch in (1, -1, 5):
        producer.epoch = epoch
        assert (await producer.end(True, version)).error_code == ErrorCode.PRODUCER_FENCED
    producer.producer_id += 1000
    assert (await producer.end(True, version)).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    stranger = TransactionalProducer(client, producer.transactional_id + "-unknown")
    await coordinated(client, stranger.transactional_id)
    assert (await stranger.end(True, version)).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert (await stranger.add((name, 0)))[name, 0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    nobody = TransactionalProducer(client, "")
    assert (await nobody.end(True, version)).error_code == ErrorCode.INVALID_REQUEST
    assert (await nobody.add((name, 0)))[name, 0] == ErrorCode.INVALID_REQUEST
    assert await nobody.add_offsets("g") == ErrorCode.INVALID_REQUEST


# --- AddPartitionsToTxn --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added(
    client: RawClient, producer: TransactionalProducer, topic: MetadataResponseTopic, name: str, version: int
) -> None:
    assert await producer.add((name, 0), version=version) == {(name, 0): 0}
    assert await producer.add((name, 0), version=version) == {(name, 0): 0}
    state = await state_of(client, producer.transactional_id)
    assert (state.transaction_state, [(each.topic, each.partitions) for each in state.topics]) == (
        "Ongoing",
        [(name, [0])],
    )


async def test_one_unknown_partition_keeps_the_others_out(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    assert await producer.add((name, 0), (name, 1), ("no-such-topic", 0)) == {
        (name, 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        (name, 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("no-such-topic", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert (await state_of(client, producer.transactional_id)).transaction_state == "Empty"


async def test_an_empty_transaction_leaves_no_records(
    client: RawClient, producer: TransactionalProducer, name: str
) -> None:
    await producer.add((name, 0))
    await producer.ended(True, 4)
    data = await client.fetch(name, 0, isolation_level=READ_COMMITTED)
    assert (data.high_watermark, data.last_stable_offset) == (1, 1)  # its marker is there


async def test_transaction_version_2_is_finalized(client: RawClient) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    for version in (3, 4):
        answer = await client.ask(request, version)
        finalized = {each.name: (each.min_version_level, each.max_version_level) for each in answer.finalized_features}
        supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
        assert finalized["transaction.version"] == (2, 2)
        # Clients from before version 4 fail at a lowest version of 0.
        assert supported.get("transaction.version") == ((0, 2) if version == 4 else None)
        assert supported["metadata.version"] == (7, 30)
        assert answer.finalized_features_epoch > 0
