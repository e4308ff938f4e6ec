"""Topics, records, leaders, replicas and log directories: the admin and Kafka's tools do the same to one cluster."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
import pytest
from support.apache_kafka import missing
from support.java_tools import java_command
from support.kafka_cluster import KafkaCluster
from support.needing import require
from support.patience import PATIENCE
from support.transactional import settled

from aiokafkawire import (
    Client,
    ConfigResource,
    ElectionType,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    PartitionReassignment,
    TopicDescription,
    TopicPartition,
    TopicPartitionReplica,
)
from aiokafkawire.errors import AdminError, InvalidPartitions, NoReassignmentInProgress, UnknownTopicOrPartition

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.kafka,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.timeout(400),
]

TOOLS = "org.apache.kafka.tools"
ASSIGNED = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


@pytest.fixture(scope="module")
def apache_brokers() -> Iterator[KafkaCluster]:
    """Three brokers with two log directories each, which elect no preferred leaders by themselves, and describe two
    partitions in a response."""
    require(missing())
    properties = {"auto.leader.rebalance.enable": "false", "max.request.partition.size.limit": "2"}
    with KafkaCluster(log_dirs=2, properties=properties) as cluster:
        yield cluster


@pytest.fixture
async def kafka(apache_brokers: KafkaCluster) -> AsyncIterator[Client]:
    async with Client(apache_brokers.bootstrap) as client:
        yield client


@pytest.fixture
def ours() -> str:
    """A topic that the admin changes."""
    return f"ours-{token_hex(4)}"


@pytest.fixture
def theirs() -> str:
    """A topic that Kafka's tools change."""
    return f"theirs-{token_hex(4)}"


async def tool(brokers: KafkaCluster, name: str, *argv: str, fails: bool = False) -> str:
    """Run one of Kafka's tools, and return what it prints."""
    command = [*java_command(), f"{TOOLS}.{name}", "--bootstrap-server", brokers.bootstrap, *argv]
    with anyio.fail_after(120):
        done = await anyio.run_process(command, check=False)
    printed = (done.stdout + done.stderr).decode()
    assert (done.returncode != 0) == fails, printed
    return printed


def as_file(folder: Path, content: Any) -> str:
    path = folder / f"{token_hex(4)}.json"
    path.write_text(json.dumps(content))
    return str(path)


async def told(brokers: KafkaCluster, topic: str) -> list[dict[str, str]]:
    """Return what kafka-topics tells of each partition."""
    lines = (await tool(brokers, "TopicCommand", "--describe", "--topic", topic)).splitlines()
    rows = [line.strip().split("\t") for line in lines if "\tPartition: " in line]
    return [dict(re.fullmatch(r"(\w+): ?(.*)", cell).groups() for cell in row) for row in rows]  # type: ignore[union-attr, misc]


def as_told(topic: TopicDescription) -> list[dict[str, str]]:
    """Return our description in the tool's words."""
    return [
        {
            "Topic": topic.name,
            "Partition": str(one.index),
            "Leader": "none" if one.leader is None else str(one.leader),
            "Replicas": ",".join(map(str, one.replicas)),
            "Isr": ",".join(map(str, one.in_sync)),
            "Elr": ",".join(map(str, one.eligible_leader_replicas or ())),
            "LastKnownElr": ",".join(map(str, one.last_known_elr or ())),
        }
        for one in topic.partitions
    ]


def without_name(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{key: value for key, value in row.items() if key != "Topic"} for row in rows]


async def described(kafka: Client, topic: str, count: int = 3) -> TopicDescription:
    """Describe a topic once it has that many partitions with all replicas in sync."""

    async def ask() -> TopicDescription | None:
        try:
            found = (await kafka.admin.describe_topics(topic))[topic]
        except UnknownTopicOrPartition:
            return None
        whole = all(sorted(one.in_sync) == sorted(one.replicas) for one in found.partitions)
        return found if whole and len(found.partitions) == count else None

    found = await settled(ask, lambda known: known is not None)
    assert found is not None
    return found


