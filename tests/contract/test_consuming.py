"""What a consumer promises, whichever broker it talks to."""

from collections.abc import Callable, Iterable
from typing import Any

import anyio
import pytest
from contract.conftest import Where
from support.patience import PATIENCE, SOON
from support.reading import take

from aiokafkawire import (
    Client,
    ConfigError,
    DeserializationError,
    NewTopic,
    OffsetSpec,
    RequestTimeout,
    TopicNotReady,
    TopicPartition,
    UsageError,
)
from aiokafkawire.errors import OffsetOutOfRange, TopicAlreadyExists, UnknownTopicOrPartition

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]


async def fill(kafka: Client, topic: str, values: Iterable[bytes], partition: int = 0, *, batch: int = 1_000) -> None:
    """Write values in order, a second of record time apart, in small batches."""
    async with kafka.producer(batch_size=batch) as producer:
        for number, value in enumerate(values):
            await producer.enqueue(topic, value, partition=partition, timestamp_ms=number * 1_000)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def test_reads_from_the_beginning_in_order(kafka: Client, topic: str) -> None:
    await fill(kafka, topic, numbers(500))
    async with kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records = await take(consumer, 500)
    assert [record.value for record in records] == numbers(500)
    assert [record.offset for record in records] == list(range(500))
    assert [record.timestamp for record in records] == [number * 1_000 for number in range(500)]


