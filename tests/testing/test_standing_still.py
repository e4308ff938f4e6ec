"""Requests that wait: held by a test, delayed, at frozen nodes and paused partitions; and connections refused."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from support.dialling import over_memory, over_tcp
from support.patience import SOON
from support.raw_client import RawClient, batch_of, fetch_request, produce_request, records_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.fetch import FetchRequest
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest
from aiokafkawire.protocol.messages.produce import ProduceRequest
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.faults.request_log import RequestOutcome

pytestmark = pytest.mark.anyio

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        broker.create_topic("t", partitions=2)
        yield broker


async def connect(broker: Broker) -> RawClient:
    return RawClient(await broker.connect("memory-1", 9092))


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[RawClient]:
    async with await connect(broker) as client:
        yield client


def end(broker: Broker) -> int:
    return broker.log("t").log_end_offset


async def test_a_held_request_waits_until_the_test_lets_it_go(broker: Broker, client: RawClient) -> None:
    async with broker.hold(ApiKey.PRODUCE) as held, await connect(broker) as other:
        sent = await client.send(produce_request("t", batch_of(b"x")), 12)
        waiting = await held.arrived()
        assert (waiting.outcome, end(broker), held.waiting) == (RequestOutcome.PENDING, 0, [waiting])
        assert (await other.ask(ApiVersionsRequest(), 0)).error_code == 0
        held.release()
        await client.answer(ProduceRequest, 12, sent)
        assert (end(broker), held.waiting) == (1, [])
        await other.produce("t", batch_of(b"y"))  # no longer held


async def test_an_answer_is_held_when_the_work_is_done(broker: Broker, client: RawClient) -> None:
    async with broker.hold(ApiKey.PRODUCE, "after") as held:
        sent = await client.send(produce_request("t", batch_of(b"x")), 12)
        await held.arrived()
        assert end(broker) == 1
    await client.answer(ProduceRequest, 12, sent)  # leaving the context lets it go


async def test_held_requests_go_one_by_one(broker: Broker, client: RawClient) -> None:
    async with (
        broker.hold(ApiKey.PRODUCE, times=2) as held,
        await connect(broker) as other,
        await connect(broker) as free,
    ):
        for one in (client, other):
            await one.send(produce_request("t", batch_of(b"x")), 12)
        await held.arrived(2)
        await free.produce("t", batch_of(b"x"))  # the third is none of its business
        held.release(1)
        await client.frame()
        assert (len(held.waiting), end(broker)) == (1, 2)
        held.release(1)
        await other.frame()


async def test_a_delay_before_the_work_and_before_the_answer(broker: Broker, client: RawClient) -> None:
    for before, after, written in ((3600.0, 0.0, 0), (0.0, 3600.0, 1)):
        broker.on(ApiKey.PRODUCE, delay=before, delay_answer=after)
        async with await connect(broker) as other:
            await other.send(produce_request("t", batch_of(b"x")), 12)
            await broker.requests.wait_for(ApiKey.PRODUCE)
            await anyio.wait_all_tasks_blocked()
            assert (end(broker), broker.requests[-1].outcome) == (written, RequestOutcome.PENDING)
    broker.on(ApiKey.PRODUCE, delay=0.001, delay_answer=0.001, answer=NOT_LEADER)
    assert (await client.produce("t", batch_of(b"x"))).error_code == NOT_LEADER


async def test_a_frozen_node_is_silent_and_goes_on_where_it_was(broker: Broker, client: RawClient) -> None:
    polling = await client.send(fetch_request("t", 0, max_wait_ms=3_600_000), 12)
    await broker.requests.wait_for(ApiKey.FETCH)
    broker.freeze_node(1)
    async with await connect(broker) as other:
        sent = await other.send(produce_request("t", batch_of(b"x")), 12)
        await broker.requests.wait_for(ApiKey.PRODUCE)
        await anyio.wait_all_tasks_blocked()
        assert end(broker) == 0
        broker.thaw_node(1)
        await other.answer(ProduceRequest, 12, sent)
    await client.answer(FetchRequest, 12, polling)
    with pytest.raises(KeyError):
        broker.freeze_node(7)


async def test_a_frozen_node_keeps_back_what_it_has_done(broker: Broker, client: RawClient) -> None:
    async with broker.hold(ApiKey.PRODUCE, "after") as held:
        sent = await client.send(produce_request("t", batch_of(b"x")), 12)
        asked = await held.arrived()
        broker.freeze_node(1)
        held.release()
        await anyio.wait_all_tasks_blocked()
        assert (end(broker), asked.outcome) == (1, RequestOutcome.PENDING)
        broker.thaw_node(1)
        await client.answer(ProduceRequest, 12, sent)


async def test_a_paused_partition_gives_and_takes_nothing(broker: Broker, client: RawClient) -> None:
    await client.produce("t", batch_of(b"x"))
    broker.pause_partition("t")
    empty = await client.fetch("t", 0)
    assert (empty.error_code, empty.records, empty.high_watermark) == (0, b"", 1)
    polling = await client.send(fetch_request("t", 0, max_wait_ms=3_600_000), 12)
    async with await connect(broker) as other:
        sent = await other.send(produce_request("t", batch_of(b"y")), 12)
        await broker.requests.wait_for(ApiKey.PRODUCE, 2)
        await anyio.wait_all_tasks_blocked()
        assert end(broker) == 1
        assert (await other_partition(broker)).error_code == 0
        broker.resume_partition("t")
        await other.answer(ProduceRequest, 12, sent)
    answer: Any = await client.answer(FetchRequest, 12, polling)
    assert records_of(answer.responses[0].partitions[0])[0].value == b"x"


async def other_partition(broker: Broker) -> Any:
    async with await connect(broker) as client:
        return await client.produce("t", batch_of(b"z"), partition=1)


@pytest.mark.parametrize("port", [None, 0])
async def test_connections_are_refused_and_those_that_there_are_live_on(port: int | None) -> None:
    async with Broker(port=port) as broker:
        dial = over_memory if port is None else over_tcp
        async with RawClient(await dial(broker)) as client:
            await client.ask(ApiVersionsRequest(), 0)
            await broker.refuse_connections(1)
            await broker.refuse_connections(1)
            with pytest.raises(OSError):
                await dial(broker)
            assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
            await broker.accept_connections(1)
            await broker.accept_connections(1)
            async with RawClient(await dial(broker)) as other:
                assert (await other.ask(ApiVersionsRequest(), 0)).error_code == 0
            await broker.refuse_connections(1)
            await broker.stop_node(1)
            await broker.start_node(1)
            await (await dial(broker)).aclose()


async def test_a_frozen_node_does_not_tell_versions_either(broker: Broker, client: RawClient) -> None:
    received: list[bytes] = []

    async def receive() -> None:
        received.append(await client.frame())

    broker.freeze_node(1)
    await client.send_frame(struct.pack(">hhihb", ApiKey.API_VERSIONS, 99, 7, -1, 0))
    async with anyio.create_task_group() as group:
        group.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        assert received == []
        broker.thaw_node(1)
    assert received[0][:6] == struct.pack(">ih", 7, ErrorCode.UNSUPPORTED_VERSION)


async def test_a_hold_is_entered_once_and_holds_nothing_before(broker: Broker) -> None:
    held = broker.hold(ApiKey.PRODUCE)
    with anyio.fail_after(SOON), pytest.raises(RuntimeError, match="hold was not entered"):
        await held.arrived()
    with pytest.raises(RuntimeError, match="hold was not entered"):
        held.release()
    async with held:
        with pytest.raises(RuntimeError, match="entered once"):
            await held.__aenter__()
    with pytest.raises(RuntimeError, match="entered once"):
        await held.__aenter__()


async def test_a_handler_that_is_cancelled_gives_its_order_back() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        order = broker.on(ApiKey.FETCH, cut=True)
        async with await connect(broker) as client:
            await client.send(fetch_request("t", 0, max_wait_ms=3_600_000), 12)
            await broker.requests.wait_for(ApiKey.FETCH)
            await anyio.wait_all_tasks_blocked()
            await broker.stop_node(1)
        assert (order.count, order.is_active) == (0, True)


async def test_a_hold_that_is_cancelled_has_held() -> None:
    async with Broker(port=None) as broker:
        broker.create_topic("t")
        async with broker.hold(ApiKey.PRODUCE, times=1) as held, await connect(broker) as client:
            await client.send(produce_request("t", batch_of(b"x")), 12)
            await held.arrived()
            await broker.stop_node(1)
            assert (held.rule.count, held.rule.is_active) == (1, False)
