"""What a producer promises, whichever broker it talks to."""

from collections.abc import Callable
from typing import Literal

import anyio
import pytest
from contract.conftest import Where
from support.reading import read

from aiokafkawire import (
    BufferFull,
    Client,
    ConfigError,
    DeliveryFailed,
    OffsetSpec,
    RecordTooLarge,
    TopicNotReady,
    TopicPartition,
    UsageError,
)
from aiokafkawire.config import CompressionType
from aiokafkawire.errors import MessageTooLarge

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]


@pytest.mark.parametrize("acks", ["all", 1])
async def test_an_awaited_send_tells_where_the_record_is(kafka: Client, topic: str, acks: Literal["all", 1]) -> None:
    async with kafka.producer(acks=acks) as producer:
        first = await producer.send(topic, b"one", partition=1, timestamp_ms=1_700_000_000_000)
        second = await producer.send(topic, b"two", partition=1)
    assert (first.topic, first.partition, first.offset) == (topic, 1, 0)
    assert first.timestamp == 1_700_000_000_000
    assert second.offset == 1


async def test_without_acks_no_offset_is_known_and_the_record_arrives(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        # A broker drops what it does not lead yet, and with acks=0 nobody hears of it.
        await producer.send(topic, b"leads", partition=0)
    async with kafka.producer(acks=0) as producer:
        metadata = await producer.send(topic, b"gone", partition=0)
    assert metadata.offset == -1
    assert [record.value for record in await read(kafka, TopicPartition(topic, 0), 2)] == [b"leads", b"gone"]


async def test_a_record_comes_back_as_it_was_sent(kafka: Client, topic: str) -> None:
    headers = [("trace", b"\x00\xff"), ("trace", b""), ("empty", None), ("größe", b"1")]
    async with kafka.producer() as producer:
        await producer.send(topic, b"value", key=b"key", partition=2, timestamp_ms=12_345, headers=headers)
        await producer.send(topic, None, key=b"key", partition=2)
        await producer.send(topic, b"", key=None, partition=2, headers={"a": b"b"})
    full, tombstone, empty = await read(kafka, TopicPartition(topic, 2), 3)
    assert (full.key, full.value, full.timestamp, list(full.headers)) == (b"key", b"value", 12_345, headers)
    assert (tombstone.key, tombstone.value) == (b"key", None)
    assert (empty.key, empty.value, list(empty.headers)) == (None, b"", [("a", b"b")])


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_every_codec_is_understood_by_the_broker_and_read_back(
    kafka: Client, topic: str, codec: CompressionType
) -> None:
    values = [b"%d " % number * 50 for number in range(2_000)]
    async with kafka.producer(compression_type=codec, batch_size=200_000) as producer:
        for value in values:
            await producer.enqueue(topic, value, partition=0)
    assert [record.value for record in await read(kafka, TopicPartition(topic, 0), len(values))] == values


async def test_records_with_equal_keys_stay_together_and_in_order(kafka: Client, topic: str) -> None:
    async with kafka.producer(batch_size=500) as producer:
        deliveries = [
            await producer.enqueue(topic, b"%d" % number, key=b"key-%d" % (number % 7)) for number in range(1_000)
        ]
        places = [await delivery for delivery in deliveries]
    partition_of = {number % 7: place.partition for number, place in enumerate(places)}
    assert [place.partition for place in places] == [partition_of[number % 7] for number in range(1_000)]
    for partition in range(3):
        offsets = [place.offset for place in places if place.partition == partition]
        assert offsets == list(range(len(offsets)))


async def test_records_without_keys_reach_every_partition(kafka: Client, topic: str) -> None:
    async with kafka.producer(batch_size=200) as producer:
        deliveries = [await producer.enqueue(topic, b"x" * 100) for _ in range(100)]
        assert {(await delivery).partition for delivery in deliveries} == {0, 1, 2}


async def test_send_nowait_needs_metadata_first(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        with pytest.raises(TopicNotReady, match=topic):
            producer.send_nowait(topic, b"early")
        assert await producer.partitions_for(topic) == (0, 1, 2)
        delivery = producer.send_nowait(topic, b"in time", partition=0)
        assert not delivery.done
        assert (await delivery).offset == 0
        assert delivery.done
        assert (await delivery).offset == 0


async def test_leaving_the_producer_sends_what_waits(kafka: Client, topic: str) -> None:
    async with kafka.producer(linger_ms=60_000) as producer:
        await producer.enqueue(topic, b"lingering", partition=0)
    assert len(await read(kafka, TopicPartition(topic, 0), 1)) == 1


async def test_records_linger_until_a_flush(kafka: Client, topic: str) -> None:
    async with kafka.producer(linger_ms=60_000) as producer:
        deliveries = [await producer.enqueue(topic, b"x", partition=0) for _ in range(10)]
        assert not any(delivery.done for delivery in deliveries)
        await producer.flush()
        assert all(delivery.done for delivery in deliveries)


async def test_a_record_beyond_the_requests_size_is_refused_before_it_is_sent(kafka: Client, topic: str) -> None:
    async with kafka.producer(max_request_size=1_000) as producer:
        with pytest.raises(RecordTooLarge, match="max_request_size allows 1000"):
            await producer.send(topic, b"x" * 1_000)
        assert (await producer.send(topic, b"x" * 500, partition=0)).offset == 0


async def test_a_record_that_the_broker_finds_too_large_fails_alone(kafka: Client, topic: str) -> None:
    async with kafka.producer(max_request_size=4_000_000) as producer:
        with pytest.raises(MessageTooLarge, match=f"{topic}-0"):
            await producer.send(topic, b"x" * 2_000_000, partition=0)
        assert (await producer.send(topic, b"small", partition=0)).offset == 0


async def test_failures_that_nobody_awaited_are_raised_by_flush_once(kafka: Client, topic: str) -> None:
    async with kafka.producer(max_request_size=4_000_000, batch_size=1) as producer:
        await producer.enqueue(topic, b"x" * 2_000_000, partition=0)
        await producer.enqueue(topic, b"fine", partition=0)
        with pytest.raises(DeliveryFailed, match="1 record not delivered") as failed:
            await producer.flush()
        assert [type(error) for error in failed.value.errors] == [MessageTooLarge]
        await producer.flush()


async def test_the_buffer_is_bounded_and_makes_room(kafka: Client, topic: str) -> None:
    async with kafka.producer(buffer_memory=10_000, batch_size=1_000, linger_ms=60_000) as producer:
        await producer.partitions_for(topic)
        with pytest.raises(BufferFull, match="buffer_memory"):
            while True:
                producer.send_nowait(topic, b"x" * 100, partition=0)
        await producer.flush()
        producer.send_nowait(topic, b"x" * 100, partition=0)


async def test_many_tasks_share_a_small_buffer(kafka: Client, topic: str) -> None:
    async with kafka.producer(buffer_memory=5_000, batch_size=1_000) as producer, anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(producer.send, topic, b"%d" % number * 100)
    ends = await kafka.admin.list_offsets({TopicPartition(topic, one): OffsetSpec.LATEST for one in range(3)})
    assert sum(end.offset for end in ends.values() if end is not None) == 50


async def test_a_topic_that_does_not_exist_is_named_and_not_created(kafka: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    async with kafka.producer(max_block_ms=300) as producer:
        with pytest.raises(TopicNotReady, match=f"topic '{name}' is not known after 0.3 s: .*UNKNOWN_TOPIC"):
            await producer.send(name, b"nowhere")
    assert name not in await kafka.admin.list_topics()


async def test_a_topic_is_created_on_demand_if_the_client_allows_it(
    cluster: Where, new_name: Callable[[], str]
) -> None:
    name = new_name()
    async with cluster.client(allow_auto_create_topics=True) as kafka, kafka.producer() as producer:
        assert (await producer.send(name, b"first")).offset == 0


async def test_what_cannot_be_sent_is_refused_at_once(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        with pytest.raises(UsageError, match="cannot be a topic's name"):
            await producer.send("no/such", b"")
        with pytest.raises(UsageError, match="has 3 partitions, no 3"):
            await producer.send(topic, b"", partition=3)
        with pytest.raises(UsageError, match="the value is a str, and bytes are needed"):
            await producer.send(topic, "text")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the producer is closed"):
        await producer.send(topic, b"")
    with pytest.raises(ConfigError, match="linger_ms must be a whole number"):
        kafka.producer(linger_ms=-1)
    with pytest.raises(ConfigError, match="did you mean linger_ms"):
        kafka.producer(linger=5)  # type: ignore[call-overload]


def in_digits(number: int) -> bytes:
    return b"%d" % number


async def test_serializers_run_as_records_are_handed_over(kafka: Client, topic: str) -> None:
    async with kafka.producer(key_serializer=str.encode, value_serializer=in_digits) as producer:
        await producer.send(topic, 17, key="seventeen", partition=0)
    (record,) = await read(kafka, TopicPartition(topic, 0), 1)
    assert (record.key, record.value) == (b"seventeen", b"17")


async def test_a_cancelled_body_sends_what_was_accepted(kafka: Client, topic: str) -> None:
    with anyio.CancelScope() as scope:
        async with kafka.producer(linger_ms=60_000) as producer:
            delivery = await producer.enqueue(topic, b"sent all the same")
            scope.cancel()
            await anyio.sleep_forever()
    assert delivery.done
    assert (await delivery).offset == 0