async def created(kafka: Client, *topics: str) -> None:
    await kafka.admin.create_topics({topic: NewTopic(assignments=ASSIGNED) for topic in topics})
    for topic in topics:
        await described(kafka, topic)


# --- topics --------------------------------------------------------------------------------------------------------


async def test_topics_and_partitions_are_created_as_by_kafka_topics(
    kafka: Client, apache_brokers: KafkaCluster, ours: str, theirs: str
) -> None:
    await kafka.admin.create_topics({ours: NewTopic(assignments=ASSIGNED)})
    placed = ",".join(":".join(map(str, nodes)) for nodes in ASSIGNED)
    await tool(apache_brokers, "TopicCommand", "--create", "--topic", theirs, "--replica-assignment", placed)
    await described(kafka, theirs)
    await described(kafka, ours)
    assert without_name(await told(apache_brokers, ours)) == without_name(await told(apache_brokers, theirs))

    await kafka.admin.create_partitions({ours: NewPartitions(5, [[3, 2, 1], [2, 1, 3]])})
    more = f"{placed},3:2:1,2:1:3"
    alter = ["--alter", "--partitions", "5", "--replica-assignment", more]
    await tool(apache_brokers, "TopicCommand", *alter, "--topic", theirs)
    found = [await described(kafka, topic, 5) for topic in (ours, theirs)]
    rows = [await told(apache_brokers, topic) for topic in (ours, theirs)]
    assert [as_told(topic) for topic in found] == rows
    assert without_name(rows[0]) == without_name(rows[1])

    with pytest.raises(InvalidPartitions, match="4 would not be an increase") as caught:
        await kafka.admin.create_partitions({ours: 4})
    fewer = ["--alter", "--partitions", "4", "--topic", theirs]
    printed = await tool(apache_brokers, "TopicCommand", *fewer, fails=True)
    assert "InvalidPartitionsException" in printed
    assert "4 would not be an increase" in printed
    assert f"The topic {ours} currently has 5 partition(s)" in str(caught.value)
    assert f"The topic {theirs} currently has 5 partition(s)" in printed
    await kafka.admin.delete_topics([found[0].topic_id, theirs])
    listed = (await tool(apache_brokers, "TopicCommand", "--list")).splitlines()
    assert not {ours, theirs} & set(listed)


async def test_records_are_deleted_as_by_kafka_delete_records(
    kafka: Client, apache_brokers: KafkaCluster, ours: str, theirs: str, tmp_path: Path
) -> None:
    await created(kafka, ours, theirs)
    async with kafka.producer() as producer:
        for topic in (ours, theirs):
            for index in range(3):
                await producer.send_many(topic, [b"v"] * 10, partition=index)
    offsets = [4, -1, 11]
    with pytest.raises(AdminError) as caught:
        await kafka.admin.delete_records({TopicPartition(ours, index): offset for index, offset in enumerate(offsets)})
    wanted = [{"topic": theirs, "partition": index, "offset": offset} for index, offset in enumerate(offsets)]
    file = as_file(tmp_path, {"version": 1, "partitions": wanted})
    printed = await tool(apache_brokers, "DeleteRecordsCommand", "--offset-json-file", file)
    marks = {int(index): int(mark) for index, mark in re.findall(rf"{theirs}-(\d)\tlow_watermark: (-?\d+)", printed)}
    assert {partition.partition: mark for partition, mark in caught.value.results.items()} == marks == {0: 4, 1: 10}
    ((failed, error),) = caught.value.errors.items()
    ((index, text),) = re.findall(rf"{theirs}-(\d)\terror: (.*)", printed)
    assert (failed.partition, type(error).__name__) == (int(index), "OffsetOutOfRange")
    assert "OffsetOutOfRangeException" in text
    for topic in (ours, theirs):
        partitions = [TopicPartition(topic, index) for index in range(3)]
        found = await kafka.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
        assert [entry.offset for entry in found.values() if entry is not None] == [4, 10, 0]


