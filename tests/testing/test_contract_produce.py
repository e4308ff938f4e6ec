"""Produce, as Apache Kafka answers it."""

from __future__ import annotations

import struct
import time
from uuid import UUID

import crc32c
import pytest
from support.raw_client import RawClient, batch_of, produce_request, records_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic
from aiokafkawire.protocol.messages.produce import ProduceRequest
from aiokafkawire.records import layout
from aiokafkawire.records.compression import Codec

pytestmark = pytest.mark.anyio

THREE = batch_of(b"a", b"b", b"c")
BASE_OFFSET, LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_DELTA, MAX_TIMESTAMP, COUNT = 0, 8, 16, 17, 21, 23, 35, 57


def forged(batch: bytes, at: int, form: str, value: int) -> bytes:
    """The batch with one field of its header changed, and a checksum that fits."""
    copy = bytearray(batch)
    struct.pack_into(form, copy, at, value)
    struct.pack_into(">I", copy, CRC, crc32c.crc32c(bytes(copy[ATTRIBUTES:])))
    return bytes(copy)


async def test_batches_get_consecutive_offsets(client: RawClient, name: str) -> None:
    first = await client.produce(name, THREE)
    second = await client.produce(name, THREE)
    assert (first.error_code, first.base_offset, first.log_append_time_ms, first.log_start_offset) == (0, 0, -1, 0)
    assert second.base_offset == 3
    data = await client.fetch(name, 0)
    assert [(r.offset, r.value, r.timestamp, r.leader_epoch) for r in records_of(data)] == [
        (0, b"a", 1000, 0),
        (1, b"b", 1001, 0),
        (2, b"c", 1002, 0),
        (3, b"a", 1000, 0),
        (4, b"b", 1001, 0),
        (5, b"c", 1002, 0),
    ]


@pytest.mark.parametrize("version", range(3, 13))
async def test_every_version_by_name(client: RawClient, name: str, version: int) -> None:
    assert (await client.produce(name, THREE, version=version)).error_code == 0


async def test_by_topic_id(client: RawClient, topic: MetadataResponseTopic, unknown_id: UUID) -> None:
    assert (await client.produce(topic.topic_id, THREE)).error_code == 0
    assert (await client.produce(unknown_id, THREE)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    missing = await client.produce(topic.topic_id, THREE, partition=1)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_advertised_but_unserved_versions_cut_off(client: RawClient, name: str, version: int) -> None:
    await client.send(produce_request(name, THREE), version)
    assert await client.is_cut_off()


async def test_unknown_topic_is_not_created(client: RawClient) -> None:
    for _ in range(2):
        answer = await client.produce("no-such-topic", THREE)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize("codec", Codec)
async def test_compressed_batches(client: RawClient, name: str, codec: Codec) -> None:
    await client.produce(name, batch_of(b"x" * 100, b"y" * 100, codec=codec))
    assert [record.value for record in records_of(await client.fetch(name, 0))] == [b"x" * 100, b"y" * 100]


@pytest.mark.parametrize(
    ("records", "error", "log_start_offset"),
    [
        pytest.param(struct.pack(">i", 7).join((THREE[:CRC], THREE[CRC + 4 :])), "CORRUPT_MESSAGE", -1, id="checksum"),
        pytest.param(forged(THREE, MAGIC, ">b", 1), "INVALID_RECORD", -1, id="magic 1"),
        pytest.param(forged(THREE, MAGIC, ">b", 3), "CORRUPT_MESSAGE", -1, id="magic 3"),
        pytest.param(forged(THREE, LENGTH, ">i", 10), "CORRUPT_MESSAGE", -1, id="length too short"),
        pytest.param(forged(THREE, LENGTH, ">i", 40), "CORRUPT_MESSAGE", -1, id="length of less than the header"),
        pytest.param(THREE[:-1], "INVALID_RECORD", -1, id="cut"),
        pytest.param(b"", "INVALID_RECORD", -1, id="empty"),
        pytest.param(THREE + THREE, "INVALID_RECORD", -1, id="two batches"),
        pytest.param(forged(THREE, BASE_OFFSET, ">q", 5), "INVALID_RECORD", 0, id="base offset"),
        pytest.param(forged(THREE, LAST_DELTA, ">i", 7), "INVALID_RECORD", 0, id="last offset delta"),
        pytest.param(forged(THREE, LAST_DELTA, ">i", -1), "INVALID_RECORD", 0, id="negative last offset delta"),
        pytest.param(forged(THREE, COUNT, ">i", 0), "INVALID_RECORD", 0, id="no records"),
        pytest.param(forged(THREE, COUNT, ">i", 2), "INVALID_RECORD", 0, id="count"),
        pytest.param(
            forged(forged(THREE, COUNT, ">i", 4), LAST_DELTA, ">i", 3), "INVALID_RECORD", 0, id="fewer than it says"
        ),
        pytest.param(
            forged(forged(THREE, COUNT, ">i", 2), LAST_DELTA, ">i", 1), "INVALID_RECORD", 0, id="more than it says"
        ),
        pytest.param(batch_of(b"x", control=True), "INVALID_RECORD", 0, id="control batch"),
        pytest.param(batch_of(b"x", producer_id=5, producer_epoch=0), "INVALID_RECORD", 0, id="no sequence"),
        pytest.param(forged(THREE, ATTRIBUTES, ">h", 1), "UNKNOWN_SERVER_ERROR", 0, id="not gzip"),
        pytest.param(forged(THREE, ATTRIBUTES, ">h", 7), "UNKNOWN_SERVER_ERROR", 0, id="no codec"),
    ],
)
async def test_bad_batches_are_refused(
    client: RawClient, name: str, records: bytes, error: str, log_start_offset: int
) -> None:
    answer = await client.produce(name, records)
    assert ErrorCode(answer.error_code).name == error
    assert (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (-1, -1, log_start_offset)
    assert (await client.fetch(name, 0)).high_watermark == 0


async def test_zstd_needs_version_7(client: RawClient, name: str) -> None:
    batch = batch_of(b"x", codec=Codec.ZSTD)
    answer = await client.produce(name, batch, version=6)
    assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (await client.produce(name, batch, version=7)).error_code == 0


async def test_a_batch_of_exactly_the_largest_size_is_taken(client: RawClient, name: str) -> None:
    limit = 1_048_588
    overhead = len(batch_of(b"x" * (limit - 200))) - (limit - 200)
    assert (await client.produce(name, batch_of(b"x" * (limit - overhead)))).error_code == 0
    answer = await client.produce(name, batch_of(b"x" * (limit - overhead + 1)))
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_records_from_the_future_are_named(client: RawClient, name: str) -> None:
    answer = await client.produce(name, batch_of(b"x", b"y", timestamp=int(time.time() * 1000) + 7_200_000))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert answer.error_message == "One or more records have been rejected due to invalid timestamp"
    assert [error.batch_index for error in answer.record_errors] == [0, 1]


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(forged(THREE, MAX_TIMESTAMP, ">q", 9_999), id="highest timestamp"),
        pytest.param(forged(THREE, ATTRIBUTES, ">h", layout.LOG_APPEND_TIME), id="LogAppendTime"),
    ],
)
async def test_what_a_producer_says_of_its_timestamps_is_put_right(client: RawClient, name: str, batch: bytes) -> None:
    assert (await client.produce(name, batch)).error_code == 0
    stored = (await client.fetch(name, 0)).records
    assert stored is not None
    assert struct.unpack_from(">q", stored, MAX_TIMESTAMP) == (1002,)
    assert struct.unpack_from(">h", stored, ATTRIBUTES) == (0,)
    assert struct.unpack_from(">I", stored, CRC) == (crc32c.crc32c(bytes(stored[ATTRIBUTES:])),)


