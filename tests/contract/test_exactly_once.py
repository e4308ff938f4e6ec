"""What the exactly-once loop promises, whichever broker it runs on, with transaction.version 1 and 2."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from secrets import token_hex
from struct import Struct
from typing import Any

import anyio
import attrs
import pytest
from anyio.abc import ByteStream
from contract.conftest import BOTH_TRANSACTION_VERSIONS, Where
from support.committed import committed, raw, timed_out
from support.patience import PATIENCE
from support.raw_client import RawClient, batch_of
from support.scripted_broker import HeldStream
from support.transactional import settled

from aiokafkawire import Client, ConfigError, ConsumerRecord, TopicPartition, UsageError
from aiokafkawire.errors import InvalidTxnState, MessageTooLarge, ProducerFenced, RecordTooLarge
from aiokafkawire.network.connector import Connector
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic
from aiokafkawire.transform import OutgoingRecord

pytestmark = [pytest.mark.anyio, BOTH_TRANSACTION_VERSIONS]

COUNT = 1_000
_HEAD = Struct(">ih")
"""Of a request's frame: its size, and the API."""
PARTITIONS = 2
STATIC = {"group_instance_id": "one"}
"""Consumer options of an instance whose transactional id ends with ``-one``."""
Record = ConsumerRecord[bytes, bytes]


class Failed(Exception):
    """What process raises."""


@attrs.frozen
class Job:
    """A loop's topics and names; the source has the numbers from 0 on, in turn in each partition."""

    kafka: Client
    source: str
    target: str
    name: str

    async def fill(self, first: int, end: int) -> None:
        async with self.kafka.producer() as producer:
            for number in range(first, end):
                await producer.enqueue(self.source, b"%d" % number, partition=number % PARTITIONS)

    def doubled(self, records: list[Record]) -> list[OutgoingRecord]:
        """Twice the number, into the partition with the same index."""
        return [OutgoingRecord(self.target, b"%d" % (2 * number(one)), partition=one.partition) for one in records]

    async def run(self, process: Any = None, **arguments: Any) -> int:
        """The loop, to the end if nothing else is said."""
        settings: dict[str, Any] = {"commit_interval_ms": 20, "until_end": True, "group_id": self.name} | arguments
        settings["consumer_options"] = {"fetch_max_wait_ms": 20} | settings.get("consumer_options", {})
        with anyio.fail_after(PATIENCE):
            return await self.kafka.transform(
                self.source, process or self.doubled, transactional_id=self.name, **settings
            )

    async def outcome(self) -> list[list[int]]:
        """What readers of committed records find in each partition of the target."""
        found = [await committed(self.kafka, TopicPartition(self.target, index)) for index in range(PARTITIONS)]
        return [[int(value) for value in values if value is not None] for values in found]


def number(record: Record) -> int:
    assert record.value is not None
    return int(record.value)


def doubles(end: int) -> list[list[int]]:
    """What a job makes of the numbers below ``end``."""
    return [[2 * one for one in range(index, end, PARTITIONS)] for index in range(PARTITIONS)]


@attrs.define
class Valve:
    """A connector: once it is closed, its connections keep back requests of an API, and all behind them."""

    connector: Connector
    api: ApiKey
    closed: anyio.Event = attrs.field(factory=anyio.Event)
    """Set when something is kept back."""
    _opened: anyio.Event | None = None

    def close(self) -> None:
        self._opened = anyio.Event()

    def open(self) -> None:
        assert self._opened is not None
        self._opened.set()

    async def connect(self, host: str, port: int) -> ByteStream:
        return _Valved(await self.connector(host, port), self)

    async def passed(self, data: bytes) -> None:
        """Wait until these frames may be sent."""
        position = 0
        while self._opened is not None and position < len(data):
            size, key = _HEAD.unpack_from(data, position)
            position += 4 + size
            if key == self.api:
                self.closed.set()
                await self._opened.wait()


class _Valved(HeldStream):
    def __init__(self, stream: ByteStream, valve: Valve) -> None:
        super().__init__(stream)
        self.valve = valve

    async def send(self, item: bytes) -> None:
        await self.valve.passed(item)
        await super().send(item)


@pytest.fixture
async def job(kafka: Client) -> Job:
    name = f"job-{token_hex(6)}"
    topics = f"{name}-in", f"{name}-out"
    await kafka.admin.create_topics(dict.fromkeys(topics, PARTITIONS))
    return Job(kafka, *topics, name)


