"""``read_records`` and ``read_batches``: from a start to an end, whatever the last offsets of a log are."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from contract.conftest import Where
from support.committed import ended, raw
from support.patience import PATIENCE

from aiokafkawire import Client, ConfigError, DeserializationError, OffsetSpec, TopicPartition, UsageError
from aiokafkawire.errors import OffsetOutOfRange
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from aiokafkawire.testing import Broker

pytestmark = pytest.mark.anyio

FACES = pytest.mark.parametrize("face", ["records", "batches"])


class Undone(Exception):
    """What the body of a transaction raises to have it aborted."""


async def read(kafka: Client, face: str, topic: str, **options: Any) -> list[tuple[int, int]]:
    """Partitions and offsets of all that is read."""
    found: list[tuple[int, int]] = []
    with anyio.fail_after(PATIENCE):
        if face == "records":
            async for record in kafka.read_records(topic, fetch_max_wait_ms=10, **options):
                found.append((record.partition, record.offset))
        else:
            async for batch in kafka.read_batches(topic, fetch_max_wait_ms=10, **options):
                found += zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True)
                assert batch.num_rows
    return sorted(found)


async def transact(cluster: Where, kafka: Client, topic: str, *writes: tuple[int, int]) -> None:
    """One transaction each, of so many records to a partition; those with a negative count are aborted."""
    async with kafka.producer(transactional_id=topic) as producer:
        for partition, count in writes:
            with suppress(Undone):
                async with producer.transaction() as tx:
                    await tx.send_many(topic, [b"%d" % number for number in range(abs(count))], partition=partition)
                    if count < 0:
                        raise Undone
    assert (await ended(cluster, topic)).startswith("Complete")


async def latest(kafka: Client, topic: str) -> dict[TopicPartition, int]:
    partitions = [TopicPartition(topic, number) for number in range(3)]
    found = await kafka.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return {partition: at.offset for partition, at in found.items() if at is not None}


async def is_released(kafka: Client) -> None:
    """Wait until no consumer of this client runs."""
    with anyio.fail_after(PATIENCE):
        while any(name.startswith("fetch-") for _, name in kafka._cluster.brokers._lanes):
            await anyio.lowlevel.checkpoint()


@FACES
async def test_nothing_is_read_of_an_empty_topic(kafka: Client, topic: str, face: str) -> None:
    assert await read(kafka, face, topic) == []


@FACES
async def test_all_partitions_are_read_and_empty_ones_do_not_matter(kafka: Client, topic: str, face: str) -> None:
    async with kafka.producer() as producer:
        for number in range(20):
            await producer.send(topic, b"%d" % number, partition=2 * (number % 2))
    assert await read(kafka, face, topic) == [(0, one) for one in range(10)] + [(2, one) for one in range(10)]


@FACES
async def test_it_ends_where_transactions_end(cluster: Where, kafka: Client, topic: str, face: str) -> None:
    await transact(cluster, kafka, topic, (0, 5), (1, 3), (1, -4), (2, -2))
    assert await latest(kafka, topic) == {TopicPartition(topic, number): end for number, end in enumerate([6, 9, 3])}
    counted = [(0, one) for one in range(5)] + [(1, one) for one in range(3)]
    assert await read(kafka, face, topic) == counted
    everything = [*counted, *((1, one) for one in range(4, 8)), (2, 0), (2, 1)]
    assert await read(kafka, face, topic, isolation_level="read_uncommitted") == everything
    ends = await latest(kafka, topic)
    assert await read(kafka, face, topic, start=dict.fromkeys(ends, 0), end=ends) == counted


@FACES
async def test_an_open_transaction_is_where_it_ends_and_an_end_behind_it_waits_for_it(
    cluster: Where, kafka: Client, topic: str, face: str
) -> None:
    partition = TopicPartition(topic, 0)
    async with kafka.producer() as plain, kafka.producer(transactional_id=topic) as producer:
        await plain.send(topic, b"before", partition=0)
        async with anyio.create_task_group() as tasks, producer.transaction() as tx:
            await tx.send(topic, b"in it", partition=0)
            await plain.send(topic, b"after", partition=0)
            assert await read(kafka, face, topic) == [(0, 0)]
            found: list[tuple[int, int]] = []
            waiting = anyio.Event()

            async def read_all() -> None:
                waiting.set()
                found.extend(await read(kafka, face, topic, end={partition: 3}))

            tasks.start_soon(read_all)
            await waiting.wait()
            while not any(name.startswith("fetch-") for _, name in kafka._cluster.brokers._lanes):
                await anyio.lowlevel.checkpoint()
            assert found == []
        assert found == [(0, 0), (0, 1), (0, 2)]


@FACES
async def test_what_comes_later_is_not_read(kafka: Client, topic: str, face: str) -> None:
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"x"] * 5, partition=0)
        found: list[int] = []
        reader: Any = kafka.read_records(topic) if face == "records" else kafka.read_batches(topic)
        async for one in reader:
            found += [one.offset] if face == "records" else one["offset"].to_pylist()
            await producer.send_many(topic, [b"x"] * 5, partition=0)
        assert found == list(range(5))
        with pytest.raises(StopAsyncIteration):
            await anext(reader)


@FACES
async def test_starts_and_ends_are_given_by_offset(kafka: Client, topic: str, face: str) -> None:
    async with kafka.producer() as producer:
        for number in range(3):
            await producer.send_many(topic, [b"x"] * 10, partition=number)
    zero, one, two = (TopicPartition(topic, number) for number in range(3))
    everything = [(number, offset) for number in range(3) for offset in range(10)]

    async def check(expected: list[tuple[int, int]], **options: Any) -> None:
        assert await read(kafka, face, topic, **options) == expected

    await check(everything)
    await check([(0, 8), (0, 9), (2, 9)], start={zero: 8, two: 9})
    await check([(0, 0), (0, 1)], end={zero: 2, one: 0})
    await check([(0, 3), (0, 4), (1, 0)], start={zero: 3}, end={zero: 5, one: 1})
    await check([], start={zero: 10, one: 5, two: 7}, end={one: 5, two: 3})
    await check([], start={zero: 99})
    await check([], start={})
    await check([(0, 9)], start={zero: 9}, end=OffsetSpec.LATEST)
    await check([(1, one) for one in range(4)], start={one: OffsetSpec.EARLIEST}, end={one: 4})
    await check([], start=OffsetSpec.LATEST)


@FACES
async def test_starts_and_ends_are_given_by_time(kafka: Client, topic: str, face: str) -> None:
    async with kafka.producer(linger_ms=0) as producer:
        for number in range(10):
            await producer.send(topic, b"x", partition=number % 2, timestamp_ms=1000 + number)
    assert await read(kafka, face, topic, start=OffsetSpec.at(1007)) == [(0, 4), (1, 3), (1, 4)]
    assert await read(kafka, face, topic, end=OffsetSpec.at(1002)) == [(0, 0), (1, 0)]
    # No record is so late: nothing to begin at, and everything before the end.
    assert await read(kafka, face, topic, start=OffsetSpec.at(2000)) == []
    assert await read(kafka, face, topic, start=OffsetSpec.at(1009)) == [(1, 4)]
    assert len(await read(kafka, face, topic, end=OffsetSpec.at(2000))) == 10


@FACES
async def test_an_end_beyond_the_log_and_a_partition_that_is_not_there_are_refused(
    kafka: Client, topic: str, face: str
) -> None:
    with pytest.raises(UsageError, match=r"up to offset 1: its log ends at 0"):
        await read(kafka, face, topic, end={TopicPartition(topic, 0): 1})
    with pytest.raises(UsageError, match="7"):
        await read(kafka, face, topic, start={TopicPartition(topic, 7): 0})


@FACES
async def test_records_that_were_deleted_are_an_error_unless_one_asks_for_what_is_left(
    kafka: Client, new_name: Callable[[], str], face: str, cluster: Where
) -> None:
    name = new_name()
    await kafka.admin.create_topics({name: 1})
    partition = TopicPartition(name, 0)
    async with kafka.producer() as producer:
        for _ in range(10):
            await producer.send(name, b"x")
    await delete_before(cluster, partition, 6)
    left = [(0, offset) for offset in range(6, 10)]
    assert await read(kafka, face, name) == left
    with pytest.raises(OffsetOutOfRange, match="were deleted before they were read"):
        await read(kafka, face, name, start={partition: 2})
    assert await read(kafka, face, name, start={partition: 2}, auto_offset_reset="earliest") == left
    assert await read(kafka, face, name, start={partition: 2}, end={partition: 4}, auto_offset_reset="earliest") == []


async def delete_before(cluster: Where, partition: TopicPartition, offset: int) -> None:
    asked = DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
    topics = [DeleteRecordsTopic(name=partition.topic, partitions=[asked])]
    async with raw(cluster) as client:
        answer = await client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 2)
    assert [one.error_code for one in answer.topics[0].partitions] == [0]


@pytest.mark.parametrize("arguments", [{"start": 5}, {"start": None}, {"end": 5}, {"start": {3: 5}}, {"end": "latest"}])
@FACES
async def test_a_start_or_an_end_of_another_kind_is_refused(
    kafka: Client, topic: str, face: str, arguments: Any
) -> None:
    with pytest.raises(UsageError, match="must be"):
        await read(kafka, face, topic, **arguments)


@FACES
async def test_what_makes_no_sense_is_refused_by_the_call(kafka: Client, topic: str, face: str) -> None:
    make: Any = kafka.read_records if face == "records" else kafka.read_batches
    zero = TopicPartition(topic, 0)
    for arguments in ({"start": {zero: -1}}, {"end": {zero: "3"}}, {"end": {zero: True}}, {"start": {zero: None}}):
        with pytest.raises(UsageError, match=r"can(not)? begin at"):
            make(topic, **arguments)
    with pytest.raises(UsageError, match="not of topic"):
        make(topic, start={TopicPartition("other", 0): 1})
    with pytest.raises(UsageError, match="cannot be a topic's name"):
        make("no topic!")
    with pytest.raises(ConfigError, match="group_id"):
        make(topic, group_id="g")
    with pytest.raises(ConfigError):
        make(topic, no_such_option=1)


async def test_columns_are_chosen_by_name(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"x", b"y"], keys=[b"a", None], partition=1)
    reader = kafka.read_batches(topic, columns=["value", "key"])
    assert [batch.to_pydict() async for batch in reader] == [{"value": [b"x", b"y"], "key": [b"a", None]}]
    for columns in ("value", [], 3, ["valeu"]):
        with pytest.raises(UsageError, match="column"):
            kafka.read_batches(topic, columns=columns)  # type: ignore[arg-type]


async def test_small_batches_are_joined(kafka: Client, topic: str) -> None:
    async with kafka.producer(linger_ms=0) as producer:
        for number in range(200):
            await producer.send(topic, b"%d" % number, partition=number % 3)
    batches = [batch async for batch in kafka.read_batches(topic)]
    assert sum(batch.num_rows for batch in batches) == 200
    assert len(batches) < 50
    for batch in batches:
        batch.validate(full=True)
        assert set(batch["topic"].to_pylist()) == {topic}


async def test_deserializers_are_used_and_a_record_that_they_refuse_does_not_end_it(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"1", b"two", b"3"], keys=[b"a", b"b", b"c"], partition=0)
    reader = kafka.read_records(topic, key_deserializer=bytes.decode, value_deserializer=int)
    found = []
    errors = 0
    while True:
        try:
            async for record in reader:
                found.append((record.key, record.value))
        except DeserializationError:
            errors += 1
        else:
            break
    assert (found, errors) == ([("a", 1), ("c", 3)], 1)


@FACES
async def test_a_cancellation_costs_nothing(kafka: Client, topic: str, face: str) -> None:
    async with kafka.producer(linger_ms=0) as producer:
        for number in range(30):
            await producer.send(topic, b"x", partition=number % 3)
    reader: Any = kafka.read_records(topic) if face == "records" else kafka.read_batches(topic)
    found: list[tuple[int, int]] = []
    is_over, allowed = False, 0.002
    with anyio.fail_after(PATIENCE):
        while not is_over:
            allowed *= 1.02  # a busy broker may need longer for its first response
            with anyio.move_on_after(allowed):
                async for one in reader:
                    if face == "records":
                        found.append((one.partition, one.offset))
                    else:
                        found += zip(one["partition"].to_pylist(), one["offset"].to_pylist(), strict=True)
                is_over = True
    assert sorted(found) == [(number, offset) for number in range(3) for offset in range(10)]


def test_an_abandoned_reader_is_closed_under_asyncio_run() -> None:
    async def first(kafka: Client) -> None:
        async for _ in kafka.read_records("t"):
            return

    async def main() -> None:
        async with Broker() as broker, Client(broker.bootstrap) as kafka:
            broker.create_topic("t", partitions=1)
            async with kafka.producer() as producer:
                await producer.send_many("t", [b"x"] * 2)
            before = len(asyncio.all_tasks())
            await first(kafka)
            gc.collect()
            with anyio.fail_after(10):
                while len(asyncio.all_tasks()) > before:  # noqa: ASYNC110 - an end has no event
                    await asyncio.sleep(0.01)

    asyncio.run(main())


@FACES
@pytest.mark.parametrize("how", ["end", "break", "async with", "closed before"])
async def test_nothing_is_left_behind(kafka: Client, topic: str, face: str, how: str) -> None:
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"x"] * 2000, partition=0)
    make: Any = kafka.read_records if face == "records" else kafka.read_batches
    if how == "end":
        async for _ in make(topic):
            pass
    elif how == "break":
        async for _ in make(topic):
            break
        gc.collect()  # where objects are not collected at once
    elif how == "async with":
        async with make(topic) as reader:
            async for _ in reader:
                break
        assert [one async for one in reader if face == "batches"] == []
    else:
        reader = make(topic)
        await reader.aclose()
        assert [one async for one in reader] == []
    await is_released(kafka)


@FACES
async def test_a_record_that_is_appended_during_the_lookup_of_an_end_is_not_before_it(face: str) -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, connector=broker.connect) as kafka, kafka.producer() as producer:
            await producer.send("t", b"old", timestamp_ms=1)
            found: list[tuple[int, int]] = []

            async def look_up() -> None:
                found.extend(await read(kafka, face, "t", end=OffsetSpec.at(500)))

            async with anyio.create_task_group() as tasks, broker.hold(ApiKey.LIST_OFFSETS, after=1) as held:
                tasks.start_soon(look_up)
                await held.arrived()  # the lookup of the log's end, since no record is late enough
                await producer.send("t", b"older", timestamp_ms=2)
                await producer.send("t", b"new", timestamp_ms=600)
                held.release()
            assert found == [(0, 0), (0, 1)]


@FACES
async def test_a_reader_that_another_task_closes_ends(face: str) -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, connector=broker.connect) as kafka, kafka.producer() as producer:
            await producer.send("t", b"x")
            make: Any = kafka.read_records if face == "records" else kafka.read_batches
            reader, ended = make("t"), anyio.Event()

            async def read_all() -> None:
                assert [one async for one in reader] == []
                ended.set()

            async with anyio.create_task_group() as tasks, broker.hold(ApiKey.FETCH) as held:
                tasks.start_soon(read_all)
                await held.arrived()
                await reader.aclose()
                with anyio.fail_after(PATIENCE):
                    await ended.wait()
                held.release()
