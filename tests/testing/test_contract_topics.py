"""CreateTopics and DeleteTopics, as Apache Kafka answers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic
from aiokafkawire.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from aiokafkawire.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio


def creatable(
    name: str,
    num_partitions: int = 1,
    replication_factor: int = 1,
    *,
    assignments: list[tuple[int, list[int]]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        assignments=[CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in assignments or ()],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


async def create(
    client: RawClient, *topics: CreatableTopic, version: int = 7, **fields: bool
) -> list[CreatableTopicResult]:
    return (await client.ask(CreateTopicsRequest(topics=list(topics), **fields), version)).topics


async def delete(client: RawClient, *topics: DeleteTopicState) -> list[DeletableTopicResult]:
    return (await client.ask(DeleteTopicsRequest(topics=list(topics), timeout_ms=5000), 6)).responses


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_creates(kafka: Kafka, client: RawClient, name: str, version: int) -> None:
    new = f"{name}-v{version}"
    (created,) = await create(client, creatable(new, 3), version=version)
    assert (created.error_code, created.error_message) == (0, None)
    assert (created.num_partitions, created.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
    topic = await kafka.described(client, new)
    assert len(topic.partitions) == 3
    assert created.topic_id == (topic.topic_id if version >= 7 else ZERO_UUID)


async def test_defaults_of_the_broker(client: RawClient, name: str) -> None:
    (created,) = await create(client, creatable(f"{name}-defaults", -1, -1))
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 1, 1)


async def test_placement_by_hand(kafka: Kafka, client: RawClient, name: str) -> None:
    (created,) = await create(client, creatable(f"{name}-placed", -1, -1, assignments=[(1, [1]), (0, [1])]))
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 2, 1)


UNREACHABLE = (
    "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only "
    "1 broker(s) are registered or some brokers have all their log directories cordoned."
)
BAD_COUNT = "Number of partitions was set to an invalid non-positive value."
BAD_FACTOR = "Replication factor must be larger than 0, or -1 to use the default value."
MANUAL = "A manual partition assignment was specified, but "
INCLUDES = "The manual partition assignment includes "


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        (creatable(""), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: the empty string is not allowed"),
        (creatable("."), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: '.' is not allowed"),
        (creatable(".."), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: '..' is not allowed"),
        (
            creatable("a b"),
            "INVALID_TOPIC_EXCEPTION",
            (
                "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, "
                "'.', '_' and '-'"
            ),
        ),
        (
            creatable("x" * 250),
            "INVALID_TOPIC_EXCEPTION",
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249",
        ),
        (
            creatable("__cluster_metadata"),
            "INVALID_REQUEST",
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (creatable("x", 0), "INVALID_PARTITIONS", BAD_COUNT),
        (creatable("x", -2), "INVALID_PARTITIONS", BAD_COUNT),
        (creatable("x", 1, 0), "INVALID_REPLICATION_FACTOR", BAD_FACTOR),
        (creatable("x", 0, -2), "INVALID_REPLICATION_FACTOR", BAD_FACTOR),
        (creatable("x", 1, 3), "INVALID_REPLICATION_FACTOR", UNREACHABLE),
        (creatable("x", configs={"foo": "1"}), "INVALID_CONFIG", "Unknown topic config name: foo"),
        (
            creatable("x", configs={"max.message.bytes": None}),
            "INVALID_CONFIG",
            "Null value not supported for topic configs: max.message.bytes",
        ),
        (
            creatable("x", -1, 1, assignments=[(0, [1])]),
            "INVALID_REQUEST",
            MANUAL + "replication factor was not set to -1.",
        ),
        (
            creatable("x", 1, -1, assignments=[(0, [1])]),
            "INVALID_REQUEST",
            MANUAL + "numPartitions was not set to -1.",
        ),
        (
            creatable("x", -1, -1, assignments=[(0, [9])]),
            "INVALID_REPLICA_ASSIGNMENT",
            INCLUDES + "broker 9, but no such broker is registered.",
        ),
        (
            creatable("x", -1, -1, assignments=[(0, [])]),
            "INVALID_REPLICA_ASSIGNMENT",
            INCLUDES + "an empty replica list.",
        ),
        (
            creatable("x", -1, -1, assignments=[(0, [1, 1])]),
            "INVALID_REPLICA_ASSIGNMENT",
            INCLUDES + "the broker 1 more than once.",
        ),
        (
            creatable("x", -1, -1, assignments=[(0, [1]), (0, [1])]),
            "INVALID_REPLICA_ASSIGNMENT",
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            creatable("x", -1, -1, assignments=[(0, [1]), (2, [1])]),
            "INVALID_REPLICA_ASSIGNMENT",
            "partitions should be a consecutive 0-based integer sequence",
        ),
    ],
)
async def test_what_cannot_be_is_not_created(
    client: RawClient, topic: CreatableTopic, error: str, message: str
) -> None:
    (refused,) = await create(client, topic)
    assert (refused.name, ErrorCode(refused.error_code).name, refused.error_message) == (topic.name, error, message)
    assert (refused.topic_id, refused.num_partitions, refused.replication_factor) == (ZERO_UUID, -1, -1)


async def test_a_topic_is_created_once(client: RawClient, name: str) -> None:
    (refused,) = await create(client, creatable(name))
    assert refused.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert refused.error_message == f"Topic '{name}' already exists."


async def test_names_that_differ_in_dots_and_underscores_collide(client: RawClient, name: str) -> None:
    await create(client, creatable(f"{name}.a"))
    (refused,) = await create(client, creatable(f"{name}_a"))
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.error_message == f"Topic '{name}_a' collides with existing topic: {name}.a"


async def test_duplicates_in_a_request_are_refused_and_the_rest_is_created(client: RawClient, name: str) -> None:
    results = await create(client, creatable(f"{name}-d"), creatable(f"{name}-e"), creatable(f"{name}-d"))
    assert sorted((result.name, result.error_code, result.error_message) for result in results) == [
        (f"{name}-d", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        (f"{name}-e", 0, None),
    ]


async def test_validate_only_creates_nothing(client: RawClient, name: str) -> None:
    for _ in range(2):
        (validated,) = await create(client, creatable(f"{name}-checked", 2), validate_only=True)
        assert (validated.error_code, validated.num_partitions) == (0, 2)


# --- deleting ----------------------------------------------------------------------------------------------------


async def test_delete_by_name_and_by_id(kafka: Kafka, client: RawClient) -> None:
    one, other = await kafka.topic(), await kafka.topic()
    (by_name,) = await delete(client, DeleteTopicState(name=one.name))
    assert (by_name.error_code, by_name.name, by_name.topic_id) == (0, one.name, one.topic_id)
    (by_id,) = await delete(client, DeleteTopicState(topic_id=other.topic_id))
    assert (by_id.error_code, by_id.name, by_id.topic_id) == (0, other.name, other.topic_id)
    (gone,) = await delete(client, DeleteTopicState(name=one.name))
    assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(1, 6))
async def test_every_version_deletes_by_name(client: RawClient, name: str, version: int) -> None:
    request = DeleteTopicsRequest(topic_names=[name, "no-such-topic"], timeout_ms=5000)
    results = (await client.ask(request, version)).responses
    assert sorted((result.name or "", result.error_code) for result in results) == [
        ("no-such-topic", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (name, 0),
    ]


async def test_what_cannot_be_deleted(client: RawClient, topic: MetadataResponseTopic, unknown_id: UUID) -> None:
    cases = [
        (
            DeleteTopicState(name="no-such-topic"),
            "UNKNOWN_TOPIC_OR_PARTITION",
            "This server does not host this topic-partition.",
        ),
        (DeleteTopicState(topic_id=unknown_id), "UNKNOWN_TOPIC_ID", "This server does not host this topic ID."),
        (
            DeleteTopicState(name=topic.name, topic_id=topic.topic_id),
            "INVALID_REQUEST",
            "You may not specify both topic name and topic id.",
        ),
        (DeleteTopicState(), "INVALID_REQUEST", "Neither topic name nor id were specified."),
    ]
    for asked, error, message in cases:
        (refused,) = await delete(client, asked)
        assert (ErrorCode(refused.error_code).name, refused.error_message) == (error, message)


async def test_a_topic_named_twice_is_not_deleted(client: RawClient, name: str) -> None:
    (refused,) = await delete(client, DeleteTopicState(name=name), DeleteTopicState(name=name))
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


async def test_a_topic_made_again_is_empty_and_another(
    kafka: Kafka, client: RawClient, topic: MetadataResponseTopic
) -> None:
    assert topic.name is not None
    await delete(client, DeleteTopicState(name=topic.name))
    (created,) = await create(client, creatable(topic.name))
    assert created.error_code == 0
    assert created.topic_id != topic.topic_id


async def test_one_request_makes_10000_partitions_at_most(client: RawClient, name: str) -> None:
    for topics in ([creatable(name, 10_001)], [creatable(name, 10_000), creatable(f"{name}-2", 1)]):
        answers = await create(client, *topics)
        assert [answer.error_code for answer in answers] == [ErrorCode.POLICY_VIOLATION] * len(topics)
        message = "Excessively large number of partitions per request."
        assert [answer.error_message for answer in answers] == [message] * len(topics)