async def test_reads_from_the_end_only_what_comes_later(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await fill(kafka, topic, [b"old"] * 10)
    async with kafka.consumer() as consumer, anyio.create_task_group() as tasks:
        consumer.assign({where: OffsetSpec.LATEST})
        tasks.start_soon(write_until_cancelled, kafka, topic)
        (record,) = await take(consumer, 1)
        tasks.cancel_scope.cancel()
    assert record.value == b"new"
    assert record.offset >= 10


async def write_until_cancelled(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        while True:
            await producer.send(topic, b"new", partition=0)


@pytest.mark.parametrize(
    ("start", "first"),
    [(17, 17), (OffsetSpec.EARLIEST, 0), (OffsetSpec.at(20_500), 21), (OffsetSpec.at(21_000), 21)],
)
async def test_begins_where_it_is_told(kafka: Client, topic: str, start: int | OffsetSpec, first: int) -> None:
    where = TopicPartition(topic, 1)
    await fill(kafka, topic, numbers(40), partition=1)
    async with kafka.consumer() as consumer:
        consumer.assign({where: start})
        records = await take(consumer, 3)
        assert [record.offset for record in records] == [first, first + 1, first + 2]
        assert consumer.position(where) == first + 3


async def test_a_client_that_knows_nothing_yet_begins_at_an_offset(cluster: Where, kafka: Client, topic: str) -> None:
    await fill(kafka, topic, numbers(5))
    async with cluster.client() as fresh, fresh.consumer() as consumer:
        consumer.assign({TopicPartition(topic, 0): 3})
        assert [record.offset for record in await take(consumer, 2)] == [3, 4]


async def test_a_time_beyond_the_last_record_means_the_end(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await fill(kafka, topic, numbers(5))
    assert await kafka.admin.list_offsets({where: OffsetSpec.at(99_000)}) == {where: None}
    async with kafka.consumer() as consumer:
        consumer.assign({where: OffsetSpec.at(99_000)})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write_until_cancelled, kafka, topic)
            (record,) = await take(consumer, 1)
            tasks.cancel_scope.cancel()
    assert record.value == b"new"


async def test_seeking_drops_what_was_fetched(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await fill(kafka, topic, numbers(300))
    async with kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([where])
        assert [record.offset for record in await take(consumer, 2)] == [0, 1]
        consumer.seek(where, 250)
        assert [record.offset for record in await take(consumer, 2)] == [250, 251]
        consumer.seek(where, OffsetSpec.EARLIEST)
        assert [record.offset for record in await take(consumer, 2)] == [0, 1]
        consumer.seek(where, 1)
        assert [record.offset for record in await take(consumer, 300 - 1)] == list(range(1, 300))


async def test_a_paused_partition_waits_and_loses_nothing(kafka: Client, topic: str) -> None:
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    await fill(kafka, topic, numbers(100), partition=0, batch=100_000)
    await fill(kafka, topic, numbers(100), partition=1, batch=100_000)
    async with kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([one, two])
        begun = (await take(consumer, 5))[-1].partition
        first, other = (one, two) if begun == 0 else (two, one)
        consumer.pause(first)
        assert consumer.paused == (first,)
        rest = await take(consumer, 100 - (consumer.position(other) or 0))
        assert {record.partition for record in rest} == {other.partition}
        consumer.resume(first)
        reached = consumer.position(first)
        assert reached is not None
        assert [record.offset for record in await take(consumer, 100 - reached)] == list(range(reached, 100))


async def test_batches_come_whole_and_lazily(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await fill(kafka, topic, numbers(300))
    values: list[bytes | None] = []
    async with kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([where])
        with anyio.fail_after(PATIENCE):
            async for batch in consumer.batches():
                assert (batch.topic, batch.partition) == where
                assert consumer.position(where) == batch.next_offset
                values += [record.value for record in batch]
                if batch.next_offset == 300:
                    break
    assert values == numbers(300)


async def test_batches_may_be_had_as_arrow_batches(kafka: Client, topic: str) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install aiokafkawire[arrow]")
    await fill(kafka, topic, numbers(300))
    tables: list[Any] = []
    async with kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        await take(consumer, 3)
        with anyio.fail_after(PATIENCE):
            async for batch in consumer.batches():
                tables.append(batch.to_arrow())
                if batch.next_offset == 300:
                    break
    table = arrow.Table.from_batches(tables)
    assert table.column("offset").to_pylist() == list(range(3, 300))
    assert table.column("value").to_pylist() == numbers(300)[3:]
    assert set(table.column("topic").to_pylist()) == {topic}


async def test_records_and_batches_may_be_mixed(kafka: Client, topic: str) -> None:
    await fill(kafka, topic, numbers(300))
    async with kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        await take(consumer, 3)
        offsets: list[int] = []
        with anyio.fail_after(PATIENCE):
            async for batch in consumer.batches():
                offsets += [record.offset for record in batch]
                if batch.next_offset == 300:
                    break
    assert offsets == list(range(3, 300))


async def test_the_loop_may_be_entered_again_after_a_record_that_cannot_be_read(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await fill(kafka, topic, [b"1", b"two", b"3"])
    async with kafka.consumer(auto_offset_reset="earliest", value_deserializer=int) as consumer:
        consumer.assign([where])
        seen: list[int | None] = []
        with pytest.raises(DeserializationError, match=f"{topic}-0, offset 1: the value") as caught:
            async for record in consumer:
                seen.append(record.value)
        assert (caught.value.partition, caught.value.offset, caught.value.raw_value) == (where, 1, b"two")
        assert caught.value.timestamp > 0
        assert consumer.position(where) == 2
        async for record in consumer:
            seen.append(record.value)
            assert record.raw_value == b"3"
            break
    assert seen == [1, 3]


async def test_without_a_group_a_topics_consumer_reads_all_of_it(kafka: Client, topic: str) -> None:
    for partition in range(3):
        await fill(kafka, topic, numbers(20), partition=partition)
    async with kafka.consumer(topic, auto_offset_reset="earliest") as consumer:
        assert set(consumer.assignment) == {TopicPartition(topic, one) for one in range(3)}
        records = await take(consumer, 60)
        with pytest.raises(UsageError, match="reads all partitions of its topics"):
            consumer.assign([])
    assert sorted((record.partition, record.offset) for record in records) == [
        (partition, offset) for partition in range(3) for offset in range(20)
    ]


async def test_a_record_larger_than_the_partitions_limit_still_comes(kafka: Client, topic: str) -> None:
    await fill(kafka, topic, [b"x" * 100_000, b"y" * 100_000, b"z"])
    async with kafka.consumer(
        auto_offset_reset="earliest", max_partition_fetch_bytes=1_000, fetch_max_bytes=2_000
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [len(record.value or b"") for record in await take(consumer, 3)] == [100_000, 100_000, 1]


async def test_an_offset_out_of_range_is_reset_or_told(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await fill(kafka, topic, numbers(5))
    async with kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign({where: 1_000})
        assert (await take(consumer, 1))[0].offset == 0
    async with kafka.consumer(auto_offset_reset="none") as consumer:
        consumer.assign({where: 1_000})
        with pytest.raises(OffsetOutOfRange, match=f"{topic}-0 at offset 1000"):
            await take(consumer, 1)
        consumer.seek(where, 4)
        consumer.resume(where)
        assert (await take(consumer, 1))[0].offset == 4


async def test_no_position_and_no_reset_is_told(kafka: Client, topic: str) -> None:
    async with kafka.consumer(auto_offset_reset="none") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(UsageError, match=f"{topic}-0 has no position"):
            await take(consumer, 1)


async def test_an_assigned_partition_that_does_not_exist_is_told_in_time(
    cluster: Where, topic: str, new_name: Callable[[], str]
) -> None:
    name = new_name()
    async with cluster.client(default_api_timeout_ms=300) as kafka, kafka.consumer() as consumer:
        consumer.assign([TopicPartition(name, 0)])
        with pytest.raises(TopicNotReady, match=f"topic '{name}' is not known"):
            await take(consumer, 1)
        consumer.assign([TopicPartition(topic, 99)])
        with pytest.raises(UsageError, match="has 3 partitions, no 99"):
            await take(consumer, 1)
        consumer.assign({TopicPartition(name, 0): 5})
        with pytest.raises((RequestTimeout, TopicNotReady), match=name):
            await take(consumer, 1)


async def test_partitions_that_stay_keep_their_position(kafka: Client, topic: str) -> None:
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    await fill(kafka, topic, numbers(10), partition=0)
    await fill(kafka, topic, numbers(10), partition=1)
    async with kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([one])
        await take(consumer, 4)
        consumer.assign([one, two])
        assert consumer.position(one) == 4
        records = await take(consumer, 16)
    assert sorted((record.partition, record.offset) for record in records) == [
        *((0, offset) for offset in range(4, 10)),
        *((1, offset) for offset in range(10)),
    ]


async def test_what_makes_no_sense_is_refused_at_once(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    async with kafka.consumer() as consumer:
        with pytest.raises(UsageError, match="is not assigned to this consumer; assigned are none"):
            consumer.seek(where, 0)
        consumer.assign([where])
        with pytest.raises(UsageError, match="offsets begin at 0"):
            consumer.seek(where, -5)
        with pytest.raises(UsageError, match="a partition must be an integer"):
            consumer.assign([TopicPartition(topic, -1)])
    with pytest.raises(UsageError, match="the consumer is closed"):
        await take(consumer, 1)
    with pytest.raises(ConfigError, match="auto_offset_reset must be 'earliest', 'latest', 'none' or 'by_duration:'"):
        kafka.consumer(auto_offset_reset="newest")


async def test_offsets_are_looked_up_by_every_spec(kafka: Client, topic: str) -> None:
    where = TopicPartition(topic, 0)
    await fill(kafka, topic, numbers(10))
    specs = {"first": OffsetSpec.EARLIEST, "end": OffsetSpec.LATEST, "by time": OffsetSpec.at(3_001)}
    specs["latest time"] = OffsetSpec.MAX_TIMESTAMP
    found = {name: (await kafka.admin.list_offsets({where: spec}))[where] for name, spec in specs.items()}
    assert {name: one and one.offset for name, one in found.items()} == {
        "first": 0,
        "end": 10,
        "by time": 4,
        "latest time": 9,
    }
    by_time = found["by time"]
    assert by_time is not None
    assert by_time.timestamp == 4_000


async def test_topics_are_made_listed_described_and_deleted(kafka: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    await kafka.admin.create_topics({name: NewTopic(partitions=2, replication_factor=1)})
    with anyio.fail_after(PATIENCE):  # brokers of Apache Kafka hear a moment later of what their controller has decided
        while name not in await kafka.admin.list_topics():
            pass
    described = await kafka.admin.describe_topic(name)
    assert [partition.index for partition in described.partitions] == [0, 1]
    with pytest.raises(TopicAlreadyExists, match=name):
        await kafka.admin.create_topics({name: 2})
    with pytest.raises(UsageError, match="at least 1 partition"):
        await kafka.admin.create_topics({new_name(): 0})
    unmade = new_name()
    await kafka.admin.create_topics({unmade: 1}, validate_only=True)
    await kafka.admin.delete_topics([name])
    with anyio.fail_after(PATIENCE):
        while name in (listed := await kafka.admin.list_topics()):
            pass
    assert unmade not in listed
    with pytest.raises(UnknownTopicOrPartition, match=name):
        await kafka.admin.delete_topics([name])


async def test_an_idle_partition_does_not_hold_up_a_busy_one(kafka: Client, topic: str) -> None:
    """Asked for the idle one alone, the leader would wait for as long as it may, once for every answer."""
    await fill(kafka, topic, [b"x" * 10_000] * 100, partition=0)
    async with kafka.consumer(
        auto_offset_reset="earliest", max_partition_fetch_bytes=30_000, fetch_max_wait_ms=10_000
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        with anyio.fail_after(SOON):
            assert len(await take(consumer, 100)) == 100


async def test_partitions_have_their_turns(kafka: Client, topic: str) -> None:
    for partition in range(3):
        await fill(kafka, topic, [b"x" * 10_000] * 30, partition=partition, batch=10_000)
    async with kafka.consumer(
        topic, auto_offset_reset="earliest", fetch_max_bytes=30_000, max_partition_fetch_bytes=30_000
    ) as consumer:
        first = [record.partition for record in await take(consumer, 30)]
    assert set(first) == {0, 1, 2}


@pytest.mark.parametrize("start", [-5, "earliest", None, 1.5, True])
async def test_a_start_that_is_no_place_is_refused(kafka: Client, topic: str, start: object) -> None:
    where = TopicPartition(topic, 0)
    async with kafka.consumer() as consumer:
        if start is not None:
            with pytest.raises(UsageError, match=f"{topic}-0 can"):
                consumer.assign({where: start})
        consumer.assign([where])
        with pytest.raises(UsageError, match=f"{topic}-0 can"):
            consumer.seek(where, start)  # type: ignore[arg-type]


async def test_what_is_described_is_what_the_broker_knows_now(kafka: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    await kafka.admin.create_topics({name: 1})
    async with kafka.producer() as producer:
        await producer.send(name, b"now the client knows it")
    await kafka.admin.delete_topics([name])
    with anyio.fail_after(PATIENCE), pytest.raises(UnknownTopicOrPartition, match=name):
        while True:  # the controller has deleted it, and brokers hear of that a moment later
            await kafka.admin.describe_topic(name, timeout=5)


async def test_closing_what_was_never_opened_is_no_matter(cluster: Where) -> None:
    client = cluster.client()
    for one in (client.producer(), client.consumer()):
        with pytest.raises(UsageError, match="the client is not open"):
            await one.__aenter__()
        with anyio.fail_after(SOON):
            await one.close()