async def test_every_record_counts_once(job: Job) -> None:
    await job.fill(0, COUNT)
    sizes: list[int] = []

    def process(records: list[Record]) -> Iterable[OutgoingRecord]:
        sizes.append(len(records))
        return job.doubled(records)

    assert await job.run(process, max_records=100) == COUNT
    assert sum(sizes) == COUNT
    assert max(sizes) <= 100
    assert await job.outcome() == doubles(COUNT)
    # Nothing is left to do, and the next run goes on behind it.
    assert await job.run(process) == 0
    await job.fill(COUNT, COUNT + 10)
    assert await job.run(process) == 10
    assert await job.outcome() == doubles(COUNT + 10)


async def test_process_may_be_a_coroutine_a_generator_or_send_nothing(job: Job) -> None:
    await job.fill(0, 9)

    async def asynchronously(records: list[Record]) -> list[OutgoingRecord]:
        await anyio.lowlevel.checkpoint()
        return job.doubled(records)

    def one_by_one(records: list[Record]) -> Iterable[OutgoingRecord]:
        yield from job.doubled(records)

    assert await job.run(asynchronously) == 9
    await job.fill(9, 20)
    assert await job.run(one_by_one) == 11
    await job.fill(20, 30)
    assert await job.run(lambda records: []) == 10
    assert await job.run() == 0
    assert await job.outcome() == doubles(20)


async def test_what_goes_out_is_as_it_was_said(job: Job) -> None:
    await job.fill(0, 1)
    made = OutgoingRecord(job.target, b"v", key=b"k", partition=1, headers=[("h", b"1")], timestamp_ms=1_000)
    await job.run(lambda records: [made])
    async with job.kafka.consumer() as consumer:
        consumer.assign({TopicPartition(job.target, 1): 0})
        record = await anext(consumer)
    assert (record.value, record.key, record.headers, record.timestamp) == (b"v", b"k", (("h", b"1"),), 1_000)


# --- what goes wrong -----------------------------------------------------------------------------------------------


async def test_process_raises_now_and_then(job: Job) -> None:
    await job.fill(0, COUNT)
    calls, failures = 0, 0

    def process(records: list[Record]) -> Iterable[OutgoingRecord]:
        nonlocal calls
        calls += 1
        for index, one in enumerate(job.doubled(records)):
            if calls % 4 == 0 and index == len(records) // 2:
                raise Failed(calls)
            yield one

    while True:
        try:
            await job.run(process, max_records=70)
            break
        except Failed:
            failures += 1
    assert failures >= 3
    assert await job.outcome() == doubles(COUNT)


async def test_it_is_cancelled_and_begun_again(job: Job) -> None:
    await job.fill(0, COUNT)
    seen = 0

    # Once while it processes, and then somewhere in a transaction.
    for calls in (2, 3, 4, 5):
        with anyio.CancelScope() as scope:

            async def process(records: list[Record], scope: anyio.CancelScope = scope, left: int = calls) -> Any:
                nonlocal seen
                seen += 1
                if seen == left:
                    scope.cancel()
                    if left % 2:
                        await anyio.sleep_forever()
                return job.doubled(records)

            seen = 0
            await job.run(process, max_records=50)
        assert scope.cancelled_caught
    assert await job.run() > 0
    assert await job.outcome() == doubles(COUNT)


async def test_stopped_it_ends_with_the_transaction_at_hand(job: Job, cluster: Where) -> None:
    await job.fill(0, 100)
    stop = anyio.Event()

    def process(records: list[Record]) -> Iterable[OutgoingRecord]:
        stop.set()
        return job.doubled(records)

    assert await job.run(process, max_records=30, stop=stop, until_end=False) == 30
    assert await job.run(process, stop=stop, until_end=False) == 0
    assert await job.run() == 70
    assert await job.outcome() == doubles(100)


async def test_stopped_while_nothing_comes_it_ends_at_once(job: Job) -> None:
    stop = anyio.Event()
    ended: list[int] = []

    async def run() -> None:
        ended.append(await job.run(stop=stop, until_end=False))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        stop.set()
    assert ended == [0]


async def test_the_producer_of_a_static_member_is_fenced_by_another_with_its_id(job: Job) -> None:
    await job.fill(0, 100)

    async def process(records: list[Record]) -> list[OutgoingRecord]:
        async with job.kafka.producer(transactional_id=f"{job.name}-one"):
            return job.doubled(records)

    with pytest.raises(ProducerFenced, match=f"{job.name}-one"):
        await job.run(process, consumer_options=STATIC)
    assert await job.outcome() == [[], []]
    assert await job.run(consumer_options=STATIC) == 100
    assert await job.outcome() == doubles(100)


