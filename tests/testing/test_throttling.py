"""What quotas do, on our broker alone and in virtual time: the pauses of a real one are those of its machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from support.raw_client import RawClient, batch_of, fetch_request, produce_request
from support.virtual_time import virtual_time

from aiokafkawire import Client, NewTopic
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest
from aiokafkawire.protocol.messages.produce import ProduceResponse
from aiokafkawire.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from aiokafkawire.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.configs.quotas import ClientQuotas, Limit, QuotaOperation, entity_of
from aiokafkawire.testing.configs.throttling import Rate

pytestmark = [pytest.mark.anyio, virtual_time]

LARGE = batch_of(b"v" * 20_000)
EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=2, port=None, default_replication_factor=1) as broker:
        broker.create_topic("t", 2)
        yield broker


async def reach(broker: Broker, node: int = 1) -> RawClient:
    return RawClient(await broker.connect(f"memory-{node}", 9092))


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[RawClient]:
    async with await reach(broker) as client:
        yield client


async def limit(broker: Broker, key: str, value: float | None, **parts: str | None) -> None:
    entity = [EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in parts.items()]
    change = OpData(key=key, value=value or 0.0, remove=value is None)
    entry = AlterClientQuotasRequestEntryData(entity=entity, ops=[change])
    async with await reach(broker) as client:
        await client.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)


async def produce(client: RawClient, records: bytes = LARGE, **fields: Any) -> ProduceResponse:
    return await client.ask(produce_request("t", records, **fields), 12)


# --- bytes -------------------------------------------------------------------------------------------------------


async def test_a_producer_that_sends_too_much_pauses(broker: Broker, client: RawClient) -> None:
    await limit(broker, "producer_byte_rate", 1000, client_id="raw")
    began = anyio.current_time()
    answer = await produce(client)
    assert answer.responses[0].partition_responses[0].base_offset == 0  # what was sent is taken
    # A first burst counts over ten seconds: what is beyond 10 kB has to be waited for, at 1 kB in a second.
    assert len(LARGE) < answer.throttle_time_ms + 10_000 < len(LARGE) + 100
    assert anyio.current_time() == began  # the answer itself is not held back (KIP-219)
    await client.ask(ApiVersionsRequest(), 0)
    assert anyio.current_time() - began == pytest.approx(answer.throttle_time_ms / 1000)


async def test_a_producer_that_waits_for_no_answer_pauses(broker: Broker, client: RawClient) -> None:
    await limit(broker, "producer_byte_rate", 1000, client_id="raw")
    began = anyio.current_time()
    await client.send(produce_request("t", LARGE, acks=0), 12)
    await client.ask(MetadataRequest(topics=[]), 12)
    assert anyio.current_time() - began == pytest.approx(10, abs=0.5)


async def test_each_broker_counts_for_itself(broker: Broker, client: RawClient) -> None:
    await limit(broker, "producer_byte_rate", 1000, client_id="raw")
    assert (await produce(client)).throttle_time_ms > 0
    async with await reach(broker, 2) as other:
        answer = await produce(other, batch_of(b"v"), partition=1)
        assert (answer.responses[0].partition_responses[0].error_code, answer.throttle_time_ms) == (0, 0)


async def test_connections_share_a_quota(broker: Broker, client: RawClient) -> None:
    await limit(broker, "producer_byte_rate", 1000, client_id=None)
    await produce(client)
    async with await reach(broker) as other:
        began = anyio.current_time()
        assert (await produce(other, batch_of(b"v"))).throttle_time_ms > 10_000
        assert anyio.current_time() == began  # only what comes after an answer waits


async def test_what_was_sent_is_forgotten_after_eleven_seconds(broker: Broker, client: RawClient) -> None:
    await limit(broker, "producer_byte_rate", 1000, client_id="raw")
    await produce(client)
    await anyio.sleep(10.9)
    async with await reach(broker) as other:
        assert (await produce(other, batch_of(b"v"))).throttle_time_ms > 9_000
    await anyio.sleep(0.1)
    async with await reach(broker) as other:
        assert (await produce(other, batch_of(b"v"))).throttle_time_ms == 0


async def test_a_quota_that_is_removed_holds_no_longer(broker: Broker, client: RawClient) -> None:
    await limit(broker, "producer_byte_rate", 1000, client_id="raw")
    await limit(broker, "producer_byte_rate", None, client_id="raw")
    assert (await produce(client)).throttle_time_ms == 0


async def test_a_consumer_that_reads_too_much_gets_nothing_and_pauses(broker: Broker, client: RawClient) -> None:
    await produce(client)
    await limit(broker, "consumer_byte_rate", 3000, user="ANONYMOUS")
    pauses = []
    for _ in range(6):
        answer = await client.ask(fetch_request("t", 0), 12)
        pauses.append(answer.throttle_time_ms)
        assert bool(answer.responses) is not bool(answer.throttle_time_ms)
    # What was not sent does not count, but what was sent first does, until eleven seconds after it.
    assert pauses == [0, round(2 * len(LARGE) / 3) - 10_000, 3000, 3000, 3000, 0]


async def test_a_batch_larger_than_a_quota_can_be_read(broker: Broker, client: RawClient) -> None:
    await produce(client)
    await limit(broker, "consumer_byte_rate", 1, user="ANONYMOUS")
    answer = await client.ask(fetch_request("t", 0), 12)
    assert (answer.throttle_time_ms, len(answer.responses)) == (0, 1)


async def test_requests_count_a_millisecond_each(broker: Broker, client: RawClient) -> None:
    await limit(broker, "request_percentage", 0.05, client_id="raw")
    pauses = [(await client.ask(MetadataRequest(topics=[]), 12)).throttle_time_ms for _ in range(6)]
    # One thousandth of a thread's second is 0.1 percent of it: five of them in ten seconds are the limit. Setting the
    # quota was one request, and no pause is longer than a second.
    assert pauses == [0, 0, 0, 0, 1000, 1000]


# --- partitions --------------------------------------------------------------------------------------------------


async def test_connections_are_closed_as_soon_as_the_rate_of_their_address_permits_another(
    broker: Broker, client: RawClient
) -> None:
    await limit(broker, "connection_creation_rate", 1, ip=None)
    await limit(broker, "connection_creation_rate", 2, ip="127.0.0.1")
    for _ in range(19):  # ten seconds of the quota, with the connection that set the second one
        async with await reach(broker) as one:
            assert (await one.ask(ApiVersionsRequest(), 0)).error_code == 0
    began = anyio.current_time()
    async with await reach(broker) as refused, await reach(broker, node=2) as other:
        assert (await other.ask(ApiVersionsRequest(), 0)).error_code == 0  # each broker counts for itself
        assert await refused.is_cut_off()
    assert anyio.current_time() - began == pytest.approx(0.5)
    async with await reach(broker) as one:
        assert (await one.ask(ApiVersionsRequest(), 0)).error_code == 0
    assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


async def created(client: RawClient, name: str, partitions: int = 1, version: int = 7, **more: Any) -> tuple[int, int]:
    """The error of a new topic, and the pause."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
    answer = await client.ask(CreateTopicsRequest(topics=[topic], **more), version)
    return answer.topics[0].error_code, answer.throttle_time_ms


