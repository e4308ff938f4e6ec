"""What the settings of a topic do to the records that are sent to it, in Apache Kafka as here."""

from __future__ import annotations

import re
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from support.raw_client import RawClient, records_of
from support.settings import SET, TOPIC, alter, until
from support.transactional import settled

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.produce import PartitionProduceResponse
from aiokafkawire.records.batch import BatchBuilder, RecordBatch, set_log_append_time
from aiokafkawire.records.compression import Codec
from aiokafkawire.types import TimestampType

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

Record = tuple[bytes | None, bytes | None]

TWO: tuple[Record, Record] = (b"k", b"v" * 30), (b"l", b"w" * 30)
KEYLESS = "Compacted topic cannot accept message without key in topic partition {}-0"
REJECTED = (
    "One or more records have been rejected due to {} record errors in total, and only showing the first three errors "
    "at most: [{}]"
)
UNTIMELY = "One or more records have been rejected due to invalid timestamp"
_numbers = count()


def batch(*records: Record, times: list[int] | None = None, codec: Codec = Codec.NONE, **state: Any) -> bytes:
    """A batch of keys and values, from 1970 unless their times are given."""
    builder = BatchBuilder(limit=1 << 30, codec=codec)
    for index, (key, value) in enumerate(records):
        builder.append(times[index] if times else 5000 + index, key, value)
    return builder.build(**state)


async def new_topic(kafka: Kafka, client: RawClient, **configs: str) -> str:
    return await kafka.topic_with(client, f"settings-{next(_numbers)}", **configs)


async def stored(client: RawClient, topic: str, offset: int = 0) -> RecordBatch:
    """The batch at an offset."""
    data = await client.fetch(topic, offset)
    return RecordBatch.parse(memoryview(data.records or b""))


def outcome(answer: PartitionProduceResponse) -> tuple[str, str | None, list[tuple[int, str | None]]]:
    errors = [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors]
    return ErrorCode(answer.error_code).name, answer.error_message, errors


# --- whose time --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
async def test_records_get_the_brokers_time(kafka: Kafka, client: RawClient, codec: Codec) -> None:
    topic = await new_topic(kafka, client, message_timestamp_type="LogAppendTime")
    before = time.time_ns() // 1_000_000
    far = before + 10**9  # with CreateTime this would be too late
    answer = await client.produce(topic, batch(*TWO, times=[far, 5000], codec=codec))
    after = time.time_ns() // 1_000_000
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert before <= answer.log_append_time_ms <= after
    header = (await stored(client, topic)).header
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, answer.log_append_time_ms)
    assert (header.base_timestamp, header.codec) == (far, codec)
    records = records_of(await client.fetch(topic, 0))
    assert [(each.timestamp, each.timestamp_type, each.key) for each in records] == [
        (answer.log_append_time_ms, TimestampType.LOG_APPEND_TIME, key) for key in (b"k", b"l")
    ]


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
async def test_a_producer_does_not_say_that_the_time_is_the_brokers(kafka: Kafka, client: RawClient, kind: str) -> None:
    topic = await new_topic(kafka, client, message_timestamp_type=kind)
    message = (
        "Invalid timestamp type in message DefaultRecord(offset={}, timestamp={}, key={} bytes, value={} bytes). "
        "Producer should not set timestamp type to LogAppendTime."
    )
    for times, key in ([5000, 6000], b"k"), ([-1, -1], None):
        records: list[Record] = [(key, b"vv"), (b"l", None)]
        said = set_log_append_time(batch(*records, times=times), max(times))
        if kind == "CreateTime" and key is not None:
            assert outcome(await client.produce(topic, said)) == ("NONE", None, [])
            continue
        sizes = [(len(key or b""), 2), (1, 0)]
        errors = [(index, message.format(index, max(times), *size)) for index, size in enumerate(sizes)]
        assert outcome(await client.produce(topic, said)) == ("INVALID_TIMESTAMP", UNTIMELY, errors)


async def test_a_batch_sent_again_has_the_time_it_has(kafka: Kafka, client: RawClient) -> None:
    topic = await new_topic(kafka, client, message_timestamp_type="LogAppendTime")
    twice = batch(*TWO, producer_id=70_000, producer_epoch=0, base_sequence=0)
    first, second = await client.produce(topic, twice), await client.produce(topic, twice)
    assert (second.error_code, second.base_offset) == (0, 0)
    assert second.log_append_time_ms == first.log_append_time_ms > 0