# --- log directories -----------------------------------------------------------------------------------------------


async def directories(brokers: KafkaCluster, topic: str) -> dict[int, Any]:
    """Return what kafka-log-dirs tells of a topic: by broker and path the error, and size, lag and future of each."""
    printed = await tool(brokers, "LogDirsCommand", "--describe", "--topic-list", topic, "--broker-list", "1,2,3")
    (line,) = [line for line in printed.splitlines() if line.startswith("{")]
    return {
        broker["broker"]: {
            one["logDir"]: (
                one["error"],
                {part["partition"]: (part["size"], part["offsetLag"], part["isFuture"]) for part in one["partitions"]},
            )
            for one in broker["logDirs"]
        }
        for broker in json.loads(line)["brokers"]
    }


async def our_directories(kafka: Client, topic: str) -> dict[int, Any]:
    partitions = [TopicPartition(topic, index) for index in range(3)]
    return {
        broker: {
            path: (
                one.error,
                {str(where): (info.size, info.offset_lag, info.is_future) for where, info in one.replica_infos.items()},
            )
            for path, one in found.items()
        }
        for broker, found in (await kafka.admin.describe_log_dirs([1, 2, 3], partitions=partitions)).items()
    }


async def test_log_directories_are_those_of_kafka_log_dirs(
    kafka: Client, apache_brokers: KafkaCluster, ours: str
) -> None:
    await created(kafka, ours)
    async with kafka.producer(acks="all") as producer:
        await producer.send_many(ours, [b"v" * 1000] * 20, partition=0)

    async def lags() -> list[int]:
        found = await our_directories(kafka, ours)
        return [lag for one in found.values() for _, infos in one.values() for _, lag, _ in infos.values()]

    await settled(lags, lambda found: found == [0] * 9)
    before = await our_directories(kafka, ours)
    assert before == await directories(apache_brokers, ours)
    assert [len(found) for found in before.values()] == [2, 2, 2]

    # A replica moves to the other directory of its broker.
    replica = TopicPartitionReplica(ours, 0, 2)
    here = (await kafka.admin.describe_replica_log_dirs([replica]))[replica].current_log_dir
    (there,) = (path for path in before[2] if path != here)
    await kafka.admin.alter_replica_log_dirs({replica: there})

    async def moved() -> str | None:
        info = (await kafka.admin.describe_replica_log_dirs([replica]))[replica]
        return info.current_log_dir if info.future_log_dir is None else None

    await settled(moved, lambda path: path == there)
    after = await our_directories(kafka, ours)
    assert after == await directories(apache_brokers, ours)
    assert after[2][there][1][f"{ours}-0"] == before[2][here][1][f"{ours}-0"]


async def test_a_replica_that_moves_is_a_future_replica_as_kafka_log_dirs_tells(
    kafka: Client, apache_brokers: KafkaCluster, ours: str
) -> None:
    await created(kafka, ours)
    async with kafka.producer() as producer:
        for _ in range(6):
            await producer.send(ours, bytes(500_000), partition=0)
    replica, broker = TopicPartitionReplica(ours, 0, 2), ConfigResource.broker(2)
    slow = {broker: {"replica.alter.log.dirs.io.max.bytes.per.second": "1"}}
    before = await our_directories(kafka, ours)
    here = (await kafka.admin.describe_replica_log_dirs([replica]))[replica].current_log_dir
    (there,) = (path for path in before[2] if path != here)
    await kafka.admin.incremental_alter_configs(slow)
    try:
        # The first megabyte is copied at once, and the next one has to wait for some ten seconds.
        await kafka.admin.alter_replica_log_dirs({replica: there})
        info = (await kafka.admin.describe_replica_log_dirs([replica]))[replica]
        assert (info.current_log_dir, info.current_offset_lag, info.future_log_dir) == (here, 0, there)
        assert info.future_offset_lag > 0
        found = (await directories(apache_brokers, ours))[2]
        assert found[here][1][f"{ours}-0"] == before[2][here][1][f"{ours}-0"]
        _, lag, is_future = found[there][1][f"{ours}-0"]
        assert (0 < lag <= info.future_offset_lag, is_future) == (True, True)
    finally:
        await kafka.admin.incremental_alter_configs({broker: dict.fromkeys(slow[broker])})


