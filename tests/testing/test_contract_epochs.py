"""Leader epochs, isolation levels and replica ids, in Fetch, ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.raw_client import RawClient, batch_of, fetch_request, records_of
from support.transactional import TransactionalProducer, state_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from aiokafkawire.protocol.messages.offsets import (
    EpochEndOffset,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from aiokafkawire.records.compression import Codec
from aiokafkawire.types import IsolationLevel

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

LONG = 30_000  # ms: a wait that a passing test never sees the end of


async def epoch_end(
    client: RawClient,
    topic: str,
    epoch: int,
    *,
    version: int = 4,
    known: int = -1,
    partition: int = 0,
    replica: int = -1,
) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=known, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=replica, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    )
    return (await client.ask(request, version)).topics[0].partitions[0]


def ended(answer: EpochEndOffset) -> tuple[int, int, int]:
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_where_epochs_end(client: RawClient, name: str, version: int) -> None:
    assert ended(await epoch_end(client, name, 0, version=version)) == (0, 0, 0)
    await client.produce(name, batch_of(b"a", b"b"))
    assert ended(await epoch_end(client, name, 0, version=version)) == (0, 0, 2)
    for unknown in (1, -1):
        assert ended(await epoch_end(client, name, unknown, version=version)) == (0, -1, -1)


async def test_epochs_are_looked_up_where_they_are_known(client: RawClient, name: str) -> None:
    assert ended(await epoch_end(client, name, 0, known=0)) == (0, 0, 0)
    assert ended(await epoch_end(client, name, 0, known=3)) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    for topic, partition in ((name, 5), ("no-such-topic", 0)):
        answer = await epoch_end(client, topic, 0, partition=partition)
        assert ended(answer) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    for replica in (-2, 1, 99):
        assert ended(await epoch_end(client, name, 0, replica=replica)) == (0, 0, 0)


# --- where a log was cut off ---------------------------------------------------------------------------------------


async def fetched(client: RawClient, name: str, offset: int, last_epoch: int, **fields: Any) -> PartitionData:
    request = fetch_request(name, offset, max_wait_ms=LONG, **fields)
    request.topics[0].partitions[0].last_fetched_epoch = last_epoch
    return (await client.ask(request, 12)).responses[0].partitions[0]


async def test_a_reader_that_is_right_about_the_epoch_gets_records(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"a", b"b"))
    for offset in (0, 1):
        data = await fetched(client, name, offset, 0)
        assert (data.error_code, len(records_of(data)), data.diverging_epoch.epoch) == (0, 2, -1)


async def test_a_reader_beyond_the_end_of_its_epoch_is_told_where_it_ended(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"a", b"b"))
    data = await fetched(client, name, 3, 0)
    assert (data.error_code, len(data.records or b"")) == (0, 0)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (2, 2, 0)
    assert data.aborted_transactions is None


async def test_a_reader_with_an_epoch_that_never_was_is_out_of_range(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"a", b"b"))
    for offset, epoch in ((0, 1), (1, 7), (-1, 0)):
        data = await fetched(client, name, offset, epoch)
        assert (data.error_code, data.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert data.diverging_epoch.epoch == -1


async def test_divergence_is_told_in_sessions_each_time(client: RawClient, name: str) -> None:
    request = fetch_request(name, 3, max_wait_ms=LONG, session_id=0, session_epoch=0)
    request.topics[0].partitions[0].last_fetched_epoch = 0
    session = (await client.ask(request, 12)).session_id
    for epoch in (1, 2):
        on = fetch_request(name, 0, max_wait_ms=LONG, session_id=session, session_epoch=epoch)
        on.topics.clear()
        (topic,) = (await client.ask(on, 12)).responses
        assert topic.partitions[0].diverging_epoch.end_offset == 0


# --- who reads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 12, 14])
@pytest.mark.parametrize("replica", [1, 2, 99])
async def test_who_is_no_follower_may_not_read_as_one(
    kafka: Kafka, client: RawClient, version: int, replica: int
) -> None:
    topic = await kafka.topic()
    where = topic.topic_id if version >= 13 else topic.name
    assert where is not None
    data = await client.fetch(where, 0, replica_id=replica, max_wait_ms=LONG, version=version)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    if version >= 9:
        data = await client.fetch(where, 0, replica_id=replica, epoch=0, max_wait_ms=LONG, version=version)
        assert data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_since_v15_replicas_say_who_they_are_elsewhere(kafka: Kafka, client: RawClient) -> None:
    topic = await kafka.topic()
    state = ReplicaState(replica_id=2, replica_epoch=1)
    for version in (15, 16, 18):
        data = await client.fetch(topic.topic_id, 0, replica_state=state, max_wait_ms=LONG, version=version)
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert data.current_leader.leader_id == (1 if version >= 16 else -1)


@pytest.mark.parametrize("isolation", list(IsolationLevel))
async def test_errors_have_no_list_of_aborted_transactions(client: RawClient, name: str, isolation: int) -> None:
    for fields in ({"epoch": 9}, {"replica_id": 99}):
        data = await client.fetch(name, 0, isolation_level=isolation, **fields)
        assert data.error_code
        assert data.aborted_transactions is None
    data = await client.fetch(name, 99, isolation_level=isolation)
    assert (data.error_code, data.aborted_transactions) == (ErrorCode.OFFSET_OUT_OF_RANGE, None)


async def test_debuggers_read_like_consumers(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"a"))
    data = await client.fetch(name, 0, replica_id=-2)
    assert (data.error_code, len(records_of(data))) == (0, 1)


@pytest.mark.parametrize("version", [4, 9, 10])
async def test_zstd_is_not_kept_from_old_readers(client: RawClient, name: str, version: int) -> None:
    await client.produce(name, batch_of(b"a", codec=Codec.ZSTD))
    data = await client.fetch(name, 0, version=version)
    assert (data.error_code, [record.value for record in records_of(data)]) == (0, [b"a"])


# --- ListOffsets ---------------------------------------------------------------------------------------------------

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


async def look_up(
    client: RawClient, topic: str, timestamp: int, *, version: int = 11, epoch: int = -1, **fields: Any
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=topic, partitions=[asked])], **{"replica_id": -1, **fields}
    )
    return (await client.ask(request, version)).topics[0].partitions[0]


@pytest.mark.parametrize("version", range(2, 12))
@pytest.mark.parametrize("isolation", list(IsolationLevel))
async def test_offsets_for_every_isolation_level(client: RawClient, name: str, version: int, isolation: int) -> None:
    await client.produce(name, batch_of(b"a", b"b"))
    for timestamp, offset in ((LATEST, 2), (EARLIEST, 0), (1000, 0), (1001, 1), (9999, -1)):
        answer = await look_up(client, name, timestamp, version=version, isolation_level=isolation)
        assert (answer.error_code, answer.offset) == (0, offset)


@pytest.mark.parametrize("replica", [-2, 1, 99])
async def test_replicas_look_up_offsets_too(client: RawClient, name: str, replica: int) -> None:
    await client.produce(name, batch_of(b"a", b"b"))
    for timestamp, offset in ((LATEST, 2), (EARLIEST, 0), (MAX_TIMESTAMP, 1), (1001, 1)):
        answer = await look_up(client, name, timestamp, replica_id=replica)
        assert (answer.error_code, answer.offset, answer.leader_epoch) == (0, offset, 0)


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, 1000])
async def test_epochs_are_compared_before_offsets_are_looked_up(client: RawClient, name: str, timestamp: int) -> None:
    answer = await look_up(client, name, timestamp, epoch=4)
    assert (answer.error_code, answer.offset) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)
    assert (await look_up(client, name, timestamp, epoch=0)).error_code == 0


# --- open transactions ---------------------------------------------------------------------------------------------


async def test_what_is_not_committed_yet_has_no_offset_for_those_who_wait_for_that(
    client: RawClient, name: str
) -> None:
    producer = await TransactionalProducer(client).initialized()
    await client.produce(name, batch_of(b"a", timestamp=1000))
    await producer.send(name, b"b", b"c")
    committed = {"isolation_level": IsolationLevel.READ_COMMITTED}
    for timestamp, all_of_them, stable in ((LATEST, 3, 1), (EARLIEST, 0, 0), (1000, 0, 0)):
        assert (await look_up(client, name, timestamp)).offset == all_of_them
        assert (await look_up(client, name, timestamp, **committed)).offset == stable
    assert (await look_up(client, name, MAX_TIMESTAMP)).offset == 2
    assert (await look_up(client, name, MAX_TIMESTAMP, **committed)).offset == -1
    await producer.end(True)
    await state_of(client, producer.transactional_id)
    assert (await look_up(client, name, LATEST, **committed)).offset == 4


@pytest.mark.parametrize("session_epoch", [-1, 0])
async def test_a_commit_wakes_those_who_wait_for_it(
    kafka: Kafka, client: RawClient, name: str, session_epoch: int
) -> None:
    async with await kafka.client() as other:
        producer = await TransactionalProducer(other).initialized()
        await producer.send(name, b"a")
        request = fetch_request(
            name, 0, max_wait_ms=LONG, isolation_level=IsolationLevel.READ_COMMITTED, session_epoch=session_epoch
        )
        waiting = await client.send(request, 12)
        await producer.end(True)
        answer = await client.answer(FetchRequest, 12, waiting)
    assert isinstance(answer, FetchResponse)
    assert [record.offset for record in records_of(answer.responses[0].partitions[0])] == [0, 1]  # and the marker
    if session_epoch == 0:
        assert answer.session_id != 0
