"""Electing leaders and moving partitions, asked for by requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from support.raw_client import RawClient, batch_of, fetch_request, records_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.fetch import FetchRequest, FetchResponse
from aiokafkawire.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.cluster.replicas import HostedPartition

pytestmark = pytest.mark.anyio

PREFERRED, UNCLEAN = 0, 1


@asynccontextmanager
async def cluster(nodes: int = 3, **settings: Any) -> AsyncIterator[tuple[Broker, RawClient, HostedPartition]]:
    """A topic "t" of one partition, and a client of the last broker."""
    async with Broker(nodes, port=None, **settings) as broker:
        (partition,) = broker.create_topic("t").partitions
        async with RawClient(await broker.connect(f"memory-{nodes}", 9092)) as client:
            yield broker, client, partition


async def elect(client: RawClient, kind: int) -> ErrorCode:
    request = ElectLeadersRequest(election_type=kind, topic_partitions=[TopicPartitions(topic="t", partitions=[0])])
    answer = await client.ask(request, 2)
    return ErrorCode(answer.replica_election_results[0].partition_result[0].error_code)


async def test_the_preferred_leader_leads_again() -> None:
    async with cluster() as (broker, client, partition):
        await broker.stop_node(1)
        assert await elect(client, PREFERRED) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        await broker.start_node(1)
        assert partition.leader == 2
        assert await elect(client, PREFERRED) == ErrorCode.NONE
        assert (partition.leader, partition.leader_epoch) == (1, 2)
        assert await elect(client, PREFERRED) == ErrorCode.ELECTION_NOT_NEEDED


async def test_any_leader_is_elected_where_there_is_none() -> None:
    async with cluster() as (broker, client, partition):
        broker.shrink_isr("t", 0, 2)
        broker.shrink_isr("t", 0, 3)
        assert await elect(client, UNCLEAN) == ErrorCode.ELECTION_NOT_NEEDED
        await broker.stop_node(1)
        assert partition.leader == -1
        assert await elect(client, PREFERRED) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert await elect(client, UNCLEAN) == ErrorCode.NONE
        assert (partition.leader, broker.isr("t")) == (2, [2])


async def test_nobody_can_be_elected_where_no_replica_runs() -> None:
    async with cluster(default_replication_factor=1) as (broker, client, _):
        await broker.stop_node(1)
        assert await elect(client, UNCLEAN) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


async def test_an_election_of_all_partitions_tells_of_those_that_were_elected() -> None:
    async with cluster() as (broker, client, _):
        broker.create_topic("u", partitions=2)
        broker.move_leader("u", 1, 1)
        answer = await client.ask(ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None), 2)
        assert [
            (topic.topic, [(one.partition_id, one.error_code) for one in topic.partition_result])
            for topic in answer.replica_election_results
        ] == [("t", []), ("u", [(1, 0)])]
        assert broker.leader("u", 1) == 2


async def test_a_waiting_fetch_hears_of_an_election() -> None:
    async with cluster() as (broker, client, _):
        broker.move_leader("t", 0, 3)
        async with RawClient(await broker.connect("memory-3", 9092)) as reader:
            waiting = await reader.send(fetch_request("t", 0, epoch=1, max_wait_ms=30_000), 12)
            await anyio.wait_all_tasks_blocked()
            await elect(client, PREFERRED)
            answer = await reader.answer(FetchRequest, 12, waiting)
        assert isinstance(answer, FetchResponse)
        assert ErrorCode(answer.responses[0].partitions[0].error_code) == ErrorCode.FENCED_LEADER_EPOCH


# --- moving --------------------------------------------------------------------------------------------------------


async def move(client: RawClient, replicas: list[int] | None, **fields: bool) -> ErrorCode:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=[partition])], **fields)
    return ErrorCode((await client.ask(request, 1)).responses[0].partitions[0].error_code)


async def moving(client: RawClient) -> list[tuple[list[int], list[int], list[int]]]:
    """Replicas, those to come and those to go, of what is on the move."""
    answer = await client.ask(ListPartitionReassignmentsRequest(topics=None), 0)
    return [
        (one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in answer.topics
        for one in topic.partitions
    ]


async def test_a_partition_moves_with_its_records() -> None:
    async with cluster(4) as (broker, client, partition):
        async with RawClient(await broker.connect("memory-1", 9092)) as leader:
            await leader.produce("t", batch_of(b"a"))
        assert await move(client, [4, 3]) == ErrorCode.NONE
        assert (partition.replicas, sorted(partition.in_sync_replicas), partition.leader) == ([4, 3], [3, 4], 4)
        assert await moving(client) == []
        data = await client.fetch("t", 0)
        assert [record.value for record in records_of(data)] == [b"a"]
        assert (await client.produce("t", batch_of(b"b"))).base_offset == 1


async def test_the_old_brokers_go_when_the_new_ones_are_in_sync() -> None:
    async with cluster(4, default_replication_factor=2) as (broker, client, partition):
        await broker.stop_node(3)
        assert await move(client, [4, 3]) == ErrorCode.NONE
        assert await moving(client) == [([4, 3, 1, 2], [3, 4], [1, 2])]
        assert (partition.leader, partition.in_sync_replicas) == (1, [1, 2, 4])
        await broker.start_node(3)
        assert await moving(client) == []
        assert (partition.leader, partition.replicas) == (4, [4, 3])
        assert sorted(partition.in_sync_replicas) == [3, 4]


async def test_a_move_is_called_off() -> None:
    async with cluster(4, default_replication_factor=2) as (broker, client, partition):
        await broker.stop_node(3)
        assert await move(client, [4, 3]) == ErrorCode.NONE
        assert await move(client, None) == ErrorCode.NONE
        assert (partition.replicas, partition.in_sync_replicas, partition.leader) == ([1, 2], [1, 2], 1)
        assert await moving(client) == []
        assert await move(client, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def test_a_move_under_way_may_get_another_aim() -> None:
    async with cluster(4, default_replication_factor=2) as (broker, client, partition):
        await broker.stop_node(3)
        await move(client, [3])
        assert await moving(client) == [([3, 1, 2], [3], [1, 2])]
        assert await move(client, [2, 4]) == ErrorCode.NONE
        assert await moving(client) == []
        assert (partition.replicas, partition.leader) == ([2, 4], 2)


async def test_the_order_of_replicas_may_change_and_their_number_if_it_may() -> None:
    async with cluster(3) as (_, client, partition):
        assert await move(client, [3, 1, 2]) == ErrorCode.NONE
        assert (partition.replicas, partition.leader, partition.leader_epoch) == ([3, 1, 2], 1, 0)
        fixed = {"allow_replication_factor_change": False}
        assert await move(client, [1, 2], **fixed) == ErrorCode.INVALID_REPLICATION_FACTOR
        assert partition.replicas == [3, 1, 2]
        assert await move(client, [1, 2]) == ErrorCode.NONE
        # The leader stays, and yet its epoch grows, so that whoever reads from the third broker finds out.
        assert (partition.replicas, partition.leader, partition.leader_epoch) == ([1, 2], 1, 1)
