"""A broker, or a tap in front of one, that does what a test orders: errors, lost answers, bytes that are wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import anyio
import pytest
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from support.raw_client import RawClient, batch_of, fetch_request, produce_request, records_of
from support.tapping import known_nodes, tapped, through

from aiokafkawire.errors import CorruptBatch, ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from aiokafkawire.protocol.messages.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from aiokafkawire.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aiokafkawire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aiokafkawire.testing.broker import Broker, UnusedFaultRules
from aiokafkawire.testing.faults.request_log import RequestOutcome
from aiokafkawire.testing.tap.tap import Tap

pytestmark = pytest.mark.anyio

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER

Rules = Broker | Tap


@pytest.fixture(params=["broker", "tap"])
async def both(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Broker, Rules]]:
    """A broker, and what takes the orders: the broker itself, or a tap in front of it."""
    async with AsyncExitStack() as stack:
        rules: Rules
        if request.param == "tap":
            broker, rules = await stack.enter_async_context(tapped())
        else:
            broker = rules = await stack.enter_async_context(Broker(port=None))
        broker.create_topic("t", partitions=2)
        broker.create_topic("u")
        if isinstance(rules, Tap):
            await known_nodes(rules)
            broker.requests.clear()
        yield broker, rules


@pytest.fixture
def broker(both: tuple[Broker, Rules]) -> Broker:
    return both[0]


@pytest.fixture
def rules(both: tuple[Broker, Rules]) -> Rules:
    return both[1]


async def connect(rules: Rules) -> RawClient:
    if isinstance(rules, Tap):
        return await through(rules)
    return RawClient(await rules.connect("memory-1", 9092))


@pytest.fixture
async def client(rules: Rules) -> AsyncIterator[RawClient]:
    async with await connect(rules) as client:
        yield client


def end(broker: Broker, topic: str = "t", partition: int = 0) -> int:
    return broker.log(topic, partition).log_end_offset


# --- errors ------------------------------------------------------------------------------------------------------


async def test_an_error_instead_of_the_answer_once(broker: Broker, rules: Rules, client: RawClient) -> None:
    order = rules.on(ApiKey.PRODUCE, answer=NOT_LEADER)
    assert (await client.produce("t", batch_of(b"x"))).error_code == NOT_LEADER
    assert (end(broker), order.count, order.is_met) == (0, 1, True)
    assert len(broker.requests) == (0 if isinstance(rules, Tap) else 1)
    assert (await client.produce("t", batch_of(b"x"))).error_code == 0


async def test_only_one_partition_fails_and_the_others_are_written(
    broker: Broker, rules: Rules, client: RawClient
) -> None:
    rules.on(ApiKey.PRODUCE, answer=NOT_LEADER, topic="t", partition=1, times=None)
    data = [PartitionProduceData(index=index, records=batch_of(b"x")) for index in range(2)]
    other = [PartitionProduceData(index=0, records=batch_of(b"x"))]
    topics = [TopicProduceData(name="t", partition_data=data), TopicProduceData(name="u", partition_data=other)]
    answer = await client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 12)
    found = {(topic.name, one.index): one.error_code for topic in answer.responses for one in topic.partition_responses}
    assert found == {("t", 0): 0, ("t", 1): NOT_LEADER, ("u", 0): 0}
    assert (end(broker), end(broker, "t", 1), end(broker, "u")) == (1, 0, 1)


async def test_an_order_by_topic_lets_other_requests_alone(rules: Rules, client: RawClient) -> None:
    order = rules.on(ApiKey.PRODUCE, answer=NOT_LEADER, topic="u")
    assert (await client.produce("t", batch_of(b"x"))).error_code == 0
    assert order.count == 0


async def test_a_topic_is_found_by_its_id(broker: Broker, rules: Rules, client: RawClient) -> None:
    topic = broker.create_topic("by-id")
    await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="by-id")]), 12)  # a tap learns the id from it
    rules.on(ApiKey.PRODUCE, answer=NOT_LEADER, topic="by-id")
    assert (await client.produce(topic.topic_id, batch_of(b"x"))).error_code == NOT_LEADER
    rules.on(ApiKey.FETCH, answer=NOT_LEADER, topic="by-id")
    assert (await client.fetch(topic.topic_id, 0)).error_code == NOT_LEADER


async def test_with_acks_0_an_error_closes_the_connection(rules: Rules, client: RawClient) -> None:
    order = rules.on(ApiKey.PRODUCE, answer=NOT_LEADER)
    await client.send(produce_request("t", batch_of(b"x"), acks=0), 12)
    assert await client.is_cut_off()
    assert (order.count, rules.requests[-1].outcome) == (1, RequestOutcome.FAILED)


async def test_a_fetch_fails_for_one_partition_at_once(rules: Rules, client: RawClient) -> None:
    await client.produce("t", batch_of(b"x"))
    rules.on(ApiKey.FETCH, answer=NOT_LEADER, topic="t", partition=1)
    asked = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in range(2)]
    request = FetchRequest(max_wait_ms=60_000, min_bytes=10_000, topics=[FetchTopic(topic="t", partitions=asked)])
    answer = await client.ask(request, 12)
    good, bad = answer.responses[0].partitions
    assert [record.value for record in records_of(good)] == [b"x"]
    assert (answer.error_code, good.error_code, bad.error_code, bad.high_watermark) == (0, 0, NOT_LEADER, -1)


async def test_an_error_reaches_what_is_only_in_the_fetch_session(rules: Rules, client: RawClient) -> None:
    first = await client.ask(fetch_request("t", 0, session_epoch=0), 12)
    assert first.session_id
    rules.on(ApiKey.FETCH, answer=NOT_LEADER, topic="t")

    async def again(epoch: int) -> FetchResponse:
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[])
        request.session_id, request.session_epoch = first.session_id, epoch
        return await client.ask(request, 12)

    (failed,) = (await again(1)).responses
    assert [one.error_code for one in failed.partitions] == [NOT_LEADER]
    recovered = [one.error_code for topic in (await again(2)).responses for one in topic.partitions]
    # A broker tells it, though nothing is new, since it was an error before; of a tap's errors a broker does not know.
    assert recovered == ([] if isinstance(rules, Tap) else [0])


async def test_an_error_of_the_session_is_the_whole_answers(rules: Rules, client: RawClient) -> None:
    rules.on(ApiKey.FETCH, answer=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    answer = await client.ask(fetch_request("t", 0), 12)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_metadata_fails_for_a_topic_and_keeps_its_brokers(rules: Rules, client: RawClient) -> None:
    rules.on(ApiKey.METADATA, answer=ErrorCode.LEADER_NOT_AVAILABLE, topic="t")
    wanted = [MetadataRequestTopic(name=name) for name in ("t", "u")]
    answer = await client.ask(MetadataRequest(topics=wanted), 12)
    assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics] == [
        ("t", ErrorCode.LEADER_NOT_AVAILABLE, 0),
        ("u", 0, 1),
    ]
    assert len(answer.brokers) == 1


async def test_metadata_fails_for_all_topics_and_for_one_partition(rules: Rules, client: RawClient) -> None:
    rules.on(ApiKey.METADATA, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answer = await client.ask(MetadataRequest(topics=None), 12)
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    rules.on(ApiKey.METADATA, answer=ErrorCode.LEADER_NOT_AVAILABLE, topic="t", partition=1)
    answer = await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    found = [(one.error_code, one.leader_id) for one in answer.topics[0].partitions]
    assert found == [(0, 1), (ErrorCode.LEADER_NOT_AVAILABLE, -1)]


async def test_unsupported_versions_are_told_as_version_0(rules: Rules, client: RawClient) -> None:
    rules.on(ApiKey.API_VERSIONS, answer=ErrorCode.UNSUPPORTED_VERSION)
    sent = await client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    answer = await client.answer(ApiVersionsRequest, 0, sent)
    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_errors_of_other_apis_for_one_topic(rules: Rules, client: RawClient) -> None:
    rules.on(ApiKey.LIST_OFFSETS, answer=NOT_LEADER, topic="u")
    latest = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
    topics = [ListOffsetsTopic(name=name, partitions=latest) for name in ("t", "u")]
    answer = await client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    assert {topic.name: topic.partitions[0].error_code for topic in answer.topics} == {"t": 0, "u": NOT_LEADER}


# --- other answers -----------------------------------------------------------------------------------------------


async def test_a_response_as_it_is(rules: Rules, client: RawClient) -> None:
    made = MetadataResponse(brokers=[], topics=[], cluster_id="another")
    rules.on(ApiKey.METADATA, answer=made)
    assert (await client.ask(MetadataRequest(topics=[]), 12)).cluster_id == "another"


async def test_a_function_alters_the_true_answer_or_takes_it_away(rules: Rules, client: RawClient) -> None:
    def alter(request: MetadataRequest, response: MetadataResponse) -> MetadataResponse:
        assert request.topics == []
        response.controller_id += 100
        return response

    rules.on(ApiKey.METADATA, answer=alter)
    rules.on(ApiKey.METADATA, answer=lambda *_: None)
    assert (await client.ask(MetadataRequest(topics=[]), 12)).controller_id == 101
    await client.send(MetadataRequest(topics=[]), 12)
    assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0  # the next answer comes in its place
    assert rules.requests[-2].outcome is RequestOutcome.UNANSWERED


# --- connections that end ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("when", "written"), [("before", 0), ("after", 1)])
async def test_a_dropped_connection_before_and_after_the_work(
    broker: Broker, rules: Rules, client: RawClient, when: Any, written: int
) -> None:
    order = rules.on(ApiKey.PRODUCE, drop=when)
    await client.send(produce_request("t", batch_of(b"x")), 12)
    await order.met()
    assert await client.is_cut_off()
    assert (end(broker), rules.requests[-1].outcome) == (written, RequestOutcome.DROPPED)
    async with await connect(rules) as other:
        assert (await other.produce("t", batch_of(b"x"))).base_offset == written


@pytest.mark.parametrize(("when", "written"), [("before", 0), ("after", 1)])
async def test_a_swallowed_answer_silences_the_connection(
    broker: Broker, rules: Rules, client: RawClient, when: Any, written: int
) -> None:
    order = rules.on(ApiKey.PRODUCE, swallow=when)
    await client.send(produce_request("t", batch_of(b"x")), 12)
    await client.send(ApiVersionsRequest(), 0)
    await order.met()
    await anyio.wait_all_tasks_blocked()
    assert (end(broker), rules.requests[-1].outcome, len(rules.requests)) == (written, RequestOutcome.SWALLOWED, 1)
    with anyio.move_on_after(0) as scope:
        await client.stream.receive()
    assert scope.cancelled_caught
    await client.stream.send_eof()
    assert await client.is_cut_off()  # it leaves with the client


async def test_half_an_answer(rules: Rules, client: RawClient) -> None:
    await client.ask(ApiVersionsRequest(), 0)
    whole = rules.requests[-1].size
    rules.on(ApiKey.API_VERSIONS, cut=True)
    await client.send(ApiVersionsRequest(), 0)
    received = b""
    with pytest.raises((EndOfStream, BrokenResourceError)):
        while True:
            received += await client.stream.receive()
    announced = int.from_bytes(received[:4])
    assert 4 < len(received) <= (announced + 4) / 2
    assert announced < whole
    assert rules.requests[-1].outcome is RequestOutcome.CUT


@pytest.mark.parametrize("position", [0, 3, -1])
async def test_a_byte_that_is_wrong(rules: Rules, client: RawClient, position: int) -> None:
    async def answer() -> bytes:
        await client.send(ApiVersionsRequest(), 0)
        return await client.frame()

    rules.on(ApiKey.API_VERSIONS, corrupt=position, after=1)
    true, wrong = await answer(), await answer()
    there = range(4, len(true))  # correlation ids differ
    different = [index for index in range(len(true)) if true[index] != wrong[index] and index in there]
    assert different == ([len(true) - 1] if position == -1 else [])
    assert (int.from_bytes(wrong[:4]) == 2) == (position == -1)
    assert rules.requests[-1].outcome is RequestOutcome.CORRUPTED


async def test_records_that_fail_their_crc_and_not_before_there_are_some(rules: Rules, client: RawClient) -> None:
    order = rules.on(ApiKey.FETCH, corrupt="records")
    assert not (await client.fetch("t", 0)).records
    assert order.count == 0
    await client.produce("t", batch_of(b"x"))
    spoiled = await client.fetch("t", 0)
    with pytest.raises(CorruptBatch):
        records_of(spoiled)
    assert order.count == 1
    assert [record.value for record in records_of(await client.fetch("t", 0))] == [b"x"]  # the log is as it was


# --- the end -----------------------------------------------------------------------------------------------------


async def test_orders_may_be_given_before_the_broker_runs_and_taken_back() -> None:
    broker = Broker(port=None)
    order = broker.on(ApiKey.API_VERSIONS, drop="before", node=1, client_id="raw", version=0, times=None)
    async with broker:
        async with await connect(broker) as client:
            await client.send(ApiVersionsRequest(), 0)
            assert await client.is_cut_off()
        assert broker.orders == [order]
        broker.freeze_node(1)
        broker.clear_orders()
        assert broker.orders == []
        async with await connect(broker) as client:
            assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


async def test_a_strict_broker_tells_of_orders_that_nobody_asked_for() -> None:
    with pytest.raises(UnusedFaultRules, match="HEARTBEAT"):
        async with Broker(port=None, strict=True) as broker:
            broker.on(ApiKey.HEARTBEAT, drop="before")
    async with Broker(port=None) as broker:
        broker.on(ApiKey.HEARTBEAT, drop="before")
    with pytest.raises(ClosedResourceError):  # what the body raised comes first
        async with Broker(port=None, strict=True) as broker:
            broker.on(ApiKey.HEARTBEAT, drop="before")
            raise ClosedResourceError


async def test_only_records_of_the_chosen_partition_fail_their_crc(
    broker: Broker, rules: Rules, client: RawClient
) -> None:
    for partition in range(2):
        await client.produce("t", batch_of(b"x"), partition=partition)
    await client.produce("u", batch_of(b"x"))
    topic_ids = {name: broker.create_topic(name).topic_id for name in ("v", "w")}
    await client.ask(MetadataRequest(topics=None), 12)  # a tap learns the ids from it
    for topic_id in topic_ids.values():
        await client.produce(topic_id, batch_of(b"x"))

    async def spoiled(version: int, *wanted: tuple[str | UUID, int]) -> list[tuple[int, bool]]:
        topics = [
            FetchTopic(
                **({"topic_id": topic} if isinstance(topic, UUID) else {"topic": topic}),
                partitions=[
                    FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in range(count)
                ],
            )
            for topic, count in wanted
        ]
        answer = await client.ask(FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics), version)
        return [(one.partition_index, is_spoiled(one)) for topic in answer.responses for one in topic.partitions]

    rules.on(ApiKey.FETCH, corrupt="records", topic="t", partition=1)
    assert await spoiled(12, ("u", 1), ("t", 2)) == [(0, False), (0, False), (1, True)]
    rules.on(ApiKey.FETCH, corrupt="records", topic="w")
    assert await spoiled(18, *((topic_id, 1) for topic_id in topic_ids.values())) == [(0, False), (0, True)]


def is_spoiled(data: PartitionData) -> bool:
    try:
        return not records_of(data)
    except CorruptBatch:
        return True


async def test_nothing_is_cut_or_spoiled_where_nothing_is_sent(rules: Rules, client: RawClient) -> None:
    actions: list[dict[str, Any]] = [{"cut": True}, {"corrupt": 7}]
    for action in actions:
        order = rules.on(ApiKey.PRODUCE, **action)
        await client.send(produce_request("t", batch_of(b"x"), acks=0), 12)
        await client.ask(ApiVersionsRequest(), 0)
        assert (order.count, order.is_active, rules.requests[-2].outcome) == (0, True, RequestOutcome.UNANSWERED)
        order.remove()


@pytest.mark.parametrize("made", [5, ApiVersionsResponse(error_code=0, api_keys=[]), "async"])
async def test_a_function_that_answers_with_something_else(made: Any) -> None:
    async def later() -> None: ...

    def answer(*_: object) -> Any:
        return later() if made == "async" else made

    with pytest.raises(TypeError, match=r"must return MetadataResponse or None for METADATA"):
        async with Broker(port=None) as broker, await connect(broker) as client:
            order = broker.on(ApiKey.METADATA, answer=answer)
            await client.send(MetadataRequest(topics=[]), 12)
            assert await client.is_cut_off()
            assert (order.count, order.is_met) == (1, True)
