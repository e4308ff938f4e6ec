"""Consuming from brokers of Kafka 0.8 and 0.9: groups or none, offsets in ZooKeeper and by time, leaders."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from support.patience import SOON

from aiokafkawire import Client, OffsetSpec, TopicPartition, UnsupportedVersion
from aiokafkawire.admin.new_topics import NewTopic
from aiokafkawire.cluster.metadata import EMPTY, merge
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import OffsetAndTimestamp

pytestmark = pytest.mark.anyio

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@asynccontextmanager
async def running(release: str) -> AsyncIterator[tuple[Broker, Client]]:
    """A topic with three records in its first partition."""
    async with Broker(port=None, max_versions=release) as broker:
        broker.create_topic("t", partitions=2)
        options: dict[str, Any] = {"api_version_request_timeout_ms": 20, "retry_backoff_ms": 1}
        async with Client(broker.bootstrap, connector=broker.connect, **options) as client:
            async with client.producer() as producer:
                for number in range(3):
                    await producer.send("t", b"%d" % number, partition=0)
            yield broker, client


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1", "0.8.2"])
async def test_a_group_that_is_subscribed_on_0_8_is_told_to_assign(release: str) -> None:
    async with running(release) as (_, client), client.consumer(group_id="g") as consumer:
        consumer.subscribe("t")
        told = r"cannot join group 'g', groups came with Kafka 0\.9: assign\(\) partitions instead"
        with anyio.fail_after(SOON), pytest.raises(UnsupportedVersion, match=told):
            await anext(consumer)


async def test_a_static_member_is_told_which_release_has_them() -> None:
    async with running("0.9.0") as (_, client), client.consumer(group_id="g", group_instance_id="i") as consumer:
        consumer.subscribe("t")
        told = r"static members \(group_instance_id\) came with Kafka 2\.3 \(KIP-345\)"
        with anyio.fail_after(SOON), pytest.raises(UnsupportedVersion, match=told):
            await anext(consumer)


@pytest.mark.parametrize(("release", "version"), [("0.8.1", 0), ("0.8.2", 1), ("0.9.0", 2)])
async def test_commits_of_who_assigns_are_kept(release: str, version: int) -> None:
    async with running(release) as (broker, client):
        async with client.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
            consumer.assign([T0])
            assert (await anext(consumer)).value == b"0"
            await consumer.commit({T0: 2})
        async with client.consumer(group_id="g", auto_offset_reset="none") as consumer:
            consumer.assign([T0])
            assert (await anext(consumer)).value == b"2"
            assert set(await client.admin.list_consumer_group_offsets("g")) == {T0}
        assert {asked.version for asked in broker.requests.of(ApiKey.OFFSET_COMMIT)} == {version}


async def test_who_commits_on_0_8_0_or_asks_for_commits_is_told_to_keep_offsets_himself() -> None:
    told = r"0\.8\.0 stores no committed offsets \(.*0\.8\.1\): open the consumer without group_id.* of group 'g'"
    async with running("0.8.0") as (_, client):
        async with client.consumer(group_id="g") as consumer:
            consumer.assign([T0])
            with anyio.fail_after(SOON), pytest.raises(UnsupportedVersion, match=told):
                await consumer.commit({T0: 2})
            with anyio.fail_after(SOON), pytest.raises(UnsupportedVersion, match=told):
                await anext(consumer)
        for ask in (
            client.admin.list_consumer_group_offsets("g"),
            client.admin.alter_consumer_group_offsets("g", {T0: 1}),
        ):
            with pytest.raises(UnsupportedVersion, match=told):
                await ask
        async with client.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([T0])
            assert [(await anext(consumer)).value for _ in range(3)] == [b"0", b"1", b"2"]


async def test_a_commit_says_how_long_it_is_kept_where_the_broker_takes_that() -> None:
    async with running("0.9.0") as (broker, client), client.consumer(group_id="g") as consumer:
        consumer.assign([T0])
        await consumer.commit({T0: 2}, retention_ms=60_000)
        assert {asked.request.retention_time_ms for asked in broker.requests.of(ApiKey.OFFSET_COMMIT)} == {60_000}
    async with running("0.8.2") as (_, client), client.consumer(group_id="g") as consumer:
        consumer.assign([T0])
        with pytest.raises(UnsupportedVersion, match=r"needs OffsetCommit v2-4, which brokers have since 0\.9"):
            await consumer.commit({T0: 2}, retention_ms=60_000)


@pytest.mark.parametrize("release", ["0.10.1", "0.11.0", "2.6", "2.7", "3.9"])
async def test_topics_are_made_and_deleted_on_every_release_that_does_it(release: str) -> None:
    async with running(release) as (_, client):
        await client.admin.create_topics({"new": NewTopic(1, 1)})
        assert await client.admin.list_topics() == ("new", "t")
        await client.admin.delete_topics(["new"])
        assert await client.admin.list_topics() == ("t",)


async def test_older_ones_say_since_when_topics_can_be_made() -> None:
    async with running("0.9.0") as (_, client):
        told = r"since 0\.10\.1.*does not know the request CreateTopics .*which came with Kafka 0\.10\.1"
        with pytest.raises(UnsupportedVersion, match=told):
            await client.admin.create_topics({"new": NewTopic(1, 1)})
    async with running("2.3") as (_, client):
        with pytest.raises(UnsupportedVersion, match=r"defaults need 2\.4 \(KIP-464\): give a NewTopic"):
            await client.admin.create_topics({"new": 1})


async def test_a_group_on_0_9_shares_partitions_and_asks_for_no_longer_session_than_is_allowed() -> None:
    async with (
        running("0.9.0") as (broker, client),
        client.consumer(group_id="g", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe("t")
        with anyio.fail_after(SOON):
            assert (await anext(consumer)).value == b"0"
        (joined,) = {asked.request.session_timeout_ms for asked in broker.requests.of(ApiKey.JOIN_GROUP)}
        assert joined == 30_000
        assert set(consumer.assignment) == {T0, T1}


async def test_offsets_by_time_are_those_of_segments() -> None:
    async with running("0.9.0") as (_, client):
        specs = {"first": OffsetSpec.EARLIEST, "end": OffsetSpec.LATEST, "old": OffsetSpec.at(1)}
        found = {name: (await client.admin.list_offsets({T0: spec}))[T0] for name, spec in specs.items()}
        assert found["first"] == OffsetAndTimestamp(0, -1)
        assert found["end"] == OffsetAndTimestamp(3, -1)
        # No segment was written before 1970: the first record as late may be the first of all.
        assert found["old"] == OffsetAndTimestamp(0, -1)
        late = await client.admin.list_offsets({T0: OffsetSpec.at(2**53)})
        assert late[T0] == OffsetAndTimestamp(3, -1)
        with pytest.raises(UnsupportedVersion, match=r"since 3\.0 \(KIP-734\)"):
            await client.admin.list_offsets({T0: OffsetSpec.MAX_TIMESTAMP})


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1", "0.8.2", "0.9.0"])
async def test_who_reads_what_is_committed_is_refused_by_who_does_not_tell_its_versions(release: str) -> None:
    """A newer broker may pass for it, behind a network that cuts connections: and it would give what was aborted."""
    async with (
        running(release) as (_, client),
        client.consumer(auto_offset_reset="earliest", isolation_level="read_committed") as consumer,
    ):
        consumer.assign([T0])
        with anyio.fail_after(SOON), pytest.raises(UnsupportedVersion, match="Fetch"):
            await anext(consumer)


async def test_who_reads_what_is_committed_reads_everything_where_there_are_no_transactions() -> None:
    async with (
        running("0.10.2") as (_, client),
        client.consumer(auto_offset_reset="earliest", isolation_level="read_committed") as consumer,
    ):
        consumer.assign([T0])
        with anyio.fail_after(SOON):
            assert [(await anext(consumer)).value for _ in range(3)] == [b"0", b"1", b"2"]


def test_a_partition_that_lacks_a_replica_has_its_leader() -> None:
    partition = MetadataResponsePartition(
        error_code=ErrorCode.REPLICA_NOT_AVAILABLE,
        partition_index=0,
        leader_id=1,
        replica_nodes=[1, 2],
        isr_nodes=[1],
    )
    topic = MetadataResponseTopic(error_code=0, name="t", partitions=[partition])
    answer = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="b", port=9092)], topics=[topic])
    snapshot = merge(EMPTY, answer)
    leader = snapshot.leader(T0)
    assert snapshot.healthy
    assert leader is not None
    assert leader.node_id == 1


@pytest.mark.parametrize(("release", "sends"), [("2.3", False), ("2.4", True)])
async def test_leader_epochs_are_sent_to_brokers_that_keep_them_up_to_date(release: str, sends: bool) -> None:
    """Before 2.4 metadata has old epochs during a reassignment, with which the leader refuses every fetch."""
    async with running(release) as (broker, client), client.consumer() as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 0)
        with anyio.fail_after(SOON):
            assert (await anext(consumer)).value == b"0"
        await client.admin.list_offsets({T0: OffsetSpec.LATEST})
        asked = [*broker.requests.of(ApiKey.FETCH), *broker.requests.of(ApiKey.LIST_OFFSETS)]
        epochs = {
            named.current_leader_epoch for one in asked for topic in one.request.topics for named in topic.partitions
        }
        assert (epochs != {-1}) == sends
