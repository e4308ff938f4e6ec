"""ApiVersions and Metadata, as Apache Kafka answers them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio
import pytest
from support.patience import PATIENCE
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import decode
from aiokafkawire.protocol.messages.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.testing.cluster.releases import DEFAULT_RELEASE, versions_of
from aiokafkawire.testing.serving.apis import APIS

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

API_VERSIONS = [(ApiKey.API_VERSIONS, 0, 4)]


def listed(answer: ApiVersionsResponse) -> list[tuple[int, int, int]]:
    return [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys]


@pytest.mark.parametrize("version", range(5))
async def test_api_versions_lists_what_apache_kafka_speaks(
    client: RawClient, release: str | None, version: int
) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1.0")
    answer = await client.ask(request, version)
    assert answer.error_code == 0
    expected = versions_of(release or DEFAULT_RELEASE)
    ours = [row for row in listed(answer) if row[0] in APIS]
    assert sorted(ours) == [(key, *versions) for key, versions in sorted(expected.items()) if key in APIS]


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
async def test_api_versions_of_a_newer_client_is_answered_in_version_0(client: RawClient, version: int) -> None:
    await client.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1) + b"\0whatever else it says")
    frame = await client.frame()
    assert frame[:4] == struct.pack(">i", 7)
    answer = decode(ApiVersionsResponse, 0, frame, 4)
    assert (answer.error_code, listed(answer)) == (ErrorCode.UNSUPPORTED_VERSION, API_VERSIONS)
    assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0  # and the connection lives on


@pytest.mark.parametrize(("software", "version"), [("", "1"), ("raw", ""), ("a b", "1"), ("-a", "1"), ("a", "1.")])
async def test_clients_must_say_properly_what_they_are(client: RawClient, software: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=software, client_software_version=version)
    answer = await client.ask(request, 3)
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def wanted(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


async def topics(
    client: RawClient, version: int, asked: list[MetadataRequestTopic] | None
) -> list[MetadataResponseTopic]:
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=version < 4)
    return (await client.ask(request, version)).topics


@pytest.mark.parametrize("version", range(14))
async def test_every_version_describes_a_topic(kafka: Kafka, client: RawClient, version: int) -> None:
    topic = await kafka.topic(partitions=2)
    assert topic.name is not None
    request = MetadataRequest(topics=wanted(topic.name), allow_auto_topic_creation=version < 4)
    answer = await client.ask(request, version)
    (described,) = answer.topics
    (broker,) = answer.brokers
    assert (broker.node_id, broker.rack) == (1, None)
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert (answer.cluster_id is not None) == (version >= 2)
    assert (described.error_code, described.name, described.is_internal) == (0, topic.name, False)
    assert described.topic_id == (topic.topic_id if version >= 10 else ZERO_UUID)
    partitions = sorted(described.partitions, key=lambda partition: partition.partition_index)
    assert [(p.error_code, p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in partitions] == [
        (0, 0, 1, [1], [1]),
        (0, 1, 1, [1], [1]),
    ]
    assert {p.leader_epoch for p in partitions} == {0 if version >= 7 else -1}


async def test_none_some_and_all_topics(kafka: Kafka, client: RawClient) -> None:
    both = {(await kafka.topic()).name, (await kafka.topic()).name}
    assert both <= {topic.name for topic in await topics(client, 12, None)}
    assert both <= {topic.name for topic in await topics(client, 0, [])}
    assert await topics(client, 1, []) == []
    assert await topics(client, 12, []) == []


async def test_by_topic_id(client: RawClient, topic: MetadataResponseTopic, unknown_id: UUID) -> None:
    (found,) = await topics(client, 12, [MetadataRequestTopic(name=None, topic_id=topic.topic_id)])
    assert found == topic
    (missing,) = await topics(client, 12, [MetadataRequestTopic(name=None, topic_id=unknown_id)])
    assert (missing.error_code, missing.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, unknown_id)
    assert not missing.name


async def test_ids_and_null_names_are_refused_before_version_12(client: RawClient, unknown_id: UUID) -> None:
    for asked in (MetadataRequestTopic(name="x", topic_id=unknown_id), MetadataRequestTopic(name=None)):
        request = MetadataRequest(topics=[asked])
        answer = await client.ask(request, 11)
        assert [(topic.error_code, topic.name) for topic in answer.topics] == [
            (ErrorCode.INVALID_REQUEST, asked.name or "")
        ]
        assert (answer.brokers, answer.controller_id) == ([], -1)


async def test_a_missing_topic_stays_missing_unless_it_may_be_made(client: RawClient) -> None:
    for _ in range(2):
        (missing,) = await topics(client, 12, wanted("not-made"))
        assert (missing.error_code, missing.name, missing.topic_id) == (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "not-made",
            ZERO_UUID,
        )


async def test_a_missing_topic_is_made_and_known_when_asked_for_again(
    kafka: Kafka, client: RawClient, topic: MetadataResponseTopic
) -> None:
    name = f"made-for-{topic.name}"
    answer = await client.ask(MetadataRequest(topics=wanted(name), allow_auto_topic_creation=True), 12)
    assert [(t.error_code, t.partitions) for t in answer.topics] == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])]
    made = await kafka.described(client, name)
    assert len(made.partitions) == 1
    assert made.topic_id != ZERO_UUID


async def test_names_that_cannot_be_are_not_made(client: RawClient) -> None:
    for name in ("", "a b", "..", "x" * 250, "ä"):
        request = MetadataRequest(topics=wanted(name), allow_auto_topic_creation=True)
        (answer,) = (await client.ask(request, 12)).topics
        assert (answer.error_code, answer.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, name)


async def test_a_topic_named_twice_is_answered_once(client: RawClient, name: str) -> None:
    assert len(await topics(client, 12, wanted(name, name))) == 1


async def test_operations_are_told_on_request(client: RawClient, name: str) -> None:
    request = MetadataRequest(
        topics=wanted(name),
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer = await client.ask(request, 10)
    assert (answer.topics[0].topic_authorized_operations, answer.cluster_authorized_operations) == (3576, 8096)
    silent = await client.ask(MetadataRequest(topics=wanted(name)), 10)
    assert silent.topics[0].topic_authorized_operations == silent.cluster_authorized_operations == -(2**31)


async def test_requests_sent_in_one_go_are_answered_in_order(client: RawClient, name: str) -> None:
    with anyio.fail_after(PATIENCE):
        sent = [await client.send(MetadataRequest(topics=wanted(name)), version) for version in range(14)]
        for version, correlation_id in enumerate(sent):
            answer: Any = await client.answer(MetadataRequest, version, correlation_id)
            assert [topic.name for topic in answer.topics] == [name]
