"""Several brokers: batches that wait for replicas, replicas that lag, brokers that stop and return."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint
from support.raw_client import RawClient, batch_of, fetch_request, produce_request
from support.three_brokers import cluster, error, to, values
from support.virtual_time import virtual_time

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group_admin import ListGroupsRequest
from aiokafkawire.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from aiokafkawire.protocol.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.cluster.api_error import ApiError

pytestmark = pytest.mark.anyio

LONG = 30_000  # ms: a wait that a passing test never sees the end of


async def send(client: RawClient, records: bytes, *, timeout_ms: int = LONG, version: int = 12, acks: int = -1) -> int:
    """Begin to produce."""
    request = produce_request("t", records, acks=acks)
    request.timeout_ms = timeout_ms
    number = await client.send(request, version)
    await anyio.wait_all_tasks_blocked()
    return number


async def produced(client: RawClient, number: int, version: int = 12) -> PartitionProduceResponse:
    answer = await client.answer(ProduceRequest, version, number)
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses[0]


# --- acks=all ------------------------------------------------------------------------------------------------------


async def test_acks_all_waits_for_every_replica_in_sync() -> None:
    async with cluster() as (broker, client, _, _):
        broker.hold_replica("t", 0, 3)
        first, second = await send(client, batch_of(b"a")), await send(client, batch_of(b"b"), acks=1)
        # One connection's requests are handled one after the other.
        assert broker.log("t").log_end_offset == 1
        broker.release_replica("t", 0, 3)
        assert (await produced(client, first)).base_offset == 0
        assert (await produced(client, second)).base_offset == 1
        assert broker.isr("t") == [1, 2, 3]


async def test_other_connections_need_not_wait() -> None:
    async with cluster() as (broker, client, _, _), await to(broker, 1) as other:
        broker.hold_replica("t", 0, 3)
        waiting = await send(client, batch_of(b"a"))
        assert (await other.produce("t", batch_of(b"b"), acks=1)).base_offset == 1
        broker.release_replica("t", 0, 3)
        assert (await produced(client, waiting)).base_offset == 0


async def test_a_batch_that_is_not_committed_in_time_stays_in_the_log() -> None:
    async with cluster() as (broker, client, _, _):
        broker.hold_replica("t", 0, 3)
        answer = await produced(client, await send(client, batch_of(b"a"), timeout_ms=0))
        assert (error(answer), answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert (await client.fetch("t", 0)).high_watermark == 0
        broker.release_replica("t", 0, 3)
        assert values(await client.fetch("t", 0)) == [b"a"]


async def test_a_batch_sent_again_waits_for_the_one_in_the_log() -> None:
    batch = batch_of(b"a", producer_id=0, producer_epoch=0, base_sequence=0)
    async with cluster() as (broker, client, _, _):
        broker.hold_replica("t", 0, 3)
        await produced(client, await send(client, batch, timeout_ms=0))
        again = await send(client, batch)
        broker.release_replica("t", 0, 3)
        assert ((await produced(client, again)).base_offset, broker.log("t").log_end_offset) == (0, 1)


async def test_some_partitions_may_be_too_late() -> None:
    async with Broker(3, port=None) as broker, await to(broker, 1) as client:
        broker.create_topic("t", partitions=4)
        broker.hold_replica("t", 3, 2)  # broker 1 leads partitions 0 and 3
        request = produce_request("t", batch_of(b"a"))
        request.topic_data[0].partition_data += (
            produce_request("t", batch_of(b"b"), partition=3).topic_data[0].partition_data
        )
        request.topic_data[0].partition_data += (
            produce_request("t", batch_of(b"c"), partition=9).topic_data[0].partition_data
        )
        request.timeout_ms = 0
        answers = (await client.ask(request, 12)).responses[0].partition_responses
        assert [(answer.index, error(answer)) for answer in answers] == [
            (0, ErrorCode.NONE),
            (3, ErrorCode.REQUEST_TIMED_OUT),
            (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]


async def test_too_few_replicas_in_sync_refuse_before_anything_is_written() -> None:
    async with cluster(min_insync_replicas=2) as (broker, client, _, _):
        broker.shrink_isr("t", 0, 2)
        broker.shrink_isr("t", 0, 3)
        answer = await client.produce("t", batch_of(b"a"))
        assert (error(answer), answer.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
        assert broker.log("t").log_end_offset == 0
        # The leader's own word is enough for acks=1, but consumers do not see what too few have (KIP-966).
        assert error(await client.produce("t", batch_of(b"b"), acks=1)) == ErrorCode.NONE
        assert (await client.fetch("t", 0)).high_watermark == 0
        broker.release_replica("t", 0, 2)
        assert (await client.fetch("t", 0)).high_watermark == 1


async def test_too_few_replicas_are_left_when_the_batch_is_committed() -> None:
    async with cluster(min_insync_replicas=2) as (broker, client, _, _):
        broker.hold_replica("t", 0, 3)
        waiting = await send(client, batch_of(b"a"))
        broker.release_replica("t", 0, 3)
        broker.shrink_isr("t", 0, 2)
        broker.shrink_isr("t", 0, 3)
        answer = await produced(client, waiting)
        assert (error(answer), answer.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)
        assert values(await client.fetch("t", 0)) == [b"a"]


@pytest.mark.parametrize("version", [9, 10])
async def test_a_leader_that_is_deposed_says_who_leads(version: int) -> None:
    async with cluster() as (broker, client, other, _):
        broker.hold_replica("t", 0, 3)
        waiting = await send(client, batch_of(b"a"), version=version)
        broker.move_leader("t", 0, 2)
        answer = await client.answer(ProduceRequest, version, waiting)
        assert isinstance(answer, ProduceResponse)
        data = answer.responses[0].partition_responses[0]
        assert error(data) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        told = data.current_leader.leader_id, data.current_leader.leader_epoch
        assert told == ((2, 1) if version >= 10 else (-1, -1))
        endpoints = [(node.node_id, node.host, node.port) for node in answer.node_endpoints]
        assert endpoints == ([(2, "memory-2", 9092)] if version >= 10 else [])
        again = await client.produce("t", batch_of(b"a"))
        assert (error(again), again.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert again.current_leader.leader_id == 2
        broker.release_replica("t", 0, 3)
        assert values(await other.fetch("t", 0)) == [b"a"]


async def test_who_led_and_leads_again_does_not_answer_for_what_was_between() -> None:
    async with cluster() as (broker, client, _, _):
        broker.hold_replica("t", 0, 3)
        waiting = await send(client, batch_of(b"a"))
        for node in (3, 1):  # the third has not got the batch
            broker.move_leader("t", 0, node)
        assert error(await produced(client, waiting)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert broker.log("t").log_end_offset == 0


async def test_a_topic_that_is_deleted_is_not_waited_for() -> None:
    async with cluster() as (broker, client, _, _):
        broker.hold_replica("t", 0, 3)
        waiting = await send(client, batch_of(b"a"))
        broker.delete_topic("t")
        assert error(await produced(client, waiting)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_who_waits_for_a_broker_that_stops_is_served_by_the_rest() -> None:
    async with cluster() as (broker, client, _, _):
        broker.hold_replica("t", 0, 3)
        waiting = await send(client, batch_of(b"a"))
        await broker.stop_node(3)
        assert error(await produced(client, waiting)) == ErrorCode.NONE
        await broker.start_node(3)
        assert broker.isr("t") == [1, 2]  # still held
        broker.release_replica("t", 0, 3)
        assert broker.isr("t") == [1, 2, 3]


# --- time ----------------------------------------------------------------------------------------------------------


@virtual_time
async def test_who_lags_for_too_long_is_no_longer_in_sync() -> None:
    async with cluster(replica_lag_time_max_ms=10_000) as (broker, client, _, _):
        broker.hold_replica("t", 0, 3)
        await anyio.sleep(100)  # without new records nobody lags
        assert broker.isr("t") == [1, 2, 3]
        began = anyio.current_time()
        answer = await client.produce("t", batch_of(b"a"))
        assert (error(answer), broker.isr("t")) == (ErrorCode.REQUEST_TIMED_OUT, [1, 2, 3])
        assert anyio.current_time() - began == pytest.approx(5)
        await anyio.sleep(4)
        assert broker.isr("t") == [1, 2, 3]
        await anyio.sleep(2)
        assert broker.isr("t") == [1, 2]
        assert values(await client.fetch("t", 0)) == [b"a"]


@virtual_time
async def test_who_caught_up_in_between_lags_anew() -> None:
    async with cluster(replica_lag_time_max_ms=10_000) as (broker, client, _, _):
        for _ in range(2):
            broker.hold_replica("t", 0, 3)
            await client.produce("t", batch_of(b"a"), acks=1)
            await anyio.sleep(9)
            assert broker.isr("t") == [1, 2, 3]
            broker.release_replica("t", 0, 3)


# --- brokers that stop and return ------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", [None, 0])
async def test_a_broker_that_stops_cuts_off_its_clients_and_returns_to_its_address(port: int | None) -> None:
    async with Broker(2, port=port) as broker:
        broker.create_topic("t")
        addresses = {node: address for address, node in broker.addresses.items()}

        async def connect(node: int) -> RawClient:
            host, number = addresses[node]
            return RawClient(await (broker.connect(host, number) if port is None else anyio.connect_tcp(host, number)))

        async with await connect(1) as client, await connect(2) as other:
            session = (await client.ask(fetch_request("t", 0, session_id=0, session_epoch=0), 12)).session_id
            await client.send(fetch_request("t", 0, max_wait_ms=LONG), 12)
            await checkpoint()
            await broker.stop_node(1)
            assert await client.is_cut_off()
            with pytest.raises(OSError):
                await connect(1)
            described = await other.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
            assert [node.node_id for node in described.brokers] == [2]
            assert described.controller_id == 2
            (partition,) = described.topics[0].partitions
            assert (partition.leader_id, partition.leader_epoch) == (2, 1)
            assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1, 2], [2], [1])
            assert (await other.produce("t", batch_of(b"a"))).base_offset == 0
            await broker.start_node(1)
        async with await connect(1) as client:
            assert values(await client.fetch("t", 0)) == [b"a"]
            gone = await client.ask(fetch_request("t", 0, session_id=session, session_epoch=1), 12)
            assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert broker.isr("t") == [2, 1]


async def test_a_partition_without_leader() -> None:
    async with cluster(default_replication_factor=1) as (broker, _, other, _):
        await broker.stop_node(1)
        for version in (0, 1, 12):
            request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
            (partition,) = (await other.ask(request, version)).topics[0].partitions
            assert (ErrorCode(partition.error_code), partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            assert partition.replica_nodes == ([] if version == 0 else [1])
            assert partition.isr_nodes == []
        # Kafka's DescribeTopicPartitions has no error for it.
        described = await other.ask(DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]), 0)
        (found,) = described.topics[0].partitions
        assert (found.error_code, found.leader_id, found.offline_replicas) == (ErrorCode.NONE, -1, [1])
        answer = await other.produce("t", batch_of(b"a"))
        assert (error(answer), answer.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        await broker.start_node(1)
        assert broker.leader("t") == 1


async def test_the_oldest_metadata_leaves_out_who_is_down() -> None:
    async with cluster() as (broker, client, _, _):
        await broker.stop_node(3)
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        (partition,) = (await client.ask(request, 0)).topics[0].partitions
        assert ErrorCode(partition.error_code) == ErrorCode.REPLICA_NOT_AVAILABLE
        assert (partition.replica_nodes, partition.isr_nodes) == ([1, 2], [1, 2])
        (partition,) = (await client.ask(request, 5)).topics[0].partitions
        assert (partition.error_code, partition.replica_nodes, partition.offline_replicas) == (0, [1, 2, 3], [3])


async def test_brokers_that_are_down_are_fenced() -> None:
    async with cluster() as (broker, _, client, _):
        await broker.stop_node(1)
        for fenced, expected in ((False, [(2, False), (3, False)]), (True, [(1, True), (2, False), (3, False)])):
            request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=fenced)
            answer = await client.ask(request, 2)
            assert [(node.broker_id, node.is_fenced) for node in answer.brokers] == expected
            assert answer.controller_id == 2


async def test_replicas_are_held_where_they_are() -> None:
    async with cluster(default_replication_factor=2) as (broker, _, _, _):
        for call in (broker.hold_replica, broker.release_replica, broker.shrink_isr):
            with pytest.raises(KeyError, match="holds no replica of t-0"):
                call("t", 0, 3)
        with pytest.raises(ValueError, match="broker 1 leads t-0"):
            broker.shrink_isr("t", 0, 1)


# --- where partitions are placed -----------------------------------------------------------------------------------


async def test_new_partitions_are_led_by_brokers_that_run() -> None:
    async with Broker(3, port=None, default_replication_factor=1) as broker:
        await broker.stop_node(1)
        broker.create_topic("t", 4)
        assert [broker.leader("t", index) for index in range(4)] == [2, 3, 2, 3]
        await broker.stop_node(2)
        await broker.stop_node(3)
        with pytest.raises(ApiError) as refused:
            broker.create_topic("u")
        assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


async def test_nothing_is_kept_of_a_deleted_partition_that_lags() -> None:
    async with cluster() as (broker, client, _, _):
        broker.hold_replica("t", 0, 3)
        await client.produce("t", batch_of(b"a"), acks=1)
        assert broker._cluster.replica_lag._timed
        broker.delete_topic("t")
        assert not broker._cluster.replica_lag._timed


async def test_the_leader_cannot_be_held() -> None:
    async with cluster() as (broker, _, _, _):
        with pytest.raises(ValueError, match="broker 1 leads t-0"):
            broker.hold_replica("t", 0, 1)


async def test_groups_are_not_listed_while_their_coordinator_loads() -> None:
    async with cluster() as (broker, one, _, _):
        if broker.coordinator("g") == 1:
            broker.move_coordinator("g", 2)
        broker.move_coordinator("g", 1, loading=60)
        answer = await one.ask(ListGroupsRequest(), 5)
        assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
