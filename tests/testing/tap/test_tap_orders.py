"""The orders of a tap beyond those that it has in common with a broker: see testing/test_orders_at_work.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from support.patience import SOON
from support.raw_client import RawClient, batch_of, produce_request, records_of
from support.tapping import known_nodes, tapped, through

from aiokafkawire import Client
from aiokafkawire.errors import CorruptBatch, ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest, HeartbeatRequest
from aiokafkawire.protocol.messages.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
)
from aiokafkawire.protocol.messages.produce import ProduceRequest
from aiokafkawire.testing import Broker, Tap, UnusedFaultRules

pytestmark = pytest.mark.anyio

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
async def both() -> AsyncIterator[tuple[Broker, Tap]]:
    async with tapped() as (broker, tap):
        broker.create_topic("t", partitions=2)
        broker.create_topic("u")
        await known_nodes(tap)
        broker.requests.clear()
        yield broker, tap


@pytest.fixture
def broker(both: tuple[Broker, Tap]) -> Broker:
    return both[0]


@pytest.fixture
def tap(both: tuple[Broker, Tap]) -> Tap:
    return both[1]


@pytest.fixture
async def client(tap: Tap) -> AsyncIterator[RawClient]:
    async with await through(tap) as client:
        yield client


def end(broker: Broker, topic: str = "t", partition: int = 0) -> int:
    return broker.log(topic, partition).log_end_offset


async def test_a_topic_is_found_by_its_id_once_metadata_has_named_it(
    broker: Broker, tap: Tap, client: RawClient
) -> None:
    topic_id = broker.create_topic("by-id").topic_id
    tap.on(ApiKey.PRODUCE, answer=NOT_LEADER, topic="by-id")
    assert (await client.produce(topic_id, batch_of(b"x"))).error_code == 0
    await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="by-id")]), 12)
    assert (await client.produce(topic_id, batch_of(b"x"))).error_code == NOT_LEADER
    tap.on(ApiKey.FETCH, answer=NOT_LEADER, topic="by-id")
    assert (await client.fetch(topic_id, 0)).error_code == NOT_LEADER


# --- waiting -----------------------------------------------------------------------------------------------------


async def test_a_delay_before_the_work_and_before_the_response(broker: Broker, tap: Tap, client: RawClient) -> None:
    for delays in ({"delay": 0.05}, {"delay_answer": 0.05}):
        tap.on(ApiKey.PRODUCE, **delays)  # type: ignore[arg-type]
        started = anyio.current_time()
        assert (await client.produce("t", batch_of(b"x"))).error_code == 0
        assert anyio.current_time() - started >= 0.045
    assert end(broker) == 2


async def test_a_request_is_held_and_those_behind_it_wait(broker: Broker, tap: Tap, client: RawClient) -> None:
    async with tap.hold(ApiKey.PRODUCE) as held:
        first = await client.send(produce_request("t", batch_of(b"x")), 12)
        second = await client.send(produce_request("u", batch_of(b"x")), 12)
        await held.arrived()
        await anyio.wait_all_tasks_blocked()
        assert (end(broker), end(broker, "u"), len(held.waiting)) == (0, 0, 1)
        held.release()
        await client.answer(ProduceRequest, 12, first)
        await client.answer(ProduceRequest, 12, second)
    assert (end(broker), end(broker, "u")) == (1, 1)


async def test_a_rule_waits_for_the_responses_before_it(broker: Broker, tap: Tap, client: RawClient) -> None:
    tap.on(ApiKey.HEARTBEAT, answer=ErrorCode.NOT_COORDINATOR)
    async with broker.hold(ApiKey.METADATA, at="after") as held:
        asked = await client.send(MetadataRequest(topics=[]), 12)
        beaten = await client.send(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
        await held.arrived()
        held.release()
        await client.answer(MetadataRequest, 12, asked)  # RawClient checks the order
        answer: Any = await client.answer(HeartbeatRequest, 4, beaten)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


async def test_a_frozen_broker_is_silent_and_goes_on_where_it_was(broker: Broker, tap: Tap, client: RawClient) -> None:
    tap.freeze_node(1)
    sent = await client.send(produce_request("t", batch_of(b"x")), 12)
    await tap.requests.wait_for(ApiKey.PRODUCE)
    await anyio.wait_all_tasks_blocked()
    assert end(broker) == 0
    tap.thaw_node(1)
    await client.answer(ProduceRequest, 12, sent)
    assert end(broker) == 1


async def test_connections_are_refused_and_those_that_there_are_live_on(tap: Tap, client: RawClient) -> None:
    await client.ask(ApiVersionsRequest(), 0)
    await tap.refuse_connections(1)
    with pytest.raises(OSError):
        await through(tap)
    await client.ask(ApiVersionsRequest(), 0)
    await tap.accept_connections(1)
    async with await through(tap) as again:
        await again.ask(ApiVersionsRequest(), 0)


async def test_a_paused_partition_gives_and_takes_nothing(broker: Broker, tap: Tap, client: RawClient) -> None:
    await client.produce("t", batch_of(b"x"))
    tap.pause_partition("t", 0)
    assert not (await client.fetch("t", 0)).records
    async with await through(tap) as other:
        sent = await other.send(produce_request("t", batch_of(b"y")), 12)
        await tap.requests.wait_for(ApiKey.PRODUCE, 2)
        await anyio.wait_all_tasks_blocked()
        assert end(broker) == 1
        assert (await client.produce("t", batch_of(b"z"), partition=1)).error_code == 0
        tap.resume_partition("t", 0)
        await other.answer(ProduceRequest, 12, sent)
    assert [record.value for record in records_of(await client.fetch("t", 0))] == [b"x", b"y"]


# --- all of it ---------------------------------------------------------------------------------------------------


async def test_orders_may_be_given_before_the_tap_is_open_and_taken_back(broker: Broker) -> None:
    tap = Tap(broker.bootstrap)
    order = tap.on(ApiKey.API_VERSIONS, drop="before", client_id="raw", version=0, times=None)
    async with tap:
        async with await through(tap) as client:
            await client.send(ApiVersionsRequest(), 0)
            assert await client.is_cut_off()
        assert tap.orders == [order]
        tap.clear_orders()
        assert tap.orders == []
        async with await through(tap) as client:
            assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


async def test_a_strict_tap_tells_of_orders_that_nobody_asked_for(broker: Broker) -> None:
    with pytest.raises(UnusedFaultRules, match="HEARTBEAT"):
        async with Tap(broker.bootstrap, strict=True) as tap:
            tap.on(ApiKey.HEARTBEAT, drop="before")


async def test_rules_are_for_a_broker_once_it_is_known(tap: Tap, client: RawClient) -> None:
    order = tap.on(ApiKey.FIND_COORDINATOR, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE, node=1, group="g")
    answer = await client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    assert answer.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert order.is_met
    for action in (tap.freeze_node, tap.refuse_connections):
        with pytest.raises(KeyError, match="no response has named a broker 7; known: 1"):
            found: Any = action(7)
            if found is not None:
                await found


@pytest.mark.parametrize("made", [5, ApiVersionsResponse(error_code=0, api_keys=[])])
async def test_a_function_that_answers_with_something_else(broker: Broker, made: Any) -> None:
    with pytest.raises(TypeError, match=r"must return MetadataResponse or None for METADATA"):
        async with Tap(broker.bootstrap) as tap, await through(tap) as client:
            tap.on(ApiKey.METADATA, answer=lambda *_: made)
            await client.send(MetadataRequest(topics=[]), 12)
            assert await client.is_cut_off()


@pytest.mark.slow
@pytest.mark.every_loop
async def test_a_client_gets_over_all_of_it() -> None:
    async with tapped(3, strict=True) as (broker, tap), Client(tap.bootstrap, request_timeout_ms=2_000) as kafka:
        broker.create_topic("t", partitions=3)
        tap.on(ApiKey.PRODUCE, drop="after")
        tap.on(ApiKey.PRODUCE, answer=NOT_LEADER, times=2)
        tap.on(ApiKey.FIND_COORDINATOR, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        tap.on(ApiKey.FETCH, corrupt="records")
        tap.on(ApiKey.FETCH, cut=True)
        tap.on(ApiKey.JOIN_GROUP, answer=ErrorCode.NOT_COORDINATOR)
        async with kafka.producer() as producer:
            for number in range(30):
                await producer.send("t", b"%d" % number, partition=number % 3)
        read: list[int] = []
        async with kafka.consumer("t", group_id="g", auto_offset_reset="earliest", check_crcs=True) as consumer:
            with anyio.fail_after(SOON):
                while len(read) < 30:
                    try:
                        read.append(int((await anext(consumer)).value or b"-1"))
                    except CorruptBatch:
                        continue
        assert sorted(read) == list(range(30))