# --- reassignments and elections -----------------------------------------------------------------------------------

REASSIGN = "reassign.ReassignPartitionsCommand"


def plan(folder: Path, topic: str, *targets: tuple[int, list[int]]) -> str:
    partitions = [{"topic": topic, "partition": index, "replicas": replicas} for index, replicas in targets]
    return as_file(folder, {"version": 1, "partitions": partitions})


async def test_partitions_move_as_by_kafka_reassign_partitions(
    kafka: Client, apache_brokers: KafkaCluster, ours: str, theirs: str, tmp_path: Path
) -> None:
    placed = NewTopic(assignments=[[1], [2], [3]])
    await kafka.admin.create_topics({ours: placed, theirs: placed})
    targets = [(0, [3, 2]), (1, [1]), (2, [3, 1, 2])]
    await kafka.admin.alter_partition_reassignments({TopicPartition(ours, index): nodes for index, nodes in targets})
    await settled(kafka.admin.list_partition_reassignments, lambda found: found == {})
    file = plan(tmp_path, theirs, *targets)
    printed = await tool(apache_brokers, REASSIGN, "--reassignment-json-file", file, "--execute")
    assert "Successfully started partition reassignment" in printed
    await settled(kafka.admin.list_partition_reassignments, lambda found: found == {})
    assert "is completed" in await tool(apache_brokers, REASSIGN, "--reassignment-json-file", file, "--verify")
    for topic in (ours, theirs):
        found = await described(kafka, topic)
        assert [list(one.replicas) for one in found.partitions] == [nodes for _, nodes in targets]
        assert as_told(found) == await told(apache_brokers, topic)


async def test_leaders_are_elected_as_by_kafka_leader_election_and_moves_are_listed_and_called_off(
    kafka: Client, apache_brokers: KafkaCluster, ours: str, theirs: str, tmp_path: Path
) -> None:
    await created(kafka, ours, theirs)
    await anyio.to_thread.run_sync(apache_brokers.end, 3)
    try:
        # The brokers that hold a partition are two that run and one that does not, so that the move has to wait.
        await kafka.admin.create_topics({f"{topic}-moves": NewTopic(assignments=[[1]]) for topic in (ours, theirs)})
        moved = [TopicPartition(f"{topic}-moves", 0) for topic in (ours, theirs)]
        await kafka.admin.alter_partition_reassignments({where: [3, 2] for where in moved})
        ongoing = await kafka.admin.list_partition_reassignments()
        assert ongoing == dict.fromkeys(sorted(moved), PartitionReassignment((3, 2, 1), (2, 3), (1,)))
        printed = await tool(apache_brokers, REASSIGN, "--list")
        for where in moved:
            assert f"{where}: replicas: 3,2,1. adding: 2,3. removing: 1." in printed
        await kafka.admin.alter_partition_reassignments({moved[0]: None})
        file = plan(tmp_path, moved[1].topic, (0, [3, 2]))
        await tool(apache_brokers, REASSIGN, "--cancel", "--preserve-throttles", "--reassignment-json-file", file)
        assert await kafka.admin.list_partition_reassignments(moved) == {}
        assert "No partition reassignments found" in await tool(apache_brokers, REASSIGN, "--list")
        with pytest.raises(NoReassignmentInProgress):
            await kafka.admin.alter_partition_reassignments({moved[0]: None})
    finally:
        await anyio.to_thread.run_sync(apache_brokers.restart, 3)
    await anyio.to_thread.run_sync(apache_brokers.wait_whole)

    # Others lead in the place of the broker that was down.
    led = [await described(kafka, topic) for topic in (ours, theirs)]
    assert [[one.leader for one in topic.partitions] for topic in led] == [[1, 2, 1]] * 2
    chosen = {TopicPartition(ours, 1): False, TopicPartition(ours, 2): True}
    assert await kafka.admin.elect_leaders(ElectionType.PREFERRED, chosen) == chosen
    partitions = [{"topic": theirs, "partition": index} for index in (1, 2)]
    file = as_file(tmp_path, {"partitions": partitions})
    printed = await tool(
        apache_brokers, "LeaderElectionCommand", "--election-type", "preferred", "--path-to-json-file", file
    )
    assert f"Successfully completed leader election (PREFERRED) for partitions {theirs}-2" in printed
    assert f"Valid replica already elected for partitions {theirs}-1" in printed

    async def leaders() -> list[list[int | None]]:
        return [[one.leader for one in (await described(kafka, topic)).partitions] for topic in (ours, theirs)]

    await settled(leaders, lambda found: found == [[1, 2, 3]] * 2)
    for topic in (ours, theirs):
        assert as_told(await described(kafka, topic)) == await told(apache_brokers, topic)
    # An unclean election of what does not exist fails in the same words.
    missing_one = f"{ours}-missing"
    with pytest.raises(UnknownTopicOrPartition, match=f"No such topic as {missing_one}"):
        await kafka.admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition(missing_one, 0)])
    argv = ["--election-type", "unclean", "--topic", missing_one, "--partition", "0"]
    printed = await tool(apache_brokers, "LeaderElectionCommand", *argv, fails=True)
    assert f"No such topic as {missing_one}" in printed


