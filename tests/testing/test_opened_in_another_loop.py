"""A broker that is opened again in another event loop, whose clock begins anew."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import anyio
import trio
import trio.testing
from support.raw_client import RawClient, batch_of

from aiokafkawire.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from aiokafkawire.protocol.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from aiokafkawire.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from aiokafkawire.testing.broker import Broker

T = TypeVar("T")


def opened(broker: Broker, use: Callable[[Broker, RawClient], Awaitable[T]], *, at: float = 0) -> T:
    """Open the broker in a loop of its own, and use it at a time of the loop's clock."""

    async def main() -> T:
        async with broker:
            await anyio.sleep(at)
            async with RawClient(await broker.connect("memory-1", 9092)) as client:
                return await use(broker, client)

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def join(member_id: str, _: Broker, client: RawClient) -> ShareGroupHeartbeatResponse:
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=0, subscribed_topic_names=["t"]
    )
    return await client.ask(request, 1)


def test_a_share_group_goes_on_with_new_assignments() -> None:
    broker = Broker(port=None)
    broker.create_topic("t")
    for member_id, at in (("one", 1000), ("two", 0)):
        answer = opened(broker, partial(join, member_id), at=at)
        assert answer.assignment is not None
        assert [one.partitions for one in answer.assignment.topic_partitions] == [[0]], member_id


def test_a_follower_that_lags_leaves_the_in_sync_replicas() -> None:
    async def produce(broker: Broker, client: RawClient) -> None:
        broker.hold_replica("t", 0, 2)
        await client.produce("t", batch_of(b"a"), acks=1)

    async def wait(broker: Broker, client: RawClient) -> list[int]:
        await anyio.sleep(31)
        return broker.isr("t")

    broker = Broker(2, port=None)
    broker.create_topic("t")
    opened(broker, produce, at=1000)
    assert opened(broker, wait) == [1]


def test_quotas_begin_anew() -> None:
    async def limit(broker: Broker, client: RawClient) -> int:
        entity = [EntityData(entity_type="client-id", entity_name="raw")]
        change = OpData(key="controller_mutation_rate", value=1.0, remove=False)
        entry = AlterClientQuotasRequestEntryData(entity=entity, ops=[change])
        await client.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
        await create(broker, client)
        return await create(broker, client)

    async def create(_: Broker, client: RawClient) -> int:
        topic = CreatableTopic(name="u", num_partitions=20, replication_factor=1, assignments=[], configs=[])
        return (await client.ask(CreateTopicsRequest(topics=[topic], validate_only=True), 7)).throttle_time_ms

    broker = Broker(port=None)
    assert opened(broker, limit, at=1000) > 0
    assert opened(broker, create) == 0
