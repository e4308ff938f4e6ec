"""Versions that 4.0 has given up (KIP-896), and message sets, as Apache Kafka 3.9 answers them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import anyio
import anyio.lowlevel
import pytest
from support.apache_kafka import ApacheKafka, missing
from support.message_sets import message, wrapper
from support.patience import PATIENCE
from support.raw_client import RawClient, batch_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from aiokafkawire.protocol.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest
from aiokafkawire.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from aiokafkawire.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from aiokafkawire.records.batch import AnyReader, BatchBuilder, split
from aiokafkawire.records.compression import Codec
from aiokafkawire.testing.cluster.releases import versions_of
from aiokafkawire.testing.serving.apis import APIS

pytestmark = [pytest.mark.thorough, pytest.mark.anyio]

RELEASE = "3.9.1"
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4]


@pytest.fixture
def release() -> str:
    return RELEASE


@pytest.fixture(scope="module")
def apache_kafka() -> Iterator[ApacheKafka]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with ApacheKafka(RELEASE) as kafka:
        yield kafka


Row = tuple[int, int, int | None, bytes | None]


async def fetched(client: RawClient, name: str, version: int, offset: int = 0, **fields: int) -> list[Row]:
    """Magic, offset, timestamp and value of every record."""
    data = await client.fetch(name, offset, version=version, **fields)
    assert data.error_code == 0
    rows: list[Row] = []
    for batch in split(memoryview(data.records or b"")):
        reader: AnyReader[bytes, bytes] = batch.records("", 0)
        rows += [(batch.header.magic, record.offset, record.timestamp, record.value) for record in reader]
    return rows


async def test_the_versions_of_every_api(client: RawClient) -> None:
    answer = await client.ask(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 3)
    theirs = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    there = {key: tuple(versions) for key, versions in versions_of(RELEASE).items() if key in APIS}
    assert {key: versions for key, versions in theirs.items() if key in there} == there


# --- Produce -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("magic", [0, 1])
async def test_messages_become_a_batch(client: RawClient, name: str, version: int, magic: int) -> None:
    data = message(0, b"a", b"k", magic=magic) + message(1, None, magic=magic, timestamp=900)
    answer = await client.produce(name, data, version=version)
    if version == 3:
        assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1)
        return
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, 0, -1)
    times = (1000, 900) if magic else (-1, -1)
    assert await fetched(client, name, 12) == [(2, 0, times[0], b"a"), (2, 1, times[1], None)]
    assert (await client.produce(name, data, version=version)).base_offset == 2


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
async def test_a_compressed_message_becomes_a_batch(
    client: RawClient, name: str, codec: Codec, magic: int, last: int
) -> None:
    inner = [message(0, b"a", magic=magic), message(1, b"b", magic=magic, timestamp=3000)]
    data = wrapper(last, *inner, codec=codec, magic=magic, timestamp=3000)
    assert (await client.produce(name, data, version=2)).error_code == 0
    times = (1000, 3000) if magic else (-1, -1)
    assert await fetched(client, name, 12) == [(2, 0, times[0], b"a"), (2, 1, times[1], b"b")]
    (batch,) = split(memoryview((await client.fetch(name, 0, version=12)).records or b""))
    assert batch.header.codec == codec


def spoiled(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


PLAIN = message(0)
INVALID, CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(message(0, b"a") + message(0, b"b"), 0, id="offsets alike"),
        pytest.param(PLAIN + PLAIN[:20], 0, id="cut after the first"),
        pytest.param(message(0, attributes=8), 0, id="the broker's time"),
        pytest.param(message(0, timestamp=2**62), 0, id="a time to come"),
        pytest.param(wrapper(5, message(0), message(5)), 0, id="a gap inside"),
        pytest.param(batch_of(b"x"), 0, id="a batch"),
        pytest.param(message(0, magic=0) + message(1), INVALID, id="two formats"),
        pytest.param(wrapper(0, PLAIN) + wrapper(0, PLAIN), INVALID, id="two compressed"),
        pytest.param(PLAIN + wrapper(0, PLAIN), INVALID, id="one compressed"),
        pytest.param(wrapper(0, PLAIN, codec=Codec.ZSTD), INVALID, id="zstd"),
        pytest.param(wrapper(0, wrapper(0, PLAIN)), INVALID, id="twice compressed"),
        pytest.param(wrapper(0, message(0, magic=0)), INVALID, id="another format inside"),
        pytest.param(message(0, None, attributes=1), INVALID, id="nothing compressed"),
        pytest.param(spoiled(PLAIN), CORRUPT, id="checksum"),
        pytest.param(wrapper(0, spoiled(PLAIN)), CORRUPT, id="checksum inside"),
        pytest.param(message(0, bytes(1_048_588)), ErrorCode.MESSAGE_TOO_LARGE, id="too large"),
    ],
)
async def test_what_is_taken(client: RawClient, name: str, data: bytes, error: int) -> None:
    answer = await client.produce(name, data, version=2)
    assert (answer.error_code, answer.base_offset) == (error, -1 if error else 0)


@pytest.mark.parametrize("data", [b"", PLAIN[:20]])
async def test_nothing_to_append(client: RawClient, name: str, data: bytes) -> None:
    answer = await client.produce(name, data, version=2)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, -1, -1)


# --- Fetch -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
async def test_old_fetchers_get_message_sets(client: RawClient, name: str, version: int, codec: Codec) -> None:
    await client.produce(name, batch_of(b"a", b"b", timestamp=1000, codec=codec), version=11)
    magic = 0 if version < 2 else 1 if version < 4 else 2
    rows = await fetched(client, name, version)
    times = (1000, 1001) if magic else (-1, -1)
    assert rows == [(magic, 0, times[0], b"a"), (magic, 1, times[1], b"b")]


@pytest.mark.parametrize("version", range(4))
async def test_old_fetchers_get_nothing_before_their_offset(client: RawClient, name: str, version: int) -> None:
    await client.produce(name, batch_of(b"a", b"b", b"c"), version=11)
    data = await client.fetch(name, 1, version=version)
    (first, *_) = split(memoryview(data.records or b""))
    assert (first.header.base_offset, first.header.last_offset) == (1, 2)


@pytest.mark.parametrize("header", [0, 5, 200])
@pytest.mark.parametrize("version", range(4))
async def test_the_answer_has_the_size_that_the_batches_had(
    client: RawClient, name: str, version: int, header: int
) -> None:
    builder = BatchBuilder(limit=1 << 20)
    builder.append(1000, b"key", b"value", [("header", bytes(header))])
    for _ in range(2):
        await client.produce(name, builder.build(), version=11)
    size = len((await client.fetch(name, 0, version=11)).records or b"")
    records = bytes((await client.fetch(name, 0, version=version)).records or b"")
    used = next(split(memoryview(records))).header.size
    assert len(records) == size
    endless = struct.pack(">qi", -1, max(61, size - used + 1))
    assert records[used:] == endless.ljust(size - used, b"\0")[: size - used]


@pytest.mark.parametrize("version", range(4))
async def test_messages_that_are_larger_than_the_batch_was(client: RawClient, name: str, version: int) -> None:
    await client.produce(name, batch_of(*[b""] * 10), version=11)
    rows = await fetched(client, name, version)
    assert [row[1] for row in rows] == list(range(10))


@pytest.mark.parametrize("version", range(5))
async def test_a_batch_that_is_larger_than_asked_for(client: RawClient, name: str, version: int) -> None:
    await client.produce(name, batch_of(b"x" * 100), version=11)
    rows = await fetched(client, name, version, partition_max_bytes=10)
    assert bool(rows) == (version >= 3)


@pytest.mark.parametrize("version", range(4))
async def test_old_fetchers_cannot_have_zstd(client: RawClient, name: str, version: int) -> None:
    await client.produce(name, batch_of(b"a"), version=11)
    await client.produce(name, batch_of(b"b", codec=Codec.ZSTD), version=11)
    assert [row[1] for row in await fetched(client, name, version)] == [0]
    data = await client.fetch(name, 1, version=version)
    assert (data.error_code, data.high_watermark) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)
    assert not data.records


# --- ListOffsets -------------------------------------------------------------------------------------------


async def offsets(client: RawClient, name: str, timestamp: int, most: int) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[asked])])
    return (await client.ask(request, 0)).topics[0].partitions[0]


@pytest.mark.parametrize(
    ("timestamp", "filled", "empty"),
    [(-1, [2, 0], [0]), (-2, [0], [0]), (0, [], []), (10**15, [2, 0], [0])],
)
async def test_several_offsets(
    client: RawClient, name: str, timestamp: int, filled: Sequence[int], empty: Sequence[int]
) -> None:
    for most in (0, 1, 2, 9):
        answer = await offsets(client, name, timestamp, most)
        assert (answer.error_code, answer.old_style_offsets) == (0, list(empty)[:most])
    await client.produce(name, batch_of(b"a", b"b"), version=11)
    for most in (0, 1, 2, 9):
        answer = await offsets(client, name, timestamp, most)
        assert (answer.error_code, answer.old_style_offsets) == (0, list(filled)[:most])


async def test_offsets_that_there_are_not(client: RawClient, name: str) -> None:
    assert (await offsets(client, name, -1, -1)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (await offsets(client, "missing", -1, 1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- topics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
async def test_topics_are_made_and_deleted(client: RawClient, name: str, version: int) -> None:
    made = f"{name}-{version}"
    topics = [
        CreatableTopic(name=one, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        for one in (made, "..")
    ]
    answer = await client.ask(CreateTopicsRequest(topics=topics, timeout_ms=5000), version)
    assert sorted((topic.name, topic.error_code) for topic in answer.topics) == [
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (made, 0),
    ]
    deleted = await client.ask(DeleteTopicsRequest(topic_names=[made, "missing"], timeout_ms=5000), 0)
    assert {topic.name: topic.error_code for topic in deleted.responses} == {
        made: 0,
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


# --- others ------------------------------------------------------------------------------------------------


async def committed(client: RawClient, group: str, name: str, version: int) -> tuple[int, str | None, int]:
    asked = [OffsetFetchRequestTopic(name=name, partition_indexes=[0])]
    (topic,) = (await client.ask(OffsetFetchRequest(group_id=group, topics=asked), version)).topics
    (partition,) = topic.partitions
    return partition.committed_offset, partition.metadata, partition.error_code


async def commit(client: RawClient, group: str, name: str, version: int) -> int:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="m")]
    topics = [OffsetCommitRequestTopic(name=name, partitions=partitions)]
    (topic,) = (await client.ask(OffsetCommitRequest(group_id=group, topics=topics), version)).topics
    return topic.partitions[0].error_code


async def coordinated(client: RawClient, group: str) -> None:
    """Wait for the coordinator, which Apache Kafka has to set up."""
    with anyio.fail_after(PATIENCE):
        while (await client.ask(FindCoordinatorRequest(key=group), 0)).error_code:
            await anyio.lowlevel.checkpoint()
        while (await client.ask(OffsetFetchRequest(group_id=group, topics=[]), 2)).error_code:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("version", [1, 2])
async def test_offsets_are_committed(client: RawClient, name: str, version: int) -> None:
    group = f"group-{name}"
    await coordinated(client, group)
    assert await commit(client, group, name, version) == 0
    assert await commit(client, group, "missing", version) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await committed(client, group, name, 1) == (5, "m", 0)
    assert await committed(client, group, "missing", 1) == (-1, "", 0)


async def test_there_is_no_zookeeper_to_put_offsets_into(client: RawClient, name: str) -> None:
    assert await commit(client, "g", name, 0) == ErrorCode.UNSUPPORTED_VERSION
    assert await commit(client, "g", "missing", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for topic in (name, "missing"):
        assert await committed(client, "g", topic, 0) == (-1, "", ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize("version", range(3))
async def test_the_end_of_an_epoch(client: RawClient, name: str, version: int) -> None:
    await client.produce(name, batch_of(b"a", b"b"), version=11)
    ends = []
    for epoch in (0, 1):
        asked = [OffsetForLeaderPartition(partition=0, leader_epoch=epoch)]
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=name, partitions=asked)])
        (topic,) = (await client.ask(request, version)).topics
        end = topic.partitions[0]
        ends.append((end.error_code, end.leader_epoch, end.end_offset))
    assert ends == [(0, 0 if version else -1, 2), (0, -1, -1)]


@pytest.mark.parametrize("version", [0, 1])
async def test_settings_of_a_topic(client: RawClient, name: str, version: int) -> None:
    asked = DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=["segment.bytes"])
    (result,) = (await client.ask(DescribeConfigsRequest(resources=[asked]), version)).results
    (entry,) = result.configs
    assert (entry.name, entry.value, entry.is_default) == ("segment.bytes", "1073741824", False)
    assert entry.config_source == (5 if version else -1)


@pytest.mark.parametrize("version", [0, 1])
async def test_directories(client: RawClient, name: str, version: int) -> None:
    asked = [DescribableLogDirTopic(topic=name, partitions=[0])]
    (directory,) = (await client.ask(DescribeLogDirsRequest(topics=asked), version)).results
    assert (directory.error_code, [topic.name for topic in directory.topics]) == (0, [name])
