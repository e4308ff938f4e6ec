"""Elections, reassignments and log directories on clusters of several brokers and on old brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.clusters import QUICK

from aiokafkawire import (
    Client,
    ElectionType,
    LogDirDescription,
    NewTopic,
    PartitionReassignment,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartition,
    TopicPartitionReplica,
    UnsupportedVersion,
    UsageError,
    WireError,
)
from aiokafkawire.admin.admin import Admin
from aiokafkawire.errors import (
    AdminError,
    BrokerNotAvailable,
    ClusterAuthorizationFailed,
    EligibleLeadersNotAvailable,
    ErrorCode,
    InvalidReplicationFactor,
    KafkaStorageError,
    LogDirNotFound,
    NoReassignmentInProgress,
    PreferredLeaderNotAvailable,
    ReplicaNotAvailable,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.log_dirs import (
    AlterReplicaLogDirsResponse,
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from aiokafkawire.protocol.messages.reassignments import ElectLeadersResponse, ListPartitionReassignmentsResponse
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

ZERO, ONE = TopicPartition("a", 0), TopicPartition("a", 1)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


@asynccontextmanager
async def running(release: str | None = None, **options: Any) -> AsyncIterator[tuple[Broker, Admin, Client]]:
    """Three brokers, a topic "a" of two partitions, led by 1 and 2, and the admin of a client."""
    async with (
        Broker(3, port=None, max_versions=release, **options) as broker,
        Client(broker.bootstrap, connector=broker.connect, **QUICK) as kafka,
    ):
        await kafka.admin.create_topics({"a": NewTopic(assignments=[[1, 2, 3], [2, 3, 1]])})
        yield broker, kafka.admin, kafka


async def leaders(admin: Admin) -> list[int | None]:
    return [one.leader for one in (await admin.describe_topics("a"))["a"].partitions]


# --- elections -----------------------------------------------------------------------------------------------------


async def test_preferred_leaders_are_elected_where_others_lead() -> None:
    async with running() as (broker, admin, _):
        broker.move_leader("a", 0, 3)
        assert await admin.elect_leaders(PREFERRED, [ONE, ZERO]) == {ONE: False, ZERO: True}
        assert await leaders(admin) == [1, 2]
        broker.move_leader("a", 1, 3)
        assert await admin.elect_leaders(PREFERRED) == {ONE: True}
        assert await leaders(admin) == [1, 2]


async def test_leaders_that_cannot_be_elected_fail_alone() -> None:
    async with running() as (broker, admin, _):
        await broker.stop_node(1)
        broker.move_leader("a", 1, 3)
        with pytest.raises(AdminError, match="electing leaders failed for 1 of 2") as caught:
            await admin.elect_leaders(PREFERRED, [ZERO, ONE])
        assert isinstance(caught.value.errors[ZERO], PreferredLeaderNotAvailable)
        assert caught.value.results == {ONE: True}
        with pytest.raises(PreferredLeaderNotAvailable, match="electing a leader of a-0: The preferred leader was not"):
            await admin.elect_leaders(PREFERRED)


async def test_any_replica_may_lead_in_an_unclean_election() -> None:
    async with running() as (broker, admin, kafka):
        async with kafka.producer() as producer:
            await producer.send("a", b"v", partition=0)
            broker.shrink_isr("a", 0, 2)
            broker.shrink_isr("a", 0, 3)
            await producer.send("a", b"lost", partition=0)
        await broker.stop_node(1)
        assert await leaders(admin) == [None, 2]
        assert await admin.elect_leaders(UNCLEAN, [ZERO]) == {ZERO: True}
        assert await leaders(admin) == [2, 2]
        assert [record.value async for record in kafka.read_records("a") if record.partition == 0] == [b"v"]
        assert await admin.elect_leaders(UNCLEAN) == {}


async def test_where_no_replica_runs_nobody_is_elected() -> None:
    async with running() as (broker, admin, _):
        await admin.create_topics({"b": NewTopic(assignments=[[3]])})
        await broker.stop_node(3)
        with pytest.raises(EligibleLeadersNotAvailable, match="electing a leader of b-0"):
            await admin.elect_leaders(UNCLEAN)


async def test_the_controller_elects_and_is_waited_for() -> None:
    async with running() as (broker, admin, _):
        await broker.stop_node(1)
        for partitions in (None, [ONE]):
            order = broker.on(ApiKey.ELECT_LEADERS, answer=ErrorCode.NOT_CONTROLLER, times=1)
            await admin.elect_leaders(UNCLEAN, partitions)
            assert order.is_met
        assert {one.node for one in broker.requests.of(ApiKey.ELECT_LEADERS)} == {2}


async def test_what_concerns_all_partitions_is_told_once() -> None:
    async with running() as (broker, admin, _):
        refused = ElectLeadersResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, replica_election_results=[])
        for partitions in (None, [ZERO, ONE]):
            broker.on(ApiKey.ELECT_LEADERS, answer=refused)
            with pytest.raises(ClusterAuthorizationFailed, match="electing leaders"):
                await admin.elect_leaders(PREFERRED, partitions)
        broker.on(ApiKey.ELECT_LEADERS, answer=ElectLeadersResponse(error_code=0, replica_election_results=[]))
        with pytest.raises(WireError, match="lacks the requested a-0"):
            await admin.elect_leaders(PREFERRED, [ZERO])


# --- reassignments -------------------------------------------------------------------------------------------------


async def test_partitions_move_to_other_brokers() -> None:
    async with running() as (_, admin, kafka):
        await admin.create_topics({"b": NewTopic(assignments=[[1], [1]])})
        moved, stays = TopicPartition("b", 0), TopicPartition("b", 1)
        async with kafka.producer() as producer:
            await producer.send_many("b", [b"v"] * 5, partition=0)
        await admin.alter_partition_reassignments({moved: [3, 2], stays: [1]})
        assert await admin.list_partition_reassignments() == {}
        first, second = (await admin.describe_topics("b"))["b"].partitions
        assert (first.leader, first.replicas, second.replicas) == (3, (3, 2), (1,))
        assert [record.offset async for record in kafka.read_records("b")] == [0, 1, 2, 3, 4]


async def test_a_move_that_waits_for_a_broker_is_listed_and_called_off() -> None:
    async with running() as (broker, admin, _):
        await admin.create_topics({"b": NewTopic(assignments=[[1], [2]])})
        moved = TopicPartition("b", 0)
        await broker.stop_node(3)
        await admin.alter_partition_reassignments({moved: [3, 2]})
        expected = {moved: PartitionReassignment((3, 2, 1), (2, 3), (1,))}
        assert await admin.list_partition_reassignments() == expected
        assert await admin.list_partition_reassignments([moved, ZERO]) == expected
        assert await admin.list_partition_reassignments([ZERO]) == {}
        await admin.alter_partition_reassignments({moved: None})
        assert await admin.list_partition_reassignments() == {}
        with pytest.raises(NoReassignmentInProgress):
            await admin.alter_partition_reassignments({moved: None})


async def test_the_number_of_replicas_changes_only_if_it_may() -> None:
    async with running() as (_, admin, _):
        with pytest.raises(InvalidReplicationFactor, match="reassigning a-0: The replication factor is changed from 3"):
            await admin.alter_partition_reassignments({ZERO: [1, 2]}, allow_replication_factor_change=False)
        await admin.alter_partition_reassignments({ZERO: [1, 2]})
        assert (await admin.describe_topics("a"))["a"].partitions[0].replicas == (1, 2)


async def test_the_brokers_of_a_move_may_come_from_an_iterator() -> None:
    async with running() as (_, admin, _):
        given: Any = iter([3, 2])
        await admin.alter_partition_reassignments({ZERO: given})
        assert (await admin.describe_topics("a"))["a"].partitions[0].replicas == (3, 2)


async def test_the_controller_moves_partitions_and_is_waited_for() -> None:
    async with running() as (broker, admin, _):
        await broker.stop_node(1)
        for api in (ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS):
            order = broker.on(api, answer=ErrorCode.NOT_CONTROLLER, times=2)
            await admin.alter_partition_reassignments({ONE: [2, 3]})
            await admin.list_partition_reassignments()
            assert order.is_met
            assert {one.node for one in broker.requests.of(api)} == {2}
        refused = ListPartitionReassignmentsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="no rights", topics=[]
        )
        broker.on(ApiKey.LIST_PARTITION_REASSIGNMENTS, answer=refused)
        with pytest.raises(ClusterAuthorizationFailed, match="no rights"):
            await admin.list_partition_reassignments()


# --- log directories -----------------------------------------------------------------------------------------------


async def test_the_directories_of_all_brokers_that_run() -> None:
    async with running(log_dirs=2) as (broker, admin, kafka):
        async with kafka.producer() as producer:
            await producer.send("a", b"v" * 1000, partition=1)
        await broker.stop_node(2)
        found = await admin.describe_log_dirs()
        assert list(found) == [1, 3]
        assert list(found[3]) == ["/memory/3", "/memory/3-2"]
        first, second = found[3].values()
        # New replicas go to the directory with the fewest.
        assert list(first.replica_infos) == [ZERO]
        assert list(second.replica_infos) == [ONE]
        assert second.replica_infos[ONE].size > 1000
        assert first.total_bytes == first.usable_bytes == 2**40
        assert {one.node for one in broker.requests.of(ApiKey.DESCRIBE_LOG_DIRS)} == {1, 3}
        with pytest.raises(AdminError, match="describing log directories failed for 1 of 2") as caught:
            await admin.describe_log_dirs([2, 3])
        assert "broker 2 is not in the cluster" in str(caught.value)
        assert list(caught.value.results) == [3]


async def test_replicas_move_to_other_directories_of_their_brokers() -> None:
    async with running(log_dirs=2) as (broker, admin, _):
        replicas = [TopicPartitionReplica("a", index, node) for node in (3, 1) for index in (0, 1)]
        before = await admin.describe_replica_log_dirs(replicas)
        assert list(before) == replicas
        assert [one.current_log_dir for one in before.values()] == [
            "/memory/3",
            "/memory/3-2",
            "/memory/1",
            "/memory/1-2",
        ]
        await admin.alter_replica_log_dirs({replicas[0]: "/memory/3-2", replicas[3]: "/memory/1"})
        after = await admin.describe_replica_log_dirs(replicas)
        assert [one.current_log_dir for one in after.values()] == [
            "/memory/3-2",
            "/memory/3-2",
            "/memory/1",
            "/memory/1",
        ]
        assert [one.node for one in broker.requests.of(ApiKey.ALTER_REPLICA_LOG_DIRS)] in ([3, 1], [1, 3])
        with pytest.raises(AdminError) as caught:
            await admin.alter_replica_log_dirs(
                {replicas[0]: "/elsewhere", replicas[2]: "/memory/1-2", TopicPartitionReplica("a", 0, 9): "/x"}
            )
        assert [type(error) for error in caught.value.errors.values()] == [LogDirNotFound, BrokerNotAvailable]
        assert caught.value.results == {replicas[2]: None}


async def test_a_replica_that_comes_later_goes_to_the_chosen_directory() -> None:
    async with running(log_dirs=3) as (_, admin, _):
        await admin.create_topics({"b": NewTopic(assignments=[[1]])})
        later = TopicPartitionReplica("b", 0, 2)
        with pytest.raises(ReplicaNotAvailable, match="moving b-0 on broker 2 to log directory '/memory/2-3'"):
            await admin.alter_replica_log_dirs({later: "/memory/2-3"})
        await admin.alter_partition_reassignments({TopicPartition("b", 0): [1, 2]})
        assert (await admin.describe_replica_log_dirs([later]))[later].current_log_dir == "/memory/2-3"
        await admin.alter_partition_reassignments({TopicPartition("b", 0): [1]})
        assert (await admin.describe_replica_log_dirs([later]))[later] == ReplicaLogDirInfo()


async def test_a_move_between_directories_and_an_offline_directory() -> None:
    def partition(size: int, lag: int, future: bool) -> DescribeLogDirsTopic:
        one = DescribeLogDirsPartition(partition_index=0, partition_size=size, offset_lag=lag, is_future_key=future)
        return DescribeLogDirsTopic(name="a", partitions=[one])

    answer = DescribeLogDirsResponse(
        error_code=0,
        results=[
            DescribeLogDirsResult(error_code=0, log_dir="/y", topics=[partition(40, 6, True)], is_cordoned=True),
            DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir="/z", topics=[]),
            DescribeLogDirsResult(error_code=0, log_dir="/x", topics=[partition(100, 1, False)], total_bytes=500),
        ],
    )
    async with running() as (broker, admin, _):
        broker.on(ApiKey.DESCRIBE_LOG_DIRS, answer=answer, times=None)
        found = (await admin.describe_log_dirs(2))[2]
        assert list(found) == ["/x", "/y", "/z"]
        assert found["/x"] == LogDirDescription(None, {ZERO: ReplicaInfo(100, 1)}, 500, None, False)
        assert found["/y"] == LogDirDescription(None, {ZERO: ReplicaInfo(40, 6, True)}, None, None, True)
        assert isinstance(found["/z"].error, KafkaStorageError)
        replica = TopicPartitionReplica("a", 0, 2)
        assert await admin.describe_replica_log_dirs([replica]) == {replica: ReplicaLogDirInfo("/x", 1, "/y", 6)}


async def test_what_brokers_refuse_about_directories() -> None:
    async with running("2.7") as (broker, admin, _):
        # Versions before 3 have no error: a broker that refuses returns no directory.
        broker.on(ApiKey.DESCRIBE_LOG_DIRS, answer=DescribeLogDirsResponse(results=[]))
        with pytest.raises(ClusterAuthorizationFailed, match="describing the log directories of broker 1"):
            await admin.describe_log_dirs(1)
    async with running() as (broker, admin, _):
        broker.on(ApiKey.DESCRIBE_LOG_DIRS, answer=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        with pytest.raises(ClusterAuthorizationFailed):
            await admin.describe_replica_log_dirs([TopicPartitionReplica("a", 0, 1)])
        broker.on(ApiKey.ALTER_REPLICA_LOG_DIRS, answer=AlterReplicaLogDirsResponse(results=[]))
        with pytest.raises(WireError, match="lacks the requested a-0 on broker 1"):
            await admin.alter_replica_log_dirs({TopicPartitionReplica("a", 0, 1): "/memory/1"})


# --- old brokers ---------------------------------------------------------------------------------------------------


async def test_what_old_brokers_cannot_do() -> None:
    elections = r"electing leaders needs brokers since 2.2 \(KIP-183\), unclean elections 2.4 \(KIP-460\): "
    async with running("2.1") as (_, admin, _):
        with pytest.raises(UnsupportedVersion, match=elections):
            await admin.elect_leaders(PREFERRED)
    async with running("2.2") as (broker, admin, _):
        broker.move_leader("a", 0, 2)
        assert await admin.elect_leaders(PREFERRED) == {ZERO: True}
        with pytest.raises(UnsupportedVersion, match=elections):
            await admin.elect_leaders(UNCLEAN, [ZERO])
        for call in (
            lambda: admin.alter_partition_reassignments({ZERO: [1]}),
            lambda: admin.list_partition_reassignments(),
        ):
            with pytest.raises(UnsupportedVersion, match=r"reassigning partitions needs brokers since 2.4 \(KIP-455\)"):
                await call()
    async with running("2.4") as (_, admin, _):
        await admin.alter_partition_reassignments({ZERO: [1]})
        with pytest.raises(UnsupportedVersion, match=r"allow_replication_factor_change=False 4.1 \(KIP-860\): "):
            await admin.alter_partition_reassignments({ZERO: [1]}, allow_replication_factor_change=False)
        directories = (await admin.describe_log_dirs(1))[1]
        assert [one.total_bytes for one in directories.values()] == [None]
    async with running("0.11.0") as (_, admin, _):
        replica, other = TopicPartitionReplica("a", 0, 1), TopicPartitionReplica("a", 0, 2)
        for ask in (
            lambda: admin.describe_log_dirs(),
            lambda: admin.describe_replica_log_dirs([replica]),
            lambda: admin.describe_replica_log_dirs([replica, other]),
            lambda: admin.alter_replica_log_dirs({replica: "/memory/1"}),
            lambda: admin.alter_replica_log_dirs({replica: "/memory/1", other: "/memory/1"}),
        ):
            with pytest.raises(UnsupportedVersion, match=r"log directories need brokers since 1.0 \(KIP-113\): "):
                await ask()


async def test_replicas_are_given_as_triples() -> None:
    async with running() as (_, admin, _):
        (found,) = await admin.describe_replica_log_dirs([("a", 0, 1)])  # type: ignore[list-item]
        assert str(found) == "a-0 on broker 1"
        with pytest.raises(UsageError, match="the broker id of a replica of a-0 must be an integer from 0"):
            await admin.describe_replica_log_dirs([("a", 0, "1")])  # type: ignore[list-item]
