"""The blocking admin: share groups, configs and ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex

import pytest

from aiokafkawire import (
    AclBinding,
    AclOperation,
    ConfigOp,
    ConfigResource,
    ResourcePattern,
    SharePartitionOffsetInfo,
    TopicPartition,
    UsageError,
    blocking,
)
from aiokafkawire.errors import GroupIdNotFound, InvalidConfig
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


def test_acls() -> None:
    acl = AclBinding(ResourcePattern.topic("t"), "User:alice", AclOperation.READ)
    with (
        BackgroundBroker(authorizer=True, super_users=["User:ANONYMOUS"]) as broker,
        blocking.Client(broker.bootstrap) as kafka,
    ):
        kafka.admin.create_acls([acl])
        assert kafka.admin.describe_acls() == kafka.admin.describe_acls(acl.to_filter()) == [acl]
        assert kafka.admin.delete_acls(acl.to_filter()) == {acl.to_filter(): [acl]}
        assert kafka.admin.describe_acls() == []