async def test_settings_count_from_when_they_change(kafka: Kafka, client: RawClient, name: str) -> None:
    assert (await client.produce(name, batch(*TWO))).log_append_time_ms == -1
    await alter(client, TOPIC, name, ("message.timestamp.type", SET, "LogAppendTime"))
    await until(client, TOPIC, name, message_timestamp_type="LogAppendTime")
    # Apache Kafka tells of it a moment before its logs go by it.
    await settled(lambda: client.produce(name, batch(*TWO)), lambda answer: answer.log_append_time_ms > 0)
    assert (await stored(client, name)).header.timestamp_type is TimestampType.CREATE_TIME


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
async def test_records_may_be_too_early_and_too_late(kafka: Kafka, client: RawClient, codec: Codec) -> None:
    topic = await new_topic(
        kafka, client, message_timestamp_before_max_ms="60000", message_timestamp_after_max_ms="60000"
    )
    now = time.time_ns() // 1_000_000
    times = [5000, now, now + 10**9]
    answer = await client.produce(topic, batch(*TWO, (b"m", b"x"), times=times, codec=codec))
    error, message, errors = outcome(answer)
    assert (error, message, answer.log_start_offset) == ("INVALID_TIMESTAMP", UNTIMELY, 0)
    assert [index for index, _ in errors] == [0, 2]
    for index, text in errors:
        found = re.fullmatch(
            rf"Timestamp {times[index]} of message with offset {index} is out of range. "
            r"The timestamp should be within \[(\d+), (\d+)\]",
            text or "",
        )
        assert found is not None
        assert int(found[2]) - int(found[1]) == 120_000
    assert (await client.produce(topic, batch(*TWO, times=[now, -1]))).error_code == 0  # -1 is no time


# --- keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
async def test_compacted_topics_need_keys(kafka: Kafka, client: RawClient, policy: str, codec: Codec) -> None:
    topic = await new_topic(kafka, client, cleanup_policy=policy)
    without = batch((None, b"v"), (b"k", b"v"), (None, b"v"), (None, None), (None, b"v"), codec=codec)
    fault = KEYLESS.format(topic)
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{fault}')" for index in (0, 2, 3))
    answer = await client.produce(topic, without)
    assert outcome(answer) == (
        "INVALID_RECORD",
        REJECTED.format(4, shown),
        [(index, fault) for index in (0, 2, 3, 4)],
    )
    assert answer.log_start_offset == 0
    for with_key in (batch((b"", b"v")), batch((b"k", None))):
        assert (await client.produce(topic, with_key)).error_code == 0


async def test_no_time_mends_a_missing_key(kafka: Kafka, client: RawClient) -> None:
    topic = await new_topic(kafka, client, cleanup_policy="compact")
    far = time.time_ns() // 1_000_000 + 10**9
    fault = KEYLESS.format(topic)
    answer = await client.produce(topic, batch((None, b"v"), times=[far]))
    assert outcome(answer)[2] == [(0, fault)]
    both = await client.produce(topic, batch((None, b"v"), (b"k", b"v"), times=[far, far]))
    assert outcome(both)[:2] == ("INVALID_TIMESTAMP", UNTIMELY)
    assert [each.batch_index for each in both.record_errors] == [0, 1]


# --- sizes and codecs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("sent", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
async def test_batches_are_kept_with_the_codec_of_the_topic(
    kafka: Kafka, client: RawClient, sent: Codec, codec: Codec
) -> None:
    name = "uncompressed" if codec is Codec.NONE else codec.name.lower()
    topic = await new_topic(kafka, client, compression_type=name)
    data = batch(*TWO, codec=sent, producer_id=80_000, producer_epoch=0, base_sequence=0)
    answer = await client.produce(topic, data)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, 0, -1)
    kept = await stored(client, topic)
    kept.check()
    header = kept.header
    assert (header.codec, header.count, header.last_offset_delta) == (codec, 2, 1)
    assert (header.producer_id, header.base_sequence) == (80_000, 0)
    assert (header.base_timestamp, header.max_timestamp) == (5000, 5001)
    records = records_of(await client.fetch(topic, 0))
    assert [(each.offset, each.timestamp, each.key, each.value) for each in records] == [
        (index, 5000 + index, key, value) for index, (key, value) in enumerate(TWO)
    ]
    if sent is codec:
        assert header.size == len(data)


async def test_sizes_are_those_before_and_after(kafka: Kafka, client: RawClient) -> None:
    large = ((b"k", b"v" * 400),)
    as_sent = await new_topic(kafka, client, max_message_bytes="200")
    assert outcome(await client.produce(as_sent, batch(*large))) == ("MESSAGE_TOO_LARGE", None, [])
    assert (await client.produce(as_sent, batch(*large, codec=Codec.GZIP))).error_code == 0
    smaller = await new_topic(kafka, client, max_message_bytes="200", compression_type="gzip")
    assert outcome(await client.produce(smaller, batch(*large)))[0] == "MESSAGE_TOO_LARGE"
    larger = await new_topic(kafka, client, max_message_bytes="200", compression_type="uncompressed")
    answer = await client.produce(larger, batch(*large, codec=Codec.GZIP))
    assert (outcome(answer)[0], answer.log_start_offset) == ("MESSAGE_TOO_LARGE", -1)
