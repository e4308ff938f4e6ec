"""A group's offsets on brokers of all times, with memberships, and with topics that are not what they were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.clusters import opened
from support.group_members import GroupMember
from support.raw_client import RawClient
from support.spoken import speaks
from support.virtual_time import virtual_time

from aiokafkawire import OffsetAndMetadata, TopicPartition, UnsupportedVersion, UsageError
from aiokafkawire.cluster.cluster import Cluster
from aiokafkawire.cluster.retry import Deadline
from aiokafkawire.errors import (
    BrokerError,
    ErrorCode,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    RebalanceInProgress,
    RequestTimeout,
    TopicAuthorizationFailed,
    UnknownMemberId,
)
from aiokafkawire.group.group_offsets import GroupOffsets
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker
from aiokafkawire.types import GroupMetadata

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
IN_ZOOKEEPER = {ApiKey.OFFSET_COMMIT: "0", ApiKey.OFFSET_FETCH: "0"}


@asynccontextmanager
async def running(
    release: str | None = None, spoken: dict[ApiKey, str] | None = None, **settings: Any
) -> AsyncIterator[tuple[Broker, Cluster, GroupOffsets]]:
    """A broker with two topics, a cluster that knows none of them yet, and the offsets of its group "g"."""
    async with Broker(port=None, max_versions=release, **settings) as broker:
        speaks(broker, spoken or {})
        broker.create_topic("a", partitions=2)
        broker.create_topic("b")
        # Brokers before 0.11 cannot be asked for topics without making them.
        async with opened(broker.connect, broker.bootstrap, allow_auto_create_topics=True) as cluster:
            yield broker, cluster, GroupOffsets(cluster, "g")


def soon(cluster: Cluster) -> Deadline:
    return cluster.deadline(5)


def versions(broker: Broker, api: ApiKey) -> set[int]:
    """In which versions something was asked."""
    return {asked.version for asked in broker.requests.of(api)}


@pytest.mark.parametrize(
    ("release", "commit", "fetch"),
    [
        ("0.10.0", 2, 1),
        ("0.10.2", 2, 2),
        ("0.11.0", 3, 3),
        ("2.0", 4, 4),
        ("2.1", 6, 5),
        ("2.3", 7, 5),
        ("2.4", 8, 6),
        ("2.5", 8, 7),
        ("3.0", 8, 8),
        ("3.9", 9, 9),
        ("4.0", 9, 9),
        ("4.3", 9, 9),  # v10 has ids, which are not known here
    ],
)
async def test_brokers_of_all_times_keep_offsets_and_give_them_back(release: str, commit: int, fetch: int) -> None:
    async with running(release) as (broker, cluster, offsets):
        noted = OffsetAndMetadata(3, "noted", 0)
        await offsets.commit({A0: noted, B0: 5}, soon(cluster))
        kept = noted if commit >= 6 else OffsetAndMetadata(3, "noted")
        found = await offsets.committed([A0, A1], soon(cluster))
        assert found == {A0: kept, A1: None}
        assert await offsets.look_up([A1, A0], soon(cluster)) == found
        assert versions(broker, ApiKey.OFFSET_COMMIT) == {commit}
        assert versions(broker, ApiKey.OFFSET_FETCH) == {fetch}
        for stable in (True, False):
            assert await offsets.all_committed(soon(cluster), stable=stable) == {A0: kept, B0: OffsetAndMetadata(5)}
        assert await GroupOffsets(cluster, "nobody").all_committed(soon(cluster)) == {}


async def test_version_1_of_a_commit_is_of_now() -> None:
    async with running("0.10.0", {ApiKey.OFFSET_COMMIT: "0-1"}) as (broker, cluster, offsets):
        await offsets.commit({A0: 3}, soon(cluster))
        (asked,) = broker.requests.of(ApiKey.OFFSET_COMMIT)
        assert (asked.version, asked.request.topics[0].partitions[0].commit_timestamp) == (1, -1)
        assert await offsets.committed([A0], soon(cluster)) == {A0: OffsetAndMetadata(3)}


# --- in ZooKeeper --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinators", [{}, {ApiKey.FIND_COORDINATOR: "none"}])
async def test_offsets_in_zookeeper_are_kept_and_read_by_any_broker(coordinators: dict[ApiKey, str]) -> None:
    async with running("0.10.0", IN_ZOOKEEPER | coordinators) as (broker, cluster, offsets):
        await offsets.commit({A0: OffsetAndMetadata(3, "noted", 2), B0: 5}, soon(cluster))
        assert versions(broker, ApiKey.OFFSET_COMMIT) == {0}
        assert await offsets.committed([A0, A1], soon(cluster)) == {A0: OffsetAndMetadata(3), A1: None}
        assert await offsets.look_up([A1], soon(cluster)) == {A1: None}
        assert await offsets.all_committed(soon(cluster)) == {A0: OffsetAndMetadata(3), B0: OffsetAndMetadata(5)}
        assert versions(broker, ApiKey.OFFSET_FETCH) == {0}


async def test_zookeeper_takes_no_members_no_retention_and_no_partitions_that_are_not_there() -> None:
    async with running("0.10.0", IN_ZOOKEEPER) as (broker, cluster, offsets):
        with pytest.raises(
            UnsupportedVersion, match=r"retention_ms needs OffsetCommit v2-4, which brokers have since 0.9"
        ):
            await offsets.commit({A0: 3}, soon(cluster), retention_ms=1)
        broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(TopicAuthorizationFailed, match="OffsetCommit of a-0"):
            await offsets.commit({A0: 3}, soon(cluster))
        broker.on(ApiKey.OFFSET_FETCH, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(TopicAuthorizationFailed, match="OffsetFetch of a-0"):
            await offsets.committed([A0], soon(cluster))
        group = GroupMetadata("g", 1, "m")
        with pytest.raises(UnsupportedVersion, match="speaks OffsetCommit 0, and this request needs one of 1-9"):
            await offsets.commit({A0: 3}, soon(cluster), group=group)
        assert len(broker.requests.of(ApiKey.OFFSET_COMMIT)) == 1


@pytest.mark.parametrize("none", ["none", "11-12"])
async def test_brokers_of_another_age_are_refused(none: str) -> None:
    spoken = {ApiKey.OFFSET_COMMIT: none, ApiKey.OFFSET_FETCH: none}
    async with running(None, spoken) as (_, cluster, offsets):
        with pytest.raises(UnsupportedVersion, match="OffsetCommit"):
            await offsets.commit({A0: 3}, soon(cluster))
        with pytest.raises(UnsupportedVersion, match="OffsetFetch"):
            await offsets.committed([A0], soon(cluster))
        with pytest.raises(UnsupportedVersion, match="OffsetFetch"):
            await offsets.all_committed(soon(cluster))


# --- how long offsets are kept -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "version"), [("0.10.0", 2), ("1.0", 3), ("2.0", 4), ("3.9", 4), ("4.3", 4)])
async def test_a_retention_is_told_where_the_broker_knows_it(release: str, version: int) -> None:
    now = [1_000_000]
    async with running(release, clock=lambda: now[0]) as (broker, cluster, offsets):
        await offsets.commit({A0: 3}, soon(cluster), retention_ms=60_000)
        (asked,) = broker.requests.of(ApiKey.OFFSET_COMMIT)
        assert (asked.version, asked.request.retention_time_ms) == (version, 60_000)
        await offsets.commit({A0: 4}, soon(cluster))
        asked = broker.requests.of(ApiKey.OFFSET_COMMIT)[-1]
        assert asked.request.retention_time_ms == -1


async def test_a_retention_that_nobody_understands_is_refused() -> None:
    async with running(None, {ApiKey.OFFSET_COMMIT: "5-10"}) as (broker, cluster, offsets):
        with pytest.raises(
            UnsupportedVersion, match=r"needs OffsetCommit v2-4, which brokers have since 0.9.*speaks OffsetCommit 5"
        ):
            await offsets.commit({A0: 3}, soon(cluster), retention_ms=60_000)
        group = GroupMetadata("g", 1, "m", "i")
        with pytest.raises(UsageError, match="a static member cannot set retention_ms"):
            await offsets.commit({A0: 3}, soon(cluster), group=group, retention_ms=60_000)
        assert not broker.requests.of(ApiKey.OFFSET_COMMIT)


# --- topics by id --------------------------------------------------------------------------------------------------


async def test_topics_go_by_id_where_all_ids_are_known() -> None:
    async with running() as (broker, cluster, offsets):
        await cluster.metadata.topic("a", soon(cluster))
        await offsets.commit({A0: 3}, soon(cluster))
        assert await offsets.committed([A0, A1], soon(cluster)) == {A0: OffsetAndMetadata(3), A1: None}
        assert versions(broker, ApiKey.OFFSET_COMMIT) == versions(broker, ApiKey.OFFSET_FETCH) == {10}
        broker.requests.clear()
        await offsets.commit({A0: 4, B0: 5}, soon(cluster))
        assert await offsets.committed([B0, A0], soon(cluster)) == {B0: OffsetAndMetadata(5), A0: OffsetAndMetadata(4)}
        assert await offsets.all_committed(soon(cluster)) == {A0: OffsetAndMetadata(4), B0: OffsetAndMetadata(5)}
        assert versions(broker, ApiKey.OFFSET_COMMIT) == versions(broker, ApiKey.OFFSET_FETCH) == {9}


async def test_offsets_of_topics_that_were_made_anew_are_fetched_by_new_ids_and_committed_by_name() -> None:
    async with running() as (broker, cluster, offsets):
        old = await cluster.metadata.topic("a", soon(cluster))
        broker.delete_topic("a")
        broker.create_topic("a", partitions=2)
        assert await offsets.committed([A0], soon(cluster)) == {A0: None}
        # By its name, the new topic may still have the offsets of the old one.
        assert [asked.version for asked in broker.requests.of(ApiKey.OFFSET_FETCH)] == [10, 10]
        assert cluster.metadata.snapshot.topics["a"].topic_id != old.topic_id
        broker.delete_topic("a")
        broker.create_topic("a", partitions=2)
        await offsets.commit({A0: 3}, soon(cluster))
        assert [asked.version for asked in broker.requests.of(ApiKey.OFFSET_COMMIT)] == [10, 9]
        assert await offsets.all_committed(soon(cluster)) == {A0: OffsetAndMetadata(3)}


async def test_what_was_read_from_a_topic_before_it_was_made_anew_is_not_committed_for_the_new_one() -> None:
    async with running() as (broker, cluster, offsets):
        for name in ("a", "b"):
            await cluster.metadata.topic(name, soon(cluster))
        await cluster.metadata.refresh(cluster.metadata.snapshot, soon(cluster))
        broker.delete_topic("a")
        broker.create_topic("a", partitions=2)
        newest = {A0: OffsetAndMetadata(4), B0: OffsetAndMetadata(6)}
        await offsets.commit({A0: 3, B0: 5}, soon(cluster), skip_deleted=True, newer=lambda: newest)
        assert await offsets.all_committed(soon(cluster)) == {B0: OffsetAndMetadata(6)}
        assert [asked.version for asked in broker.requests.of(ApiKey.OFFSET_COMMIT)] == [10, 10]
        broker.requests.clear()
        broker.delete_topic("b")
        broker.create_topic("b")
        await offsets.commit({B0: 7}, soon(cluster), skip_deleted=True)
        assert await offsets.all_committed(soon(cluster)) == {}
        assert [asked.version for asked in broker.requests.of(ApiKey.OFFSET_COMMIT)] == [10]


async def test_what_was_read_from_a_deleted_topic_is_not_committed_by_name() -> None:
    """The topic may be created again at that moment: the new one would begin at the offset of the old one."""
    async with running() as (broker, cluster, offsets):
        await cluster.metadata.topic("a", soon(cluster))
        broker.delete_topic("a")
        assert await offsets.commit({A0: 3}, soon(cluster), skip_deleted=True) == {A0}
        assert [asked.version for asked in broker.requests.of(ApiKey.OFFSET_COMMIT)] == [10]


async def test_what_was_read_from_a_topic_that_the_metadata_lacks_is_committed_by_its_id() -> None:
    async with running() as (broker, cluster, offsets):
        ids = {"a": (await cluster.metadata.topic("a", soon(cluster))).topic_id}
        hidden = broker.on(ApiKey.METADATA, answer=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, times=None)
        await cluster.metadata.refresh(cluster.metadata.snapshot, soon(cluster))
        assert await offsets.commit({A0: 3}, soon(cluster), skip_deleted=True, topic_ids=ids) == frozenset()
        broker.delete_topic("a")
        broker.create_topic("a", partitions=2)
        assert await offsets.commit({A0: 4}, soon(cluster), skip_deleted=True, topic_ids=ids) == {A0}
        assert versions(broker, ApiKey.OFFSET_COMMIT) == {10}
        hidden.remove()


async def test_offsets_of_a_topic_that_the_metadata_lacks_are_fetched_by_its_id() -> None:
    async with running() as (broker, cluster, offsets):
        await offsets.commit({A0: 3}, soon(cluster))
        ids = {"a": (await cluster.metadata.topic("a", soon(cluster))).topic_id}
        broker.on(ApiKey.METADATA, answer=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        await cluster.metadata.refresh(cluster.metadata.snapshot, soon(cluster))
        assert await offsets.look_up([A0], soon(cluster), ids) == {A0: OffsetAndMetadata(3)}
        assert await offsets.committed([A0], soon(cluster), topic_ids=ids) == {A0: OffsetAndMetadata(3)}
        assert versions(broker, ApiKey.OFFSET_FETCH) == {10}


@virtual_time
async def test_a_coordinator_that_lags_behind_is_asked_by_ids_until_it_knows_them() -> None:
    """By its name, it would take a new topic for the old one."""
    async with running() as (broker, cluster, offsets):
        await cluster.metadata.topic("a", soon(cluster))
        for api in (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH):
            broker.on(api, answer=ErrorCode.UNKNOWN_TOPIC_ID, times=3)
        assert await offsets.commit({A0: 3}, soon(cluster), skip_deleted=True) == frozenset()
        assert await offsets.committed([A0], soon(cluster)) == {A0: OffsetAndMetadata(3)}
        for api in (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH):
            assert [asked.version for asked in broker.requests.of(api)] == [10] * 4
            broker.on(api, answer=ErrorCode.UNKNOWN_TOPIC_ID, times=None)
        with pytest.raises(RequestTimeout, match=r"OffsetCommit of a-0 .* does not know its topic id"):
            await offsets.commit({A0: 4}, soon(cluster), skip_deleted=True)
        with pytest.raises(RequestTimeout, match=r"OffsetFetch of a-0 .* does not know its topic id"):
            await offsets.committed([A0], soon(cluster))


async def test_what_only_metadata_calls_deleted_is_committed_or_fails() -> None:
    async with running() as (broker, cluster, offsets):
        await cluster.metadata.topic("a", soon(cluster))
        broker.on(ApiKey.METADATA, answer=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, times=None)
        await cluster.metadata.refresh(cluster.metadata.snapshot, soon(cluster))
        assert offsets._is_deleted(A0)
        refused = broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await offsets.commit({A0: 3}, soon(cluster), skip_deleted=True)
        assert refused.is_met
        assert await offsets.all_committed(soon(cluster)) == {A0: OffsetAndMetadata(3)}
        broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.ILLEGAL_GENERATION)
        with pytest.raises(IllegalGeneration):
            await offsets.commit({A0: 4}, soon(cluster), skip_deleted=True)


# --- members -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def joined(broker: Broker, instance: str | None = None) -> AsyncIterator[GroupMember]:
    async with RawClient(await broker.connect("memory-1", 9092)) as client:
        member = GroupMember(client, "g", instance=instance)
        await member.settle()
        yield member


@pytest.mark.parametrize("instance", [None, "i"])
async def test_a_member_commits_as_such(instance: str | None) -> None:
    async with running() as (broker, cluster, offsets), joined(broker, instance) as member:
        with pytest.raises(UnknownMemberId):
            await offsets.commit({A0: 3}, soon(cluster))
        group = GroupMetadata("g", member.generation, member.member_id, instance)
        await offsets.commit({A0: 4}, soon(cluster), group=group)
        assert await offsets.committed([A0], soon(cluster)) == {A0: OffsetAndMetadata(4)}
        group = GroupMetadata("g", member.generation + 1, member.member_id, instance)
        with pytest.raises(IllegalGeneration):
            await offsets.commit({A0: 5}, soon(cluster), group=group)
        group = GroupMetadata("g", member.generation, "other", instance)
        with pytest.raises(FencedInstanceId if instance else UnknownMemberId):
            await offsets.commit({A0: 5}, soon(cluster), group=group)


@pytest.mark.parametrize("release", ["1.0", "2.2"])
async def test_static_members_commit_where_brokers_know_them(release: str) -> None:
    async with running(release) as (broker, cluster, offsets):
        group = GroupMetadata("g", 1, "m", "i")
        with pytest.raises(
            UnsupportedVersion,
            match=r"static members \(group_instance_id\) need OffsetCommit v7\+, which brokers have since 2.3",
        ):
            await offsets.commit({A0: 3}, soon(cluster), group=group)
        assert not broker.requests.of(ApiKey.OFFSET_COMMIT)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ErrorCode.ILLEGAL_GENERATION, IllegalGeneration),
        (ErrorCode.UNKNOWN_MEMBER_ID, UnknownMemberId),
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstanceId),
        (ErrorCode.REBALANCE_IN_PROGRESS, RebalanceInProgress),
    ],
)
async def test_who_is_not_entitled_hears_it_at_once(error: ErrorCode, raised: type[BrokerError]) -> None:
    async with running() as (broker, cluster, offsets):
        broker.on(ApiKey.OFFSET_COMMIT, answer=error, times=None)
        with pytest.raises(raised, match="OffsetCommit of a-0 for group 'g'"):
            await offsets.commit({A0: 3, B0: 4}, soon(cluster))
        assert len(broker.requests.of(ApiKey.OFFSET_COMMIT)) == 1


async def test_each_attempt_of_a_commit_is_of_the_same_membership() -> None:
    async with running() as (broker, cluster, offsets):
        broker.on(ApiKey.OFFSET_COMMIT, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        with pytest.raises(GroupIdNotFound):
            await offsets.commit({A0: 3}, soon(cluster), group=GroupMetadata("g", 3, "m"))
    assert [one.request.generation_id_or_member_epoch for one in broker.requests.of(ApiKey.OFFSET_COMMIT)] == [3, 3]
