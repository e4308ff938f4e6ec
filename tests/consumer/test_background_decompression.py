"""Large compressed batches, decompressed on a thread apart from the calls: no call is too short to get on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from os import urandom
from typing import Any, TypeVar, TypeVarTuple, Unpack

import anyio
import anyio.lowlevel
import pytest
from support.clusters import QUICK
from support.patience import SOON

from aiokafkawire import Client, Consumer, CorruptBatch, TopicPartition, blocking
from aiokafkawire.consumer import background_decompression
from aiokafkawire.consumer.background_decompression import needs_thread
from aiokafkawire.records.batch import BatchHeader
from aiokafkawire.records.compression import Codec
from aiokafkawire.runtime import Runtime
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
RECORDS = 40


@pytest.fixture(autouse=True)
def batches_of_64_kb_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for codec in Codec:
        if codec is not Codec.NONE:
            monkeypatch.setitem(background_decompression._LARGEST_ON_LOOP, codec, 64 * 1024)


class Thread:
    """Runs what is offloaded when the test says so, and counts it. ``error`` is raised by the next one."""

    def __init__(self, *, free: bool = True) -> None:
        self.begun = self.ended = self.most = 0
        self.error: Exception | None = None
        self.gate = anyio.Event()
        self.at_work = anyio.Event()
        if free:
            self.gate.set()

    async def offload(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        self.begun += 1
        self.most = max(self.most, self.begun - self.ended)
        self.at_work.set()
        try:
            await anyio.lowlevel.checkpoint()
            await self.gate.wait()
            error, self.error = self.error, None
            if error is not None:
                raise error
            return function(*args)
        finally:
            self.ended += 1


def value(number: int) -> bytes:
    # Half of it can be compressed, so that a batch is large before and after.
    return b"%d:" % number + urandom(3_000) * 2


def numbers(records: Any) -> list[int]:
    return [int(record.value.partition(b":")[0]) for record in records]


@asynccontextmanager
async def running(thread: Thread, batches: int = 3, *, codec: Any = "zstd") -> AsyncIterator[Consumer[bytes, bytes]]:
    """A consumer of a partition with large batches, and of another with one record, once both are fetched."""
    async with Broker(port=None) as broker:
        broker.create_topic("a", partitions=2)
        runtime = Runtime(offload=thread.offload)
        async with Client(broker.bootstrap, connector=broker.connect, **QUICK) as writer:
            for batch in range(batches):
                async with writer.producer(compression_type=codec, batch_size=1_000_000, linger_ms=100) as producer:
                    first = batch * RECORDS
                    await producer.enqueue_many("a", [value(one) for one in range(first, first + RECORDS)], partition=0)
            async with writer.producer() as producer:
                await producer.send("a", b"1000:", partition=1)
        async with (
            Client(broker.bootstrap, connector=broker.connect, runtime=runtime, **QUICK) as client,
            client.consumer(auto_offset_reset="earliest") as consumer,
        ):
            consumer.assign([A0])
            with anyio.fail_after(SOON):
                await is_here(consumer, A0)
                yield consumer


async def is_here(consumer: Consumer[bytes, bytes], partition: TopicPartition) -> None:
    while partition not in consumer._fetcher.unread:
        await consumer._fetcher.arrived.wait()


async def all_of(take: Callable[[], Any], count: int) -> list[int]:
    """What many short calls bring together."""
    found: list[int] = []
    while len(found) < count:
        found += numbers(await take())
        await anyio.lowlevel.checkpoint()
    return found


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
@pytest.mark.parametrize("timeout", [0, 0.000_001])
async def test_a_poll_that_does_not_wait_gets_on(codec: Any, timeout: float) -> None:
    thread = Thread()
    async with running(thread, codec=codec) as consumer:
        found = await all_of(lambda: consumer.poll(timeout=timeout), 3 * RECORDS)
        assert found == list(range(3 * RECORDS))
        assert thread.begun == 3


async def test_a_batch_that_is_soon_decompressed_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(background_decompression._LARGEST_ON_LOOP, Codec.LZ4, 512 * 1024)
    thread = Thread()
    async with running(thread, codec="lz4") as consumer:
        assert await all_of(lambda: consumer.poll(timeout=0), 3 * RECORDS) == list(range(3 * RECORDS))
        assert thread.begun == 0


@pytest.mark.parametrize(
    ("codec", "size", "needed"),
    [
        (Codec.NONE, 10_000_000, False),
        (Codec.GZIP, 64 * 1024, False),
        (Codec.GZIP, 64 * 1024 + 1, True),
        (Codec.LZ4, 64 * 1024, False),
        (Codec.LZ4, 64 * 1024 + 1, True),
        (7, 10_000_000, False),  # unknown: reading it fails at once
    ],
)
def test_what_needs_a_thread(codec: int, size: int, needed: bool) -> None:
    header = BatchHeader(0, size - 12, 0, 2, 0, int(codec), 0, 0, 0, -1, -1, -1, 1)
    assert (header.codec, header.size) == (codec, size)
    assert needs_thread(header) is needed


async def test_an_iteration_that_is_cancelled_each_time_gets_on() -> None:
    thread = Thread()
    async with running(thread) as consumer:
        found: list[int] = []
        while len(found) < 3 * RECORDS:
            with anyio.move_on_after(0):
                async for record in consumer:
                    found += numbers([record])
            await anyio.lowlevel.checkpoint()
        assert found == list(range(3 * RECORDS))
        assert thread.begun == 3


async def test_batches_that_are_cancelled_each_time_get_on() -> None:
    thread = Thread()
    async with running(thread) as consumer:
        batches = consumer.batches()

        async def take() -> Any:
            with anyio.move_on_after(0):
                return list(await anext(batches))
            return []

        assert await all_of(take, 3 * RECORDS) == list(range(3 * RECORDS))
        assert thread.begun == 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_tasks_that_asyncio_cancels_get_on() -> None:
    thread = Thread()
    async with running(thread) as consumer:

        async def take() -> Any:
            call = asyncio.ensure_future(consumer.poll())
            await asyncio.sleep(0)
            call.cancel()
            with suppress(asyncio.CancelledError):
                return await call
            return []

        assert await all_of(take, 3 * RECORDS) == list(range(3 * RECORDS))
        assert thread.begun == 3


async def test_the_work_that_a_call_has_begun_is_not_done_twice() -> None:
    thread = Thread(free=False)
    async with running(thread, 1) as consumer:
        for _ in range(20):
            assert await consumer.poll(timeout=0) == []
        assert (thread.begun, thread.ended) == (1, 0)
        thread.gate.set()
        assert numbers(await consumer.poll()) == list(range(RECORDS))
        assert (thread.begun, thread.ended) == (1, 1)


async def test_other_partitions_do_not_wait_for_it_and_one_batch_is_worked_on_at_a_time() -> None:
    thread = Thread(free=False)
    async with running(thread) as consumer:
        assert await consumer.poll(timeout=0) == []
        consumer.assign([A0, A1])
        await is_here(consumer, A1)
        assert numbers(await consumer.poll()) == [1000]
        thread.gate.set()
        found = await all_of(consumer.poll, 3 * RECORDS)
        assert found == list(range(3 * RECORDS))
        assert thread.most == 1


async def test_a_seek_meanwhile_is_where_it_goes_on() -> None:
    thread = Thread(free=False)
    async with running(thread) as consumer:
        assert await consumer.poll(timeout=0) == []
        await thread.at_work.wait()
        consumer.seek(A0, RECORDS + 3)
        assert await consumer.poll(timeout=0) == []
        thread.gate.set()
        found = await all_of(lambda: consumer.poll(timeout=0), 2 * RECORDS - 3)
        assert found == list(range(RECORDS + 3, 3 * RECORDS))
        assert thread.ended == thread.begun


@pytest.mark.parametrize("what", ["consumer", "client"])
async def test_it_is_closed_while_the_thread_is_at_work(what: str) -> None:
    thread = Thread(free=False)
    async with running(thread) as consumer:
        assert await consumer.poll(timeout=0) == []
        await thread.at_work.wait()
        if what == "consumer":
            await consumer.close()
            thread.gate.set()
        else:
            await consumer._cluster.close()
    assert thread.ended == thread.begun == 1


async def test_damage_is_told_by_a_call_that_does_not_wait() -> None:
    thread = Thread()
    async with running(thread, 1) as consumer:
        thread.error = CorruptBatch("damaged")
        with pytest.raises(CorruptBatch, match="damaged"):
            while True:
                await consumer.poll(timeout=0)
        assert consumer.position(A0) == 0
        assert numbers(await consumer.poll()) == list(range(RECORDS))


async def test_another_error_of_the_thread_is_raised_once_and_the_next_call_tries_again() -> None:
    thread = Thread()
    async with running(thread, 1) as consumer:
        thread.error = MemoryError("too little")
        with pytest.raises(MemoryError, match="too little"):
            await consumer.poll()
        assert numbers(await consumer.poll()) == list(range(RECORDS))


async def test_an_error_costs_no_record_that_is_here_before_it() -> None:
    thread = Thread()
    async with running(thread) as consumer:
        assert numbers(await consumer.poll(RECORDS)) == list(range(RECORDS))
        thread.error = CorruptBatch("damaged")
        found: list[int] = []
        errors = 0
        while len(found) < 2 * RECORDS:
            try:
                found += numbers(await consumer.poll(3))
            except CorruptBatch:
                errors += 1
        assert found == list(range(RECORDS, 3 * RECORDS))
        assert errors == 1


def test_a_blocking_poll_that_does_not_wait_gets_on() -> None:
    with BackgroundBroker() as broker, blocking.Client(broker.bootstrap) as kafka:
        kafka.admin.create_topics({"a": 1})
        with kafka.producer(compression_type="zstd", batch_size=1_000_000, linger_ms=100) as producer:
            producer.enqueue_many("a", [value(one) for one in range(RECORDS)])
            producer.flush()
        with kafka.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([A0])
            found: list[int] = []
            while len(found) < RECORDS:
                found += numbers(consumer.poll(timeout=0))
            assert found == list(range(RECORDS))
