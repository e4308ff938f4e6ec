"""Each record is in the log once and in order, and transactions stay whole, however often connections break."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex
from typing import Any, Literal

import pytest
from contract.conftest import BOTH_TRANSACTION_VERSIONS, Where
from support.committed import committed, committed_offset
from support.cutting import Cutting
from support.reading import read

from aiokafkawire import Client, ConfigError, DeliveryFailed, OffsetSpec, TopicPartition, UsageError
from aiokafkawire.errors import ConnectionLost, ErrorCode, MessageTooLarge, OutOfOrderSequenceNumber, RecordTooLarge
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

QUICK: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 10,
}
"""Waits so short that many connections may break."""


async def values(kafka: Client, where: TopicPartition) -> list[bytes | None]:
    """All that is in the log."""
    end = (await kafka.admin.list_offsets({where: OffsetSpec.LATEST}))[where]
    assert end is not None
    return [record.value for record in await read(kafka, where, end.offset)] if end.offset else []


# --- a network that breaks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
async def test_records_are_written_once_and_in_order(cluster: Where, kafka: Client, topic: str, seed: int) -> None:
    cutting = Cutting(cluster.connector, seed, 500, 6_000)
    async with (
        Client(cluster.bootstrap, connector=cutting, **QUICK) as cut,
        cut.producer(batch_size=300, linger_ms=60_000) as producer,
    ):
        deliveries = [await producer.enqueue(topic, b"%d" % number, partition=number % 3) for number in range(2_000)]
        await producer.flush()
        places = [await delivery for delivery in deliveries]
    assert cutting.cuts > 3
    for partition in range(3):
        wanted = [b"%d" % number for number in range(partition, 2_000, 3)]
        assert await values(kafka, TopicPartition(topic, partition)) == wanted
        # Of a batch that the leader remembers no more it cannot say where it is.
        told = [place.offset for place in places[partition::3]]
        assert all(offset in (-1, index) for index, offset in enumerate(told))


@pytest.mark.slow
@BOTH_TRANSACTION_VERSIONS
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_transactions_stay_whole(cluster: Where, kafka: Client, topic: str, seed: int) -> None:
    class Undone(Exception):
        pass

    name, offsets = f"id-{token_hex(6)}", TopicPartition(topic, 2)
    cutting = Cutting(cluster.connector, seed, 600, 4_000)
    async with (
        Client(cluster.bootstrap, connector=cutting, **QUICK) as cut,
        cut.producer(transactional_id=name, batch_size=100) as producer,
    ):
        for number in range(30):
            try:
                async with producer.transaction() as tx:
                    for part in range(10):
                        await tx.enqueue(topic, b"%d %d" % (number, part), partition=part % 2)
                    await tx.commit_offsets({offsets: number}, group=name)
                    if number % 3 == 2:
                        raise Undone
            except Undone:
                pass
    assert cutting.cuts > 3
    for partition in range(2):
        wanted = [
            b"%d %d" % (number, part) for number in range(30) if number % 3 < 2 for part in range(partition, 10, 2)
        ]
        assert await committed(kafka, TopicPartition(topic, partition)) == wanted
    assert await committed_offset(cluster, name, offsets) == 28


# --- acknowledgements that are lost --------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [{"drop": "before"}, {"drop": "after"}, {"cut": True}, {"swallow": "after"}])
async def test_an_acknowledgement_that_is_lost_doubles_nothing(order: dict[str, Any]) -> None:
    async with Broker(port=None, strict=True) as broker:
        broker.create_topic("t")
        async with (
            Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka,
            kafka.producer(batch_size=200, request_timeout_ms=200) as producer,
        ):
            await producer.send("t", b"0")
            broker.on(ApiKey.PRODUCE, **order, times=2, after=1)
            deliveries = [await producer.enqueue("t", b"%d" % number) for number in range(1, 200)]
            assert [(await delivery).offset for delivery in deliveries] == list(range(1, 200))
            assert await values(kafka, TopicPartition("t", 0)) == [b"%d" % number for number in range(200)]


async def test_batches_that_were_on_their_way_together_are_written_once() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with (
            Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka,
            kafka.producer(batch_size=100) as producer,
        ):
            await producer.send("t", b"0")
            async with broker.hold(ApiKey.PRODUCE) as held:
                deliveries = [await producer.enqueue("t", b"%d" % number * 20) for number in range(1, 30)]
                await held.arrived(1)
                broker.on(ApiKey.PRODUCE, drop="after", after=3)
                held.release()
            assert [(await delivery).offset for delivery in deliveries] == list(range(1, 30))
            assert len(await values(kafka, TopicPartition("t", 0))) == 30


@pytest.mark.parametrize("written", [False, True])
async def test_a_batch_that_may_be_written_and_is_found_too_large_by_the_next_leader_doubles_nothing(
    written: bool,
) -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with (
            Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka,
            kafka.producer(linger_ms=10) as producer,
        ):
            await producer.send("t", b"first")
            broker.on(ApiKey.PRODUCE, drop="after" if written else "before")
            broker.on(ApiKey.PRODUCE, answer=ErrorCode.MESSAGE_TOO_LARGE)
            deliveries = [await producer.enqueue("t", b"%d" % number) for number in range(4)]
            for delivery in deliveries:
                if written:
                    with pytest.raises(OutOfOrderSequenceNumber, match="a broker may have written the records before"):
                        await delivery
                else:
                    await delivery
            await producer.send("t", b"last")
            assert await values(kafka, TopicPartition("t", 0)) == [b"first", b"0", b"1", b"2", b"3", b"last"]


async def test_without_idempotence_a_lost_acknowledgement_doubles_records() -> None:
    async with Broker(port=None, strict=True) as broker:
        broker.create_topic("t")
        async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka:
            async with kafka.producer(enable_idempotence=False) as producer:
                broker.on(ApiKey.PRODUCE, drop="after")
                assert (await producer.send("t", b"twice")).offset == 1
            async with kafka.producer(enable_idempotence=False, retries=0) as producer:
                broker.on(ApiKey.PRODUCE, drop="after")
                with pytest.raises(ConnectionLost):
                    await producer.send("t", b"once")
            assert await values(kafka, TopicPartition("t", 0)) == [b"twice", b"twice", b"once"]


# --- many records at once ------------------------------------------------------------------------------------------


async def test_many_records_are_sent_at_once(kafka: Client, topic: str) -> None:
    async with kafka.producer(batch_size=500) as producer:
        places = await producer.send_many(topic, (b"%d" % number for number in range(300)), partition=1)
        assert [place.offset for place in places] == list(range(300))
        keyed = await producer.send_many(topic, [b"a", None, b"b"], keys=[b"k", b"l", b"k"], headers={"h": b"1"})
        assert keyed[0].partition == keyed[2].partition
        assert await producer.send_many(topic, []) == []


async def test_many_records_need_as_many_keys(kafka: Client, topic: str) -> None:
    async with kafka.producer() as producer:
        with pytest.raises(ValueError, match="2 values and 1 keys: nothing was sent"):
            await producer.send_many(topic, [b"a", b"b"], keys=[b"k"], partition=2)
        with pytest.raises(ValueError, match=r"shorter|longer"):  # which an iterator shows too late
            await producer.send_many(topic, iter([b"c", b"d"]), keys=[b"k"], partition=2)
    assert await values(kafka, TopicPartition(topic, 2)) == [b"c"]


async def test_columns_are_sent_whole_through_a_small_buffer(kafka: Client, topic: str) -> None:
    column: list[bytes | None] = [b"%d" % number * 20 for number in range(4_000)]
    async with kafka.producer(buffer_memory=20_000, batch_size=2_000) as producer:
        assert await producer.enqueue_many(topic, column, partition=1) == len(column)
        assert await producer.enqueue_many(topic, []) == 0
        with pytest.raises(UsageError, match="3 values and 1 keys"):
            await producer.enqueue_many(topic, [b"a", b"b", b"c"], keys=[b"k"])
    assert await values(kafka, TopicPartition(topic, 1)) == column


async def test_columns_end_at_a_record_that_is_too_large_and_say_how_far_they_came(kafka: Client, topic: str) -> None:
    column = [*[b"small"] * 5, b"large" * 500_000, b"behind"]
    async with kafka.producer() as producer:
        with pytest.raises(RecordTooLarge) as caught:
            await producer.enqueue_many(topic, column, keys=[*column[:5], None, None], partition=0)
    assert caught.value.__notes__ == ["5 records before it were accepted"]
    assert await values(kafka, TopicPartition(topic, 0)) == [b"small"] * 5
    assert [record.key for record in await read(kafka, TopicPartition(topic, 0), 5)] == [b"small"] * 5


async def test_arrow_arrays_are_columns(kafka: Client, topic: str) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install aiokafkawire[arrow]")
    column: list[bytes | None] = [None if number % 7 == 0 else b"%d" % number for number in range(2_500)]
    keys = arrow.array([b"%d" % (number % 5) for number in range(2_500)])
    async with kafka.producer() as producer:
        await producer.enqueue_many(topic, arrow.chunked_array([column[:900], column[900:]]), keys=keys)
        await producer.flush()
    ends = await kafka.admin.list_offsets({TopicPartition(topic, one): OffsetSpec.LATEST for one in range(3)})
    told = [await read(kafka, where, end.offset) for where, end in ends.items() if end is not None and end.offset]
    records = [record for part in told for record in part]
    assert sorted(record.value or b"" for record in records) == sorted(value or b"" for value in column)
    assert {len({one.partition for one in records if one.key == b"%d" % number}) for number in range(5)} == {1}


async def test_many_records_of_which_some_are_refused(kafka: Client, topic: str) -> None:
    large = b"x" * 2_000_000
    async with kafka.producer(max_request_size=4_000_000, batch_size=1) as producer:
        with pytest.raises(DeliveryFailed, match="2 records not delivered") as failed:
            await producer.send_many(topic, [b"0", large, b"1", large, b"2"], partition=0)
        assert {type(error) for error in failed.value.errors} == {MessageTooLarge}
    assert await values(kafka, TopicPartition(topic, 0)) == [b"0", b"1", b"2"]


# --- settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("idempotence", [None, False])
async def test_records_arrive_with_any_acks(
    kafka: Client, topic: str, acks: Literal[0, 1, "all"], idempotence: bool | None
) -> None:
    async with kafka.producer() as producer:
        await producer.send(topic, b"leads", partition=0)
    async with kafka.producer(acks=acks, enable_idempotence=idempotence, batch_size=100) as producer:
        for number in range(50):
            await producer.enqueue(topic, b"%d" % number, partition=0)
    assert [record.value for record in await read(kafka, TopicPartition(topic, 0), 51)][1:] == [
        b"%d" % number for number in range(50)
    ]


def first(topic: str, key: bytes | None, available: Sequence[int], every: Sequence[int]) -> int:
    return min(every)


def nowhere(topic: str, key: bytes | None, available: Sequence[int], every: Sequence[int]) -> int:
    return len(every)


async def test_a_function_chooses_the_partition(kafka: Client, topic: str) -> None:
    async with kafka.producer(partitioner=first) as producer:
        assert {
            place.partition for place in await producer.send_many(topic, [b"a"] * 5, keys=[b"0", b"1"] * 2 + [None])
        } == {0}
    async with kafka.producer(partitioner=nowhere) as producer:
        with pytest.raises(UsageError, match="3"):
            await producer.send(topic, b"a")


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"acks": 2}, "acks must be one of 'all', -1, 1, 0, got 2"),
        ({"acks": 1, "enable_idempotence": True}, "enable_idempotence needs acks='all', got acks=1"),
        ({"acks": 0, "transactional_id": "x"}, "transactional_id needs acks='all', got acks=0"),
        ({"enable_idempotence": False, "transactional_id": "x"}, "transactional_id needs enable_idempotence"),
        ({"transactional_id": ""}, "transactional_id must not be empty"),
        ({"transactional_id": 5}, "transactional_id must be a string or None, got 5"),
        ({"transaction_timeout_ms": 0}, "transaction_timeout_ms must be a whole number from 1"),
        (
            {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
            "enable_idempotence needs max_in_flight_requests_per_connection to be at most 5, got 6",
        ),
        ({"partitioner": "sticky"}, "partitioner must be one of 'default', .* or a function, got 'sticky'"),
        ({"enable_idempotence": "yes"}, "enable_idempotence must be one of None, True, False, got 'yes'"),
        ({"retries": -1}, "retries must be a whole number from 0"),
        ({"transactional": "x"}, "did you mean transactional_id"),
    ],
)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_settings_that_cannot_be(settings: dict[str, Any], refused: str) -> None:
    with pytest.raises(ConfigError, match=refused):
        Client("localhost:9092").producer(**settings)