async def test_acks_other_than_0_1_and_all_are_refused(client: RawClient, name: str) -> None:
    assert (await client.produce(name, THREE, acks=2)).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert (await client.produce(name, THREE + THREE, acks=2)).error_code == ErrorCode.INVALID_RECORD
    assert (await client.produce(name, THREE, acks=1)).base_offset == 0


async def test_acks_0_gets_no_answer(client: RawClient, name: str) -> None:
    await client.send(produce_request(name, THREE, acks=0), 12)
    assert (await client.produce(name, THREE)).base_offset == 3  # the next answer is to the next request


async def test_acks_0_with_an_error_cuts_off(client: RawClient) -> None:
    await client.send(produce_request("no-such-topic", THREE, acks=0), 12)
    assert await client.is_cut_off()


async def test_one_bad_partition_does_not_harm_the_others(client: RawClient, name: str) -> None:
    request: ProduceRequest = produce_request(name, THREE, partition=3)
    request.topic_data += produce_request(name, THREE).topic_data
    partitions = [topic.partition_responses for topic in (await client.ask(request, 12)).responses]
    assert sorted((p.index, p.error_code) for ps in partitions for p in ps) == [
        (0, 0),
        (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def sequenced(sequence: int, *, count: int = 3, epoch: int = 0) -> bytes:
    return batch_of(*[b"x"] * count, producer_id=4000, producer_epoch=epoch, base_sequence=sequence)


async def test_a_batch_sent_again_is_not_written_again(client: RawClient, name: str) -> None:
    for number in range(6):
        assert (await client.produce(name, sequenced(3 * number))).base_offset == 3 * number
    again = await client.produce(name, sequenced(3))
    assert (again.error_code, again.base_offset, again.log_append_time_ms) == (0, 3, 1002)
    forgotten = await client.produce(name, sequenced(0))  # only the newest five are remembered
    assert forgotten.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await client.fetch(name, 0)).high_watermark == 18


async def test_gaps_in_the_sequence_are_refused(client: RawClient, name: str) -> None:
    await client.produce(name, sequenced(0))
    for wrong in (sequenced(4), sequenced(0, count=2)):
        answer = await client.produce(name, wrong)
        assert (answer.error_code, answer.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)


async def test_sequences_wrap(client: RawClient, name: str) -> None:
    assert (await client.produce(name, sequenced(2**31 - 2))).error_code == 0
    assert (await client.produce(name, sequenced(1))).error_code == 0


async def test_a_newer_epoch_fences_the_older(client: RawClient, name: str) -> None:
    await client.produce(name, sequenced(0))
    assert (await client.produce(name, sequenced(3, epoch=1))).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await client.produce(name, sequenced(0, epoch=1))).error_code == 0
    assert (await client.produce(name, sequenced(3))).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
