"""Samples of ``aiokafkawire top`` on the in-process broker: errors stay where they belong, and requests are few."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from support.virtual_time import virtual_time

from aiokafkawire import Client, TopicPartition
from aiokafkawire.cli.top.options import Pattern
from aiokafkawire.cli.top.rows import History
from aiokafkawire.cli.top.sampler import Sampler
from aiokafkawire.errors import ErrorCode, NoBrokerReachable, RequestTimeout
from aiokafkawire.protocol import ApiKey
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio

ALL = Pattern()
QUICK: dict[str, Any] = {"api_version_request_timeout_ms": 100}
"""Brokers before 0.10 leave the question for versions unanswered."""


def sampler(kafka: Client, timeout: float = 10.0) -> Sampler:
    return Sampler(kafka, topics=ALL, groups=ALL, timeout=timeout)


def client(broker: Broker, **options: Any) -> Client:
    return Client(broker.bootstrap, connector=broker.connect, **options)


async def commit(kafka: Client, *groups: str) -> None:
    for group in groups:
        await kafka.admin.alter_consumer_group_offsets(group, {TopicPartition("t", 0): 0})


def apis(broker: Broker, since: int = 0) -> list[ApiKey]:
    return [request.api for request in broker.requests.of()[since:]]


# --- errors ----------------------------------------------------------------------------------------------------------


async def test_a_broker_that_does_not_answer_has_an_error_and_the_others_are_sampled() -> None:
    async with Broker(3, port=None) as broker, client(broker) as kafka:
        for number in range(9):
            broker.create_topic(f"t{number}", partitions=3)
        lost = broker.on(ApiKey.LIST_OFFSETS, node=2, drop="before", times=None)
        history = History()
        history.add(await sampler(kafka).sample())
        rows = {row.node_id: row.error for row in history.broker_rows()}
        assert rows[1] is None
        assert rows[3] is None
        assert rows[2] is not None
        assert rows[2].startswith("ConnectionLost: ")
        newest = history.newest
        assert newest is not None
        led = [partition for partition, leader in newest.layout.leaders.items() if leader == 2]
        assert led
        assert sum(row.unread for row in history.topic_rows()) == len(led)
        assert {*newest.layout.leaders} - {*newest.ends} == {*led}
        lost.remove()
        again = await sampler(kafka).sample()
        assert again.broker_errors == {}


@virtual_time
async def test_a_silent_broker_keeps_its_groups() -> None:
    async with Broker(2, port=None) as broker, client(broker) as kafka:
        broker.create_topic("t", partitions=2)
        names = [f"g{number}" for number in range(8)]
        await commit(kafka, *names)
        one = sampler(kafka, timeout=0.3)
        assert sorted((await one.sample()).groups) == names
        broker.on(ApiKey.LIST_GROUPS, node=2, swallow="before", times=None)
        sample = await one.sample()
        assert list(sample.broker_errors) == [2]
        assert sorted(sample.groups) == names
        for group in sample.groups.values():
            silent = broker.coordinator(group.group_id) == 2
            assert (group.error is not None, group.committed == {}) == (silent, silent)
        assert {partition for partition, leader in sample.layout.leaders.items() if leader == 1} == {*sample.ends}


async def test_a_group_that_another_broker_has_taken_over_from_a_silent_one_is_sampled() -> None:
    async with Broker(2, port=None) as broker, client(broker) as kafka:
        broker.create_topic("t")
        await commit(kafka, "g")
        broker.move_coordinator("g", 2)
        one = sampler(kafka)
        assert (await one.sample()).groups["g"].coordinator == 2
        broker.on(ApiKey.LIST_GROUPS, node=2, drop="before", times=None)
        broker.move_coordinator("g", 1)
        for _ in range(2):
            sample = await one.sample()
            assert list(sample.broker_errors) == [2]
            group = sample.groups["g"]
            assert (group.coordinator, group.error, dict(group.committed)) == (1, None, {TopicPartition("t", 0): 0})


async def test_a_broker_that_fails_is_not_asked_again_in_the_same_sample() -> None:
    async with Broker(2, port=None) as broker, client(broker) as kafka:
        broker.create_topic("t", partitions=2)
        broker.on(ApiKey.LIST_GROUPS, node=2, drop="before", times=None)
        sample = await sampler(kafka).sample()
        assert list(sample.broker_errors) == [2]
        assert broker.requests.of(ApiKey.LIST_OFFSETS, node=2) == []
        assert len(broker.requests.of(ApiKey.LIST_OFFSETS, node=1)) == 1


async def test_a_broker_that_may_not_be_asked_for_groups_still_reports_its_offsets() -> None:
    async with Broker(port=None) as broker, client(broker) as kafka:
        broker.create_topic("t")
        broker.on(ApiKey.LIST_GROUPS, answer=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, times=None)
        sample = await sampler(kafka).sample()
        assert sample.ends == {TopicPartition("t", 0): 0}
        assert sample.broker_errors[1].startswith("ClusterAuthorizationFailed: ")


@pytest.mark.parametrize(("api", "described"), [(ApiKey.DESCRIBE_GROUPS, False), (ApiKey.OFFSET_FETCH, True)])
async def test_a_group_without_rights_has_an_error_and_the_others_are_sampled(api: ApiKey, described: bool) -> None:
    def refuse(request: Any, response: Any) -> Any:
        for group in response.groups:
            if group.group_id == "secret":
                group.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return response

    async with Broker(port=None) as broker, client(broker) as kafka:
        broker.create_topic("t")
        await commit(kafka, "open", "secret")
        broker.on(api, answer=refuse, times=None)
        history = History()
        history.add(await sampler(kafka).sample())
        rows = {row.group_id: row for row in history.group_rows()}
        assert (rows["open"].error, rows["open"].members, rows["open"].lag) == (None, 0, 0)
        assert rows["secret"].error == "GroupAuthorizationFailed"
        assert (rows["secret"].members is not None) is described


async def test_a_partition_whose_offset_is_not_known_is_an_error_of_its_group() -> None:
    def refuse(request: Any, response: Any) -> Any:
        response.groups[0].topics[0].partitions[0].error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
        return response

    async with Broker(port=None) as broker, client(broker) as kafka:
        broker.create_topic("t")
        await commit(kafka, "g")
        broker.on(ApiKey.OFFSET_FETCH, answer=refuse, times=None)
        (group,) = (await sampler(kafka).sample()).groups.values()
        assert (group.committed, group.offsets_error, group.error) == ({}, "UnstableOffsetCommit", None)


@virtual_time
async def test_without_any_broker_the_sample_fails_and_a_later_one_succeeds() -> None:
    async with Broker(port=None) as broker, client(broker) as kafka:
        await sampler(kafka).sample()
        await broker.stop_node(1)
        with pytest.raises((RequestTimeout, NoBrokerReachable)):
            await sampler(kafka, timeout=0.3).sample()
        await broker.start_node(1)
        sample = await sampler(kafka).sample()
        assert list(sample.layout.nodes) == [1]


async def test_a_partition_that_has_moved_is_read_again_in_the_next_sample() -> None:
    async with Broker(2, port=None) as broker, client(broker) as kafka:
        broker.create_topic("t")
        one = sampler(kafka)
        await one.sample()
        leader = broker.leader("t")
        broker.move_leader("t", 0, 3 - leader)
        sample = await one.sample()
        assert sample.layout.leaders == {TopicPartition("t", 0): 3 - leader}
        assert sample.ends == {TopicPartition("t", 0): 0}


# --- many topics and groups ------------------------------------------------------------------------------------------


async def test_requests_do_not_grow_with_topics_and_groups() -> None:
    async with Broker(3, port=None) as broker, client(broker) as kafka:
        broker.create_topic("t")
        for number in range(100):
            broker.create_topic(f"t{number}", partitions=3)
        await commit(kafka, *(f"g{number}" for number in range(60)))
        one = sampler(kafka)
        await one.sample()
        before = len(broker.requests.of())
        sample = await one.sample()
        assert len(sample.groups) == 60
        assert len([one for one in sample.ends if one.topic.startswith("t")]) == 301
        counted = apis(broker, before)
        several: Collection[ApiKey] = (
            ApiKey.LIST_GROUPS,
            ApiKey.DESCRIBE_GROUPS,
            ApiKey.OFFSET_FETCH,
            ApiKey.LIST_OFFSETS,
        )
        assert {api: counted.count(api) for api in several} == dict.fromkeys(several, 3)
        assert counted.count(ApiKey.METADATA) == 1
        assert ApiKey.FIND_COORDINATOR not in counted


async def test_the_metadata_of_many_topics_is_not_part_of_every_sample() -> None:
    async with Broker(port=None) as broker, client(broker) as kafka:
        broker.create_topic("large", partitions=2_100)
        one = sampler(kafka)
        await one.sample()
        before = len(broker.requests.of(ApiKey.METADATA))
        sample = await one.sample()
        assert len(sample.ends) == 2_100
        (request,) = broker.requests.of(ApiKey.METADATA)[before:]
        assert request.request.topics == []


async def test_a_broker_that_leaves_a_large_cluster_renews_the_metadata() -> None:
    async with Broker(2, port=None) as broker, client(broker) as kafka:
        broker.create_topic("large", partitions=2_100)
        one = sampler(kafka)
        await one.sample()
        await broker.stop_node(2)
        sample = await one.sample()
        assert list(sample.layout.nodes) == [1]
        assert set(sample.layout.leaders.values()) == {1}
        assert sample.layout.brokers[2].replicas > 0


async def test_the_client_does_not_begin_to_watch_the_topics() -> None:
    async with Broker(port=None) as broker, client(broker) as kafka:
        for number in range(20):
            broker.create_topic(f"t{number}")
        await sampler(kafka).sample()
        cluster = kafka._cluster
        await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(10.0))
        assert broker.requests.of(ApiKey.METADATA)[-1].request.topics == []


# --- old brokers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "0.10.1"])
async def test_brokers_that_list_no_groups_or_no_offsets_of_them_still_report_their_own(release: str) -> None:
    async with Broker(port=None, max_versions=release) as broker, client(broker, **QUICK) as kafka:
        broker.create_topic("t")
        await commit(kafka, "g", "h")
        sample = await sampler(kafka).sample()
        assert sample.ends[TopicPartition("t", 0)] == 0
        if release == "0.8.2":
            assert sample.broker_errors[1].startswith("UnsupportedVersion: ")
            return
        assert sample.broker_errors == {}
        assert sorted(sample.groups) == ["g", "h"]
        for group in sample.groups.values():
            assert (group.members, group.error) == (0, None)
            assert group.offsets_error is not None
            assert group.offsets_error.startswith("UnsupportedVersion: ")


@pytest.mark.parametrize("release", ["0.10.2", "2.4", "2.8"])
async def test_brokers_before_3_0_are_asked_for_the_offsets_of_each_group(release: str) -> None:
    async with Broker(port=None, max_versions=release) as broker, client(broker) as kafka:
        broker.create_topic("t")
        async with kafka.producer(enable_idempotence=False) as producer:
            await producer.send_many("t", [b"x"] * 3)
        names = [f"g{number}" for number in range(20)]
        await commit(kafka, *names)
        history = History()
        history.add(await sampler(kafka).sample())
        assert {row.group_id: (row.lag, row.error) for row in history.group_rows()} == dict.fromkeys(names, (3, None))
