"""What the admin says about the cluster itself and changes in it, and any request, whichever broker it talks to."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from secrets import token_hex
from uuid import UUID, uuid4

import pytest
from contract.conftest import Where
from support.kafka_releases import number_of
from support.transactional import settled

from aiokafkawire import (
    Client,
    ConfigResource,
    ConfigResourceType,
    EpochEndOffset,
    FeatureUpdate,
    FinalizedVersionRange,
    OffsetSpec,
    RaftVoterEndpoint,
    SupportedVersionRange,
    TopicPartition,
    UnsupportedVersion,
    UpgradeType,
    UsageError,
    WireError,
)
from aiokafkawire.errors import (
    AdminError,
    BrokerIdNotRegistered,
    BrokerNotAvailable,
    ControllerIdNotRegistered,
    ErrorCode,
    InconsistentClusterId,
    InvalidRequest,
    InvalidUpdateVersion,
    UnknownTopicOrPartition,
    UnsupportedEndpointType,
    UnsupportedVersionAnswered,
)
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import ApiVersionsRequest, MetadataRequest, MetadataRequestTopic
from aiokafkawire.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aiokafkawire.protocol.messages.quorum_voters import DescribeQuorumRequest
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.controllers import Controllers

pytestmark = pytest.mark.anyio

ENDPOINT = RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 9)


@pytest.fixture
def release(kafka_release: str | None) -> tuple[int, ...]:
    """The release of the brokers, as numbers."""
    return number_of(kafka_release or "4.3")


@pytest.fixture(params=["in-process", "memory", pytest.param("apache-kafka", marks=pytest.mark.kafka)])
async def controllers(request: pytest.FixtureRequest, kafka_release: str | None) -> AsyncIterator[Where]:
    """A cluster whose controllers clients may ask."""
    if request.param == "apache-kafka":
        yield Where(request.getfixturevalue("apache_kafka").controllers, connect_tcp)
        return
    in_memory = request.param == "memory"
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(Broker(port=None if in_memory else 0, max_versions=kafka_release))
        listeners = await stack.enter_async_context(Controllers(broker, in_memory=in_memory))
        yield Where(listeners.bootstrap, listeners.connect if in_memory else connect_tcp)


# --- nodes ---------------------------------------------------------------------------------------------------------


async def test_the_cluster_is_described(kafka: Client, cluster: Where) -> None:
    found = await kafka.admin.describe_cluster()
    assert list(found.nodes) == [1]
    node = found.nodes[1]
    assert (node.node_id, str(node.address), node.rack, node.is_fenced) == (1, cluster.bootstrap, None, False)
    assert (found.controller, found.authorized_operations) == (node, None)
    assert found.cluster_id == (await kafka.request(MetadataRequest(topics=[]))).cluster_id


async def test_what_a_client_may_do_with_the_cluster(kafka: Client) -> None:
    found = await kafka.admin.describe_cluster(include_authorized_operations=True)
    operations = {"CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
    assert set(found.authorized_operations or ()) == operations | {"IDEMPOTENT_WRITE"}


async def test_fenced_brokers_are_described_since_4_0(kafka: Client, release: tuple[int, ...]) -> None:
    if release >= (4, 0):
        found = await kafka.admin.describe_cluster(include_fenced_brokers=True)
        assert [(node.node_id, node.is_fenced) for node in found.nodes.values()] == [(1, False)]
        return
    with pytest.raises(UnsupportedVersion, match=r"fenced brokers are listed by brokers since 4\.0 \(KIP-1073\)"):
        await kafka.admin.describe_cluster(include_fenced_brokers=True)


async def test_the_versions_of_a_broker(kafka: Client) -> None:
    found = await kafka.admin.api_versions()
    assert list(found) == [1]
    answer = await kafka.request(ApiVersionsRequest(client_software_name="tests", client_software_version="1"))
    assert found[1] == {
        api.api_key: SupportedVersionRange(api.min_version, api.max_version)
        for api in sorted(answer.api_keys, key=lambda api: api.api_key)
    }
    assert found[1][ApiKey.API_VERSIONS].min_version == 0
    assert await kafka.admin.api_versions([1]) == found
    with pytest.raises(BrokerNotAvailable, match="broker 99 is not in the cluster"):
        await kafka.admin.api_versions([99])
    with pytest.raises(AdminError, match="failed for 1 of 2") as raised:
        await kafka.admin.api_versions([1, 99])
    assert (list(raised.value.results), list(raised.value.errors)) == ([1], [99])


async def test_coordinators_are_found(kafka: Client, release: tuple[int, ...], topic: str) -> None:
    one, other = f"group-{token_hex(6)}", f"group-{token_hex(6)}"
    found = await kafka.admin.find_coordinators([one, other, one])
    assert {key: node.node_id for key, node in found.items()} == {one: 1, other: 1}
    node = (await kafka.admin.describe_cluster()).nodes[1]
    assert found[one] == node
    assert await kafka.admin.find_coordinators("a transactional id", key_type="transaction") == {
        "a transactional id": node
    }
    named = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    answer = await settled(lambda: kafka.request(named), lambda answer: answer.topics[0].error_code == 0)
    topic_id = urlsafe_b64encode(answer.topics[0].topic_id.bytes).decode().rstrip("=")
    part = f"{one}:{topic_id}:0"
    if release >= (4, 2):
        assert await kafka.admin.find_coordinators([part], key_type="share") == {part: node}
        with pytest.raises(InvalidRequest, match="FindCoordinator of share partition 'no part'"):
            await kafka.admin.find_coordinators("no part", key_type="share")


async def test_a_broker_that_is_not_registered_cannot_be_unregistered(kafka: Client) -> None:
    with pytest.raises(BrokerIdNotRegistered, match="unregistering broker 99"):
        await kafka.admin.unregister_broker(99)


async def test_a_controller_that_is_not_registered_cannot_be_unregistered(
    kafka: Client, release: tuple[int, ...]
) -> None:
    if release < (4, 4):
        with pytest.raises(UnsupportedVersion, match=r"needs brokers since 4\.4 \(KIP-1312\)"):
            await kafka.admin.unregister_controller(99)
        return
    with pytest.raises(ControllerIdNotRegistered, match="Controller ID 99 is not currently registered"):
        await kafka.admin.unregister_controller(99)
    with pytest.raises(InvalidRequest, match="Controller cannot unregister itself while it is active"):
        await kafka.admin.unregister_controller(1)


async def test_brokers_without_a_plugin_for_clients_metrics_name_no_client(kafka: Client) -> None:
    needs = re.escape("clients' metrics need brokers since 3.7 with a plugin that receives them (KIP-714)")
    with pytest.raises(UnsupportedVersion, match=needs):
        await kafka.admin.client_instance_id()


async def test_resources_with_configs_are_listed(kafka: Client, release: tuple[int, ...], topic: str) -> None:
    metrics = ConfigResource.client_metrics(f"metrics-{token_hex(6)}")
    await kafka.admin.incremental_alter_configs({metrics: {"interval.ms": "1000"}})

    async def listed() -> list[ConfigResource]:
        return await kafka.admin.list_config_resources([ConfigResourceType.CLIENT_METRICS])

    assert metrics in await settled(listed, lambda found: metrics in found)
    assert await kafka.admin.list_config_resources([]) == []
    if release < (4, 1):
        with pytest.raises(
            UnsupportedVersion, match=r"needs brokers since 4\.1 \(KIP-1142\), only client metrics 3\.7"
        ):
            await kafka.admin.list_config_resources()
        return
    expected = {ConfigResource.topic(topic), ConfigResource.broker(1), ConfigResource.broker_logger(1), metrics}
    assert await settled(kafka.admin.list_config_resources, lambda found: expected <= {*found})
    brokers = await kafka.admin.list_config_resources([ConfigResourceType.BROKER])
    assert brokers == [ConfigResource.broker(1)]
    await kafka.admin.incremental_alter_configs({metrics: {"interval.ms": None}})


# --- leader epochs -------------------------------------------------------------------------------------------------


async def test_the_end_of_a_leader_epoch(kafka: Client, topic: str) -> None:
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"x"] * 3, partition=0)
    epoch = (await kafka.admin.list_offsets({zero: OffsetSpec.EARLIEST}))[zero]
    assert epoch is not None
    assert epoch.leader_epoch == 0
    found = await kafka.admin.offset_for_leader_epoch({one: 0, zero: 0})
    assert found == {one: EpochEndOffset(0, 0), zero: EpochEndOffset(0, 3)}
    assert list(found) == [one, zero]
    assert await kafka.admin.offset_for_leader_epoch({zero: 7}) == {zero: None}


async def test_the_epochs_of_partitions_that_do_not_exist(kafka: Client, topic: str) -> None:
    with pytest.raises(UsageError, match=f"topic '{topic}' has 3 partitions, no 3"):
        await kafka.admin.offset_for_leader_epoch({TopicPartition(topic, 3): 0})


# --- features ------------------------------------------------------------------------------------------------------


async def test_features_are_described(kafka: Client, release: tuple[int, ...]) -> None:
    found = await kafka.admin.describe_features()
    levels: dict[tuple[int, ...], int] = {(3, 9): 21, (4, 0): 25, (4, 1): 27, (4, 2): 29, (4, 3): 30, (4, 4): 33}
    level = levels[release]
    assert found.finalized_features["metadata.version"] == FinalizedVersionRange(level, level)
    lowest = 1 if release < (4, 0) else 7
    assert found.supported_features["metadata.version"] == SupportedVersionRange(lowest, level)
    assert found.supported_features["kraft.version"] == SupportedVersionRange(0, 1)
    assert "kraft.version" not in found.finalized_features
    assert (found.finalized_features_epoch or 0) > 0
    of_one = await kafka.admin.describe_features(broker=1)
    assert (of_one.finalized_features, of_one.supported_features) == (
        found.finalized_features,
        found.supported_features,
    )
    with pytest.raises(BrokerNotAvailable, match="broker 99 is not in the cluster"):
        await kafka.admin.describe_features(broker=99)


async def test_updates_of_features_are_checked_alone(kafka: Client, release: tuple[int, ...]) -> None:
    before = (await kafka.admin.describe_features()).finalized_features
    level = before["metadata.version"].max_version_level
    await kafka.admin.update_features({"metadata.version": level}, validate_only=True)
    if release >= (4, 0):
        disabled = FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE)
        await kafka.admin.update_features({"group.version": disabled}, validate_only=True)
    assert (await kafka.admin.describe_features()).finalized_features == before


@pytest.mark.parametrize(
    ("update", "told"),
    [
        ({"metadata.version": 99}, "Invalid update version 99 for feature metadata.version. Local controller 1 only"),
        ({"nothing": 1}, "Invalid update version 1 for feature nothing. Local controller 1 does not support"),
        (
            {"metadata.version": FeatureUpdate(99, UpgradeType.SAFE_DOWNGRADE)},
            "Invalid update version 99 for feature metadata.version. Local controller 1 only supports versions",
        ),
    ],
)
async def test_updates_that_no_node_supports_are_refused(
    kafka: Client, update: dict[str, int | FeatureUpdate], told: str
) -> None:
    with pytest.raises(InvalidUpdateVersion, match=re.escape(told)):
        await kafka.admin.update_features(update)


async def test_a_downgrade_must_be_called_so(kafka: Client, release: tuple[int, ...]) -> None:
    name, level = ("transaction.version", 1) if release >= (4, 0) else ("metadata.version", 20)
    told = f"Invalid update version {level} for feature {name}. Can't downgrade the version of this feature without"
    with pytest.raises(InvalidUpdateVersion, match=re.escape(told)):
        await kafka.admin.update_features({name: level})
    with pytest.raises(UsageError, match=f"level 0 disables {name}: use FeatureUpdate"):
        await kafka.admin.update_features({name: 0})


# --- the quorum ----------------------------------------------------------------------------------------------------


async def test_the_quorum_is_described(kafka: Client) -> None:
    found = await kafka.admin.describe_metadata_quorum()
    assert (found.leader_id, found.observers) == (1, ())
    assert found.leader_epoch > 0
    (voter,) = found.voters
    assert (voter.replica_id, voter.directory_id) == (1, UUID(int=0))
    assert voter.log_end_offset >= found.high_watermark > 0
    assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp
    assert (voter.last_fetch_timestamp or 0) > 1_700_000_000_000
    assert [(node_id, at.listener) for node_id, each in found.nodes.items() for at in each] == [(1, "CONTROLLER")]


async def test_voters_are_fixed_unless_the_cluster_has_kraft_version_1(kafka: Client) -> None:
    told = "Cluster doesn't support {} voter because the kraft.version feature is 0"
    with pytest.raises(UnsupportedVersionAnswered, match=re.escape(told.format("adding"))):
        await kafka.admin.add_raft_voter(2, uuid4(), [ENDPOINT])
    with pytest.raises(UnsupportedVersionAnswered, match=re.escape(told.format("removing"))):
        await kafka.admin.remove_raft_voter(1, uuid4())


async def test_voters_of_another_cluster(kafka: Client) -> None:
    here = (await kafka.admin.describe_cluster()).cluster_id
    told = f'The given id "elsewhere" doesn\'t match the cluster id "{here}"'
    with pytest.raises(InconsistentClusterId, match=re.escape(told)):
        await kafka.admin.add_raft_voter(2, uuid4(), [ENDPOINT], cluster_id="elsewhere")
    with pytest.raises(InconsistentClusterId, match=re.escape(told)):
        await kafka.admin.remove_raft_voter(1, uuid4(), cluster_id="elsewhere")


async def test_voters_need_a_directory_and_a_listener_for_controllers(kafka: Client) -> None:
    with pytest.raises(InvalidRequest, match="Add voter request didn't include a valid voter"):
        await kafka.admin.add_raft_voter(2, UUID(int=0), [ENDPOINT])
    with pytest.raises(InvalidRequest, match="Remove voter request didn't include a valid voter"):
        await kafka.admin.remove_raft_voter(2, UUID(int=0))
    with pytest.raises(InvalidRequest, match="Add voter request didn't include the endpoint"):
        await kafka.admin.add_raft_voter(2, uuid4(), [RaftVoterEndpoint("ELSEWHERE", "127.0.0.1", 9)])


# --- any request ---------------------------------------------------------------------------------------------------


async def test_any_request_is_sent_in_the_newest_version_or_in_a_given_one(kafka: Client, topic: str) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    await settled(lambda: kafka.request(request), lambda answer: answer.topics[0].error_code == 0)
    for answer in (
        await kafka.request(request),
        await kafka.request(request, broker=1),
        await kafka.request(request, broker="controller", version=4),
        await kafka.request(request, broker=TopicPartition(topic, 0), version=9, timeout=50),
    ):
        (found,) = answer.topics
        assert (found.error_code, found.name, len(found.partitions)) == (0, topic, 3)
    assert found.topic_id == UUID(int=0)  # v10 brought topics' ids


async def test_errors_in_a_response_are_left_to_the_caller(kafka: Client, topic: str) -> None:
    partition = ListOffsetsPartition(partition_index=9, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    answer = await kafka.request(request)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_version_that_the_broker_lacks(kafka: Client, release: tuple[int, ...]) -> None:
    with pytest.raises(
        UnsupportedVersion, match=r"speaks Metadata \d+-1[23], and this client has 0-13 of the wanted 99"
    ):
        await kafka.request(MetadataRequest(topics=[]), version=99)
    if release >= (4, 0):
        request = ListOffsetsRequest(replica_id=-1, topics=[])
        with pytest.raises(UnsupportedVersion, match=r"speaks ListOffsets 1-1[01], and this request needs one of 0"):
            await kafka.request(request, version=0)


async def test_a_field_that_the_version_lacks(kafka: Client) -> None:
    with pytest.raises(UnsupportedVersion, match="allow_auto_topic_creation"):
        await kafka.request(MetadataRequest(topics=[], allow_auto_topic_creation=False), version=1)


async def test_a_broker_that_is_not_in_the_cluster(kafka: Client) -> None:
    with pytest.raises(BrokerNotAvailable, match="broker 99 is not in the cluster, or is down; the brokers are 1"):
        await kafka.request(MetadataRequest(topics=[]), broker=99)


# --- controllers ---------------------------------------------------------------------------------------------------


async def test_controllers_answer_the_admin(controllers: Where, release: tuple[int, ...]) -> None:
    async with Client(bootstrap_controllers=controllers.bootstrap, connector=controllers.connector) as kafka:
        found = await kafka.admin.describe_cluster(include_authorized_operations=True)
        assert [(node.node_id, str(node.address)) for node in found.nodes.values()] == [(1, controllers.bootstrap)]
        assert found.controller == found.nodes[1]
        assert "ALTER" in (found.authorized_operations or ())
        quorum = await kafka.admin.describe_metadata_quorum()
        assert (quorum.leader_id, [voter.replica_id for voter in quorum.voters]) == (1, [1])
        features = await kafka.admin.describe_features()
        assert "metadata.version" in features.finalized_features
        with pytest.raises(InvalidUpdateVersion, match="Invalid update version 99 for feature metadata"):
            await kafka.admin.update_features({"metadata.version": 99})
        with pytest.raises(BrokerIdNotRegistered, match="unregistering broker 99"):
            await kafka.admin.unregister_broker(99)
        with pytest.raises(UnsupportedVersionAnswered, match="Cluster doesn't support removing voter"):
            await kafka.admin.remove_raft_voter(1, uuid4())
        versions = await kafka.admin.api_versions()
        assert ApiKey.DESCRIBE_QUORUM in versions[1]
        assert ApiKey.METADATA not in versions[1]
        answer = await kafka.request(DescribeQuorumRequest(topics=[]), broker=1)
        assert answer.error_code == 0
        configs = await kafka.admin.describe_configs(ConfigResource.broker(1))
        assert configs[ConfigResource.broker(1)]["node.id"].value == "1"


async def test_controllers_change_configs(controllers: Where) -> None:
    resource = ConfigResource.client_metrics(f"metrics-{token_hex(6)}")
    async with Client(bootstrap_controllers=controllers.bootstrap, connector=controllers.connector) as kafka:
        await kafka.admin.incremental_alter_configs({resource: {"interval.ms": "1000"}}, validate_only=True)
        with pytest.raises(UnknownTopicOrPartition):
            await kafka.admin.incremental_alter_configs({ConfigResource.topic("missing"): {"retention.ms": "5"}})


async def test_what_controllers_do_not_serve_is_refused_at_once(controllers: Where) -> None:
    async with Client(bootstrap_controllers=controllers.bootstrap, connector=controllers.connector) as kafka:
        told = r"controllers do not serve {}, and this client speaks to controllers \(bootstrap_controllers\)"
        with pytest.raises(UnsupportedEndpointType, match=told.format("Metadata")):
            await kafka.admin.list_topics()
        with pytest.raises(UnsupportedEndpointType, match=told.format("FindCoordinator")):
            await kafka.admin.find_coordinators("g")
        with pytest.raises(UnsupportedEndpointType, match="topic 't' needs brokers"):
            await kafka.admin.list_offsets({TopicPartition("t", 0): OffsetSpec.LATEST})
        with pytest.raises(UnsupportedEndpointType, match="controllers know no fenced brokers"):
            await kafka.admin.describe_cluster(include_fenced_brokers=True)
        for make in (kafka.producer, lambda: kafka.consumer("t"), lambda: kafka.share_consumer("t", group_id="g")):
            with pytest.raises(UsageError, match=r"needs brokers, and this client speaks to controllers"):
                make()


async def test_brokers_are_no_controllers(cluster: Where) -> None:
    client = Client(bootstrap_controllers=cluster.bootstrap, connector=cluster.connector)
    with pytest.raises(WireError, match="is a broker, and bootstrap_controllers names controllers"):
        await client.open()


async def test_controllers_are_no_brokers(controllers: Where) -> None:
    client = Client(controllers.bootstrap, connector=controllers.connector)
    with pytest.raises(
        WireError, match="is a controller, and bootstrap servers are brokers: use bootstrap_controllers"
    ):
        await client.open()
