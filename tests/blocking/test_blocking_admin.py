"""The blocking admin, and any request."""

from __future__ import annotations

import time
from collections.abc import Callable
from secrets import token_hex
from typing import Any
from uuid import uuid4

import pytest
from support.patience import SOON

from aiokafkawire import (
    AbortTransactionSpec,
    AclBinding,
    AclOperation,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ConfigError,
    ConfigOp,
    ConfigResource,
    ElectionType,
    EpochEndOffset,
    IsolationLevel,
    KafkaPrincipal,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    ProducerFenced,
    RaftVoterEndpoint,
    ResourcePattern,
    ScramCredentialInfo,
    ScramMechanism,
    SharePartitionOffsetInfo,
    TopicPartition,
    TopicPartitionReplica,
    UnsupportedVersion,
    UsageError,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    blocking,
)
from aiokafkawire.errors import (
    AdminError,
    BrokerIdNotRegistered,
    DelegationTokenRequestNotAllowed,
    GroupIdNotFound,
    InvalidConfig,
    InvalidUpdateVersion,
    ResourceNotFound,
    TransactionalIdNotFound,
    UnknownMemberId,
    UnsupportedVersionAnswered,
)
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aiokafkawire.testing.background import BackgroundBroker


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
    assert kafka.admin.list_offsets_of_share_groups(group) == {group: {zero: SharePartitionOffsetInfo(1, 0, 2)}}
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
    described = kafka.admin.describe_topic(name)
    assert (described.name, described.topic_id) == (name, created.topic_id)
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


def test_the_cluster(kafka: blocking.Client, topic: str) -> None:
    admin = kafka.admin
    node = admin.describe_cluster(include_authorized_operations=True).nodes[1]
    assert admin.find_coordinators("a", "b", key_type="transaction") == {"a": node, "b": node}
    assert 3 in admin.api_versions([1])[1]
    assert admin.offset_for_leader_epoch({TopicPartition(topic, 0): 0}) == {
        TopicPartition(topic, 0): EpochEndOffset(0, 3)
    }
    with pytest.raises(BrokerIdNotRegistered):
        admin.unregister_broker(99)
    for call in (lambda: admin.unregister_controller(99), admin.client_instance_id):
        with pytest.raises(UnsupportedVersion):
            call()
    level = admin.describe_features(broker=1).finalized_features["metadata.version"].max_version_level
    admin.update_features({"metadata.version": level}, validate_only=True)
    with pytest.raises(InvalidUpdateVersion):
        admin.update_features({"metadata.version": level + 100})
    assert admin.describe_metadata_quorum().leader_id == 1
    with pytest.raises(UnsupportedVersionAnswered):
        admin.add_raft_voter(2, uuid4(), [RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 9)])
    with pytest.raises(UnsupportedVersionAnswered):
        admin.remove_raft_voter(1, uuid4())
    assert ConfigResource.topic(topic) in admin.list_config_resources()


def test_any_request(kafka: blocking.Client, topic: str) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    answer = kafka.request(request, broker=1, version=9, timeout=5)
    assert [len(found.partitions) for found in answer.topics] == [2]
    with pytest.raises(UnsupportedVersion):
        kafka.request(request, version=99)


def test_servers_and_controllers_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="exclude each other"):
        blocking.Client("a:1", bootstrap_controllers="b:1")


def test_groups_and_their_offsets(kafka: blocking.Client, topic: str) -> None:
    group, zero, one = f"group-{token_hex(6)}", TopicPartition(topic, 0), TopicPartition(topic, 1)
    admin = kafka.admin
    assert admin.reset_consumer_group_offsets(group, {zero: OffsetSpec.LATEST, one: 0}) == {
        zero: OffsetAndMetadata(3),
        one: OffsetAndMetadata(0),
    }
    assert admin.list_consumer_group_offsets(group, [zero], require_stable=True) == {zero: OffsetAndMetadata(3)}
    assert admin.list_offsets_of_groups(group) == {group: {zero: OffsetAndMetadata(3), one: OffsetAndMetadata(0)}}
    assert admin.consumer_group_lag(group, isolation_level=IsolationLevel.READ_COMMITTED) == {zero: 0, one: 0}
    assert admin.describe_classic_groups(group)[group].state == "Empty"
    admin.remove_members(group)
    with pytest.raises(UnknownMemberId):
        admin.remove_members(group, ["nobody"], reason="a test")
    admin.delete_consumer_group_offsets(group, [one])
    assert admin.list_consumer_group_offsets(group) == {zero: OffsetAndMetadata(3)}
    with pytest.raises(AdminError) as failed:
        admin.delete_groups(group, f"{group}-missing")
    assert (failed.value.results, list(failed.value.errors)) == ({group: None}, [f"{group}-missing"])


