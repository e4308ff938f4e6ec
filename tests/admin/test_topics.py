"""Topics and partitions on clusters of several brokers and on old brokers: retries, quotas, and wrong answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import anyio
import pytest
from support.clusters import QUICK
from support.raw_client import RawClient
from support.virtual_time import virtual_time

from aiokafkawire import Client, NewPartitions, NewTopic, TopicPartition, UnsupportedVersion, UsageError, WireError
from aiokafkawire.admin.admin import Admin
from aiokafkawire.errors import (
    AdminError,
    ErrorCode,
    LeaderNotAvailable,
    NotController,
    ThrottlingQuotaExceeded,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import Cursor, DescribeTopicPartitionsResponse, MetadataResponse
from aiokafkawire.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from aiokafkawire.protocol.messages.topics import (
    CreatePartitionsResponse,
    DeleteRecordsResponse,
    DeleteTopicsResponse,
)
from aiokafkawire.protocol.primitives import ZERO_UUID
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]


@asynccontextmanager
async def running(release: str | None = None, nodes: int = 1, **options: Any) -> AsyncIterator[tuple[Broker, Admin]]:
    """A topic "a" of two partitions, and the admin of a client."""
    async with Broker(nodes, port=None, max_versions=release, default_replication_factor=1) as broker:
        broker.create_topic("a", 2)
        async with Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options}) as kafka:
            yield broker, kafka.admin


# --- the controller ------------------------------------------------------------------------------------------------


async def test_a_controller_that_moves_is_waited_for() -> None:
    async with running() as (broker, admin):
        orders = [
            broker.on(api, answer=ErrorCode.NOT_CONTROLLER, times=2)
            for api in (ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS)
        ]
        await admin.create_topics({"b": 2})
        await admin.create_partitions({"b": 3})
        assert len((await admin.describe_topics("b"))["b"].partitions) == 3
        await admin.delete_topics("b")
        assert all(order.is_met for order in orders)
        assert await admin.list_topics() == ("a",)


async def test_a_controller_that_never_comes_is_told_at_the_deadline() -> None:
    async with running() as (broker, admin):
        await admin.create_topics({"b": 1})  # connects, which is not limited to half a second
        broker.on(ApiKey.CREATE_PARTITIONS, answer=ErrorCode.NOT_CONTROLLER, times=None)
        with pytest.raises(NotController, match="creating partitions of topic 'a'"):
            await admin.create_partitions({"a": 3}, timeout=0.5)


async def test_the_controller_gets_the_requests_about_topics() -> None:
    async with running(nodes=3) as (broker, admin):
        await broker.stop_node(1)
        await admin.create_topics({"b": NewTopic(assignments=[[2], [3]])})
        await admin.create_partitions({"b": NewPartitions(3, [[3]])})
        assert [one.replicas for one in (await admin.describe_topics("b"))["b"].partitions] == [(2,), (3,), (3,)]
        await admin.delete_topics(["b"])
        for api in (ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS):
            assert {one.node for one in broker.requests.of(api)} == {2}


# --- quotas --------------------------------------------------------------------------------------------------------


async def limit(broker: Broker, rate: float) -> None:
    """Set the quota of partitions that anybody may create and delete in a second."""
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type="client-id", entity_name=None)],
        ops=[OpData(key="controller_mutation_rate", value=rate, remove=False)],
    )
    async with RawClient(await broker.connect("memory-1", 9092)) as client:
        await client.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 0)


@virtual_time
async def test_topics_beyond_the_quota_are_created_when_it_permits() -> None:
    async with running() as (broker, admin):
        await limit(broker, 1)
        began = anyio.current_time()
        created = await admin.create_topics({"b": 16, "c": 2, "d": 1})
        assert list(created) == ["b", "c", "d"]
        # Eleven are free, so that 16 leave a debt of five seconds, and two more one of two seconds.
        assert 5 <= anyio.current_time() - began < 10
        assert await admin.list_topics() == ("a", "b", "c", "d")


@virtual_time
async def test_partitions_and_deletions_count_as_well() -> None:
    async with running() as (broker, admin):
        await limit(broker, 2)
        began = anyio.current_time()
        await admin.create_partitions({"a": 34})  # 32 more, of which 22 are free
        await admin.create_partitions({"a": 35})
        assert 5 <= anyio.current_time() - began < 6
        await admin.delete_topics("a")
        await admin.create_topics({"b": 1})
        assert 5 + 35 / 2 <= anyio.current_time() - began < 8 + 35 / 2


@virtual_time
async def test_a_quota_that_permits_a_topic_too_late_is_an_error_at_once() -> None:
    async with running() as (broker, admin):
        await limit(broker, 1)
        began = anyio.current_time()
        with pytest.raises(AdminError, match="creating topics failed for 1 of 2") as caught:
            await admin.create_topics({"b": 41, "c": 1}, timeout=10)
        assert isinstance(caught.value.errors["c"], ThrottlingQuotaExceeded)
        assert list(caught.value.results) == ["b"]
        assert anyio.current_time() - began < 1
    async with running("2.6") as (broker, admin):  # before KIP-599
        await limit(broker, 1)
        await admin.create_topics({"b": 41, "c": 1}, timeout=10)


# --- describing ----------------------------------------------------------------------------------------------------


async def test_leaders_replicas_and_those_that_are_down() -> None:
    async with running(nodes=3) as (broker, admin):
        await admin.create_topics({"b": NewTopic(assignments=[[1, 2, 3], [3, 2, 1]])})
        broker.shrink_isr("b", 0, 3)
        await broker.stop_node(1)
        first, second = (await admin.describe_topics("b"))["b"].partitions
        assert (first.leader, first.replicas, first.in_sync, first.offline) == (2, (1, 2, 3), (2,), (1,))
        assert first.leader_epoch > second.leader_epoch == 0
        assert (second.leader, second.in_sync, second.offline) == (3, (3, 2), (1,))
        await broker.stop_node(2)
        found = (await admin.describe_topics("b"))["b"].partitions[0]
        assert (found.leader, found.in_sync, found.eligible_leader_replicas) == (None, (), (2,))


async def test_one_page_of_partitions_follows_the_other() -> None:
    async with running() as (broker, admin):
        broker.create_topic("b", 4500)
        found = await admin.describe_topics(["b", "a"])
        assert [one.index for one in found["b"].partitions] == list(range(4500))
        assert [one.index for one in found["a"].partitions] == [0, 1]
        asked = [one.request for one in broker.requests.of(ApiKey.DESCRIBE_TOPIC_PARTITIONS)]
        assert [one.cursor and (one.cursor.topic_name, one.cursor.partition_index) for one in asked] == [
            None,
            ("b", 1998),
            ("b", 3998),
        ]
        assert [[topic.name for topic in one.topics] for one in asked] == [["b", "a"], ["b"], ["b"]]


async def test_pages_that_would_never_end_are_an_error() -> None:
    async with running() as (broker, admin):
        answer = DescribeTopicPartitionsResponse(topics=[], next_cursor=Cursor(topic_name="a", partition_index=0))
        broker.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, answer=answer, times=None)
        with pytest.raises(WireError, match="repeats its cursor"):
            await admin.describe_topics("a")


@pytest.mark.parametrize("release", ["0.8.2", "0.10.2", "2.2", "3.7"])
async def test_older_brokers_describe_topics_by_metadata(release: str) -> None:
    async with running(release) as (broker, admin):
        found = (await admin.describe_topics(["a"]))["a"]
        assert (found.name, found.is_internal, found.authorized_operations) == ("a", False, None)
        assert [(one.index, one.leader, one.replicas) for one in found.partitions] == [(0, 1, (1,)), (1, 1, (1,))]
        assert found.partitions[0].eligible_leader_replicas is None
        with pytest.raises(AdminError) as caught:
            await admin.describe_topics(["missing", "a"])
        assert isinstance(caught.value.errors["missing"], UnknownTopicOrPartition)
        assert broker.requests.of(ApiKey.DESCRIBE_TOPIC_PARTITIONS) == []
        assert await admin.list_topics() == ("a",)


async def test_what_a_broker_refuses_to_describe_is_told() -> None:
    async with running() as (broker, admin):
        broker.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(TopicAuthorizationFailed, match="describing topic 'a'"):
            await admin.describe_topics("a")


# --- records -------------------------------------------------------------------------------------------------------


async def test_records_are_deleted_by_the_leaders_of_their_partitions() -> None:
    async with running(nodes=3) as (broker, admin):
        await admin.create_topics({"b": NewTopic(assignments=[[2, 3], [3, 2], [2, 1]])})
        found = await admin.delete_records({TopicPartition("b", index): -1 for index in (2, 0, 1)})
        assert found == {TopicPartition("b", index): 0 for index in (2, 0, 1)}
        asked = {
            one.node: [part.partition_index for topic in one.request.topics for part in topic.partitions]
            for one in broker.requests.of(ApiKey.DELETE_RECORDS)
        }
        assert asked == {2: [2, 0], 3: [1]}


async def test_a_leader_that_moves_is_followed() -> None:
    async with running(nodes=2) as (broker, admin):
        await admin.create_topics({"b": NewTopic(assignments=[[1, 2]])})
        where = TopicPartition("b", 0)
        order = broker.on(ApiKey.DELETE_RECORDS, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
        assert await admin.delete_records({where: -1}) == {where: 0}
        assert order.is_met
        broker.move_leader("b", 0, 2)
        assert await admin.delete_records({where: -1}) == {where: 0}
        assert broker.requests.of(ApiKey.DELETE_RECORDS)[-1].node == 2


async def test_a_partition_without_a_leader_fails_alone() -> None:
    async with running(nodes=2) as (broker, admin):
        await admin.create_topics({"b": NewTopic(assignments=[[1], [2]])})
        await broker.stop_node(2)
        zero, one = TopicPartition("b", 0), TopicPartition("b", 1)
        with pytest.raises(AdminError, match="deleting records failed for 1 of 2") as caught:
            await admin.delete_records({one: -1, zero: -1}, timeout=0.5)
        assert caught.value.results == {zero: 0}
        assert isinstance(caught.value.errors[one], LeaderNotAvailable)
        await broker.start_node(2)
        assert await admin.delete_records({one: -1}) == {one: 0}


# --- wrong answers -------------------------------------------------------------------------------------------------


async def test_answers_that_lack_what_was_asked() -> None:
    async with running() as (broker, admin):
        broker.on(ApiKey.CREATE_PARTITIONS, answer=CreatePartitionsResponse(results=[]))
        with pytest.raises(WireError, match="lacks the requested a"):
            await admin.create_partitions({"a": 3})
        broker.on(ApiKey.DELETE_TOPICS, answer=DeleteTopicsResponse(responses=[]))
        with pytest.raises(WireError, match="lacks the requested a"):
            await admin.delete_topics("a")
        broker.on(ApiKey.DELETE_RECORDS, answer=DeleteRecordsResponse(topics=[]))
        with pytest.raises(WireError, match="the DeleteRecords response lacks the requested a-0"):
            await admin.delete_records({TopicPartition("a", 0): 0})
        broker.on(ApiKey.DESCRIBE_TOPIC_PARTITIONS, answer=DescribeTopicPartitionsResponse(topics=[]))
        with pytest.raises(WireError, match="the DescribeTopicPartitions response lacks the requested topic 'a'"):
            await admin.describe_topics("a")
        broker.on(ApiKey.METADATA, answer=MetadataResponse(brokers=[], topics=[]))
        with pytest.raises(WireError, match="lacks the requested"):
            await admin.describe_topics(UUID(int=5))


# --- old brokers ---------------------------------------------------------------------------------------------------


async def test_topics_by_id_need_newer_brokers() -> None:
    async with running("2.7") as (_, admin):
        await admin.delete_topics("a")
        with pytest.raises(UnsupportedVersion, match=r"deleting topics by id needs brokers since 2.8 \(KIP-516\): "):
            await admin.delete_topics(["a", UUID(int=5)])
    async with running("3.0") as (_, admin):
        with pytest.raises(UnsupportedVersion, match=r"describing topics by id needs brokers since 3.1 \(KIP-516\): "):
            await admin.describe_topics(UUID(int=5))


async def test_operations_that_old_brokers_do_not_have() -> None:
    async with running("2.2") as (_, admin):
        with pytest.raises(UnsupportedVersion, match=r"authorized operations need brokers since 2.3 \(KIP-430\): "):
            await admin.describe_topics("a", include_authorized_operations=True)
    async with running("2.3") as (_, admin):
        found = (await admin.describe_topics("a", include_authorized_operations=True))["a"]
        assert "READ" in (found.authorized_operations or ())
    async with running("0.11.0") as (_, admin):
        assert await admin.delete_records({TopicPartition("a", 0): -1}) == {TopicPartition("a", 0): 0}
        with pytest.raises(UnsupportedVersion, match=r"creating partitions needs brokers since 1.0 \(KIP-195\): "):
            await admin.create_partitions({"a": 3})
    async with running("1.0") as (_, admin):
        await admin.create_partitions({"a": 3})
    async with running("0.10.2") as (_, admin):
        with pytest.raises(UnsupportedVersion, match=r"deleting records needs brokers since 0.11 \(KIP-107\): "):
            await admin.delete_records({TopicPartition("a", 0): -1})
        with pytest.raises(UnsupportedVersion, match=r"deleting records needs brokers since 0.11 \(KIP-107\): "):
            await admin.delete_records({TopicPartition("a", 0): -1, TopicPartition("a", 1): -1})


async def test_old_brokers_do_not_return_what_they_created() -> None:
    async with running("2.3") as (_, admin):
        created = (await admin.create_topics({"b": NewTopic(2, 1), "c": NewTopic(assignments=[[1]])}))["b"]
        assert (created.topic_id, created.partitions, created.replication_factor) == (ZERO_UUID, None, None)
        assert created.configs is None
        assert len((await admin.describe_topics("c"))["c"].partitions) == 1


# --- arguments -----------------------------------------------------------------------------------------------------


async def test_brokers_of_partitions_replace_their_numbers() -> None:
    async with running() as (_, admin):
        for wrong in (NewTopic(2, assignments=[[1]]), NewTopic(replication_factor=1, assignments=[[1]])):
            with pytest.raises(UsageError, match="topic 'b' has assignments, which give its number of partitions"):
                await admin.create_topics({"b": wrong})
        with pytest.raises(UsageError, match="assignments of topic 'b', at 1, must be the ids of different brokers"):
            await admin.create_topics({"b": NewTopic(assignments=[[1], [2, 2]])})
    with pytest.raises(TypeError, match="'replica_assignment'; here: assignments"):
        NewTopic("b", replica_assignment=[[1]])  # type: ignore[call-overload]


async def test_brokers_of_partitions_may_come_from_iterators() -> None:
    async with running(nodes=3) as (_, admin):
        await admin.create_topics({"b": NewTopic(assignments=zip([3, 2], [2, 1], strict=True))})  # type: ignore[call-overload]
        given: Any = (iter(replicas) for replicas in ([2], [3]))
        await admin.create_partitions({"a": NewPartitions(4, given)})
        found = await admin.describe_topics(["a", "b"])
        assert [one.replicas for one in found["b"].partitions] == [(3, 2), (2, 1)]
        assert [one.replicas for one in found["a"].partitions[2:]] == [(2,), (3,)]
