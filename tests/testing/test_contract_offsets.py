"""ListOffsets, InitProducerId and FindCoordinator, as Apache Kafka answers them."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.patience import PATIENCE
from support.raw_client import RawClient, batch_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from aiokafkawire.protocol.messages.transactions import InitProducerIdRequest
from aiokafkawire.records.batch import BatchBuilder
from aiokafkawire.records.compression import Codec

pytestmark = pytest.mark.anyio

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)


async def look_up(
    client: RawClient, topic: str, timestamp: int, *, version: int = 11, partition: int = 0, epoch: int = -1
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    return (await client.ask(request, version)).topics[0].partitions[0]


def found(answer: ListOffsetsPartitionResponse) -> tuple[int, int, int]:
    assert answer.error_code == 0
    return answer.offset, answer.timestamp, answer.leader_epoch


@pytest.mark.parametrize("version", range(1, 12))
async def test_ends_of_a_log(client: RawClient, name: str, version: int) -> None:
    epoch = 0 if version >= 4 else -1
    assert found(await look_up(client, name, LATEST, version=version)) == (0, -1, epoch)
    await client.produce(name, batch_of(b"a", b"b"))
    assert found(await look_up(client, name, LATEST, version=version)) == (2, -1, epoch)
    assert found(await look_up(client, name, EARLIEST, version=version)) == (0, -1, epoch)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
async def test_the_first_record_at_or_after_a_time(client: RawClient, name: str, codec: Codec) -> None:
    for timestamps in ((100, 300, 200), (50, 60), (400, 150)):
        builder = BatchBuilder(limit=1 << 20, codec=codec)
        for timestamp in timestamps:
            builder.append(timestamp, None, b"x")
        await client.produce(name, builder.build())
    expected = {0: (0, 100), 100: (0, 100), 101: (1, 300), 300: (1, 300), 301: (5, 400), 400: (5, 400)}
    for timestamp, (offset, at) in expected.items():
        assert found(await look_up(client, name, timestamp)) == (offset, at, 0)
    assert found(await look_up(client, name, 401)) == (-1, -1, -1)


async def test_the_record_with_the_highest_timestamp(client: RawClient, name: str) -> None:
    assert found(await look_up(client, name, MAX_TIMESTAMP)) == (-1, -1, -1)
    for timestamp in (500, 900, 900, 100):
        await client.produce(name, batch_of(b"x", timestamp=timestamp))
    assert found(await look_up(client, name, MAX_TIMESTAMP)) == (1, 900, 0)


async def test_records_without_a_time_are_not_found_by_time(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"x", timestamp=-1))
    assert found(await look_up(client, name, 0)) == (-1, -1, -1)
    assert found(await look_up(client, name, MAX_TIMESTAMP)) == (0, -1, 0)


async def test_tiered_storage_is_off(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"x"))
    assert found(await look_up(client, name, EARLIEST_LOCAL)) == (0, -1, 0)
    assert found(await look_up(client, name, LATEST_TIERED))[0] == -1
    assert found(await look_up(client, name, EARLIEST_PENDING_UPLOAD))[0] == -1


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [(MAX_TIMESTAMP, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (EARLIEST_PENDING_UPLOAD, 10), (-7, 11)],
)
async def test_names_that_the_version_lacks(client: RawClient, name: str, timestamp: int, version: int) -> None:
    answer = await look_up(client, name, timestamp, version=version)
    assert (answer.error_code, answer.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


async def test_errors_of_a_look_up(client: RawClient, name: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await look_up(client, "no-such-topic", LATEST)).error_code == unknown
    assert (await look_up(client, name, LATEST, partition=1)).error_code == unknown
    assert (await look_up(client, name, LATEST, epoch=1)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (await look_up(client, name, LATEST, epoch=0)).error_code == 0


async def test_a_topic_asked_for_twice_has_one_answer(client: RawClient, name: str) -> None:
    one, other = (ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 99))
    topics = [ListOffsetsTopic(name=name, partitions=partitions) for partitions in ([one], [one, other], [])]
    (topic,) = (await client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 11)).topics
    assert {each.partition_index: ErrorCode(each.error_code).name for each in topic.partitions} == {
        0: "INVALID_REQUEST",
        99: "UNKNOWN_TOPIC_OR_PARTITION",
    }
    nothing = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[])])
    assert (await client.ask(nothing, 11)).topics == []


async def test_a_partition_asked_for_twice_is_refused(client: RawClient, name: str) -> None:
    asked = [ListOffsetsPartition(partition_index=0, timestamp=LATEST) for _ in range(2)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=asked)])
    (answer,) = (await client.ask(request, 7)).topics[0].partitions
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(6))
async def test_every_producer_gets_an_id_of_its_own(client: RawClient, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    first = await client.ask(request, version)
    with anyio.fail_after(PATIENCE):
        while first.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # Apache Kafka fetches its first ids
            first = await client.ask(request, version)
    second = await client.ask(request, version)
    assert first.error_code == second.error_code == 0
    assert first.producer_epoch == second.producer_epoch == 0
    assert 0 <= first.producer_id < second.producer_id


async def test_malformed_requests_for_a_producer_id(client: RawClient) -> None:
    for fields in ({"transactional_id": ""}, {"transactional_id": None, "producer_id": 4}):
        answer = await client.ask(InitProducerIdRequest(transaction_timeout_ms=1, **fields), 5)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize("version", range(1, 7))
async def test_unknown_kinds_of_coordinators(client: RawClient, version: int) -> None:
    keys: dict[str, Any] = {"coordinator_keys": ["k"]} if version >= 4 else {"key": "k"}
    answer = await client.ask(FindCoordinatorRequest(key_type=9, **keys), version)
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id, found.host, found.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)
