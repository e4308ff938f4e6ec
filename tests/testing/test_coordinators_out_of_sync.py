"""Coordinators whose log has too few in-sync replicas, which answer as three brokers of Apache Kafka do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from support.group_members import GroupMember, error
from support.raw_client import RawClient
from support.transactional import TransactionalProducer, state_of
from support.virtual_time import virtual_time

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from aiokafkawire.protocol.messages.group_admin import DeleteGroupsRequest
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from aiokafkawire.protocol.messages.share_group import ShareGroupHeartbeatRequest
from aiokafkawire.protocol.messages.transactions import EndTxnRequest
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


@asynccontextmanager
async def opened(nodes: int = 3, min_insync_replicas: int = 2) -> AsyncIterator[tuple[Broker, RawClient]]:
    """A cluster whose broker 1 coordinates everything."""
    async with Broker(nodes, port=None, min_insync_replicas=min_insync_replicas) as broker:
        broker.create_topic("t")
        if broker.transaction_coordinator("id") != 1:
            broker.move_transaction_coordinator("id", 1)
        for group in ("g", "new", "consumers", "sharing"):
            if broker.coordinator(group) != 1:
                broker.move_coordinator(group, 1)
        async with RawClient(await broker.connect("memory-1", 9092)) as client:
            yield broker, client


async def stop_others(broker: Broker) -> None:
    for node in broker.node_ids[1:]:
        await broker.stop_node(node)


async def commit(client: RawClient, group: str, member_id: str = "", generation: int = -1) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    return (await client.ask(request, 8)).topics[0].partitions[0].error_code


async def end(producer: TransactionalProducer, version: int = 5) -> int:
    request = EndTxnRequest(
        transactional_id="id", producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=True
    )
    return (await producer.client.ask(request, version)).error_code


async def test_a_transaction_neither_begins_nor_ends() -> None:
    async with opened(min_insync_replicas=1) as (broker, client):
        producer = await TransactionalProducer(client, "id").initialized()
        await stop_others(broker)
        begun = await producer.produce("t", producer.batch("t", b"a"))
        assert begun.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await producer.initialize()).error_code == NOT_AVAILABLE
        await broker.start_node(2)
        await producer.send("t", b"a")
        await broker.stop_node(2)
        for version in (4, 5):
            assert await end(producer, version) == NOT_AVAILABLE
        assert (await producer.initialize()).error_code == NOT_AVAILABLE
        assert (await state_of(client, "id")).transaction_state == "Ongoing"
        await broker.start_node(2)
        assert await end(producer) == ErrorCode.NONE


@virtual_time
async def test_a_transaction_times_out_when_that_can_be_written() -> None:
    async with opened(min_insync_replicas=1) as (broker, client):
        producer = TransactionalProducer(client, "id")
        producer.timeout_ms = 10_000
        await producer.initialized()
        await producer.send("t", b"a")
        await stop_others(broker)
        await anyio.sleep(60)
        assert (await state_of(client, "id")).transaction_state == "Ongoing"
        await broker.start_node(2)
        await anyio.sleep(2)
        assert (await state_of(client, "id")).transaction_state == "CompleteAbort"


@pytest.mark.parametrize("nodes", [1, 2])
async def test_transactions_of_a_small_cluster_need_one_broker(nodes: int) -> None:
    async with opened(nodes, min_insync_replicas=1) as (broker, client):
        await stop_others(broker)
        producer = await TransactionalProducer(client, "id").initialized()
        await producer.send("t", b"a")
        assert await end(producer) == ErrorCode.NONE


async def test_a_group_commits_and_deletes_nothing() -> None:
    async with opened() as (broker, client):
        assert await commit(client, "g") == ErrorCode.NONE
        await stop_others(broker)
        assert await commit(client, "g") == NOT_AVAILABLE
        assert await commit(client, "new") == NOT_AVAILABLE
        assert await commit(client, "g", "nobody", 5) == ErrorCode.UNKNOWN_MEMBER_ID
        partitions = [OffsetDeleteRequestPartition(partition_index=0)]
        topics = [OffsetDeleteRequestTopic(name="t", partitions=partitions)]
        assert (await client.ask(OffsetDeleteRequest(group_id="g", topics=topics), 0)).error_code == NOT_AVAILABLE
        (deleted,) = (await client.ask(DeleteGroupsRequest(groups_names=["g"]), 2)).results
        assert deleted.error_code == NOT_AVAILABLE
        await broker.start_node(2)
        assert await commit(client, "g") == ErrorCode.NONE


async def test_a_classic_group_gets_no_assignment() -> None:
    async with opened() as (broker, client):
        member = GroupMember(client, "g")
        await member.settle()
        await stop_others(broker)
        assert await member.heartbeat() == "COORDINATOR_NOT_AVAILABLE"
        assert await commit(client, "g", member.member_id, member.generation) == NOT_AVAILABLE
        assert error(await member.join()) == "NONE"
        assert error(await member.sync({member.member_id: b"part"})) == "COORDINATOR_NOT_AVAILABLE"
        assert error(await member.leave()) == "COORDINATOR_NOT_AVAILABLE"
        await broker.start_node(2)
        assert error(await member.join()) == "NONE"
        assert (await member.sync({member.member_id: b"part"})).assignment == b"part"


async def test_consumer_groups_and_share_groups_are_not_joined() -> None:
    async with opened() as (broker, client):
        consumer = ConsumerGroupHeartbeatRequest(
            group_id="consumers",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        share = ShareGroupHeartbeatRequest(
            group_id="sharing", member_id="m", member_epoch=0, subscribed_topic_names=["t"]
        )
        await stop_others(broker)
        for request in (consumer, share):
            assert error(await client.ask(request, 1)) == "COORDINATOR_NOT_AVAILABLE"
        await broker.start_node(2)
        for request in (consumer, share):
            assert error(await client.ask(request, 1)) == "NONE"