async def test_who_creates_too_many_partitions_is_refused_and_pauses(broker: Broker, client: RawClient) -> None:
    await limit(broker, "controller_mutation_rate", 2, client_id="raw")
    assert await created(client, "a", 28) == (0, 0)  # what a burst leaves, 22, may be exceeded once
    assert await created(client, "b") == (EXCEEDED, 3000)
    began = anyio.current_time()
    assert await created(client, "b", 2) == (0, 0)
    assert anyio.current_time() - began == pytest.approx(3.0)
    assert await created(client, "c", validate_only=True) == (EXCEEDED, 1000)
    removal = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=1)
    assert (await client.ask(removal, 6)).responses[0].error_code == 0  # the pause is over by then
    addition = CreatePartitionsTopic(name="b", count=5, assignments=None)
    more = await client.ask(CreatePartitionsRequest(topics=[addition], timeout_ms=1, validate_only=False), 3)
    assert (more.results[0].error_code, more.throttle_time_ms) == (EXCEEDED, 14_000)
    more = await client.ask(CreatePartitionsRequest(topics=[addition], timeout_ms=1, validate_only=False), 3)
    assert (more.results[0].error_code, more.throttle_time_ms) == (0, 0)
    gone = await client.ask(removal, 6)
    assert gone.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # takes none


async def test_before_kip_599_who_creates_too_many_partitions_only_pauses(broker: Broker, client: RawClient) -> None:
    await limit(broker, "controller_mutation_rate", 2, user="ANONYMOUS")
    assert await created(client, "a", 28, version=5) == (0, 3000)
    assert await created(client, "b", version=5) == (0, 500)


async def test_an_admin_waits_until_it_may_create_more_partitions(broker: Broker) -> None:
    await limit(broker, "controller_mutation_rate", 2, client_id="greedy")
    async with Client(broker.bootstrap, connector=broker.connect, client_id="greedy") as kafka:
        began = anyio.current_time()
        await kafka.admin.create_topics({"a": NewTopic(28, 1)})
        await kafka.admin.create_topics({"b": NewTopic(2, 1)})
        assert anyio.current_time() - began == pytest.approx(3.0, abs=0.5)


