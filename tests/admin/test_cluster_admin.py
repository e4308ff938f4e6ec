"""The cluster's admin on several brokers, on old ones and on those that fail; and any request of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import anyio
import pytest
from support.clusters import QUICK, Net, metadata
from support.scripted_broker import SPOKEN, ScriptedBroker, api_versions

from aiokafkawire import (
    Client,
    ConfigError,
    ConnectionLost,
    EpochEndOffset,
    FeatureUpdate,
    InvalidMessage,
    RaftVoterEndpoint,
    RequestTimeout,
    TopicPartition,
    UnsupportedVersion,
    UpgradeType,
    UsageError,
    WireError,
)
from aiokafkawire.config.properties import settings_from
from aiokafkawire.errors import (
    AdminError,
    BrokerIdNotRegistered,
    DuplicateVoter,
    ErrorCode,
    GroupAuthorizationFailed,
    InvalidUpdateVersion,
    RequestTimedOut,
    VoterNotFound,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group import Coordinator, FindCoordinatorResponse
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aiokafkawire.protocol.messages.produce import ProduceRequest
from aiokafkawire.protocol.messages.quorum_voters import AddRaftVoterResponse
from aiokafkawire.protocol.messages.telemetry import GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse
from aiokafkawire.protocol.messages.transactions import InitProducerIdRequest
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.controllers import Controllers

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


@asynccontextmanager
async def running(release: str | None = None, nodes: int = 1, **options: Any) -> AsyncIterator[tuple[Broker, Client]]:
    """Brokers and a client."""
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(Broker(nodes, port=None, max_versions=release))
        client = Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options})
        yield broker, await stack.enter_async_context(client)


# --- nodes ---------------------------------------------------------------------------------------------------------


async def test_a_stopped_broker_is_fenced_until_it_is_unregistered() -> None:
    async with running(nodes=3) as (broker, kafka):
        await broker.stop_node(3)
        assert list((await kafka.admin.describe_cluster()).nodes) == [1, 2]
        found = await kafka.admin.describe_cluster(include_fenced_brokers=True)
        assert {node.node_id: node.is_fenced for node in found.nodes.values()} == {1: False, 2: False, 3: True}
        await kafka.admin.unregister_broker(3)
        found = await kafka.admin.describe_cluster(include_fenced_brokers=True)
        assert list(found.nodes) == [1, 2]
        with pytest.raises(BrokerIdNotRegistered):
            await kafka.admin.unregister_broker(3)
        await broker.start_node(3)
        assert list((await kafka.admin.describe_cluster()).nodes) == [1, 2, 3]


@pytest.mark.parametrize(
    ("release", "has_id", "has_controller"),
    [("0.8.2", False, False), ("0.10.0", False, True), ("2.4", True, True), ("2.8", True, True)],
)
async def test_brokers_of_all_releases_describe_the_cluster(release: str, has_id: bool, has_controller: bool) -> None:
    async with running(release, nodes=2) as (broker, kafka):
        broker.create_topic("t")  # brokers of 0.8 know no others before there is a topic
        found = await kafka.admin.describe_cluster()
        assert list(found.nodes) == [1, 2]
        assert (found.cluster_id is not None, found.controller is not None) == (has_id, has_controller)
        assert found.authorized_operations is None


@pytest.mark.parametrize(("release", "can"), [("2.2", False), ("2.3", True), ("2.7", True), ("2.8", True)])
async def test_authorized_operations_came_with_2_3(release: str, can: bool) -> None:
    async with running(release) as (_, kafka):
        if can:
            found = await kafka.admin.describe_cluster(include_authorized_operations=True)
            assert "ALTER" in (found.authorized_operations or ())
            return
        with pytest.raises(UnsupportedVersion, match=r"authorized operations need brokers since 2\.3 \(KIP-430\)"):
            await kafka.admin.describe_cluster(include_authorized_operations=True)


@pytest.mark.slow
async def test_the_versions_of_brokers_that_cannot_tell_them() -> None:
    async with running("0.9.0") as (_broker, kafka):
        found = (await kafka.admin.api_versions())[1]
        assert ApiKey.JOIN_GROUP in found
        assert ApiKey.CREATE_TOPICS not in found


@pytest.mark.parametrize("release", ["0.8.2", "0.11.0", "3.9"])
async def test_coordinators_are_found_one_by_one_by_old_brokers(release: str) -> None:
    async with running(release, nodes=3) as (broker, kafka):
        broker.create_topic("t")
        found = await kafka.admin.find_coordinators("a", "b", "c", "d")
        assert list(found) == ["a", "b", "c", "d"]
        assert {node.node_id for node in found.values()} <= {1, 2, 3}
        if release == "0.8.2":
            with pytest.raises(UnsupportedVersion, match=r"needs brokers since 0\.11 \(KIP-98\)"):
                await kafka.admin.find_coordinators("a", key_type="transaction")
        else:
            assert list(await kafka.admin.find_coordinators(["x"], key_type="transaction")) == ["x"]
        assert await kafka.admin.find_coordinators() == {}


async def test_coordinators_of_some_groups_are_refused_and_a_busy_one_is_asked_again() -> None:
    def found(key: str, code: ErrorCode) -> Coordinator:
        return Coordinator(key=key, node_id=1, host="only", port=9092, error_code=code, error_message=None)

    later = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE]
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata(hosts=("only",))
        broker.on[ApiKey.FIND_COORDINATOR] = lambda asked: FindCoordinatorResponse(
            coordinators=[
                found(key, later.pop(0) if key == "later" else ErrorCode[code])
                for key, code in (("later", ""), ("secret", "GROUP_AUTHORIZATION_FAILED"), ("fine", "NONE"))
                if key in asked.request.coordinator_keys
            ]
        )
        async with Client("only:9092", connector=Net(only=broker).connect, **QUICK) as kafka:
            with pytest.raises(AdminError, match="finding coordinators failed for 1 of 3") as raised:
                await kafka.admin.find_coordinators("later", "secret", "fine")
    assert isinstance(raised.value.errors["secret"], GroupAuthorizationFailed)
    assert sorted(raised.value.results) == ["fine", "later"]


async def test_a_broker_names_the_client_once() -> None:
    name = uuid4()
    answer = GetTelemetrySubscriptionsResponse(
        error_code=0,
        client_instance_id=name,
        subscription_id=0,
        accepted_compression_types=[],
        push_interval_ms=5000,
        telemetry_max_bytes=1000,
        delta_temporality=True,
        requested_metrics=[],
    )
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata(hosts=("only",))
        broker.on[ApiKey.GET_TELEMETRY_SUBSCRIPTIONS] = lambda _: answer
        async with Client("only:9092", connector=Net(only=broker).connect, **QUICK) as kafka:
            assert await kafka.admin.client_instance_id() == name
            assert await kafka.admin.client_instance_id() == name
    (asked,) = [one for one in broker.seen if isinstance(one, GetTelemetrySubscriptionsRequest)]
    assert asked.client_instance_id == UUID(int=0)


# --- leader epochs -------------------------------------------------------------------------------------------------


async def test_epochs_are_asked_of_the_leaders_even_while_they_move() -> None:
    one, other = TopicPartition("t", 0), TopicPartition("t", 1)
    async with running(nodes=3) as (broker, kafka):
        broker.create_topic("t", 2)
        async with kafka.producer() as producer:
            await producer.send_many("t", [b"x"] * 3, partition=0)
        assert await kafka.admin.offset_for_leader_epoch({one: 0, other: 0}) == {
            one: EpochEndOffset(0, 3),
            other: EpochEndOffset(0, 0),
        }
        leader = broker.leader("t", 0)
        broker.move_leader("t", 0, next(node for node in broker.node_ids if node != leader))
        async with kafka.producer() as producer:
            await producer.send_many("t", [b"x"] * 2, partition=0)
        found = await kafka.admin.offset_for_leader_epoch({one: 1})
        assert found == {one: EpochEndOffset(1, 5)}
        assert await kafka.admin.offset_for_leader_epoch({one: 0}) == {one: EpochEndOffset(0, 3)}


# --- features ------------------------------------------------------------------------------------------------------


async def test_features_are_changed_all_or_none() -> None:
    async with running() as (_, kafka):
        before = await kafka.admin.describe_features()
        downgrade = FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
        with pytest.raises(InvalidUpdateVersion, match="The update failed for all features since the following"):
            await kafka.admin.update_features({"transaction.version": downgrade, "nothing": 1})
        assert await kafka.admin.describe_features() == before
        off = FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE)
        await kafka.admin.update_features({"transaction.version": downgrade, "group.version": off})
        after = await kafka.admin.describe_features()
        assert after.finalized_features["transaction.version"].max_version_level == 1
        assert "group.version" not in after.finalized_features
        assert (after.finalized_features_epoch or 0) > (before.finalized_features_epoch or 0)
        await kafka.admin.update_features({"transaction.version": 2, "group.version": FeatureUpdate(1)})
        assert (await kafka.admin.describe_features()).finalized_features == before.finalized_features


async def test_brokers_before_4_0_make_those_updates_that_they_can() -> None:
    async with running("3.9") as (_, kafka):
        with pytest.raises(AdminError, match="updating features failed for 1 of 2") as raised:
            await kafka.admin.update_features({"metadata.version": 21, "nothing": 1})
        assert list(raised.value.errors) == ["nothing"]
        with pytest.raises(InvalidUpdateVersion, match="does not support this feature"):
            await kafka.admin.update_features({"nothing": 1})


async def test_features_of_old_brokers() -> None:
    async with running("2.4") as (_, kafka):
        found = await kafka.admin.describe_features()
        assert (found.finalized_features, found.finalized_features_epoch, found.supported_features) == ({}, None, {})
        needs = r"updating features needs brokers since 2\.7 \(KIP-584\), and validate_only 3\.3 \(KIP-778\)"
        with pytest.raises(UnsupportedVersion, match=needs):
            await kafka.admin.update_features({"a": 1}, validate_only=True)


# --- the quorum ----------------------------------------------------------------------------------------------------


async def test_voters_leave_and_join_once_the_cluster_has_kraft_version_1() -> None:
    async with running(nodes=3) as (_broker, kafka):
        await kafka.admin.update_features({"kraft.version": 1})
        before = await kafka.admin.describe_metadata_quorum()
        assert [voter.replica_id for voter in before.voters] == [1, 2, 3]
        third = before.voters[2].directory_id
        endpoints = before.nodes[3]
        with pytest.raises(VoterNotFound, match="Cannot remove voter"):
            await kafka.admin.remove_raft_voter(3, uuid4())
        await kafka.admin.remove_raft_voter(3, third)
        after = await kafka.admin.describe_metadata_quorum()
        assert [voter.replica_id for voter in after.voters] == [1, 2]
        assert [(observer.replica_id, observer.directory_id) for observer in after.observers] == [(3, third)]
        assert sorted(after.nodes) == [1, 2]
        with pytest.raises(RequestTimedOut, match="since it is lagging behind"):
            await kafka.admin.add_raft_voter(3, uuid4(), endpoints)
        await kafka.admin.add_raft_voter(
            3, third, endpoints, cluster_id=(await kafka.admin.describe_cluster()).cluster_id
        )
        assert len((await kafka.admin.describe_metadata_quorum()).voters) == 3
        with pytest.raises(DuplicateVoter, match="is already part of the set of voters"):
            await kafka.admin.add_raft_voter(3, third, endpoints)


async def test_another_voter_leads_once_the_leader_stops() -> None:
    async with running(nodes=3) as (broker, kafka):
        before = await kafka.admin.describe_metadata_quorum()
        assert before.leader_id == 1
        await broker.stop_node(1)
        after = await kafka.admin.describe_metadata_quorum()
        assert (after.leader_id, after.leader_epoch) == (2, before.leader_epoch + 1)
        assert [voter.replica_id for voter in after.voters] == [1, 2, 3]


async def test_a_change_of_voters_is_sent_again_only_to_another_leader() -> None:
    answers = [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT]
    async with ScriptedBroker() as broker:
        broker.on[ApiKey.METADATA] = lambda _: metadata(hosts=("only",))
        broker.on[ApiKey.ADD_RAFT_VOTER] = lambda _: AddRaftVoterResponse(
            error_code=answers.pop(0), error_message="it lags"
        )
        async with Client("only:9092", connector=Net(only=broker).connect, **QUICK) as kafka:
            with pytest.raises(RequestTimedOut, match="adding voter 2: it lags"):
                await kafka.admin.add_raft_voter(2, uuid4(), [RaftVoterEndpoint("CONTROLLER", "h", 1)])
    assert answers == []


@pytest.mark.parametrize("release", ["2.8", "3.8"])
async def test_brokers_too_old_for_changes_of_voters(release: str) -> None:
    async with running(release) as (_, kafka):
        with pytest.raises(UnsupportedVersion, match=r"adding voter 2 needs KRaft brokers since 3\.9 \(KIP-853\)"):
            await kafka.admin.add_raft_voter(2, uuid4(), [RaftVoterEndpoint("CONTROLLER", "h", 1)])
        if release == "2.8":
            with pytest.raises(UnsupportedVersion, match=r"describing the quorum needs KRaft brokers since 3\.3"):
                await kafka.admin.describe_metadata_quorum()
            with pytest.raises(UnsupportedVersion, match=r"unregistering broker 2 needs KRaft brokers since 3\.3"):
                await kafka.admin.unregister_broker(2)


async def test_share_groups_parts_have_coordinators_since_share_groups_came() -> None:
    async with running("3.8") as (_, kafka):
        with pytest.raises(UnsupportedVersion, match=r"need brokers since 4\.1 \(KIP-932\)"):
            await kafka.admin.find_coordinators("g:AAAAAAAAAAAAAAAAAAAAAA:0", key_type="share")


# --- any request ---------------------------------------------------------------------------------------------------


async def test_a_request_goes_to_the_chosen_broker() -> None:
    async with running(nodes=3) as (broker, kafka):
        broker.create_topic("t", 3)
        for partition in range(3):
            target = TopicPartition("t", partition)
            leader = broker.leader("t", partition)
            broker.requests.clear()
            await kafka.request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), broker=target)
            (asked,) = [one for one in broker.requests if one.api is ApiKey.INIT_PRODUCER_ID]
            assert asked.node == leader
        broker.requests.clear()
        await kafka.request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), broker=2)
        assert [one.node for one in broker.requests if one.api is ApiKey.INIT_PRODUCER_ID] == [2]


async def test_a_request_is_not_repeated_once_it_was_sent() -> None:
    async with running() as (broker, kafka):
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        broker.on(ApiKey.INIT_PRODUCER_ID, cut=True)
        with pytest.raises(ConnectionLost):
            await kafka.request(request)
        broker.on(ApiKey.INIT_PRODUCER_ID, swallow="after")
        with pytest.raises(RequestTimeout, match=r"no answer from .* to InitProducerId within 0\.\d"):
            await kafka.request(request, timeout=0.3)
        assert len([one for one in broker.requests if one.api is ApiKey.INIT_PRODUCER_ID]) == 2


async def test_a_request_waits_for_a_broker_that_restarts() -> None:
    async with running(nodes=2) as (broker, kafka):
        await kafka.request(MetadataRequest(topics=[]), broker=2)
        await broker.stop_node(2)
        answers: list[MetadataResponse] = []

        async def ask() -> None:
            answers.append(await kafka.request(MetadataRequest(topics=[]), broker=1, timeout=10))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
        assert len(answers[0].brokers) == 1


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (None, "message must be a request of aiokafkawire.protocol.messages"),
        ("Metadata", "got 'Metadata'"),
        (MetadataResponse(brokers=[], topics=[]), "message must be a request"),
        (MetadataRequest, "message must be a request"),
        (ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), "brokers do not answer a ProduceRequest with acks=0"),
    ],
)
async def test_what_is_no_request(message: Any, told: str) -> None:
    async with running() as (_, kafka):
        with pytest.raises(UsageError, match=told):
            await kafka.request(message)


async def test_a_request_with_a_wrong_field_is_not_sent() -> None:
    async with running() as (broker, kafka):
        wrong: Any = "soon"
        with pytest.raises(InvalidMessage):
            await kafka.request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=wrong))
        assert not [one for one in broker.requests if one.api is ApiKey.INIT_PRODUCER_ID]


async def test_a_request_that_the_broker_does_not_know() -> None:
    async with running("2.4") as (_, kafka):
        told = r"does not know the request GetTelemetrySubscriptions \(API key 71\), which came with Kafka 3\.7"
        with pytest.raises(UnsupportedVersion, match=told):
            await kafka.request(GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=0)))


# --- controllers ---------------------------------------------------------------------------------------------------


async def test_the_active_controller_is_asked_whichever_was_named() -> None:
    async with Broker(3, port=None) as broker, Controllers(broker, in_memory=True) as controllers:
        for first in controllers.bootstrap.split(","):
            async with Client(bootstrap_controllers=[first], connector=controllers.connect, **QUICK) as kafka:
                found = await kafka.admin.describe_cluster()
                assert list(found.nodes) == [1, 2, 3]
                assert (found.controller or found.nodes[2]).node_id == 1
                assert (await kafka.admin.describe_metadata_quorum()).leader_id == 1
                nodes = (await kafka.admin.describe_metadata_quorum()).nodes
                assert [(at.host, at.port) for each in nodes.values() for at in each] == [
                    tuple(node.address) for node in found.nodes.values()
                ]


async def test_another_controller_is_asked_once_the_active_one_has_stopped() -> None:
    async with (
        Broker(3, port=None) as broker,
        Controllers(broker, in_memory=True) as controllers,
        Client(bootstrap_controllers=controllers.bootstrap, connector=controllers.connect, **QUICK) as kafka,
    ):
        assert (await kafka.admin.describe_metadata_quorum()).leader_id == 1
        await broker.stop_node(1)
        assert (await kafka.admin.describe_metadata_quorum()).leader_id == 2
        await kafka.admin.unregister_broker(1)


async def test_servers_and_controllers_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers and bootstrap_controllers exclude each other"):
        Client("a:1", bootstrap_controllers="b:1")
    with pytest.raises(ConfigError, match="bootstrap servers are needed"):
        Client()
    with pytest.raises(ConfigError, match="bootstrap_controllers must be"):
        Client(bootstrap_controllers="")
    settings = settings_from("bootstrap.controllers=a:1,b:2")
    assert settings.client["bootstrap_controllers"] == "a:1,b:2"
    Client(settings.bootstrap_servers, **settings.client)


async def test_controllers_before_3_7_do_not_tell_of_one_another() -> None:
    spoken = {
        key: versions for key, versions in SPOKEN.items() if key not in (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER)
    }
    async with ScriptedBroker() as server:
        server.on[ApiKey.API_VERSIONS] = lambda _: api_versions(spoken)
        client = Client(bootstrap_controllers="only:9093", connector=Net(only=server).connect, **QUICK)
        with pytest.raises(WireError, match=r"bootstrap_controllers needs Kafka 3\.7 or later \(KIP-919\)"):
            await client.open()
