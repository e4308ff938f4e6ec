"""CreatePartitions, DeleteRecords, DescribeTopicPartitions and log directories, as Apache Kafka answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
from support.raw_client import RawClient, batch_of, records_of

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from aiokafkawire.protocol.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataResponseTopic,
    TopicRequest,
)
from aiokafkawire.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aiokafkawire.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

INCLUDES = "The manual partition assignment includes "
OPERATIONS = 3576
NO_OPERATIONS = -(2**31)


# --- settings of new topics --------------------------------------------------------------------------------------


async def test_creating_tells_all_settings(client: RawClient, name: str) -> None:
    given = [CreatableTopicConfig(name="max.message.bytes", value="5000")]
    topic = CreatableTopic(name=f"{name}-x", num_partitions=1, replication_factor=1, assignments=[], configs=given)
    request = CreateTopicsRequest(topics=[topic], validate_only=True)
    (created,) = (await client.ask(request, 7)).topics
    names = [config.name for config in created.configs or ()]
    assert len(names) == 33
    assert names == sorted(names)
    found = {config.name: (config.value, config.config_source) for config in created.configs or ()}
    assert (found["max.message.bytes"], found["flush.messages"], found["min.insync.replicas"]) == (
        ("5000", 1),
        ("9223372036854775807", 5),
        ("1", 3),
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("max.message.bytes", "x", "Invalid value x for configuration max.message.bytes: Not a number of type INT"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        (
            "cleanup.policy",
            "foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
    ],
)
async def test_settings_that_no_topic_can_have(
    client: RawClient, name: str, key: str, value: str, message: str
) -> None:
    given = [CreatableTopicConfig(name=key, value=value)]
    topic = CreatableTopic(name=f"{name}-x", num_partitions=1, replication_factor=1, assignments=[], configs=given)
    (refused,) = (await client.ask(CreateTopicsRequest(topics=[topic]), 7)).topics
    assert (ErrorCode(refused.error_code).name, refused.error_message) == ("INVALID_CONFIG", message)


# --- more partitions ---------------------------------------------------------------------------------------------


async def extend(
    client: RawClient,
    *topics: tuple[str, int, list[list[int]] | None],
    validate_only: bool = False,
    version: int = 3,
) -> list[tuple[str, str, str | None]]:
    asked = [
        CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=None if replicas is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in replicas],
        )
        for name, count, replicas in topics
    ]
    request = CreatePartitionsRequest(topics=asked, timeout_ms=5000, validate_only=validate_only)
    results = (await client.ask(request, version)).results
    return sorted((each.name, ErrorCode(each.error_code).name, each.error_message) for each in results)


@pytest.mark.parametrize("version", range(4))
async def test_more_partitions(kafka: Kafka, client: RawClient, name: str, version: int) -> None:
    assert await extend(client, (name, 3, None), version=version) == [(name, "NONE", None)]
    assert await extend(client, (name, 4, [[1]]), version=version) == [(name, "NONE", None)]
    topic = await kafka.described(client, name, 4)
    assert [(each.partition_index, each.replica_nodes) for each in topic.partitions] == [
        (index, [1]) for index in range(4)
    ]


async def test_more_partitions_that_cannot_be(client: RawClient, name: str) -> None:
    cases: Mapping[tuple[str, int, tuple[tuple[int, ...], ...] | None], tuple[str, str | None]] = {
        (name, 1, None): ("INVALID_PARTITIONS", "Topic already has 1 partition(s)."),
        (name, 0, None): (
            "INVALID_PARTITIONS",
            f"The topic {name} currently has 1 partition(s); 0 would not be an increase.",
        ),
        ("no-such-topic", 3, None): ("UNKNOWN_TOPIC_OR_PARTITION", None),
        ("a b", 3, None): ("UNKNOWN_TOPIC_OR_PARTITION", None),
        (name, 3, ((1,),)): (
            "INVALID_REPLICA_ASSIGNMENT",
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (name, 2, ((9,),)): (
            "INVALID_REPLICA_ASSIGNMENT",
            INCLUDES + "broker 9, but no such broker is registered.",
        ),
        (name, 2, ((),)): ("INVALID_REPLICA_ASSIGNMENT", INCLUDES + "an empty replica list."),
        (name, 2, ((1, 1),)): ("INVALID_REPLICA_ASSIGNMENT", INCLUDES + "the broker 1 more than once."),
    }
    answers = {}
    for topic, count, replicas in cases:
        asked = None if replicas is None else [list(ids) for ids in replicas]
        ((_, error, message),) = await extend(client, (topic, count, asked))
        answers[topic, count, replicas] = (error, message)
    assert answers == cases


async def test_more_partitions_for_some(kafka: Kafka, client: RawClient, name: str) -> None:
    other = (await kafka.topic()).name or ""
    answers = await extend(client, (name, 2, None), (name, 3, None), (other, 2, None))
    assert answers == sorted([(name, "INVALID_REQUEST", "Duplicate topic name."), (other, "NONE", None)])
    assert await extend(client, (name, 2, None), validate_only=True) == [(name, "NONE", None)]
    assert len((await kafka.described(client, name)).partitions) == 1


# --- fewer records -----------------------------------------------------------------------------------------------

Deleted = dict[str, dict[int, tuple[int, str]]]


async def delete(client: RawClient, *topics: tuple[str, list[tuple[int, int]]], version: int = 2) -> Deleted:
    asked = [
        DeleteRecordsTopic(
            name=name,
            partitions=[DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets],
        )
        for name, offsets in topics
    ]
    answer = await client.ask(DeleteRecordsRequest(topics=asked, timeout_ms=5000), version)
    return {
        topic.name: {
            each.partition_index: (each.low_watermark, ErrorCode(each.error_code).name) for each in topic.partitions
        }
        for topic in answer.topics
    }


@pytest.mark.parametrize("version", range(3))
async def test_deleting_records(client: RawClient, name: str, version: int) -> None:
    for _ in range(3):
        await client.produce(name, batch_of(b"a", b"b"))
    assert await delete(client, (name, [(0, 3)]), version=version) == {name: {0: (3, "NONE")}}
    data = await client.fetch(name, 3)
    assert (data.log_start_offset, data.high_watermark) == (3, 6)
    assert [record.offset for record in records_of(data)] == [2, 3, 4, 5]  # batches are never cut
    assert (await client.fetch(name, 2)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert await delete(client, (name, [(0, 1)]), version=version) == {name: {0: (3, "NONE")}}
    assert await delete(client, (name, [(0, -1)]), version=version) == {name: {0: (6, "NONE")}}
    assert (await client.produce(name, batch_of(b"c"))).base_offset == 6


async def test_records_that_cannot_be_deleted(client: RawClient, name: str) -> None:
    await client.produce(name, batch_of(b"a", b"b"))
    for offset in (3, -2):
        assert await delete(client, (name, [(0, offset)])) == {name: {0: (-1, "OFFSET_OUT_OF_RANGE")}}
    unknown = (-1, "UNKNOWN_TOPIC_OR_PARTITION")
    assert await delete(client, (name, [(7, 0), (0, 1), (-1, 0)]), ("no-such-topic", [(0, 0)])) == {
        name: {7: unknown, 0: (1, "NONE"), -1: unknown},
        "no-such-topic": {0: unknown},
    }
    assert await delete(client, (name, [(0, 1), (0, 2)])) == {name: {0: (2, "NONE")}}
    assert await delete(client, (name, [])) == {}


async def test_compacted_topics_keep_their_records(kafka: Kafka, client: RawClient, name: str) -> None:
    compacted = await kafka.topic_with(client, f"{name}-c", cleanup_policy="compact")
    both = await kafka.topic_with(client, f"{name}-cd", cleanup_policy="compact,delete")
    for topic in (compacted, both):
        while (await client.produce(topic, batch_of(b"a", b"b"))).error_code:
            pass  # the leader of a new topic learns of it last
    assert await delete(client, (compacted, [(0, 1)])) == {compacted: {0: (-1, "POLICY_VIOLATION")}}
    assert await delete(client, (both, [(0, 1)])) == {both: {0: (1, "NONE")}}


async def test_internal_topics_keep_their_records(kafka: Kafka, client: RawClient) -> None:
    await client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
    await kafka.described(client, "__consumer_offsets")
    assert await delete(client, ("__consumer_offsets", [(0, 0), (99, 0)])) == {
        "__consumer_offsets": {0: (-1, "INVALID_TOPIC_EXCEPTION"), 99: (-1, "UNKNOWN_TOPIC_OR_PARTITION")}
    }


# --- partitions in portions --------------------------------------------------------------------------------------


async def portion(
    client: RawClient, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return await client.ask(request, 0)


def outline(answer: DescribeTopicPartitionsResponse) -> tuple[list[tuple[str, list[int]]], tuple[str, int] | None]:
    """The topics with their partitions, and where to go on."""
    topics = [(topic.name or "", [each.partition_index for each in topic.partitions]) for topic in answer.topics]
    cursor = answer.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def test_the_partitions_of_a_topic(client: RawClient, topic: MetadataResponseTopic) -> None:
    (found,) = (await portion(client, topic.name or "")).topics
    assert (found.error_code, found.name, found.topic_id) == (0, topic.name, topic.topic_id)
    assert (found.is_internal, found.topic_authorized_operations) == (False, OPERATIONS)
    (one,) = found.partitions
    assert (one.error_code, one.leader_id, one.leader_epoch, one.replica_nodes, one.isr_nodes) == (0, 1, 0, [1], [1])
    assert (one.eligible_leader_replicas, one.last_known_elr, one.offline_replicas) == ([], [], [])


async def test_portions(kafka: Kafka, client: RawClient) -> None:
    a, b = sorted([(await kafka.topic(3)).name or "", (await kafka.topic(2)).name or ""], key=str)
    counts = {name: len((await kafka.described(client, name)).partitions) for name in (a, b)}
    whole = [(a, list(range(counts[a]))), (b, list(range(counts[b])))]
    assert outline(await portion(client, b, a, a)) == (whole, None)
    seen, cursor = [], None
    for _ in range(5):
        topics, cursor = outline(await portion(client, a, b, limit=1, cursor=cursor))
        seen += topics
    assert seen == [(name, [index]) for name in (a, b) for index in range(counts[name])]
    assert cursor is None
    # A portion that ends with a topic goes on with the next.
    assert outline(await portion(client, a, b, limit=counts[a])) == (whole[:1], (b, 0))
    assert outline(await portion(client, a, limit=0)) == ([(a, [0])], (a, 1))
    assert outline(await portion(client, a, cursor=(a, 99))) == ([(a, [])], None)
    assert outline(await portion(client, cursor=(b, 1), limit=1))[0] == [(b, [1])]
    assert outline(await portion(client, cursor=("zzz", 0))) == ([], None)


async def test_topics_that_there_are_not(client: RawClient, name: str) -> None:
    missing, found = (await portion(client, name, "no-such-topic")).topics
    assert (ErrorCode(missing.error_code).name, missing.name) == ("UNKNOWN_TOPIC_OR_PARTITION", "no-such-topic")
    assert (missing.topic_id, missing.topic_authorized_operations, found.name) == (ZERO_UUID, OPERATIONS, name)
    invalid, found = (await portion(client, "a b", name)).topics
    assert (ErrorCode(invalid.error_code).name, found.name) == ("INVALID_TOPIC_EXCEPTION", name)


async def test_portions_that_make_no_sense(client: RawClient, name: str) -> None:
    cases: list[tuple[list[str], tuple[str, int] | None, str]] = [
        ([name], ("zzz", 0), "INVALID_REQUEST"),
        ([name], (name, -1), "INVALID_REQUEST"),
        ([name, ""], None, "UNKNOWN_SERVER_ERROR"),
    ]
    for names, cursor, error in cases:
        answer = await portion(client, *names, cursor=cursor)
        assert [
            (each.name, ErrorCode(each.error_code).name, each.topic_authorized_operations) for each in answer.topics
        ] == [(each, error, NO_OPERATIONS) for each in names]


# --- log directories ---------------------------------------------------------------------------------------------


def sizes(answer: DescribeLogDirsResponse) -> dict[str, dict[int, tuple[int, int, bool]]]:
    (directory,) = answer.results
    assert (answer.error_code, directory.error_code, directory.log_dir[:1]) == (0, 0, "/")
    return {
        topic.name: {
            each.partition_index: (each.partition_size, each.offset_lag, each.is_future_key)
            for each in topic.partitions
        }
        for topic in directory.topics
    }


@pytest.mark.parametrize("version", range(1, 6))
async def test_log_directories(kafka: Kafka, client: RawClient, version: int) -> None:
    topic = (await kafka.topic(2)).name or ""
    batch = batch_of(b"a", b"b")
    await client.produce(topic, batch)
    asked = [
        DescribableLogDirTopic(topic=topic, partitions=[0, 99]),
        DescribableLogDirTopic(topic="no-such-topic", partitions=[0]),
    ]
    answer = await client.ask(DescribeLogDirsRequest(topics=asked), version)
    assert sizes(answer) == {topic: {0: (len(batch), 0, False)}}
    every = sizes(await client.ask(DescribeLogDirsRequest(topics=None), version))
    assert every[topic] == {0: (len(batch), 0, False), 1: (0, 0, False)}
    assert sizes(await client.ask(DescribeLogDirsRequest(topics=[]), version)) == {}


@pytest.mark.parametrize("version", [1, 2])
async def test_replicas_that_cannot_move_to_another_directory(kafka: Kafka, client: RawClient, version: int) -> None:
    topic = (await kafka.topic(2)).name or ""
    await client.produce(topic, batch_of(b"a"))
    (directory,) = (await client.ask(DescribeLogDirsRequest(topics=[]), 5)).results
    asked = {
        directory.log_dir: {topic: [0, 99], "no-such-topic": [0]},
        "/no/such/directory": {topic: [1]},
    }
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[AlterReplicaLogDirTopic(name=name, partitions=indexes) for name, indexes in topics.items()],
            )
            for path, topics in asked.items()
        ]
    )
    answer = await client.ask(request, version)
    assert {
        (each.topic_name, one.partition_index): ErrorCode(one.error_code).name
        for each in answer.results
        for one in each.partitions
    } == {
        (topic, 0): "NONE",
        (topic, 1): "LOG_DIR_NOT_FOUND",
        (topic, 99): "UNKNOWN_TOPIC_OR_PARTITION",
        ("no-such-topic", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }


async def test_ten_thousand_more_partitions_are_too_many(kafka: Kafka, client: RawClient) -> None:
    topic = await kafka.topic()
    asked = [CreatePartitionsTopic(name=topic.name or "", count=10_002, assignments=None)]
    request = CreatePartitionsRequest(topics=asked, timeout_ms=5000, validate_only=True)
    (answer,) = (await client.ask(request, 3)).results
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
