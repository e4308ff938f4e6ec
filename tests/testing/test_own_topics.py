"""The brokers' own topics: how they come to be, and what goes with them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from support.group_members import GroupMember, error, listed
from support.raw_client import RawClient
from support.transactional import TransactionalProducer

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group import FindCoordinatorRequest
from aiokafkawire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aiokafkawire.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from aiokafkawire.protocol.messages.transaction_admin import DescribeTransactionsRequest
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.cluster.api_error import ApiError

pytestmark = pytest.mark.anyio


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[RawClient]:
    async with RawClient(await broker.connect("memory-1", 9092)) as client:
        yield client


@pytest.mark.parametrize(("name", "kind"), [("__consumer.offsets", 0), ("__transaction.state", 1)])
async def test_a_topic_of_nearly_that_name_is_not_in_the_way(
    broker: Broker, client: RawClient, name: str, kind: int
) -> None:
    broker.create_topic(name)
    assert (await client.ask(FindCoordinatorRequest(key="k", key_type=kind), 1)).node_id == 1
    broker.delete_topic(name)
    with pytest.raises(ApiError) as refused:  # the brokers' own topic is still there
        broker.create_topic(name)
    assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
async def test_who_asks_for_their_metadata_makes_them_as_the_brokers_would(client: RawClient, name: str) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    await client.ask(request, 9)
    (found,) = (await client.ask(request, 9)).topics
    assert (found.is_internal, len(found.partitions)) == (True, 50)


async def delete(client: RawClient, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000)
    assert (await client.ask(request, 6)).responses[0].error_code == 0


async def test_with_the_offsets_go_the_groups(broker: Broker, client: RawClient) -> None:
    member = GroupMember(client, "g")
    await member.settle()
    await delete(client, "__consumer_offsets")
    assert await member.heartbeat() == "UNKNOWN_MEMBER_ID"
    assert await listed(client) == {}
    member.member_id = ""
    await member.settle()
    assert broker.coordinator("g") == 1


async def test_with_their_state_go_the_transactional_ids(client: RawClient) -> None:
    await TransactionalProducer(client, "id").initialized()
    await delete(client, "__transaction_state")
    (found,) = (await client.ask(DescribeTransactionsRequest(transactional_ids=["id"]), 0)).transaction_states
    assert error(found) == "TRANSACTIONAL_ID_NOT_FOUND"