def test_transactions(kafka: blocking.Client, topic: str) -> None:
    name, zero = f"transaction-{token_hex(6)}", TopicPartition(topic, 0)
    admin = kafka.admin
    with pytest.raises(TransactionalIdNotFound):
        admin.describe_transactions(name)
    with (
        kafka.producer(transactional_id=name) as producer,
        pytest.raises(ProducerFenced),
        producer.transaction() as transaction,
    ):
        transaction.send(topic, b"lost", partition=0)
        found = admin.describe_transactions(name)[name]
        assert (found.state, found.topic_partitions) == ("Ongoing", (zero,))
        (listed,) = admin.list_transactions(states=["Ongoing"], producer_ids=[found.producer_id])
        assert (listed.transactional_id, listed.coordinator_id) == (name, found.coordinator_id)
        producers = admin.describe_producers(zero, broker_id=found.coordinator_id)[zero]
        (active,) = (one for one in producers if one.producer_id == found.producer_id)
        assert active.current_transaction_start_offset == 3
        assert admin.find_hanging_transactions(topic, max_transaction_timeout_ms=0) == []
        admin.abort_transaction(AbortTransactionSpec.of(zero, active))
        assert [one.current_transaction_start_offset for one in admin.describe_producers(zero)[zero]] == [None, None]
        admin.force_terminate_transaction(name)
        assert admin.fence_producers([name])[name].producer_id == found.producer_id


def test_users_and_quotas(kafka: blocking.Client) -> None:
    user, mechanism = f"user-{token_hex(6)}", ScramMechanism.SCRAM_SHA_256
    with pytest.raises(ResourceNotFound):
        kafka.admin.describe_user_scram_credentials(user)
    info = ScramCredentialInfo(mechanism, 5000)
    kafka.admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, "s3cret")])
    entity, rate = ClientQuotaEntity.user(user), {"producer_byte_rate": 1e9}
    kafka.admin.alter_client_quotas({entity: {"consumer_byte_rate": 5}}, validate_only=True)
    kafka.admin.alter_client_quotas({entity: rate})
    of_user = ClientQuotaFilter.contains(ClientQuotaFilterComponent.of_entity("user", user))
    until(lambda: kafka.admin.describe_client_quotas(of_user) == {entity: rate})
    assert kafka.admin.describe_user_scram_credentials([user]) == {user: (info,)}
    kafka.admin.alter_client_quotas({entity: {"producer_byte_rate": None}})
    kafka.admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, mechanism)])
    until(lambda: user not in kafka.admin.describe_user_scram_credentials())


def until(condition: Callable[[], bool]) -> None:
    """Wait for what a broker of Apache Kafka hears from its controller."""
    ends = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < ends


def test_delegation_tokens() -> None:
    options: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}
    alice = KafkaPrincipal.user("alice")
    with (
        BackgroundBroker(users={"alice": "alice-secret"}, delegation_token_secret_key="key") as broker,
        blocking.Client(broker.bootstrap, **options, sasl_username="alice", sasl_password="alice-secret") as kafka,
    ):
        token = kafka.admin.create_delegation_token(renewers=[alice], max_lifetime_ms=60_000)
        assert kafka.admin.describe_delegation_token([alice]) == (token,)
        assert kafka.admin.renew_delegation_token(token, renew_time_period_ms=30_000) < token.expiry_timestamp_ms
        assert kafka.admin.expire_delegation_token(token, expiry_time_period_ms=90_000) == token.max_timestamp_ms
        by_token: dict[str, Any] = {
            "sasl_username": token.token_id,
            "sasl_password": token.hmac_base64,
            "sasl_tokenauth": True,
        }
        with (
            blocking.Client(broker.bootstrap, **options, **by_token) as other,
            pytest.raises(DelegationTokenRequestNotAllowed),
        ):
            other.admin.create_delegation_token(owner=alice)
        kafka.admin.expire_delegation_token(token)
        assert kafka.admin.describe_delegation_token() == ()


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


def test_it_has_all_methods_of_the_asynchronous_one(kafka: blocking.Client) -> None:
    asynchronous = kafka.asynchronous.admin
    assert {name for name in dir(asynchronous) if not name.startswith("_")} <= {*dir(kafka.admin)}
