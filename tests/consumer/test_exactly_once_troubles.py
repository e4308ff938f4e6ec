"""What the exactly-once loop does about errors of the brokers: what can be mended, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import sniffio
from support.clusters import QUICK
from support.committed import committed
from support.fetching import numbers

from aiokafkawire import Client, ConsumerRecord, KafkaError, TopicPartition
from aiokafkawire.errors import ErrorCode, RequestTimeout, TopicAuthorizationFailed, TransactionAbortable
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.transform import OutgoingRecord

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


class Loop:
    """The loop, on topics ``in``, of 100 numbers, and ``out``; it counts the calls of process."""

    def __init__(self, broker: Broker, kafka: Client) -> None:
        self.broker, self.kafka, self.calls = broker, kafka, 0

    def process(self, records: list[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
        self.calls += 1
        return [OutgoingRecord("out", record.value) for record in records]

    async def run(self, **options: Any) -> int:
        with anyio.fail_after(10):
            return await self.kafka.transform(
                "in",
                self.process,
                group_id="g",
                transactional_id="t",
                max_records=25,
                commit_interval_ms=50,
                until_end=True,
                **options,
            )

    async def outcome(self) -> list[bytes | None]:
        return await committed(self.kafka, TopicPartition("out", 0))


@asynccontextmanager
async def looping(release: str | None = None, **options: Any) -> AsyncIterator[Loop]:
    async with (
        Broker(port=None, max_versions=release) as broker,
        Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options}) as kafka,
    ):
        yield await prepared(broker, kafka)


async def prepared(broker: Broker, kafka: Client) -> Loop:
    broker.create_topic("in")
    broker.create_topic("out")
    async with kafka.producer() as producer:
        await producer.send_many("in", numbers(0, 100))
    return Loop(broker, kafka)


def in_virtual_time(**options: Any) -> Callable[[Callable[[Loop], Awaitable[None]]], None]:
    """Run it at once, where limits are met however busy the machine is."""

    def run(body: Callable[[Loop], Awaitable[None]]) -> None:
        async def main(sim: Simulation) -> None:
            async with sim.client("app", **{**QUICK, **options}) as kafka:
                await body(await prepared(sim.broker, kafka))

        simulate(main, nodes=1)

    return run


@pytest.mark.parametrize("api", [ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN])
@pytest.mark.parametrize("release", ["3.9", None])
async def test_what_an_abort_mends_is_made_anew_of_the_same_records(api: ApiKey, release: str | None) -> None:
    async with looping(release) as loop:
        order = loop.broker.on(api, answer=ErrorCode.TRANSACTION_ABORTABLE, after=1)
        assert await loop.run() == 100
        assert order.is_met
        assert loop.calls == 4
        assert await loop.outcome() == numbers(0, 100)


@pytest.mark.parametrize("after", [0, 1])
async def test_a_process_that_uses_up_its_list_loses_nothing_when_its_producer_is_fenced(after: int) -> None:
    def use_up(records: list[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
        found = []
        while records:
            found.append(OutgoingRecord("out", records.pop(0).value))
        return found

    async with looping() as loop:
        loop.process = use_up  # type: ignore[method-assign]
        order = loop.broker.on(ApiKey.END_TXN, answer=ErrorCode.PRODUCER_FENCED, after=after)
        count = await loop.run()
        assert order.is_met
        assert await loop.outcome() == numbers(0, 100)
        assert count == 100


async def test_connections_that_break_are_mended() -> None:
    async with looping() as loop:
        orders = [
            loop.broker.on(api, drop=moment, after=1)
            for api in (ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN, ApiKey.FETCH, ApiKey.OFFSET_FETCH)
            for moment in ("before", "after")
        ]
        assert await loop.run() == 100
        assert [order.is_met for order in orders[:4]] == [True] * 4
        assert await loop.outcome() == numbers(0, 100)


async def test_what_no_abort_mends_ends_it_at_once() -> None:
    async with looping() as loop:
        order = loop.broker.on(ApiKey.PRODUCE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic="out", times=None)
        with pytest.raises(TopicAuthorizationFailed, match="out-0"):
            await loop.run()
        assert order.count == 1
        order.remove()
        assert await loop.run() == 100
        assert await loop.outcome() == numbers(0, 100)


def test_trouble_that_lasts_ends_it() -> None:
    @in_virtual_time(default_api_timeout_ms=1_000)
    async def _(loop: Loop) -> None:
        order = loop.broker.on(ApiKey.PRODUCE, answer=ErrorCode.TRANSACTION_ABORTABLE, topic="out", times=None)
        with pytest.raises(TransactionAbortable):
            await loop.run()
        assert order.count > 1
        assert loop.calls == 1


def test_a_commit_whose_outcome_nobody_knows_ends_it_and_the_next_run_finds_out() -> None:
    @in_virtual_time()
    async def _(loop: Loop) -> None:
        order = loop.broker.on(ApiKey.END_TXN, drop="after", times=None)
        # A static member has the same transactional id after a restart, and so ends its open transaction at once.
        static: Any = {"consumer_options": {"group_instance_id": "one"}}
        told = "transactional_id 't-one': whether the transaction was committed is not"
        with pytest.raises(RequestTimeout, match=told):
            await loop.run(producer_options={"max_block_ms": 300}, **static)
        assert loop.calls == 1
        order.remove()
        assert await loop.run(**static) == 75
        assert await loop.outcome() == numbers(0, 100)


def test_a_static_member_that_was_removed_and_has_rejoined_goes_on() -> None:
    @in_virtual_time()
    async def _(loop: Loop) -> None:
        requests = loop.broker.requests
        order = loop.broker.on(ApiKey.TXN_OFFSET_COMMIT, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)

        async def remove() -> None:
            await requests.wait_for(ApiKey.TXN_OFFSET_COMMIT)
            requests.clear()
            await loop.kafka.admin.remove_members("g", ["one"])
            await requests.wait_for(ApiKey.SYNC_GROUP)  # under another id, so that the former one is fenced
            order.remove()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(remove)
            assert await loop.run(consumer_options={"group_instance_id": "one"}) == 100
        assert await loop.outcome() == numbers(0, 100)


async def test_a_cancellation_of_its_own_does_not_end_it_as_if_it_were_cancelled() -> None:
    if sniffio.current_async_library() == "trio":
        pytest.skip("trio's users cannot make a Cancelled")

    async def process(records: list[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
        task = asyncio.create_task(anyio.sleep_forever())
        task.cancel()
        await task
        return []

    async with looping() as loop:
        loop.process = process  # type: ignore[assignment,method-assign]
        with pytest.raises(KafkaError, match="process has raised CancelledError, and nobody has cancelled it"):
            await loop.run()
        del loop.process
        assert await loop.run() == 100


def test_a_rebalance_ends_gathering() -> None:
    @in_virtual_time()
    async def _(loop: Loop) -> None:
        loop.broker.create_topic("more", partitions=2)
        async with loop.kafka.producer() as producer:
            await producer.send("more", b"1", partition=0)
            await producer.send("more", b"2", partition=1)
        processed: list[bytes | None] = []
        gathered = anyio.Event()

        def process(records: list[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
            processed.extend(record.value for record in records)
            gathered.set()
            return []

        async def run() -> None:  # each gathers for a day
            arguments: Any = {"group_id": "h", "transactional_id": "h", "commit_interval_ms": 86_400_000}
            await loop.kafka.transform("more", process, **arguments)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.sleep(60)
            assert not processed
            tasks.start_soon(run)
            with anyio.fail_after(60):
                await gathered.wait()
            tasks.cancel_scope.cancel()
        assert sorted(map(str, processed)) == ["b'1'", "b'2'"]


def test_a_rebalance_does_not_wait_for_a_batch_without_records() -> None:
    """As at the end of a compacted log."""

    @in_virtual_time()
    async def _(loop: Loop) -> None:
        loop.broker.create_topic("more", partitions=2, configs={"cleanup.policy": "compact"})
        async with loop.kafka.producer() as producer:
            for index in (0, 1):
                await producer.send_many("more", [b"old", None], keys=[b"a", b"b"], partition=index)
            loop.broker.compact("more", keep_tombstones=False)
            await loop.kafka.admin.alter_consumer_group_offsets("h", {TopicPartition("more", at): 1 for at in (0, 1)})
            processed: list[bytes | None] = []
            both = anyio.Event()

            def process(records: list[ConsumerRecord[bytes, bytes]]) -> list[OutgoingRecord]:
                processed.extend(record.value for record in records)
                if len(processed) == 2:
                    both.set()
                return []

            async def run() -> None:
                await loop.kafka.transform("more", process, group_id="h", transactional_id="h")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await anyio.sleep(10)
                tasks.start_soon(run)
                await anyio.sleep(10)
                for index in (0, 1):
                    await producer.send("more", b"new", key=b"c", partition=index)
                with anyio.fail_after(60):
                    await both.wait()
                tasks.cancel_scope.cancel()
        assert processed == [b"new", b"new"]


async def test_a_source_that_cannot_be_read_ends_it() -> None:
    async with looping() as loop:
        loop.broker.on(ApiKey.OFFSET_FETCH, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED, times=None)
        with pytest.raises(KafkaError, match="OffsetFetch of group 'g': GROUP_AUTHORIZATION_FAILED"):
            await loop.run()
        assert loop.calls == 0
