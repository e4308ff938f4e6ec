"""The blocking admin: share groups, configs, topics, partitions and log directories."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex

import pytest

from aiokafkawire import (
    ConfigOp,
    ConfigResource,
    ElectionType,
    NewTopic,
    SharePartitionOffsetInfo,
    TopicPartition,
    TopicPartitionReplica,
    UsageError,
    blocking,
)
from aiokafkawire.errors import AdminError, GroupIdNotFound, InvalidConfig
from aiokafkawire.testing.background import BackgroundBroker


@pytest.fixture(params=["in-process", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
def kafka(request: pytest.FixtureRequest) -> Iterator[blocking.Client]:
    if request.param == "apache-kafka":
        with blocking.Client(request.getfixturevalue("apache_kafka").bootstrap) as client:
            yield client
        return
    with BackgroundBroker() as broker, blocking.Client(broker.bootstrap) as client:
        yield client


@pytest.fixture
def topic(kafka: blocking.Client) -> str:
    """A topic of two partitions, with three records in the first."""
    name = f"topic-{token_hex(6)}"
    kafka.admin.create_topics({name: 2})
    with kafka.producer() as producer:
        producer.send_many(name, [b"x"] * 3, partition=0)
    return name


def test_share_groups(kafka: blocking.Client, topic: str) -> None:
    group, zero = f"group-{token_hex(6)}", TopicPartition(topic, 0)
    with pytest.raises(GroupIdNotFound):
        kafka.admin.describe_share_groups(group)
    kafka.admin.alter_share_group_offsets(group, {zero: 1})
    found = kafka.admin.describe_share_groups([group], include_authorized_operations=True)[group]
    assert (found.state, found.members, "READ" in (found.authorized_operations or ())) == ("Empty", (), True)
    assert kafka.admin.list_share_group_offsets(group) == {zero: SharePartitionOffsetInfo(1, 0, 2)}
    assert kafka.admin.list_share_group_offsets(group, [TopicPartition(topic, 1)]) == {}
    listed = kafka.admin.list_groups(types=["share"], states=["Empty"])
    assert [one.type for one in listed if one.group_id == group] == ["share"]
    kafka.admin.delete_share_group_offsets(group, topic)
    assert kafka.admin.list_share_group_offsets(group) == {}
    kafka.admin.delete_share_groups(group)
    with pytest.raises(GroupIdNotFound):
        kafka.admin.list_share_group_offsets(group)


def test_configs(kafka: blocking.Client, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    kafka.admin.incremental_alter_configs({resource: {"segment.ms": "5000"}}, validate_only=True)
    assert kafka.admin.describe_configs(resource)[resource]["segment.ms"].is_default
    with pytest.raises(InvalidConfig):
        kafka.admin.incremental_alter_configs({resource: {"segment.ms": "x"}})
    with pytest.raises(UsageError):
        kafka.admin.incremental_alter_configs({resource: {"segment.ms": 5}})  # type: ignore[dict-item]
    kafka.admin.incremental_alter_configs({resource: {"cleanup.policy": ConfigOp.append("compact")}})
    for _ in range(1000):  # Apache Kafka takes a moment
        found = kafka.admin.describe_configs([resource], include_synonyms=True, include_documentation=True)[resource]
        if found["cleanup.policy"].value == "delete,compact":
            break
    assert found["cleanup.policy"].value == "delete,compact"
    assert [one.value for one in found["cleanup.policy"].synonyms] == ["delete,compact", "delete"]
    assert found["cleanup.policy"].documentation


def test_topics(kafka: blocking.Client, topic: str) -> None:
    name, zero = f"topic-{token_hex(6)}", TopicPartition(topic, 0)
    created = kafka.admin.create_topics({name: NewTopic(assignments=[[1]])})[name]
    kafka.admin.create_partitions({name: 2}, validate_only=True)
    kafka.admin.create_partitions({name: 3})
    for _ in range(1000):  # Apache Kafka takes a moment
        if len(kafka.admin.partitions_of(name)) == 3:
            break
    found = kafka.admin.describe_topics([name, created.topic_id], include_authorized_operations=True)
    assert [len(one.partitions) for one in found.values()] == [3, 3]
    assert kafka.admin.delete_records({zero: 2}) == {zero: 2}
    kafka.admin.delete_topics(created.topic_id)
    with pytest.raises(AdminError) as caught:
        kafka.admin.create_partitions({topic: 1, name: 9})
    assert list(caught.value.errors) == [topic, name]


def test_partitions_and_log_directories(kafka: blocking.Client, topic: str) -> None:
    zero, replica = TopicPartition(topic, 0), TopicPartitionReplica(topic, 0, 1)
    assert kafka.admin.elect_leaders(ElectionType.PREFERRED, [zero]) == {zero: False}
    kafka.admin.alter_partition_reassignments({zero: [1]}, allow_replication_factor_change=False)
    assert kafka.admin.list_partition_reassignments([zero]) == {}
    ((path, directory),) = kafka.admin.describe_log_dirs(1, partitions=[zero])[1].items()
    assert list(directory.replica_infos) == [zero]
    kafka.admin.alter_replica_log_dirs({replica: path})
    assert kafka.admin.describe_replica_log_dirs([replica])[replica].current_log_dir == path
