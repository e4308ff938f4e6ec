"""Share groups of clusters of several brokers, of brokers without share groups, and of coordinators that move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.admin_errors import failing
from support.clusters import QUICK

from aiokafkawire import Client, SharePartitionOffsetInfo, TopicPartition, UnsupportedVersion, WireError
from aiokafkawire.admin.admin import Admin
from aiokafkawire.errors import (
    AdminError,
    ErrorCode,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    RequestTimeout,
    TopicAuthorizationFailed,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.share_group import (
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeResponse,
)
from aiokafkawire.testing.broker import Broker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_fails_unheard")]

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
GROUPS = [f"g{number}" for number in range(9)]


@asynccontextmanager
async def running(release: str | None = None, nodes: int = 1, **options: Any) -> AsyncIterator[tuple[Broker, Admin]]:
    """A topic of two partitions, and the admin of a client."""
    async with Broker(nodes, port=None, max_versions=release) as broker:
        broker.create_topic("a", partitions=2)
        async with Client(broker.bootstrap, connector=broker.connect, **{**QUICK, **options}) as kafka:
            yield broker, kafka.admin


async def fill(admin: Admin, *groups: str) -> None:
    """Have each group begin at its number in the list."""
    for number, group in enumerate(groups):
        await admin.alter_share_group_offsets(group, {A0: number})


def calls(admin: Admin) -> list[Callable[[], Awaitable[object]]]:
    return [
        lambda: admin.describe_share_groups("g"),
        lambda: admin.describe_share_groups("g", "h"),
        lambda: admin.delete_share_groups("g"),
        lambda: admin.list_share_group_offsets("g"),
        lambda: admin.list_offsets_of_share_groups("g", "h"),
        lambda: admin.alter_share_group_offsets("g", {A0: 1}),
        lambda: admin.delete_share_group_offsets("g", "a"),
    ]


# --- brokers without share groups ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("release", ["0.9.0", "2.8", "3.9", "4.0", "4.1"])
async def test_brokers_without_share_groups(release: str) -> None:
    async with running(release) as (_, admin):
        for call in calls(admin):
            with pytest.raises(UnsupportedVersion, match=r"^share groups need brokers since 4.2, or 4.1 with"):
                await call()


async def test_the_lag_is_not_known_before_4_2() -> None:
    async with running() as (broker, admin):
        await fill(admin, "g")
        assert await admin.list_share_group_offsets("g") == {A0: SharePartitionOffsetInfo(0, 0, 0)}

        def without_lag(request: Any, true: Any) -> Any:
            true.groups[0].topics[0].partitions[0].lag = -1
            true.groups[0].topics[0].partitions[0].leader_epoch = -1
            return true

        broker.on(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, answer=without_lag)
        assert await admin.list_share_group_offsets("g") == {A0: SharePartitionOffsetInfo(0, None, None)}


# --- several brokers -----------------------------------------------------------------------------------------------


async def test_each_coordinator_is_asked_once() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        found = await admin.describe_share_groups(GROUPS)
        assert list(found) == GROUPS
        asked = broker.requests.of(ApiKey.SHARE_GROUP_DESCRIBE)
        assert sorted(group for one in asked for group in one.request.group_ids) == GROUPS
        assert len(asked) == len({one.node for one in asked}) == 3
        assert all(one.coordinator.host == f"memory-{broker.coordinator(group)}" for group, one in found.items())


async def test_each_coordinator_is_asked_once_for_the_offsets_of_its_groups() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        found = await admin.list_offsets_of_share_groups([*GROUPS, "missing"])
        assert {group: {at: one.start_offset for at, one in offsets.items()} for group, offsets in found.items()} == {
            **{group: {A0: number} for number, group in enumerate(GROUPS)},
            "missing": {},
        }
        asked = broker.requests.of(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
        assert len(asked) == len({one.node for one in asked}) == 3
        assert await admin.list_offsets_of_share_groups() == {}


async def test_an_error_of_one_of_several_groups_keeps_the_offsets_of_the_others() -> None:
    async with running() as (broker, admin):
        await fill(admin, "g", "h")

        def denied(request: Any, true: Any) -> Any:
            for group in true.groups:
                if group.group_id == "h":
                    group.error_code, group.topics = ErrorCode.GROUP_AUTHORIZATION_FAILED, []
            return true

        broker.on(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, answer=denied, times=None)
        with pytest.raises(AdminError, match="listing offsets of share groups failed for 1 of 2") as failed:
            await admin.list_offsets_of_share_groups("g", "h")
        assert list(failed.value.results) == ["g"]
        assert {group: type(error) for group, error in failed.value.errors.items()} == {"h": GroupAuthorizationFailed}


async def test_groups_that_move_are_described_changed_and_deleted_by_their_new_coordinators() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        await admin.describe_share_groups(GROUPS)
        for step in range(3):
            for group in GROUPS[::2]:
                broker.move_coordinator(group, broker.coordinator(group) % 3 + 1)
            if step == 0:
                found = await admin.describe_share_groups(GROUPS)
                assert [one.coordinator.host for one in found.values()] == [
                    f"memory-{broker.coordinator(group)}" for group in GROUPS
                ]
            elif step == 1:
                for number, group in enumerate(GROUPS):
                    await admin.alter_share_group_offsets(group, {A1: number})
                    offsets = await admin.list_share_group_offsets(group)
                    assert {where: one.start_offset for where, one in offsets.items()} == {A0: number, A1: number}
            else:
                await admin.delete_share_groups(GROUPS)
        assert await admin.list_groups() == []


async def test_a_coordinator_that_loads_its_groups_is_waited_for() -> None:
    async with running() as (broker, admin):
        await fill(admin, "g")
        calls: dict[ApiKey, Any] = {
            ApiKey.SHARE_GROUP_DESCRIBE: admin.describe_share_groups,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: admin.list_share_group_offsets,
        }
        for api, call in calls.items():
            order = broker.on(api, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=2)
            assert await call("g")
            assert order.is_met
            broker.on(api, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
            with pytest.raises(RequestTimeout, match="of group 'g': COORDINATOR_LOAD_IN_PROGRESS"):
                await call("g", timeout=0.5)


# --- what coordinators refuse, and wrong answers -------------------------------------------------------------------


async def test_what_a_coordinator_refuses_is_told() -> None:
    async with running() as (broker, admin):
        await fill(admin, "g", "h")
        for api, call in (
            (ApiKey.SHARE_GROUP_DESCRIBE, lambda: admin.describe_share_groups("g")),
            (ApiKey.SHARE_GROUP_DESCRIBE, lambda: admin.delete_share_groups("g")),
            (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, lambda: admin.list_share_group_offsets("g")),
            (ApiKey.ALTER_SHARE_GROUP_OFFSETS, lambda: admin.alter_share_group_offsets("g", {A0: 1})),
            (ApiKey.DELETE_SHARE_GROUP_OFFSETS, lambda: admin.delete_share_group_offsets("g", "a")),
        ):
            broker.on(api, answer=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            with pytest.raises(GroupAuthorizationFailed, match="of group 'g': "):
                await call()
        assert list(await admin.describe_share_groups("g", "h")) == ["g", "h"]


async def test_what_a_coordinator_refuses_for_one_topic_is_told() -> None:
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def of_a_partition(request: Any, true: Any) -> Any:
        true.responses[0].partitions[1].error_code = denied
        return true

    def of_a_topic(request: Any, true: Any) -> Any:
        true.responses[0].error_code = denied
        return true

    def of_offsets(request: Any, true: Any) -> Any:
        true.groups[0].topics[0].partitions[0].error_code = denied
        return true

    async with running() as (broker, admin):
        broker.on(ApiKey.ALTER_SHARE_GROUP_OFFSETS, answer=of_a_partition)
        told = r"share group 'g' failed for 1 of 2: AlterShareGroupOffsets of group 'g' for a-1: TOPIC_AUTH"
        with failing(told) as failed:
            await admin.alter_share_group_offsets("g", {A0: 1, A1: 2})
        assert failed.value.results == {A0: 1}
        assert {at: type(error) for at, error in failed.value.errors.items()} == {A1: TopicAuthorizationFailed}
        broker.on(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, answer=of_offsets)
        with pytest.raises(TopicAuthorizationFailed, match="DescribeShareGroupOffsets of a-0 for group 'g': TOPIC_AU"):
            await admin.list_share_group_offsets("g")
        broker.on(ApiKey.DELETE_SHARE_GROUP_OFFSETS, answer=of_a_topic)
        with pytest.raises(TopicAuthorizationFailed, match="DeleteShareGroupOffsets of group 'g' for topic 'a': TOPIC"):
            await admin.delete_share_group_offsets("g", "a")


async def test_a_group_without_offsets_exists_even_if_its_topics_are_hidden() -> None:
    async with running() as (broker, admin):
        broker.on(ApiKey.SHARE_GROUP_DESCRIBE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert await admin.list_share_group_offsets("g") == {}
        with pytest.raises(GroupIdNotFound):
            await admin.list_share_group_offsets("g")


async def test_answers_that_lack_what_was_asked() -> None:
    async with running() as (broker, admin):
        await fill(admin, "g")
        broker.on(ApiKey.SHARE_GROUP_DESCRIBE, answer=ShareGroupDescribeResponse(groups=[]))
        with pytest.raises(WireError, match="the ShareGroupDescribe response lacks the requested group 'g'"):
            await admin.describe_share_groups("g")
        broker.on(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, answer=DescribeShareGroupOffsetsResponse(groups=[]))
        with pytest.raises(WireError, match="the DescribeShareGroupOffsets response lacks the requested group 'g'"):
            await admin.list_share_group_offsets("g")
        nothing = AlterShareGroupOffsetsResponse(error_code=0, responses=[])
        broker.on(ApiKey.ALTER_SHARE_GROUP_OFFSETS, answer=nothing)
        with pytest.raises(WireError, match=r"AlterShareGroupOffsets of group 'g' lacks the requested a-0"):
            await admin.alter_share_group_offsets("g", {A0: 1})
        broker.on(ApiKey.DELETE_SHARE_GROUP_OFFSETS, answer=DeleteShareGroupOffsetsResponse(error_code=0, responses=[]))
        with pytest.raises(WireError, match=r"DeleteShareGroupOffsets of group 'g' lacks the requested topic"):
            await admin.delete_share_group_offsets("g", "a")


# --- some of several -----------------------------------------------------------------------------------------------


async def test_groups_are_described_and_deleted_although_others_are_refused() -> None:
    async with running(nodes=3) as (_, admin):
        await fill(admin, *GROUPS)
        await admin.alter_consumer_group_offsets("classic", {A0: 1})
        with failing(r"describing share groups failed for 1 of 10: .*classic") as failed:
            await admin.describe_share_groups([*GROUPS, "classic"])
        assert list(failed.value.results) == GROUPS
        with failing("deleting share groups failed for 1 of 10") as failed:
            await admin.delete_share_groups([*GROUPS, "classic"])
        assert failed.value.results == dict.fromkeys(GROUPS)
        assert {group: type(error) for group, error in failed.value.errors.items()} == {"classic": GroupIdNotFound}
        assert [group.group_id for group in await admin.list_groups()] == ["classic"]


async def test_offsets_of_topics_are_deleted_although_another_topic_is_refused() -> None:
    async with running() as (_, admin):
        await fill(admin, "g")
        with failing("deleting offsets of share group 'g' failed for 1 of 2") as failed:
            await admin.delete_share_group_offsets("g", ["missing", "a"])
        assert failed.value.results == {"a": None}
        assert list(failed.value.errors) == ["missing"]
        assert await admin.list_share_group_offsets("g") == {}
