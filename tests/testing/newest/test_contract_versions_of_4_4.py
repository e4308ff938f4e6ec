"""The versions of requests that are new in Apache Kafka 4.4, as it answers them."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest
from support.consumer_members import ConsumerMember
from support.group_members import New, new_group
from support.raw_client import RawClient
from support.transactional import TransactionalProducer, settled

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import decode
from aiokafkawire.protocol.messages.group_admin import DeleteGroupsRequest
from aiokafkawire.protocol.messages.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponseTopic,
)
from aiokafkawire.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.testing.cluster.releases import versions_of
from aiokafkawire.testing.serving.apis import APIS

pytestmark = pytest.mark.anyio


def hello(cluster_id: str | None = None, node_id: int = -1) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name="raw", client_software_version="1.0", cluster_id=cluster_id, node_id=node_id
    )


# --- ApiVersions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
async def test_api_versions_of_4_4(client: RawClient, version: int) -> None:
    answer = await client.ask(hello(), version)
    theirs = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys if api.api_key in APIS}
    assert theirs == {key: tuple(versions) for key, versions in versions_of("4.4").items() if key in APIS}


async def test_api_versions_of_a_client_newer_than_4_4(client: RawClient) -> None:
    await client.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 6, 7, -1) + b"\0")
    answer = decode(ApiVersionsResponse, 0, await client.frame(), 4)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys] == [(18, 0, 5)]


async def test_features_of_4_4(client: RawClient) -> None:
    answer = await client.ask(hello(), 5)
    supported = {feature.name: (feature.min_version, feature.max_version) for feature in answer.supported_features}
    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert supported == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 33),
        "share.version": (0, 2),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
    }
    assert finalized == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "metadata.version": 33,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
    }


async def test_a_client_that_means_another_broker_has_to_bootstrap_again(client: RawClient) -> None:
    cluster_id = (await client.ask(MetadataRequest(topics=[]), 12)).cluster_id
    assert cluster_id is not None
    for ours in (hello(), hello(cluster_id, 1)):
        assert (await client.ask(ours, 5)).error_code == 0
    for other in (hello("another", 1), hello(cluster_id, 7)):
        answer = await client.ask(other, 5)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.REBOOTSTRAP_REQUIRED, [])
    for half in (hello(node_id=1), hello(cluster_id)):
        answer = await client.ask(half, 5)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])


# --- DeleteGroups ----------------------------------------------------------------------------------------------


async def test_deleted_groups_in_version_3(client: RawClient, new: New, group: str) -> None:
    member = await new()
    await member.settle()
    answer = await client.ask(DeleteGroupsRequest(groups_names=[group, "no-such-group"]), 3)
    errors = {result.group_id: (result.error_code, result.error_message) for result in answer.results}
    assert errors[group] == (ErrorCode.NON_EMPTY_GROUP, None)
    assert errors["no-such-group"][0] in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NOT_COORDINATOR)
    assert errors["no-such-group"][1] is None


# --- TxnOffsetCommit (KIP-1319) --------------------------------------------------------------------------------


@pytest.fixture
async def producer(client: RawClient) -> TransactionalProducer:
    return await TransactionalProducer(client).initialized()


def offsets(*indexes: int) -> list[TxnOffsetCommitRequestPartition]:
    return [
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=3, committed_metadata="")
        for index in indexes
    ]


async def commit(
    producer: TransactionalProducer, group: str, *topics: TxnOffsetCommitRequestTopic, epoch: int = -1, member: str = ""
) -> TxnOffsetCommitResponse:
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=list(topics),
    )
    busy = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return await settled(
        lambda: producer.client.ask(request, 6),
        lambda answer: all(part.error_code not in busy for topic in answer.topics for part in topic.partitions),
    )


async def test_offsets_in_a_transaction_name_topics_by_id(
    client: RawClient, producer: TransactionalProducer, topic: MetadataResponseTopic, unknown_id: UUID
) -> None:
    group = await new_group(client)
    ids = (topic.topic_id, unknown_id, ZERO_UUID)
    asked = [TxnOffsetCommitRequestTopic(topic_id=topic_id, partitions=offsets(0, 9)) for topic_id in ids]
    answer = await commit(producer, group, *asked)
    errors = {
        (found.topic_id, part.partition_index): part.error_code for found in answer.topics for part in found.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    assert errors == {
        (topic.topic_id, 0): 0,
        (topic.topic_id, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        **{(topic_id, index): unknown for topic_id in ids[1:] for index in (0, 9)},
    }


async def test_epochs_of_offsets_in_a_transaction(
    client: RawClient, producer: TransactionalProducer, topic: MetadataResponseTopic
) -> None:
    group = await new_group(client)
    asked = TxnOffsetCommitRequestTopic(topic_id=topic.topic_id, partitions=offsets(0))

    async def error(epoch: int, member: str) -> int:
        answer = await commit(producer, group, asked, epoch=epoch, member=member)
        return answer.topics[0].partitions[0].error_code

    assert await error(1, "m") == ErrorCode.GROUP_ID_NOT_FOUND
    member = ConsumerMember(client, group, [topic.name or ""])
    assert not (await member.join()).error_code
    assert await error(member.epoch, member.member_id) == 0
    assert await error(member.epoch + 1, member.member_id) == ErrorCode.STALE_MEMBER_EPOCH
    assert await error(member.epoch, "stranger") == ErrorCode.UNKNOWN_MEMBER_ID
