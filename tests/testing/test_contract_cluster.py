"""DescribeCluster, ElectLeaders and reassignments, as Apache Kafka answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.raw_client import RawClient, batch_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.metadata import DescribeClusterRequest, MetadataRequest
from aiokafkawire.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_cluster_is_described_as_metadata_does(client: RawClient, version: int) -> None:
    known = await client.ask(MetadataRequest(topics=[]), 12)
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=version >= 2)
    answer = await client.ask(request, version)
    assert (answer.error_code, answer.error_message, answer.endpoint_type) == (0, None, 1)
    assert (answer.cluster_id, answer.controller_id) == (known.cluster_id, known.controller_id)
    assert [(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in answer.brokers] == [
        (b.node_id, b.host, b.port, b.rack, False) for b in known.brokers
    ]
    assert answer.cluster_authorized_operations == -(2**31)


async def test_what_anyone_may_do_with_the_cluster(client: RawClient) -> None:
    answer = await client.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
    assert answer.cluster_authorized_operations == sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))


@pytest.mark.parametrize("version", [1, 2])
async def test_brokers_do_not_tell_of_controllers(client: RawClient, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=2)
    answer = await client.ask(request, version)
    assert ErrorCode(answer.error_code) == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert answer.error_message == (
        "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    )
    assert (answer.cluster_id, answer.controller_id, answer.brokers) == ("", -1, [])
    request.endpoint_type = 77
    answer = await client.ask(request, version)
    assert ErrorCode(answer.error_code) == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    assert answer.error_message == "Unsupported endpoint type 77"


# --- elections -----------------------------------------------------------------------------------------------------


def election(kind: int, *partitions: tuple[str, int]) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=kind,
        topic_partitions=[TopicPartitions(topic=name, partitions=[index]) for name, index in partitions],
    )


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_elections_that_are_not_needed(client: RawClient, name: str, version: int) -> None:
    for kind in (0, 1) if version else (0,):
        answer = await client.ask(election(kind, (name, 0)), version)
        (result,) = answer.replica_election_results[0].partition_result
        assert (answer.error_code, result.partition_id, result.error_code) == (0, 0, ErrorCode.ELECTION_NOT_NEEDED)
        assert result.error_message == "Leader election not needed for topic partition."


async def test_elections_of_what_is_not_there(client: RawClient, name: str) -> None:
    answer = await client.ask(election(0, ("no-such-topic", 0), (name, 9)), 2)
    results = {
        (topic.topic, one.partition_id): (one.error_code, one.error_message)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert results == {
        ("no-such-topic", 0): (unknown, "No such topic as no-such-topic"),
        (name, 9): (unknown, f"No such partition as {name}-9"),
    }


async def test_an_election_of_all_tells_of_what_was_elected(client: RawClient, name: str) -> None:
    answer = await client.ask(ElectLeadersRequest(election_type=0, topic_partitions=None), 2)
    assert answer.error_code == 0
    assert [topic.partition_result for topic in answer.replica_election_results if topic.topic == name] == [[]]


async def test_an_election_of_no_known_type(client: RawClient, name: str) -> None:
    answer = await client.ask(election(7, (name, 0)), 2)
    assert ErrorCode(answer.error_code) == ErrorCode.INVALID_REQUEST
    assert [
        (topic.topic, one.partition_id, one.error_code, one.error_message)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    ] == [(name, 0, ErrorCode.INVALID_REQUEST, "Unknown election type 7")]


# --- reassignments -------------------------------------------------------------------------------------------------


async def move(client: RawClient, name: str, replicas: list[int] | None, **fields: bool) -> tuple[int, str | None]:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=[partition])], **fields
    )
    answer = await client.ask(request, 1)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert answer.responses[0].name == name
    result = answer.responses[0].partitions[0]
    return result.error_code, result.error_message


async def test_moves_that_cannot_be(kafka: Kafka, client: RawClient, name: str) -> None:
    invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert await move(client, name, [1]) == (0, None)
    what = "The manual partition assignment includes"
    assert await move(client, name, [1, 7]) == (invalid, f"{what} broker 7, but no such broker is registered.")
    assert await move(client, name, [1, 1]) == (invalid, f"{what} the broker 1 more than once.")
    assert await move(client, name, []) == (invalid, f"{what} an empty replica list.")
    assert await move(client, name, None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    unknown = await move(client, "no-such-topic", [1])
    assert unknown == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named no-such-topic.")
    described = await kafka.described(client, name)
    assert described.partitions[0].leader_epoch == 0


async def test_a_move_may_be_forbidden_to_change_the_replication_factor(client: RawClient, name: str) -> None:
    refused = await move(client, name, [1, 7], allow_replication_factor_change=False)
    assert refused[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT  # there is no broker 7, which matters more
    assert await move(client, name, [1], allow_replication_factor_change=False) == (0, None)


async def test_nothing_is_on_the_move(client: RawClient, name: str) -> None:
    for topics in (None, [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 9])], []):
        answer = await client.ask(ListPartitionReassignmentsRequest(topics=topics), 0)
        assert (answer.error_code, answer.error_message, answer.topics) == (0, None, [])


# --- the brokers' own topics ---------------------------------------------------------------------------------------


async def test_clients_may_not_write_to_the_brokers_own_topics(kafka: Kafka, client: RawClient) -> None:
    await client.ask(FindCoordinatorRequest(coordinator_keys=["k"], key_type=0), 6)
    await kafka.described(client, "__consumer_offsets")
    answer = await client.produce("__consumer_offsets", batch_of(b"x"))
    assert (ErrorCode(answer.error_code), answer.error_message, answer.base_offset, answer.log_start_offset) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        None,
        -1,
        -1,
    )
