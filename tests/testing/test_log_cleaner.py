"""Compaction and retention, which our broker does when it is told to, and settings of one broker among others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from support.raw_client import RawClient, records_of
from support.settings import BROKER, DELETE, SET, TOPIC, alter, told

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aiokafkawire.records.batch import BatchBuilder, split
from aiokafkawire.records.compression import Codec
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.cluster.api_error import ApiError

pytestmark = pytest.mark.anyio

Record = tuple[bytes | None, bytes | None]
COMPACT = {"cleanup.policy": "compact"}


@pytest.fixture
def now() -> list[int]:
    return [1_000_000]


@pytest.fixture
async def broker(now: list[int]) -> AsyncIterator[Broker]:
    clock: Callable[[], int] = lambda: now[0]  # noqa: E731
    async with Broker(nodes=2, port=None, default_replication_factor=1, clock=clock) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[RawClient]:
    async with RawClient(await broker.connect("memory-1", 9092)) as client:
        yield client


async def produce(
    client: RawClient, *records: Record, codec: Codec = Codec.NONE, timestamp: int = 1000, **state: Any
) -> None:
    builder = BatchBuilder(limit=1 << 20, codec=codec)
    for index, (key, value) in enumerate(records):
        builder.append(timestamp + index, key, value)
    answer = await client.produce("t", builder.build(**state))
    assert answer.error_code == 0, answer


async def kept(client: RawClient, offset: int = 0) -> list[tuple[int, bytes | None, bytes | None]]:
    data = await client.fetch("t", offset)
    assert data.error_code == 0
    return [(record.offset, record.key, record.value) for record in records_of(data)]


# --- compaction --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
async def test_the_newest_of_each_key_stays_where_it_was(broker: Broker, client: RawClient, codec: Codec) -> None:
    broker.create_topic("t", configs=COMPACT)
    await produce(client, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"), codec=codec)
    await produce(client, (b"a", b"2"), codec=codec)
    await produce(client, (b"a", b"3"), (b"c", b"3"), codec=codec)
    broker.compact("t")
    left = [(1, b"b", b"1"), (4, b"a", b"3"), (5, b"c", b"3")]
    assert await kept(client) == left
    data = await client.fetch("t", 0)
    assert (data.high_watermark, data.log_start_offset) == (6, 0)
    for batch in split(memoryview(data.records or b"")):
        batch.prepare()  # the checksum fits
        assert batch.header.codec == codec
    broker.compact("t")
    assert await kept(client) == left
    # What reads on from a gap finds what is behind it, and new records come at the end.
    assert await kept(client, 2) == left  # batches are never cut
    assert await kept(client, 3) == left[1:]
    await produce(client, (b"d", b"4"))
    assert (await kept(client))[-1] == (6, b"d", b"4")


async def test_times_are_still_found(broker: Broker, client: RawClient) -> None:
    broker.create_topic("t", configs=COMPACT)
    await produce(client, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"c", b"2"))
    await produce(client, (b"c", b"3"), timestamp=900)
    broker.compact("t")
    assert [offset for offset, _, _ in await kept(client)] == [1, 2, 5]

    async def look_up(timestamp: int) -> int:
        asked = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)])
        return (await client.ask(request, 7)).topics[0].partitions[0].offset

    assert [await look_up(timestamp) for timestamp in (0, 1001, 1002, 1003, -3)] == [1, 1, 2, -1, 2]


async def test_tombstones_go_later(broker: Broker, client: RawClient) -> None:
    broker.create_topic("t", configs=COMPACT)
    await produce(client, (b"a", b"1"), (b"b", b"1"), (b"a", None))
    broker.compact("t")
    assert await kept(client) == [(1, b"b", b"1"), (2, b"a", None)]
    broker.compact("t", keep_tombstones=False)
    assert await kept(client) == [(1, b"b", b"1")]
    assert broker.log("t").log_end_offset == 3


async def test_a_producer_is_not_forgotten(broker: Broker, client: RawClient) -> None:
    broker.create_topic("t", configs=COMPACT)
    await produce(client, (b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    await produce(client, (b"a", b"2"), producer_id=5, producer_epoch=0, base_sequence=1)
    await produce(client, (b"a", b"3"))
    broker.compact("t")
    assert await kept(client) == [(2, b"a", b"3")]
    headers = [batch.header for batch in broker.log("t").batches()]
    assert [(header.base_offset, header.count, header.base_sequence) for header in headers] == [(1, 0, 1), (2, 1, -1)]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
async def test_an_empty_batch_is_not_compressed_and_keeps_its_time(
    broker: Broker, client: RawClient, codec: Codec
) -> None:
    broker.create_topic("t", configs=COMPACT)
    await produce(client, (b"a", b"1"), codec=codec, producer_id=5, producer_epoch=0, base_sequence=0)
    await produce(client, (b"a", b"2"))
    broker.compact("t")
    empty, _ = (batch.header for batch in broker.log("t").batches())
    assert (empty.count, empty.codec, empty.max_timestamp) == (0, Codec.NONE, 1000)


async def test_the_highest_timestamp_is_that_of_a_record(broker: Broker, client: RawClient) -> None:
    broker.create_topic("t", configs=COMPACT)
    await produce(client, (b"a", b"1"), timestamp=2000, producer_id=5, producer_epoch=0, base_sequence=0)
    await produce(client, (b"a", b"2"), timestamp=1000)
    broker.compact("t")
    asked = [ListOffsetsPartition(partition_index=0, timestamp=-3)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)])
    (found,) = (await client.ask(request, 7)).topics[0].partitions
    assert (found.offset, found.timestamp) == (1, 1000)


async def test_retention_deletes_what_compaction_has_emptied(broker: Broker, client: RawClient, now: list[int]) -> None:
    broker.create_topic("t", configs={"cleanup.policy": "compact,delete", "retention.ms": "500"})
    await produce(client, (b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    await produce(client, (b"a", b"2"))
    broker.compact("t")
    now[0] = 2000
    broker.apply_retention("t")
    assert broker.log("t").log_start_offset == 2


async def test_a_reader_reaches_the_end_after_the_last_batch_was_compacted_away(
    broker: Broker, client: RawClient
) -> None:
    broker.create_topic("t", configs=COMPACT)
    await produce(client, (b"a", b"1"))
    await produce(client, (b"b", b"1"))
    await produce(client, (b"a", None))
    broker.compact("t", keep_tombstones=False)
    data = await client.fetch("t", 0)
    *_, last = split(memoryview(data.records or b""))
    assert (last.header.next_offset, data.high_watermark) == (3, 3)
    assert await kept(client) == [(1, b"b", b"1")]
    await produce(client, (b"c", b"1"))
    broker.compact("t")
    assert [batch.header.base_offset for batch in broker.log("t").batches()] == [1, 3]


async def test_records_without_keys_go(broker: Broker, client: RawClient) -> None:
    broker.create_topic("t")
    await produce(client, (None, b"1"), (b"a", b"1"))
    async with RawClient(await broker.connect("memory-1", 9092)) as admin:
        await alter(admin, TOPIC, "t", ("cleanup.policy", SET, "compact"))
    broker.compact("t")
    assert await kept(client) == [(1, b"a", b"1")]


async def test_only_compacted_topics_are_compacted(broker: Broker) -> None:
    broker.create_topic("t")
    with pytest.raises(ValueError, match=r"the cleanup\.policy of t is delete"):
        broker.compact("t")
    with pytest.raises(ApiError, match="no topic 'nobody'; known: t"):
        broker.compact("nobody")
    with pytest.raises(ApiError, match="no topic 'nobody'; known: t"):
        broker.apply_retention("nobody")
    with pytest.raises(ApiError, match="Unknown topic config name: foo"):
        broker.create_topic("u", configs={"foo": "1"})


# --- retention ---------------------------------------------------------------------------------------------------


async def test_what_is_too_old_goes(broker: Broker, client: RawClient, now: list[int]) -> None:
    broker.create_topic("t", configs={"retention.ms": "500"})
    for timestamp in (1000, 2000, 1100):
        await produce(client, (b"a", b"1"), timestamp=timestamp)
    for time, left in ((1500, [0, 1, 2]), (1501, [1, 2]), (2000, [1, 2]), (2501, [])):
        now[0] = time
        broker.apply_retention("t")
        start = broker.log("t").log_start_offset
        assert [offset for offset, _, _ in await kept(client, start)] == left
    assert broker.log("t").log_start_offset == 3
    assert (await client.fetch("t", 0)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_what_is_too_much_goes(broker: Broker, client: RawClient) -> None:
    broker.create_topic("t", configs={"retention.ms": "-1"})
    for _ in range(4):
        await produce(client, (b"a", b"1"))
    size = broker.log("t").size
    await alter(client, TOPIC, "t", ("retention.bytes", SET, str(size // 2)))
    broker.apply_retention("t")
    assert broker.log("t").log_start_offset == 2
    broker.apply_retention("t")
    assert broker.log("t").size == size // 2


async def test_compacted_topics_retain_everything(broker: Broker, client: RawClient, now: list[int]) -> None:
    broker.create_topic("t", configs={**COMPACT, "retention.ms": "1"})
    await produce(client, (b"a", b"1"))
    now[0] = 10**9
    broker.apply_retention("t")
    assert broker.log("t").log_start_offset == 0


# --- one broker among others -------------------------------------------------------------------------------------


async def test_a_brokers_own_value_holds_where_it_leads(broker: Broker, client: RawClient) -> None:
    topic = broker.create_topic("t", 2)
    assert [broker.leader("t", index) for index in (0, 1)] == [1, 2]
    assert await alter(client, BROKER, "1", ("message.max.bytes", SET, "100")) == ("NONE", None)
    builder = BatchBuilder(limit=1 << 20)
    builder.append(1000, b"a", b"v" * 100)
    batch = builder.build()
    assert (await client.produce("t", batch)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    async with RawClient(await broker.connect("memory-2", 9092)) as other:
        assert (await other.produce("t", batch, partition=1)).error_code == 0
        assert (await told(other, TOPIC, "t"))["max.message.bytes"].value == "1048588"
    assert (await told(client, TOPIC, "t"))["max.message.bytes"].value == "100"
    assert (topic.config("max.message.bytes"), topic.config("max.message.bytes", 1)) == ("1048588", "100")
    await alter(client, BROKER, "", ("message.max.bytes", SET, "200"))
    assert topic.config("max.message.bytes") == "200"
    await alter(client, TOPIC, "t", ("max.message.bytes", SET, "300"))
    assert topic.config("max.message.bytes", 1) == "300"
    await alter(client, BROKER, "", ("message.max.bytes", DELETE, None))


async def test_what_a_broker_was_started_with(now: list[int]) -> None:
    async with Broker(port=None, message_max_bytes=5000) as broker:
        topic = broker.create_topic("t")
        assert topic.config("max.message.bytes") == "5000"
        async with RawClient(await broker.connect("memory-1", 9092)) as client:
            entry = (await told(client, BROKER, "1"))["message.max.bytes"]
            assert (entry.value, entry.config_source) == ("5000", 4)
            assert (await told(client, TOPIC, "t"))["max.message.bytes"].config_source == 4
    with pytest.raises(KeyError):
        topic.config("no.such.setting")


@pytest.mark.parametrize(
    ("changes", "name", "expected"),
    [
        ({"log.retention.hours": "2"}, "retention.ms", "7200000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention.ms", "180000"),
        ({"log.retention.hours": "2", "log.retention.ms": "4"}, "retention.ms", "4"),
        ({"log.roll.hours": "1"}, "segment.ms", "3600000"),
    ],
)
async def test_settings_in_other_units(changes: dict[str, str], name: str, expected: str) -> None:
    async with Broker(port=None) as broker:
        topic = broker.create_topic("t")
        topic.defaults.static.update(changes)
        assert topic.config(name) == expected


async def test_a_record_without_a_time_is_as_old_as_its_file(broker: Broker, client: RawClient, now: list[int]) -> None:
    broker.create_topic("t", configs={"retention.ms": "1"})
    await produce(client, (b"k", b"v"), timestamp=-1)
    broker.apply_retention("t")
    assert broker.log("t").log_start_offset == 0