# --- orders ------------------------------------------------------------------------------------------------------


async def test_a_test_says_who_pauses(broker: Broker, client: RawClient) -> None:
    broker.throttle("raw", 3000)
    broker.throttle(None, 500)
    began = anyio.current_time()
    assert (await client.ask(MetadataRequest(topics=[]), 12)).throttle_time_ms == 3000
    broker.throttle("raw", 0)
    assert (await client.ask(MetadataRequest(topics=[]), 12)).throttle_time_ms == 500
    assert anyio.current_time() - began == pytest.approx(3.0)
    broker.throttle(None, 0)
    assert (await client.ask(MetadataRequest(topics=[]), 12)).throttle_time_ms == 0
    assert anyio.current_time() - began == pytest.approx(3.5)


async def test_a_pause_follows_a_request_without_an_answer(broker: Broker, client: RawClient) -> None:
    broker.throttle("raw", 3000)
    began = anyio.current_time()
    await client.send(produce_request("t", LARGE, acks=0), 12)
    await client.ask(MetadataRequest(topics=[]), 12)
    assert anyio.current_time() - began == pytest.approx(3.0)


async def test_old_answers_have_no_room_for_it_and_wait_all_the_same(broker: Broker, client: RawClient) -> None:
    broker.throttle("raw", 3000)
    began = anyio.current_time()
    await client.ask(ApiVersionsRequest(), 0)
    await client.ask(ApiVersionsRequest(), 0)
    assert anyio.current_time() - began == pytest.approx(3.0)


# --- whose quota, and how much -----------------------------------------------------------------------------------


async def test_the_most_special_quota_holds() -> None:
    quotas = ClientQuotas()
    places: list[tuple[list[tuple[str, str | None]], Limit]] = [
        ([("client-id", None)], Limit(1, "", "c")),
        ([("client-id", "c")], Limit(2, "", "c")),
        ([("user", None)], Limit(3, "u", "")),
        ([("user", None), ("client-id", None)], Limit(4, "u", "c")),
        ([("user", None), ("client-id", "c")], Limit(5, "u", "c")),
        ([("user", "u")], Limit(6, "u", "")),
        ([("user", "u"), ("client-id", None)], Limit(7, "u", "c")),
        ([("user", "u"), ("client-id", "c")], Limit(8, "u", "c")),
    ]
    key = "producer_byte_rate"
    assert quotas.limit(key, "u", "c") is None
    for value, (parts, expected) in enumerate(places, 1):
        quotas.alter(entity_of(parts), [QuotaOperation(key, value)])
        assert quotas.limit(key, "u", "c") == expected
    assert quotas.limit("consumer_byte_rate", "u", "c") is None
    assert quotas.limit(key, "x", "y") == Limit(4, "x", "y")


async def test_a_rate_forgets_what_is_long_ago() -> None:
    rate = Rate()
    for second in range(20):
        rate.add(1000, second * 1000)
        assert rate.excess_ms(1000, second * 1000) <= 1000
    assert rate.excess_ms(500, 19_000) == pytest.approx(11 * 1000 * 2 - 10_000)
    assert rate.excess_ms(500, 29_500) == pytest.approx(1000 * 2 - 10_500)
    assert rate.excess_ms(1, 31_000) == -10_000


async def test_a_full_fetch_that_is_throttled_makes_no_session(broker: Broker, client: RawClient) -> None:
    await produce(client)
    await limit(broker, "consumer_byte_rate", 3000, user="ANONYMOUS")
    full = fetch_request("t", 0, session_epoch=0)
    assert (await client.ask(full, 12)).session_id == 1
    answer = await client.ask(full, 12)
    assert (answer.throttle_time_ms > 0, answer.session_id) == (True, 0)
    assert len(broker._cluster.nodes[0].sessions) == 1


async def test_what_a_throttled_fetch_does_not_tell_is_told_later(broker: Broker, client: RawClient) -> None:
    await limit(broker, "consumer_byte_rate", 3000, user="ANONYMOUS")
    opened = await client.ask(fetch_request("t", 0, session_epoch=0, max_wait_ms=0), 12)
    await produce(client)
    await client.ask(fetch_request("t", 0), 12)
    going_on = fetch_request("t", 0, session_id=opened.session_id, session_epoch=1, max_wait_ms=0)
    throttled = await client.ask(going_on, 12)
    assert (throttled.throttle_time_ms > 0, throttled.responses) == (True, [])
    await anyio.sleep(60)
    # It is at the end now: only what it was not told of the high watermark is news.
    going_on = fetch_request("t", 1, session_id=opened.session_id, session_epoch=2, max_wait_ms=0)
    (topic,) = (await client.ask(going_on, 12)).responses
    assert topic.partitions[0].high_watermark == 1
