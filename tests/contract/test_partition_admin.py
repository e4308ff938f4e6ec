"""What the admin does with leaders, replicas and log directories on one broker, whichever broker that is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.kafka_releases import number_of
from support.transactional import settled

from aiokafkawire import Client, ElectionType, ReplicaInfo, ReplicaLogDirInfo, TopicPartition, TopicPartitionReplica
from aiokafkawire.errors import (
    AdminError,
    BrokerNotAvailable,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    LogDirNotFound,
    NoReassignmentInProgress,
    ReplicaNotAvailable,
    UnknownTopicOrPartition,
)

pytestmark = pytest.mark.anyio

Names = Callable[[], str]


@pytest.fixture
async def led(kafka: Client, topic: str) -> str:
    """A topic of three partitions with leaders, each with one record."""
    async with kafka.producer() as producer:
        for index in range(3):
            await producer.send(topic, b"v" * 100, partition=index)
    return topic


# --- elections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("election_type", ElectionType)
async def test_elections_that_are_not_needed(kafka: Client, led: str, election_type: ElectionType) -> None:
    partitions = [TopicPartition(led, index) for index in (2, 0)]
    assert await kafka.admin.elect_leaders(election_type, partitions) == dict.fromkeys(partitions, False)
    assert await kafka.admin.elect_leaders(election_type) == {}
    assert await kafka.admin.elect_leaders(election_type, []) == {}


async def test_elections_of_partitions_that_do_not_exist(kafka: Client, led: str, new_name: Names) -> None:
    there, missing, none = TopicPartition(led, 0), TopicPartition(new_name(), 0), TopicPartition(led, 99)
    with pytest.raises(AdminError, match="electing leaders failed for 2 of 3") as caught:
        await kafka.admin.elect_leaders(ElectionType.PREFERRED, [missing, there, none])
    assert [type(error) for error in caught.value.errors.values()] == [UnknownTopicOrPartition] * 2
    assert list(caught.value.errors) == [missing, none]
    assert caught.value.results == {there: False}
    with pytest.raises(UnknownTopicOrPartition, match=f"electing a leader of {missing}: No such topic as"):
        await kafka.admin.elect_leaders(ElectionType.UNCLEAN, [missing])


# --- reassignments -------------------------------------------------------------------------------------------------


async def test_a_reassignment_to_the_same_broker_is_complete_at_once(kafka: Client, led: str) -> None:
    partition = TopicPartition(led, 1)
    await kafka.admin.alter_partition_reassignments({partition: [1]})
    assert await kafka.admin.list_partition_reassignments([partition, TopicPartition(led, 99)]) == {}
    assert partition not in await kafka.admin.list_partition_reassignments()


async def test_reassignments_that_the_controller_rejects(kafka: Client, led: str, new_name: Names) -> None:
    zero, one, missing = TopicPartition(led, 0), TopicPartition(led, 1), TopicPartition(new_name(), 0)
    with pytest.raises(AdminError, match="reassigning partitions failed for 3 of 4") as caught:
        await kafka.admin.alter_partition_reassignments(
            {zero: [77], one: None, missing: [1], TopicPartition(led, 2): [1]}
        )
    assert {partition: type(error) for partition, error in caught.value.errors.items()} == {
        zero: InvalidReplicaAssignment,
        one: NoReassignmentInProgress,
        missing: UnknownTopicOrPartition,
    }
    assert caught.value.results == {TopicPartition(led, 2): None}
    with pytest.raises(NoReassignmentInProgress, match=f"reassigning {one}"):
        await kafka.admin.alter_partition_reassignments({one: None})


async def test_the_number_of_replicas_may_be_fixed(kafka: Client, led: str, kafka_release: str | None) -> None:
    if kafka_release is not None and number_of(kafka_release) < (4, 1):
        pytest.skip("brokers fix the number of replicas since 4.1 (KIP-860)")
    await kafka.admin.alter_partition_reassignments(
        {TopicPartition(led, 0): [1]}, allow_replication_factor_change=False
    )
    with pytest.raises((InvalidReplicationFactor, InvalidReplicaAssignment)):
        await kafka.admin.alter_partition_reassignments(
            {TopicPartition(led, 0): [1, 2]}, allow_replication_factor_change=False
        )


# --- log directories -----------------------------------------------------------------------------------------------


async def test_log_directories_have_the_size_of_each_replica(kafka: Client, led: str) -> None:
    partitions = [TopicPartition(led, index) for index in range(3)]
    (directories,) = (await kafka.admin.describe_log_dirs()).values()
    ((path, directory),) = directories.items()
    assert (path[0], directory.error, directory.is_cordoned) == ("/", None, False)
    assert directory.total_bytes is not None
    assert directory.usable_bytes is not None
    assert directory.total_bytes >= directory.usable_bytes > 0
    sizes = [directory.replica_infos[partition].size for partition in partitions]
    assert min(sizes) > 100
    found = await kafka.admin.describe_log_dirs([1], partitions=partitions[:1])
    assert found[1][path].replica_infos == {partitions[0]: ReplicaInfo(sizes[0], 0, False)}
    assert (await kafka.admin.describe_log_dirs(1, partitions=[]))[1][path].replica_infos == {}
    assert await kafka.admin.describe_log_dirs([]) == {}


async def test_brokers_that_are_not_there_have_no_directories(kafka: Client, led: str) -> None:
    with pytest.raises(BrokerNotAvailable, match="broker 77 is not in the cluster"):
        await kafka.admin.describe_log_dirs(77)
    with pytest.raises(AdminError, match="describing log directories failed for 1 of 2") as caught:
        await kafka.admin.describe_log_dirs([77, 1])
    assert (list(caught.value.errors), list(caught.value.results)) == ([77], [1])


async def test_the_directories_of_replicas(kafka: Client, led: str, new_name: Names) -> None:
    (path,) = (await kafka.admin.describe_log_dirs(1))[1]
    here, missing = TopicPartitionReplica(led, 2, 1), TopicPartitionReplica(new_name(), 0, 1)
    assert await kafka.admin.describe_replica_log_dirs([missing, here]) == {
        missing: ReplicaLogDirInfo(None, -1, None, -1),
        here: ReplicaLogDirInfo(path, 0, None, -1),
    }
    elsewhere = TopicPartitionReplica(led, 2, 77)
    with pytest.raises(AdminError) as caught:
        await kafka.admin.describe_replica_log_dirs([elsewhere, here])
    assert isinstance(caught.value.errors[elsewhere], BrokerNotAvailable)
    assert list(caught.value.results) == [here]


async def test_replicas_that_cannot_move(kafka: Client, led: str, new_name: Names) -> None:
    (path,) = (await kafka.admin.describe_log_dirs(1))[1]
    here, missing = TopicPartitionReplica(led, 0, 1), TopicPartitionReplica(new_name(), 0, 1)
    await kafka.admin.alter_replica_log_dirs({here: path})
    with pytest.raises(LogDirNotFound, match=f"moving {led}-0 on broker 1 to log directory '/no/such/dir'"):
        await kafka.admin.alter_replica_log_dirs({here: "/no/such/dir"})
    with pytest.raises(AdminError) as caught:
        await kafka.admin.alter_replica_log_dirs({missing: path, here: path})
    assert isinstance(caught.value.errors[missing], (ReplicaNotAvailable, UnknownTopicOrPartition))
    assert caught.value.results == {here: None}

    async def infos() -> ReplicaLogDirInfo:
        return (await kafka.admin.describe_replica_log_dirs([here]))[here]

    await settled(infos, lambda found: found == ReplicaLogDirInfo(path, 0))