async def test_leaders_are_elected_among_replicas_that_lack_records(
    kafka: Client, apache_brokers: KafkaCluster, ours: str, theirs: str
) -> None:
    placed = NewTopic(assignments=[[3, 1]], configs={"min.insync.replicas": "1"})
    await kafka.admin.create_topics({ours: placed, theirs: placed})
    for topic in (ours, theirs):
        await described(kafka, topic, 1)
    await anyio.to_thread.run_sync(apache_brokers.end, 1)
    try:
        async with kafka.producer() as producer:
            for topic in (ours, theirs):
                await producer.send(topic, b"lost")
        await anyio.to_thread.run_sync(apache_brokers.kill, 3)
        await anyio.to_thread.run_sync(apache_brokers.restart, 1)
        with anyio.fail_after(60):
            while {leader for leader, _ in await only_leaders(kafka, ours, theirs)} != {None}:  # noqa: ASYNC110
                await anyio.sleep(0.2)
        found = (await kafka.admin.describe_topics([ours]))[ours]
        (last,) = {*found.partitions[0].in_sync, *(found.partitions[0].eligible_leader_replicas or ())}
        assert (last, found.partitions[0].offline) == (3, (3,))
        assert as_told(found) == await told(apache_brokers, ours)
        where = TopicPartition(ours, 0)
        assert await kafka.admin.elect_leaders(ElectionType.UNCLEAN, [where]) == {where: True}
        argv = ["--election-type", "unclean", "--topic", theirs, "--partition", "0"]
        printed = await tool(apache_brokers, "LeaderElectionCommand", *argv)
        assert f"Successfully completed leader election (UNCLEAN) for partitions {theirs}-0" in printed
        with anyio.fail_after(PATIENCE):
            while await only_leaders(kafka, ours, theirs) != [(1, (1,))] * 2:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert [record async for record in kafka.read_records(ours)] == []
    finally:
        await anyio.to_thread.run_sync(apache_brokers.restart, 3)
    await anyio.to_thread.run_sync(apache_brokers.wait_whole)


async def only_leaders(kafka: Client, *topics: str) -> list[tuple[int | None, tuple[int, ...]]]:
    """Return the leader and the in-sync replicas of the only partition of each topic."""
    found = await kafka.admin.describe_topics(topics)
    return [(topic.partitions[0].leader, topic.partitions[0].in_sync) for topic in found.values()]
