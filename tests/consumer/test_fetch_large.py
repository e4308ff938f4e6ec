"""Messages larger than what is asked for, on brokers that never give one whole on their own (before KIP-74)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from support.clusters import QUICK
from support.faulty_cluster import FaultyCluster, a, fetched, serving
from support.fetching import fetches, take, values
from support.message_sets import message
from support.patience import SOON
from support.raw_client import RawClient
from support.scripted_broker import SPOKEN, Asked, api_versions

from aiokafkawire import Client
from aiokafkawire.consumer.completed_fetch import PartitionFetch
from aiokafkawire.consumer.fetch_planner import limit_bytes
from aiokafkawire.consumer.subscription_state import PartitionState
from aiokafkawire.errors import RecordTooLarge
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.fetch import FetchResponse
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import TopicPartition


def test_partitions_share_the_room_where_nothing_else_limits_an_answer() -> None:
    asks = [PartitionFetch(PartitionState(a(number), 0, None), 0, 0, max_bytes=1_000) for number in range(4)]
    assert limit_bytes(asks, 3, 400) is asks
    assert [one.max_bytes for one in limit_bytes(asks, 2, 400)] == [100] * 4
    assert [one.max_bytes for one in limit_bytes(asks, 2, 40_000)] == [1_000] * 4
    assert [one.max_bytes for one in limit_bytes(asks, 2, 1)] == [1] * 4


def test_a_partition_with_a_large_message_is_asked_for_alone() -> None:
    asks = [PartitionFetch(PartitionState(a(number), 0, None), 0, 0, max_bytes=1_000) for number in range(4)]
    asks[2].state.fetch_bytes = 1_000
    assert limit_bytes(asks, 2, 400) == [asks[2]]


@asynccontextmanager
async def old(version: int = 2, **options: Any) -> AsyncIterator[tuple[FaultyCluster, Client]]:
    """A broker that cuts its answers off at the limit of each partition, as brokers did up to 0.10.0."""
    async with serving({a(0): 1, a(1): 1}) as cluster:
        spoken = {**SPOKEN, ApiKey.FETCH: Versions(0, version)}
        for node in cluster.nodes.values():
            node.on[ApiKey.API_VERSIONS] = lambda _: api_versions(spoken)
        async with cluster.client(**options) as client:
            yield cluster, client


def cut(cluster: FaultyCluster, *messages: bytes) -> None:
    """Let partition 0 hold these."""

    def on_fetch(_: int, asked: Asked) -> FetchResponse | None:
        if a(0) not in fetched(asked):
            return None
        (limit,) = [part.partition_max_bytes for part in asked.request.topics[0].partitions if part.partition == 0]
        data = b"".join(messages[fetched(asked)[a(0)] :])
        if not data:
            return None
        found = cluster.answer({where: data[:limit] if where == a(0) else b"" for where in fetched(asked)})
        for one in found.responses:
            for part in one.partitions:
                part.high_watermark = len(messages) if one.topic == "a" and part.partition_index == 0 else 0
        return found

    cluster.on_fetch = on_fetch


@pytest.mark.anyio
@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_message_larger_than_the_limit_is_asked_for_at_its_size(version: int) -> None:
    messages = [message(number, b"x" * size) for number, size in enumerate((10, 5_000, 20, 7_000, 1))]
    async with old(version) as (cluster, client):
        cut(cluster, *messages)
        async with client.consumer(max_partition_fetch_bytes=100) as consumer:
            consumer.assign({a(0): 0, a(1): 0})
            sizes = [len(record.value or b"") for record in await take(consumer, 5)]
            assert sizes == [10, 5_000, 20, 7_000, 1]
        limits = [
            part.partition_max_bytes for one in fetches(cluster) for topic in one.topics for part in topic.partitions
        ]
        assert {100, len(messages[1]), len(messages[3])} == set(limits)


@pytest.mark.anyio
async def test_a_limit_too_small_for_a_size_grows_until_it_shows() -> None:
    async with old() as (cluster, client):
        cut(cluster, message(0, b"x" * 50))
        async with client.consumer(max_partition_fetch_bytes=1) as consumer:
            consumer.assign({a(0): 0})
            assert await values(consumer, 1) == [b"x" * 50]
        limits = [one.topics[0].partitions[0].partition_max_bytes for one in fetches(cluster)]
        assert limits[:6] == [1, 2, 4, 8, 16, len(message(0, b"x" * 50))]


@pytest.mark.anyio
async def test_a_message_that_no_answer_may_hold_is_told_and_can_be_passed_over() -> None:
    async with old(receive_message_max_bytes=4_096) as (cluster, client):
        cut(cluster, message(0, b"x" * 5_000), message(1, b"next"))
        async with client.consumer(max_partition_fetch_bytes=100) as consumer:
            consumer.assign({a(0): 0})
            size = len(message(0, b"x" * 5_000))
            told = f"a-0 at offset 0 has a message of {size} bytes, too large for receive_message_max_bytes"
            with anyio.fail_after(SOON), pytest.raises(RecordTooLarge, match=told):
                await anext(consumer)
            asked = len(fetches(cluster))
            consumer.seek(a(0), 1)
            assert await values(consumer, 1) == [b"next"]
            assert asked == 1


@pytest.mark.anyio
async def test_an_empty_answer_below_the_end_of_the_log_is_a_message_too_large() -> None:
    where = TopicPartition("t", 0)
    async with Broker(port=None, max_versions="0.10.0") as broker:
        broker.create_topic("t")
        async with RawClient(await broker.connect("memory-1", 9092)) as raw:
            await raw.produce("t", message(0, b"x" * 3_000), version=2)
        options = {**QUICK, "allow_auto_create_topics": True, "receive_message_max_bytes": 100_000}
        async with (
            Client(broker.bootstrap, connector=broker.connect, **options) as client,
            # Each try waits as long as that, for records that do not come.
            client.consumer(max_partition_fetch_bytes=10, fetch_max_wait_ms=20) as consumer,
        ):
            consumer.assign({where: 0})
            assert await values(consumer, 1) == [b"x" * 3_000]