@pytest.mark.slow
@pytest.mark.parametrize("is_static", [True, False])
async def test_a_transaction_times_out(cluster: Where, job: Job, is_static: bool) -> None:
    """Another process may have the id of a static member, so that one ends; the ids of others are theirs alone."""
    await job.fill(0, COUNT)
    valve = Valve(cluster.connector, ApiKey.END_TXN)
    sizes: list[int] = []

    def process(records: list[Record]) -> list[OutgoingRecord]:
        sizes.append(len(records))
        if len(sizes) == 3:
            valve.close()
        return job.doubled(records)

    async def let_it_time_out() -> None:
        await valve.closed.wait()
        (listing,) = [one for one in await job.kafka.admin.list_transactions() if job.name in one.transactional_id]
        await timed_out(cluster, listing.transactional_id)
        valve.open()

    arguments: Any = {"max_records": 100, "producer_options": {"transaction_timeout_ms": 1_000}}
    async with Client(cluster.bootstrap, connector=valve.connect) as kafka:
        slow = attrs.evolve(job, kafka=kafka)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(let_it_time_out)
            if is_static:
                with pytest.raises((ProducerFenced, InvalidTxnState), match=f"{job.name}-one"):
                    await slow.run(process, consumer_options=STATIC, **arguments)
            else:
                assert await slow.run(process, **arguments) == COUNT
    if is_static:
        done = sum(sizes[:2])
        assert sum(map(len, await job.outcome())) == done
        assert await job.run(consumer_options=STATIC) == COUNT - done
    else:
        assert sum(sizes) > COUNT  # the records of the aborted transaction were processed again
    assert await job.outcome() == doubles(COUNT)


async def test_records_that_cannot_be_sent_end_it(job: Job) -> None:
    await job.fill(0, 10)
    with pytest.raises(RecordTooLarge):
        await job.run(lambda records: [OutgoingRecord(job.target, b"x" * 2_000_000)])
    large = {"max_request_size": 3_000_000}
    with pytest.raises(MessageTooLarge):
        await job.run(lambda records: [OutgoingRecord(job.target, b"x" * 2_000_000)], producer_options=large)
    with pytest.raises(UsageError, match="has 2 partitions, no 7"):
        await job.run(lambda records: [OutgoingRecord(job.target, b"x", partition=7)])
    assert await job.run() == 10
    assert await job.outcome() == doubles(10)


@pytest.mark.parametrize("made", [None, b"bytes", ["text"], 5])
async def test_what_process_returns_has_to_be_sendable(job: Job, made: Any) -> None:
    await job.fill(0, 1)
    with pytest.raises(UsageError, match="process must return an iterable of OutgoingRecord"):
        await job.run(lambda records: made)


async def test_arguments_are_checked(job: Job) -> None:
    for arguments, told in (
        ({"max_records": 0}, "max_records must be an integer of at least 1, got 0"),
        ({"commit_interval_ms": 0.5}, "commit_interval_ms must be an integer of at least 1"),
        ({"consumer_options": {"isolation_level": "read_uncommitted"}}, "isolation_level is an argument of transform"),
        ({"producer_options": {"transactional_id": "other"}}, "transactional_id is an argument of transform"),
        ({"group_id": ""}, "group_id must not be empty"),
    ):
        with pytest.raises(ConfigError, match=told):
            await job.run(**arguments)
    with pytest.raises(UsageError, match="needs a topic to read"):
        await attrs.evolve(job, source=()).run()  # type: ignore[arg-type]


# --- what is read --------------------------------------------------------------------------------------------------


async def test_partitions_that_appear_are_read_as_well(cluster: Where, job: Job) -> None:
    await job.fill(0, 10)
    stop, seen = anyio.Event(), list[int]()

    async def process(records: list[Record]) -> list[OutgoingRecord]:
        if not seen:
            async with raw(cluster) as client:
                more = CreatePartitionsTopic(name=job.source, count=3, assignments=None)
                await client.ask(CreatePartitionsRequest(topics=[more], timeout_ms=10_000, validate_only=False), 3)
                await settled(partial(write_to, client, job.source, 2), lambda error: not error)
        seen.extend(map(number, records))
        if len(seen) == 11:
            stop.set()
        return []

    async with cluster.client(metadata_max_age_ms=50) as kafka:
        assert await attrs.evolve(job, kafka=kafka).run(process, stop=stop, until_end=False) == 11
    assert sorted(seen) == list(range(11))


async def write_to(client: RawClient, topic: str, partition: int) -> int:
    """The error of writing the number 10."""
    return (await client.produce(topic, batch_of(b"10"), partition=partition, version=9)).error_code


async def test_records_of_aborted_transactions_are_not_read(job: Job) -> None:
    await job.fill(0, 10)
    async with job.kafka.producer(transactional_id=f"{job.name}-source") as producer:
        with pytest.raises(Failed):
            async with producer.transaction() as tx:
                await tx.send(job.source, b"77", partition=0)
                raise Failed
    assert await job.run() == 10
    assert await job.outcome() == doubles(10)


async def test_an_empty_source_ends_at_once(job: Job) -> None:
    assert await job.run() == 0
