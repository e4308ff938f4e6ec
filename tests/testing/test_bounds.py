"""Requests that ask for too much, or by what no number can be: they are refused, and no fault of the broker's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from support.group_members import error
from support.raw_client import RawClient
from support.settings import BROKER, LOGGER, SET, alter

from aiokafkawire.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from aiokafkawire.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
)
from aiokafkawire.protocol.messages.transaction_admin import ListTransactionsRequest
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.configs.checks import broker_id

pytestmark = pytest.mark.anyio

NUMBER = "9" * 5000


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[RawClient]:
    async with RawClient(await broker.connect("memory-1", 9092)) as client:
        yield client


@pytest.mark.parametrize("kind", [BROKER, LOGGER])
async def test_the_id_of_a_broker_has_few_digits(client: RawClient, kind: int) -> None:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=NUMBER, configuration_keys=None)
    (found,) = (await client.ask(DescribeConfigsRequest(resources=[asked]), 4)).results
    assert error(found) == "INVALID_REQUEST"
    assert (await alter(client, kind, NUMBER, ("root", SET, "INFO")))[0] == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("0" * 5000 + "7", 7),
        (str(2**31), None),
        (str(-(2**31)), -(2**31)),
        ("x", None),
    ],
)
def test_an_id_is_an_int32(name: str, number: int | None) -> None:
    assert broker_id(name) == number


@pytest.mark.parametrize("pattern", ["a{99999999999}", "a" * 1001, "("])
async def test_patterns_that_cannot_be_used(client: RawClient, pattern: str) -> None:
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[], transactional_id_pattern=pattern)
    assert error(await client.ask(request, 2)) == "INVALID_REGULAR_EXPRESSION"


async def test_one_request_makes_10000_partitions_at_most(broker: Broker, client: RawClient) -> None:
    def sized(name: str, partitions: int) -> CreatableTopic:
        return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])

    request = CreateTopicsRequest(topics=[sized("one", 10_000), sized("two", 1)])
    answers = (await client.ask(request, 7)).topics
    assert [error(answer) for answer in answers] == ["POLICY_VIOLATION"] * 2
    assert answers[0].error_message == "Excessively large number of partitions per request."
    checked = await client.ask(CreateTopicsRequest(topics=[sized("one", 10_000)], validate_only=True), 7)
    assert (checked.topics[0].error_code, checked.topics[0].num_partitions) == (0, 10_000)
    broker.create_topic("t")
    topics = [CreatePartitionsTopic(name="t", count=10_002, assignments=None)]
    more = CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=False)
    assert error((await client.ask(more, 3)).results[0]) == "UNKNOWN_SERVER_ERROR"
