"""Where a consumer of a group begins when its coordinator fails, knows little, or is old."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from support.clusters import QUICK
from support.fetching import numbers, take, values
from support.virtual_time import virtual_time

from aiokafkawire import Client, RequestTimeout, TopicPartition
from aiokafkawire.errors import ErrorCode, GroupAuthorizationFailed, TopicAuthorizationFailed
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


@asynccontextmanager
async def running(release: str | None = None, **options: Any) -> AsyncIterator[tuple[Broker, Client]]:
    """A topic of five records in each of two partitions, and a group that has read two and three of them."""
    async with Broker(port=None, max_versions=release) as broker:
        broker.create_topic("a", partitions=2)
        async with Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options}) as client:
            async with client.producer() as producer, client.consumer(group_id="g") as consumer:
                for index in range(2):
                    await producer.send_many("a", numbers(0, 5), partition=index)
                await consumer.commit({A0: 2, A1: 3})
            yield broker, client


# OffsetFetch v1, v2 with an error of the group, v5 with epochs, v7 with stable offsets, v8 for many groups.
@pytest.mark.parametrize("release", ["0.11.0", "1.0", "2.1", "2.4", "2.5", "2.8", "3.0", "3.9", "4.0"])
async def test_brokers_of_all_times_are_asked_as_they_know_it(release: str) -> None:
    async with running(release) as (broker, client), client.consumer(group_id="g") as consumer:
        consumer.assign([A0])
        assert await values(consumer, 3) == numbers(2, 5)
        await consumer.commit()
        found = await consumer.committed([A0, A1])
        assert [found[A0].offset, found[A1].offset] == [5, 3]  # type: ignore[union-attr]
        asked = broker.requests.of(ApiKey.OFFSET_FETCH)
        assert {one.request.require_stable for one in asked} == {release >= "2.5"}


@pytest.mark.parametrize(
    "error", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.UNSTABLE_OFFSET_COMMIT]
)
async def test_what_a_retry_mends_is_tried_again(error: ErrorCode) -> None:
    async with running() as (broker, client), client.consumer(group_id="g") as consumer:
        order = broker.on(ApiKey.OFFSET_FETCH, answer=error, times=3)
        consumer.assign([A0])
        assert await values(consumer, 1) == [b"2"]
        assert order.is_met
        if error is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
            order = broker.on(ApiKey.OFFSET_COMMIT, answer=error, times=3)
        await consumer.commit({A0: 4})
        assert order.is_met
        assert (await consumer.committed([A0]))[A0].offset == 4  # type: ignore[union-attr]


async def test_a_partition_that_cannot_be_looked_up_holds_up_no_other() -> None:
    async with running() as (broker, client), client.consumer(group_id="g") as consumer:
        order = broker.on(
            ApiKey.OFFSET_FETCH, answer=ErrorCode.UNSTABLE_OFFSET_COMMIT, topic="a", partition=0, times=None
        )
        consumer.assign([A0, A1])
        assert [record.partition for record in await take(consumer, 2)] == [1, 1]
        assert set(consumer.positions()) == {A1}
        order.remove()
        assert [(record.partition, record.offset) for record in await take(consumer, 3)] == [(0, 2), (0, 3), (0, 4)]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailed),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationFailed),
    ],
)
async def test_what_no_retry_mends_is_told_and_looked_up_again(error: ErrorCode, raised: type[Exception]) -> None:
    async with running() as (broker, client), client.consumer(group_id="g") as consumer:
        order = broker.on(ApiKey.OFFSET_FETCH, answer=error, times=None)
        consumer.assign([A0])
        with pytest.raises(raised, match=r"OffsetFetch of .*'g'"):
            await take(consumer, 1)
        with pytest.raises(raised):
            await consumer.committed([A0])
        order.remove()
        with anyio.fail_after(5):
            while True:
                try:
                    assert (await anext(consumer)).value == b"2"
                    break
                except raised:  # which it met before
                    continue


@virtual_time
async def test_a_coordinator_that_is_never_found_is_told() -> None:
    async with running(default_api_timeout_ms=100) as (broker, client), client.consumer(group_id="g") as consumer:
        broker.on(ApiKey.OFFSET_FETCH, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE, times=None)
        consumer.assign([A0])
        with pytest.raises(RequestTimeout, match=r"group 'g' .*COORDINATOR_NOT_AVAILABLE"):
            await take(consumer, 1)


async def test_whoever_seeks_meanwhile_is_not_taken_back() -> None:
    async with running() as (broker, client), client.consumer(group_id="g") as consumer:
        async with broker.hold(ApiKey.OFFSET_FETCH) as held:
            consumer.assign([A0, A1])
            await held.arrived()
            consumer.seek(A0, 0)
            assert await values(consumer, 2) == numbers(0, 2)
            consumer.assign([A0])
        assert await values(consumer, 3) == numbers(2, 5)
