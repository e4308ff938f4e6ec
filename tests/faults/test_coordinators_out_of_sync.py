"""Coordinators of three brokers, two of which are down: the in-process broker answers as Apache Kafka does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest
from support.apache_kafka import missing
from support.group_members import GroupMember, error
from support.kafka_cluster import KafkaCluster
from support.needing import require
from support.raw_client import RawClient, batch_of
from support.transactional import TransactionalProducer, coordinated, settled, state_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.group_admin import DeleteGroupsRequest
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aiokafkawire.protocol.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from aiokafkawire.protocol.messages.transactions import EndTxnRequest
from aiokafkawire.testing.broker import Broker

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.kafka,
    pytest.mark.faults,
    pytest.mark.timeout(400),
]

TOPICS = ("t", "__consumer_offsets", "__transaction_state")
PATIENCE = 90.0


async def test_what_cannot_be_written_is_refused_as_by_apache_kafka() -> None:
    require(missing())
    async with (
        Broker(3, port=None, min_insync_replicas=2) as broker,
        RawClient(await broker.connect("memory-1", 9092)) as client,
    ):
        ours = await answers(client, partial(stop_others, broker))
    with KafkaCluster(properties={"broker.session.timeout.ms": "6000"}) as kafka:
        host, _, port = kafka.address_of(1).rpartition(":")
        async with RawClient(await anyio.connect_tcp(host, int(port))) as client:
            kafkas = await answers(client, partial(kill_others, kafka))
    assert ours == kafkas
    assert set(kafkas.values()) == {"NONE", "COORDINATOR_NOT_AVAILABLE", "NOT_ENOUGH_REPLICAS", "UNKNOWN_MEMBER_ID"}


async def stop_others(broker: Broker) -> None:
    for node in (2, 3):
        await broker.stop_node(node)


async def kill_others(kafka: KafkaCluster) -> None:
    for node in (2, 3):
        kafka.kill(node)


async def answers(client: RawClient, stop: Callable[[], Awaitable[None]]) -> dict[str, str]:
    """Have broker 1 coordinate a transaction and groups, stop the others, and return its errors by request."""
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=[])
    assert error((await client.ask(CreateTopicsRequest(topics=[topic]), 7)).topics[0]) == "NONE"
    (transactional_id,) = await coordinated_by_1(client, "transaction", 1, 1)
    committed, members, consumers = await coordinated_by_1(client, "group", 0, 3)
    producer = await TransactionalProducer(client, transactional_id).initialized()
    await settled(partial(producer.send, "t", b"a"), lambda answer: not answer.error_code)
    await settled(partial(commit, client, committed), lambda found: found == "NONE")
    member = GroupMember(client, members)
    await member.settle()
    await stop()
    await one_replica_is_in_sync(client)

    end = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=True,
    )
    joining = ConsumerGroupHeartbeatRequest(
        group_id=consumers,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    offsets = OffsetDeleteRequest(
        group_id=committed, topics=[OffsetDeleteRequestTopic(name="t", partitions=partitions)]
    )
    # A broker may tell of its replicas in Metadata a moment before it counts them at a write.
    write = partial(client.produce, "t", batch_of(b"b"))
    found = {
        "Produce": error(await settled(write, lambda answer: answer.error_code != ErrorCode.REQUEST_TIMED_OUT)),
        "EndTxn v4": error(await client.ask(end, 4)),
        "EndTxn v5": error(await client.ask(end, 5)),
        "InitProducerId": error(await producer.initialize()),
        "OffsetCommit": await commit(client, committed),
        "OffsetCommit of no member": await commit(client, committed, "nobody", 5),
        "OffsetCommit of a member": await commit(client, members, member.member_id, member.generation),
        "OffsetDelete": error(await client.ask(offsets, 0)),
        "DeleteGroups": error((await client.ask(DeleteGroupsRequest(groups_names=[committed]), 2)).results[0]),
        "ConsumerGroupHeartbeat": error(await client.ask(joining, 1)),
        "Heartbeat": await member.heartbeat(),
        "JoinGroup": error(await member.join()),
        "SyncGroup": error(await member.sync({member.member_id: b""})),
        "LeaveGroup": error(await member.leave()),
    }
    assert (await state_of(client, transactional_id)).transaction_state == "Ongoing"
    return found


async def coordinated_by_1(client: RawClient, prefix: str, key_type: int, count: int) -> list[str]:
    """Return the first names of groups or transactions that broker 1 coordinates."""
    await coordinated(client, f"{prefix}-0", key_type)
    found: list[str] = []
    number = 0
    while len(found) < count:
        name, number = f"{prefix}-{number}", number + 1
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name])
        answer = await settled(partial(client.ask, request, 4), lambda answer: not answer.coordinators[0].error_code)
        if answer.coordinators[0].node_id == 1:
            found.append(name)
    return found


async def commit(client: RawClient, group: str, member_id: str = "", generation: int = -1) -> str:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    return error((await client.ask(request, 8)).topics[0].partitions[0])


async def one_replica_is_in_sync(client: RawClient) -> None:
    """Wait until only broker 1 is in sync, which the controller finds out after the sessions of the others."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in TOPICS])

    def is_alone(answer: Any) -> bool:
        return all(part.isr_nodes == [1] for topic in answer.topics for part in topic.partitions)

    with anyio.fail_after(PATIENCE):
        while not is_alone(await client.ask(request, 12)):
            await anyio.lowlevel.checkpoint()
