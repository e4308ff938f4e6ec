"""What comes after that which the user still reads is fetched meanwhile, and kept behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from support.clusters import QUICK, partition
from support.connecting import eventually
from support.patience import SOON

from aiokafkawire import Client, Consumer, TopicPartition
from aiokafkawire.cluster.metadata import Node, Snapshot, Topic
from aiokafkawire.consumer.completed_fetch import CompletedFetch, PartitionFetch
from aiokafkawire.consumer.fetch_buffer import FetchBuffer, FetchContext
from aiokafkawire.consumer.fetch_planner import plan
from aiokafkawire.consumer.pending_errors import PendingErrors
from aiokafkawire.consumer.subscription_state import PartitionState, SubscriptionState
from aiokafkawire.errors import BrokerError, CorruptBatch, ErrorCode, broker_error
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.fetch import FetchResponse, PartitionData
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.records.batch import BatchBuilder, set_base_offset
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import Address, OffsetSpec

A, B = TopicPartition("a", 0), TopicPartition("a", 1)
EPOCH = 3


def snapshot(epoch: int = EPOCH) -> Snapshot:
    partitions = tuple(partition(index, 1, epoch) for index in range(2))
    nodes = {1: Node(1, Address("host", 9091))}
    return Snapshot(1, "cluster", 1, nodes, {"a": Topic("a", ZERO_UUID, 0, partitions)}, {})


def batches(first: int, count: int, size: int) -> bytes:
    """So many batches of one record each, from an offset on."""
    made = b""
    for offset in range(first, first + count):
        builder = BatchBuilder(limit=1_000_000)
        builder.append(0, None, bytes(size))
        made += set_base_offset(builder.build(), offset, EPOCH)
    return made


class Reading:
    """A fetcher without its tasks: of two partitions of one broker, from offset 7 on."""

    def __init__(self) -> None:
        self.positions = SubscriptionState(OffsetSpec.EARLIEST)
        self.positions.assign({A: 7, B: 7})
        self.troubles = PendingErrors(self.positions, 10.0)
        self.arrivals = FetchBuffer(self.positions, self.troubles, replica_age=100.0, largest=1_000_000)

    def place(self, where: TopicPartition = A) -> PartitionState:
        return self.positions.require(where)

    def asks(self, known: Snapshot | None = None) -> dict[TopicPartition, PartitionFetch]:
        arrivals = self.arrivals
        found, _ = plan(
            known or snapshot(), self.positions, arrivals.unread, arrivals.ahead, (), max_bytes=100_000, now=0.0
        )
        return {ask.state.partition: ask for ask in found.get(1, ())}

    def answer(self, ask: PartitionFetch, what: bytes | BrokerError) -> CompletedFetch | None:
        """What came of it, if that was no error."""
        came = FetchContext(snapshot(), 1.0, 2.0, 12)
        if isinstance(what, BrokerError):
            self.outcome = self.arrivals.take(ask, what, came)
            return None
        data = PartitionData(partition_index=0, error_code=0, high_watermark=99, records=what)
        one = CompletedFetch(ask, data, committed_only=False)
        self.outcome = self.arrivals.take(ask, one, came)
        return one

    def begun(self, count: int = 2, size: int = 50_000) -> CompletedFetch:
        """What came first of A; of B there was nothing."""
        asks = self.asks()
        self.answer(asks[B], b"")
        first = self.answer(asks[A], batches(7, count, size))
        assert first is not None
        return first

    def read(self, fetched: CompletedFetch) -> None:
        """The user reads it to its end."""
        for batch in fetched:
            fetched.ask.state.position = batch.header.next_offset
        self.arrivals.discard(fetched)


def test_the_next_ones_are_asked_for_while_much_is_unread() -> None:
    reading = Reading()
    reading.begun()
    assert {where: ask.offset for where, ask in reading.asks().items()} == {A: 9, B: 7}


@pytest.mark.parametrize(("until", "asked"), [(8, {B: 7}), (9, {B: 7}), (10, {A: 9, B: 7})])
def test_nothing_is_fetched_that_nobody_wants(until: int, asked: dict[TopicPartition, int]) -> None:
    reading = Reading()
    reading.begun()
    reading.place().until = until
    assert {where: ask.offset for where, ask in reading.asks().items()} == asked


def test_where_batches_hold_many_records_the_last_of_them_counts() -> None:
    reading = Reading()
    builder = BatchBuilder(limit=1_000_000)
    for _ in range(5):
        builder.append(0, None, bytes(30_000))
    reading.answer(reading.asks()[A], batches(7, 200, 10) + set_base_offset(builder.build(), 300, EPOCH))
    assert reading.asks()[A].offset == 305


def test_with_little_unread_the_broker_is_not_asked() -> None:
    reading = Reading()
    reading.begun(2, 5_000)
    assert reading.asks() == {}


def test_a_batch_that_is_cut_off_is_asked_for_again() -> None:
    reading = Reading()
    asks = reading.asks()
    reading.answer(asks[A], batches(7, 3, 50_000)[:-1])
    assert reading.asks()[A].offset == 9


def test_what_makes_no_batch_is_for_the_user_to_meet() -> None:
    reading = Reading()
    data = bytearray(batches(7, 3, 50_000))
    data[len(data) // 3 + 8 : len(data) // 3 + 12] = bytes(4)
    reading.answer(reading.asks()[A], bytes(data))
    assert reading.asks() == {}


def test_under_another_leader_what_is_unread_comes_first() -> None:
    reading = Reading()
    reading.begun()
    assert A not in reading.asks(snapshot(EPOCH + 1))


def test_what_came_follows_what_is_read_and_then_there_is_room_for_more() -> None:
    reading = Reading()
    first = reading.begun()
    second = reading.answer(reading.asks()[A], batches(9, 2, 50_000))
    assert reading.arrivals.unread == {A: first}
    assert reading.asks() == {}  # nor B alone
    reading.read(first)
    assert (reading.arrivals.unread, reading.arrivals.ahead) == ({A: second}, {})
    assert reading.asks()[A].offset == 11


def test_what_comes_once_all_is_read_is_unread_at_once() -> None:
    reading = Reading()
    first = reading.begun()
    ask = reading.asks()[A]
    reading.read(first)
    second = reading.answer(ask, batches(9, 2, 50_000))
    assert reading.outcome.notify
    assert reading.arrivals.unread == {A: second}


@pytest.mark.parametrize("came_before", [True, False])
def test_nothing_is_read_past_a_batch_that_could_not_be(came_before: bool) -> None:
    reading = Reading()
    first, ask = reading.begun(), reading.asks()[A]
    if came_before:
        reading.answer(ask, batches(9, 2, 50_000))
    reading.place().position = 8
    reading.arrivals.discard(first)
    if not came_before:
        reading.answer(ask, batches(9, 2, 50_000))
    assert (reading.arrivals.unread, reading.arrivals.ahead) == ({}, {})
    assert reading.asks()[A].offset == 8


def test_an_error_is_told_when_the_user_gets_there() -> None:
    reading = Reading()
    first, ask = reading.begun(), reading.asks()[A]
    reading.answer(ask, broker_error(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert (reading.outcome.failed, reading.outcome.notify) == (True, False)
    assert reading.troubles.get(A) is None
    assert reading.arrivals.unread == {A: first}
    reading.read(first)
    reading.answer(reading.asks()[A], broker_error(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert reading.place().position is None


def test_a_leader_that_is_none_any_more_is_looked_up_at_once() -> None:
    reading = Reading()
    reading.begun()
    reading.answer(reading.asks()[A], broker_error(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert (reading.outcome.failed, reading.outcome.outdated, reading.outcome.notify) == (True, True, False)


def test_who_seeks_elsewhere_has_neither() -> None:
    reading = Reading()
    reading.begun()
    reading.answer(reading.asks()[A], batches(9, 2, 50_000))
    reading.positions.seek(A, 8)
    reading.arrivals.drop_stale()
    assert (reading.arrivals.unread, reading.arrivals.ahead) == ({}, {})
    assert reading.asks()[A].offset == 8


# --- a whole consumer --------------------------------------------------------------------------------------------


@asynccontextmanager
async def running(*counts: int, **options: Any) -> AsyncIterator[tuple[Broker, Consumer[bytes, bytes]]]:
    """Partitions with so many batches of 40 KB each, and a consumer that gets two of them at once."""
    async with Broker(port=None) as broker:
        broker.create_topic("a", partitions=len(counts))
        async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka:
            async with kafka.producer(linger_ms=0) as producer:
                for index, count in enumerate(counts):
                    for number in range(count):
                        await producer.send("a", b"%07d" % number * 6_000, partition=index)
            async with kafka.consumer(
                "a", auto_offset_reset="earliest", max_partition_fetch_bytes=100_000, **options
            ) as consumer:
                with anyio.fail_after(SOON):
                    yield broker, consumer


@pytest.mark.anyio
async def test_the_broker_is_at_work_while_the_user_reads() -> None:
    async with running(6) as (broker, consumer), broker.hold(ApiKey.FETCH, after=1) as held:
        assert (await anext(consumer)).offset == 0
        asked = await held.arrived()
        assert asked.request.topics[0].partitions[0].fetch_offset == 2
        assert (await anext(consumer)).offset == 1
        held.release()
        assert [(await anext(consumer)).offset for _ in range(4)] == [2, 3, 4, 5]


@pytest.mark.anyio
async def test_the_next_request_goes_out_before_the_user_gets_what_has_come() -> None:
    async with running(6) as (_, consumer):
        await anext(consumer)
        # The user might keep the loop now, for as long as there is something to read.
        assert list(consumer._fetcher._promised) == [1]


@pytest.mark.anyio
async def test_a_fetch_that_fails_beforehand_troubles_nobody() -> None:
    def refused(_: Any, response: FetchResponse) -> FetchResponse:
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return response

    async with running(6) as (broker, consumer):
        broker.on(ApiKey.FETCH, answer=refused, times=1, after=1)
        offsets = [(await anext(consumer)).offset]
        await eventually(lambda: sum(one.api is ApiKey.FETCH for one in broker.requests) == 3)
        offsets += [(await anext(consumer)).offset for _ in range(5)]
    assert offsets == list(range(6))


async def _one_by_one(consumer: Consumer[bytes, bytes]) -> list[tuple[int, int]]:
    record = await anext(consumer)
    return [(record.partition, record.offset)]


async def _polled(consumer: Consumer[bytes, bytes]) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in await consumer.poll(3)]


async def _in_batches(consumer: Consumer[bytes, bytes]) -> list[tuple[int, int]]:
    batch = await anext(consumer.batches())
    return [(record.partition, record.offset) for record in batch]


@pytest.mark.anyio
@pytest.mark.parametrize("take", [_one_by_one, _polled, _in_batches])
@pytest.mark.parametrize("memory", [10_000_000, 150_000])
async def test_all_is_read_once_and_in_order(take: Callable[[Consumer[bytes, bytes]], Any], memory: int) -> None:
    counts = (9, 1, 4, 12)
    async with running(*counts, fetch_max_bytes=memory) as (_, consumer):
        found = defaultdict[int, list[int]](list)
        while sum(map(len, found.values())) < sum(counts):
            for index, offset in await take(consumer):
                found[index].append(offset)
    assert found == {index: list(range(count)) for index, count in enumerate(counts)}


@pytest.mark.anyio
async def test_what_comes_into_its_turn_behind_a_paused_partition_is_not_overlooked() -> None:
    async with running(2, 4) as (_, consumer):
        await eventually(lambda: B in consumer._fetcher._buffer.ahead and A in consumer._fetcher.unread)
        consumer.pause(A)
        assert [(await anext(consumer)).offset for _ in range(4)] == [0, 1, 2, 3]


@pytest.mark.anyio
async def test_a_damaged_batch_is_met_in_its_turn() -> None:
    async with running(8) as (broker, consumer):
        broker.on(ApiKey.FETCH, corrupt="records", times=1, after=1)
        offsets = []
        with pytest.raises(CorruptBatch):
            while True:
                offsets.append((await anext(consumer)).offset)
        # Whoever goes on gets it from a broker that is in order again.
        while len(offsets) < 8:
            offsets.append((await anext(consumer)).offset)
        assert offsets == list(range(8))
