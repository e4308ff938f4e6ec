"""Producers and transactions on clusters of several brokers, on old brokers, and while brokers fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.admin_errors import failing
from support.clusters import QUICK
from support.virtual_time import virtual_time

from aiokafkawire import Client, RequestTimeout, TopicPartition, UnsupportedVersion, WireError
from aiokafkawire.admin.admin import Admin
from aiokafkawire.admin.transaction_descriptions import AbortTransactionSpec
from aiokafkawire.errors import (
    AdminError,
    ErrorCode,
    NotLeaderOrFollower,
    TopicNotReady,
    TransactionalIdAuthorizationFailed,
    UnknownServerError,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.transaction_admin import DescribeProducersResponse, DescribeTransactionsResponse
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

IDS = [f"t{number}" for number in range(9)]
PARTITIONS = [TopicPartition("a", index) for index in range(6)]


@asynccontextmanager
async def running(release: str | None = None, nodes: int = 1, **options: Any) -> AsyncIterator[tuple[Broker, Admin]]:
    """A topic of six partitions, and the admin of a client."""
    async with Broker(nodes, port=None, max_versions=release) as broker:
        broker.create_topic("a", partitions=6)
        async with Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options}) as kafka:
            yield broker, kafka.admin


# --- several brokers -----------------------------------------------------------------------------------------------


async def test_each_leader_is_asked_once_for_all_its_partitions() -> None:
    async with running(nodes=3) as (broker, admin):
        found = await admin.describe_producers(PARTITIONS[::-1])
        assert found == dict.fromkeys(PARTITIONS, ())
        assert list(found) == PARTITIONS[::-1]
        asked = broker.requests.of(ApiKey.DESCRIBE_PRODUCERS)
        assert sorted(one.node for one in asked) == [1, 2, 3]
        assert sum(len(topic.partition_indexes) for one in asked for topic in one.request.topics) == 6


async def test_a_partition_whose_leader_has_moved_is_asked_for_again() -> None:
    async with running(nodes=3) as (broker, admin):
        await admin.describe_producers(PARTITIONS)
        order = broker.on(ApiKey.DESCRIBE_PRODUCERS, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3)
        assert await admin.describe_producers(PARTITIONS) == dict.fromkeys(PARTITIONS, ())
        assert order.is_met
        broker.on(ApiKey.DESCRIBE_PRODUCERS, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=None)
        with pytest.raises(
            RequestTimeout, match=r"no success within 0.2 s: NotLeaderOrFollower: .*DescribeProducers of"
        ):
            await admin.describe_producers(PARTITIONS[0], timeout=0.2)
        # A broker that the user names is not another one.
        with pytest.raises(NotLeaderOrFollower):
            await admin.describe_producers(PARTITIONS[0], broker_id=1)


async def test_one_partition_fails_and_the_others_have_their_producers() -> None:
    async with running(nodes=3) as (broker, admin):

        def one_fails(request: Any, true: Any) -> Any:
            for topic in true.topics:
                for partition in topic.partitions:
                    if partition.partition_index == 4:
                        partition.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
            return true

        broker.on(ApiKey.DESCRIBE_PRODUCERS, answer=one_fails, times=None)
        with failing("describing producers failed for 1 of 6") as failed:
            await admin.describe_producers(PARTITIONS)
        assert failed.value.results == {partition: () for partition in PARTITIONS if partition.partition != 4}
        assert {key: type(error) for key, error in failed.value.errors.items()} == {PARTITIONS[4]: UnknownServerError}


async def test_a_broker_that_is_down_does_not_keep_the_producers_of_others() -> None:
    async with running(nodes=3) as (broker, admin):
        await admin.describe_producers(PARTITIONS)
        broker.on(ApiKey.DESCRIBE_PRODUCERS, swallow="before", node=2, times=None)
        with pytest.raises(AdminError) as failed:
            await admin.describe_producers(PARTITIONS, timeout=0.5)
        assert all(isinstance(error, RequestTimeout) for error in failed.value.errors.values())
        assert len(failed.value.results) == len(failed.value.errors) * 2


@virtual_time
async def test_the_error_of_a_missing_topic_names_the_timeout_of_the_call() -> None:
    async with running() as (_, admin):
        with pytest.raises(TopicNotReady, match=r"^topic 'missing' is not known after 3 s"):
            await admin.describe_producers(TopicPartition("missing", 0), timeout=3)


async def test_transactions_of_all_brokers_are_listed_and_described() -> None:
    async with running(nodes=3) as (broker, admin):
        fenced = await admin.fence_producers(IDS)
        assert list(fenced) == IDS
        listed = await admin.list_transactions()
        assert [(one.transactional_id, one.producer_id, one.state) for one in listed] == [
            (name, fenced[name].producer_id, "Empty") for name in IDS
        ]
        described = await admin.describe_transactions(IDS[::-1])
        assert list(described) == IDS[::-1]
        assert {one.transactional_id: one.coordinator_id for one in listed} == {
            name: one.coordinator_id for name, one in described.items()
        }
        asked = broker.requests.of(ApiKey.DESCRIBE_TRANSACTIONS)
        assert sorted(name for one in asked for name in one.request.transactional_ids) == IDS
        assert len(asked) == len({one.node for one in asked})


async def test_a_broker_that_lists_no_transactions_is_named_and_the_others_are_told() -> None:
    async with running(nodes=3) as (broker, admin):
        await admin.fence_producers(IDS)
        broker.on(ApiKey.LIST_TRANSACTIONS, answer=ErrorCode.UNKNOWN_SERVER_ERROR, node=2)
        told = "listing transactions failed for 1 of 3: .*ListTransactions of broker 2"
        with failing(told) as failed:
            await admin.list_transactions()
        assert list(failed.value.errors) == [2]
        assert sorted(failed.value.results) == [1, 3]
        order = broker.on(ApiKey.LIST_TRANSACTIONS, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=2)
        assert [one.transactional_id for one in await admin.list_transactions()] == IDS
        assert order.is_met


async def test_what_a_coordinator_refuses_is_told() -> None:
    async with running() as (broker, admin):
        await admin.fence_producers(IDS[:2])
        for api, call in (
            (ApiKey.DESCRIBE_TRANSACTIONS, admin.describe_transactions),
            (ApiKey.INIT_PRODUCER_ID, admin.fence_producers),
            (ApiKey.INIT_PRODUCER_ID, admin.force_terminate_transaction),
        ):
            broker.on(api, answer=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            with pytest.raises(TransactionalIdAuthorizationFailed, match="of transactional id 't0'"):
                await call("t0")
        broker.on(ApiKey.DESCRIBE_TRANSACTIONS, answer=DescribeTransactionsResponse(transaction_states=[]))
        with pytest.raises(WireError, match="DescribeTransactions response lacks the requested transactional id 't0'"):
            await admin.describe_transactions("t0")
        broker.on(ApiKey.DESCRIBE_PRODUCERS, answer=DescribeProducersResponse(topics=[]))
        with pytest.raises(WireError, match="the DescribeProducers response lacks the requested a-0"):
            await admin.describe_producers(PARTITIONS[0])
        order = broker.on(ApiKey.INIT_PRODUCER_ID, answer=ErrorCode.CONCURRENT_TRANSACTIONS, times=2)
        assert list(await admin.fence_producers("t0")) == ["t0"]
        assert order.is_met


# --- old brokers ---------------------------------------------------------------------------------------------------


async def test_old_brokers_say_what_they_lack() -> None:
    async with running("2.7") as (_, admin):
        with pytest.raises(UnsupportedVersion, match=r"^describing producers needs brokers since 2.8 "):
            await admin.describe_producers(PARTITIONS)
        with pytest.raises(UnsupportedVersion, match=r"^describing producers needs brokers since 2.8 "):
            await admin.describe_producers(PARTITIONS, broker_id=1)
    async with running("2.8") as (_, admin):
        assert await admin.describe_producers(PARTITIONS[0]) == {PARTITIONS[0]: ()}
        with pytest.raises(UnsupportedVersion, match=r"^describing transactions needs brokers since 3.0 "):
            await admin.describe_transactions("t", "u")
        with pytest.raises(UnsupportedVersion, match=r"^listing transactions needs brokers since 3.0 "):
            await admin.list_transactions()
        assert list(await admin.fence_producers("t", "u")) == ["t", "u"]
    async with running("3.7") as (_, admin):
        assert await admin.list_transactions(states=["Empty"], producer_ids=[5]) == []
        with pytest.raises(UnsupportedVersion, match=r"by duration since 3.8"):
            await admin.list_transactions(running_longer_than_ms=5)
    async with running("4.0") as (_, admin):
        assert await admin.list_transactions(running_longer_than_ms=5) == []
        with pytest.raises(UnsupportedVersion, match=r"by a pattern since 4.1"):
            await admin.list_transactions(transactional_id_pattern="t.*")
    async with running("0.10.2") as (_, admin):
        with pytest.raises(UnsupportedVersion, match=r"transactions came with Kafka 0.11"):
            await admin.fence_producers("t")
        with pytest.raises(UnsupportedVersion, match="does not know the request WriteTxnMarkers"):
            await admin.abort_transaction(AbortTransactionSpec(PARTITIONS[0], 1, 0))
