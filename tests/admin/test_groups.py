"""Groups of clusters of several brokers, of brokers of all times, and of brokers that fail meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest
from support.admin_errors import failing
from support.clusters import QUICK
from support.consumer_members import ConsumerMember
from support.group_members import GroupMember
from support.raw_client import RawClient

from aiokafkawire import (
    Client,
    ConnectionLost,
    OffsetAndMetadata,
    OffsetSpec,
    RequestTimeout,
    TopicPartition,
    UnsupportedVersion,
    WireError,
)
from aiokafkawire.admin.admin import Admin
from aiokafkawire.errors import (
    AdminError,
    ErrorCode,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    NonEmptyGroup,
    TopicAuthorizationFailed,
    UnknownMemberId,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.consumer_group import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    DescribedGroup,
    Member,
)
from aiokafkawire.protocol.messages.group_admin import DescribeGroupsResponse, ListGroupsResponse
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


@asynccontextmanager
async def member_of(broker: Broker, group: str, version: int = 9) -> AsyncIterator[GroupMember]:
    async with RawClient(await broker.connect(f"memory-{broker.coordinator(group)}", 9092)) as client:
        member = GroupMember(client, group)
        await member.enter(version)
        assert (await member.sync({member.member_id: b"mine"}, 0 if version < 9 else 5)).error_code == 0
        yield member


@asynccontextmanager
async def consumer_of(broker: Broker, group: str) -> AsyncIterator[ConsumerMember]:
    async with RawClient(await broker.connect(f"memory-{broker.coordinator(group)}", 9092)) as client:
        member = ConsumerMember(client, group, ["a"])
        assert (await member.join()).error_code == 0
        yield member


async def fill(admin: Admin, *groups: str) -> None:
    """Have each group commit its number in the list."""
    for number, group in enumerate(groups):
        await admin.alter_consumer_group_offsets(group, {A0: number})


# --- listing -------------------------------------------------------------------------------------------------------


async def test_every_broker_is_asked_for_its_groups() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        found = await admin.list_groups()
        assert [one.group_id for one in found] == GROUPS
        assert len({one.coordinator for one in found}) == 3
        for one in found:
            assert broker.addresses[one.coordinator] == broker.coordinator(one.group_id)


async def test_a_broker_that_is_down_is_not_asked_and_its_groups_are_others() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        await broker.stop_node(3)
        assert [one.group_id for one in await admin.list_groups()] == GROUPS


async def test_a_broker_that_leaves_meanwhile_is_named_beside_the_groups_of_the_others() -> None:
    async with (
        running(nodes=3) as (broker, admin),
        broker.hold(ApiKey.LIST_GROUPS, node=3) as held,
        anyio.create_task_group() as tasks,
    ):
        await fill(admin, *GROUPS)
        left = sorted(group for group in GROUPS if broker.coordinator(group) != 3)
        tasks.start_soon(lists_in_vain, admin, left)
        await held.arrived()
        await broker.stop_node(3)


async def lists_in_vain(admin: Admin, left: list[str]) -> None:
    told = "broker 3 at memory-3:9092 has left the cluster: other brokers take over its groups shortly, list the groups"
    with pytest.raises(AdminError, match="listing groups failed for 1 of 3") as caught:
        await admin.list_groups()
    (error,) = caught.value.errors.values()
    assert isinstance(error, ConnectionLost)
    assert told in str(error)
    assert (list(caught.value.errors), sorted(caught.value.results)) == ([3], [1, 2])
    assert sorted(group.group_id for groups in caught.value.results.values() for group in groups) == left


async def test_a_broker_that_does_not_know_its_groups_yet_is_waited_for() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        order = broker.on(ApiKey.LIST_GROUPS, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, node=2, times=2)
        assert [one.group_id for one in await admin.list_groups()] == GROUPS
        assert order.is_met
        broker.on(ApiKey.LIST_GROUPS, answer=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, node=2, times=None)
        with pytest.raises(AdminError, match="listing groups failed for 1 of 3") as caught:
            await admin.list_groups(timeout=0.1)
        assert isinstance(caught.value.errors[2], RequestTimeout)
        assert "ListGroups of the broker at memory-2:9092: COORDINATOR_LOAD" in str(caught.value)


@pytest.mark.parametrize(
    ("release", "state", "kind"),
    [("0.11.0", None, None), ("2.4", None, None), ("2.6", "Empty", None), ("3.8", "Empty", "classic")],
)
async def test_old_brokers_list_what_they_know(release: str, state: str | None, kind: str | None) -> None:
    async with running(release) as (_, admin):
        await fill(admin, "g")
        (found,) = await admin.list_groups()
        assert (found.group_id, found.protocol_type, found.state, found.type) == ("g", "", state, kind)


async def test_old_brokers_choose_as_far_as_they_can() -> None:
    told = r"listing groups by state needs brokers since 2.6 \(KIP-518\), by type since 3.8 \(KIP-848\)"
    async with running("2.4") as (_, admin):
        await fill(admin, "g")
        with pytest.raises(UnsupportedVersion, match=told):
            await admin.list_groups(states=["Empty"])
        assert len(await admin.list_groups(types=["consumer", "Classic"])) == 1  # they have no others
        with pytest.raises(UnsupportedVersion, match=told):
            await admin.list_groups(types=["consumer"])
    async with running("3.0") as (_, admin):
        await fill(admin, "g")
        assert len(await admin.list_groups(states=["empty"], types=["classic"])) == 1
        assert await admin.list_groups(states=["Stable"]) == []


async def test_what_a_broker_refuses_to_list_is_told() -> None:
    async with running() as (broker, admin):
        answer = ListGroupsResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, groups=[])
        broker.on(ApiKey.LIST_GROUPS, answer=answer)
        with pytest.raises(GroupAuthorizationFailed, match="ListGroups of the broker at memory-1:9092"):
            await admin.list_groups()


# --- describing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["0.11.0", "2.3", "2.4", "3.9"])
async def test_a_group_that_is_not_there_is_dead_on_brokers_before_4_0(release: str) -> None:
    async with running(release) as (broker, admin):
        (found,) = (await admin.describe_groups("g")).values()
        assert (found.state, found.members, found.offsets) == ("Dead", (), {})
        async with member_of(broker, "h", 2) as member:
            (described,) = (await admin.describe_groups("h"))["h"].members
            assert (described.member_id, described.group_instance_id) == (member.member_id, None)


async def test_operations_are_told_since_2_3() -> None:
    async with running("2.0") as (_, admin):
        with pytest.raises(UnsupportedVersion, match="DescribeGroups"):
            await admin.describe_groups("g", include_authorized_operations=True)
    async with running("2.3") as (_, admin):
        await fill(admin, "g")
        (found,) = (await admin.describe_groups("g", include_authorized_operations=True)).values()
        assert found.authorized_operations is not None
        assert "DELETE" in found.authorized_operations


async def test_an_answer_about_another_group_is_none() -> None:
    async with running() as (broker, admin):
        broker.on(ApiKey.DESCRIBE_GROUPS, answer=DescribeGroupsResponse(groups=[]))
        with pytest.raises(WireError, match="the DescribeGroups response lacks the requested group 'g'"):
            await admin.describe_groups("g")


async def test_each_coordinator_is_asked_once_for_groups_of_either_type() -> None:
    async with running(nodes=3) as (broker, admin), AsyncExitStack() as stack:
        await fill(admin, *GROUPS)
        consumers = GROUPS[:4]
        for group in consumers:
            await stack.enter_async_context(consumer_of(broker, group))
        found = await admin.describe_groups(GROUPS)
        assert [(group, one.type) for group, one in found.items()] == [
            (group, "consumer" if group in consumers else "classic") for group in GROUPS
        ]
        asked = {key: broker.requests.of(key) for key in (ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.DESCRIBE_GROUPS)}
        assert (
            sorted(group for one in asked[ApiKey.CONSUMER_GROUP_DESCRIBE] for group in one.request.group_ids) == GROUPS
        )
        assert sorted(group for one in asked[ApiKey.DESCRIBE_GROUPS] for group in one.request.groups) == GROUPS[4:]
        for requests in asked.values():
            assert len(requests) == len({one.node for one in requests})
        assert all(one.coordinator.host == f"memory-{broker.coordinator(group)}" for group, one in found.items())


async def test_a_group_that_has_moved_is_described_by_its_new_coordinator() -> None:
    async with running(nodes=3) as (broker, admin), AsyncExitStack() as stack:
        await fill(admin, *GROUPS)
        near = [group for group in GROUPS if broker.coordinator(group) == broker.coordinator(GROUPS[0])]
        assert len(near) > 1
        for group in (near[-1], next(group for group in GROUPS if group not in near)):
            await stack.enter_async_context(consumer_of(broker, group))
            await admin.describe_groups(GROUPS)
            moved = broker.coordinator(group) % 3 + 1
            broker.move_coordinator(group, moved)
            found = await admin.describe_groups(GROUPS)
            assert list(found) == GROUPS
            assert (found[group].type, found[group].coordinator.host) == ("consumer", f"memory-{moved}")


@pytest.mark.parametrize("release", ["2.8", "3.6", "3.9"])
async def test_brokers_without_consumer_groups_describe_classic_ones(release: str) -> None:
    async with running(release) as (_, admin):
        await fill(admin, *GROUPS[:3])
        found = await admin.describe_consumer_groups(GROUPS[:3])
        assert [(one.type, one.state) for one in found.values()] == [("classic", "Empty")] * 3
        assert await admin.describe_consumer_groups("g0") == {"g0": found["g0"]}


def described(group_id: str, error: ErrorCode = ErrorCode.NONE, **fields: Any) -> DescribedGroup:
    given: dict[str, Any] = {
        "group_state": "Stable",
        "group_epoch": 2,
        "assignment_epoch": 2,
        "assignor_name": "uniform",
        "members": [],
    }
    return DescribedGroup(error_code=error, group_id=group_id, **(given | fields))


async def test_what_a_coordinator_refuses_to_describe_is_told() -> None:
    async with running() as (broker, admin):
        refused = described("g", ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message="not yours")
        broker.on(ApiKey.CONSUMER_GROUP_DESCRIBE, answer=ConsumerGroupDescribeResponse(groups=[refused]), times=2)
        told = "ConsumerGroupDescribe of group 'g': not yours"
        with pytest.raises(GroupAuthorizationFailed, match=told):
            await admin.describe_groups("g")
        with pytest.raises(GroupAuthorizationFailed, match=told):
            await admin.remove_members("g")
        broker.on(ApiKey.CONSUMER_GROUP_DESCRIBE, answer=ConsumerGroupDescribeResponse(groups=[]))
        with pytest.raises(WireError, match="the ConsumerGroupDescribe response lacks the requested group 'g'"):
            await admin.describe_groups("g")


async def test_a_group_that_is_described_and_missing_at_once_is_there() -> None:
    async with running() as (broker, admin):
        missing = ErrorCode.GROUP_ID_NOT_FOUND
        answer = [described("g"), described("h", missing), described("g", missing), described("h")]
        broker.on(ApiKey.CONSUMER_GROUP_DESCRIBE, answer=ConsumerGroupDescribeResponse(groups=answer))
        found = await admin.describe_groups("g", "h")
        assert [(one.type, one.state) for one in found.values()] == [("consumer", "Stable")] * 2


# --- removing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["0.11.0", "2.3"])
async def test_members_leave_one_by_one_on_brokers_before_2_4(release: str) -> None:
    async with running(release) as (broker, admin), member_of(broker, "g", 2) as member:
        with pytest.raises(UnsupportedVersion, match=r"removing static members needs brokers since 2.4 \(KIP-345\)"):
            await admin.remove_members("g", ["static"])
        members = (await admin.describe_groups("g"))["g"].members
        await admin.remove_members("g", reason="the broker has no place for it")
        assert await member.heartbeat(0) == "UNKNOWN_MEMBER_ID"
        await admin.remove_members("g")
        with pytest.raises(UnknownMemberId, match="LeaveGroup of group 'g'"):
            await admin.remove_members("g", members)


async def test_members_of_early_consumer_groups_cannot_be_removed() -> None:
    nothing = ConsumerGroupDescribeResponseAssignment(topic_partitions=[])
    member = Member(
        member_id="m",
        member_epoch=2,
        client_id="",
        client_host="",
        subscribed_topic_names=["a"],
        assignment=nothing,
        target_assignment=nothing,
    )
    async with running() as (broker, admin):
        answer = ConsumerGroupDescribeResponse(groups=[described("g", members=[member])])
        broker.on(ApiKey.CONSUMER_GROUP_DESCRIBE, answer=answer, times=2)
        (found,) = (await admin.describe_groups("g"))["g"].members
        assert found.type is None
        told = r"removing members of consumer group 'g' needs brokers since 4.0 \(KIP-1099\); close these consumers"
        for members in ([found], None):
            with pytest.raises(UnsupportedVersion, match=told):
                await admin.remove_members("g", members)
        assert broker.requests.of(ApiKey.LEAVE_GROUP) == []


@pytest.mark.parametrize(("release", "join", "leave"), [(None, 9, 5), ("2.3", 2, 2)])
async def test_who_has_left_already_is_not_missed(release: str | None, join: int, leave: int) -> None:
    async with running(release, client_id="admin") as (broker, admin), member_of(broker, "g", join) as member:
        members = (await admin.describe_groups("g"))["g"].members
        async with (
            anyio.create_task_group() as tasks,
            broker.hold(ApiKey.LEAVE_GROUP, client_id="admin") as held,
        ):
            tasks.start_soon(admin.remove_members, "g")
            await held.arrived()
            assert (await member.leave(leave)).error_code == 0
        with pytest.raises(UnknownMemberId, match=r"LeaveGroup of .*group 'g'"):
            await admin.remove_members("g", members)


async def test_groups_are_deleted_at_their_coordinators_wherever_they_move() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        broker.move_coordinator(GROUPS[0], broker.coordinator(GROUPS[0]) % 3 + 1)
        await admin.delete_groups(*GROUPS)
        assert await admin.list_groups() == []
        with pytest.raises(GroupIdNotFound):
            await admin.delete_groups(GROUPS[0])


async def test_old_brokers_delete_neither_groups_nor_offsets() -> None:
    async with running("1.0") as (_, admin):
        with pytest.raises(UnsupportedVersion, match="does not know the request DeleteGroups"):
            await admin.delete_groups("g")
    async with running("2.3") as (_, admin):
        with pytest.raises(UnsupportedVersion, match="does not know the request OffsetDelete"):
            await admin.delete_consumer_group_offsets("g", [A0])


# --- offsets of several groups -------------------------------------------------------------------------------------


def fetches(broker: Broker) -> list[tuple[int, int]]:
    """In which version, and of how many groups, each was."""
    return [(one.version, len(one.request.groups)) for one in broker.requests.of(ApiKey.OFFSET_FETCH)]


async def test_each_coordinator_is_asked_once_for_all_its_groups() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        found = await admin.list_offsets_of_groups(*GROUPS)
        assert found == {group: {A0: OffsetAndMetadata(number)} for number, group in enumerate(GROUPS)}
        by_node = [sum(broker.coordinator(group) == node for group in GROUPS) for node in (1, 2, 3)]
        assert sorted(fetches(broker)) == sorted((9, count) for count in by_node)


@pytest.mark.parametrize("release", ["0.11.0", "2.8"])
async def test_brokers_before_3_0_are_asked_for_each_group(release: str) -> None:
    async with running(release, nodes=3) as (broker, admin):
        await fill(admin, *GROUPS[:3])
        found = await admin.list_offsets_of_groups(*GROUPS[:3])
        assert found == {group: {A0: OffsetAndMetadata(number)} for number, group in enumerate(GROUPS[:3])}
        assert [count for _, count in fetches(broker)] == [0, 0, 0]


async def test_a_group_that_has_moved_is_asked_for_in_its_own_right() -> None:
    async with running(nodes=3) as (broker, admin):
        first, *others = GROUPS
        near = [group for group in others if broker.coordinator(group) == broker.coordinator(first)]
        assert near
        await fill(admin, *GROUPS)
        moved = near[0]
        broker.move_coordinator(moved, broker.coordinator(moved) % 3 + 1)
        found = await admin.list_offsets_of_groups(*GROUPS)
        assert found == {group: {A0: OffsetAndMetadata(number)} for number, group in enumerate(GROUPS)}


async def test_an_error_of_one_of_several_groups_is_told() -> None:
    async with running() as (broker, admin):
        await fill(admin, "g", "h")

        def denied(request: Any, true: Any) -> Any:
            for group in true.groups:
                if group.group_id == "h":
                    group.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            return true

        broker.on(ApiKey.OFFSET_FETCH, answer=denied, times=None)
        with failing(r"listing offsets of groups failed for 1 of 2: .*OffsetFetch of group 'h'") as failed:
            await admin.list_offsets_of_groups("g", "h")
        assert failed.value.results == {"g": {A0: OffsetAndMetadata(0)}}
        assert {group: type(error) for group, error in failed.value.errors.items()} == {"h": GroupAuthorizationFailed}
        with pytest.raises(GroupAuthorizationFailed):
            await admin.list_offsets_of_groups("h")


async def test_the_lag_of_an_old_cluster() -> None:
    async with running("0.11.0", nodes=3) as (_, admin):
        await admin.alter_consumer_group_offsets("g", {A0: 0, A1: 0})
        assert await admin.consumer_group_lag("g") == {A0: 0, A1: 0}


# --- some of several -----------------------------------------------------------------------------------------------


async def test_groups_are_described_although_another_one_is_refused() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)

        def denied(request: Any, true: Any) -> Any:
            for group in true.groups:
                if group.group_id == "g4":
                    group.error_code, group.error_message = ErrorCode.GROUP_AUTHORIZATION_FAILED, "not yours"
            return true

        broker.on(ApiKey.DESCRIBE_GROUPS, answer=denied, times=None)
        with failing(r"describing groups failed for 1 of 9: .*of group 'g4': not yours") as failed:
            await admin.describe_groups(GROUPS)
        assert list(failed.value.results) == [group for group in GROUPS if group != "g4"]
        assert {group: type(error) for group, error in failed.value.errors.items()} == {"g4": GroupAuthorizationFailed}


@pytest.mark.slow
async def test_a_coordinator_that_is_silent_does_not_keep_the_groups_of_others() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        await admin.describe_groups(GROUPS)
        silent = [group for group in GROUPS if broker.coordinator(group) == 2]
        assert 0 < len(silent) < len(GROUPS)
        for api in (ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.DESCRIBE_GROUPS, ApiKey.OFFSET_FETCH, ApiKey.DELETE_GROUPS):
            broker.on(api, swallow="before", node=2, times=None)
        for call in (admin.list_offsets_of_groups, admin.describe_groups, admin.delete_groups):
            with pytest.raises(AdminError) as failed:
                await call(GROUPS, timeout=0.5)
            assert list(failed.value.errors) == silent
            assert list(failed.value.results) == [group for group in GROUPS if group not in silent]
            assert all(isinstance(error, RequestTimeout) for error in failed.value.errors.values())


async def test_groups_are_deleted_although_another_one_has_members() -> None:
    async with running(nodes=3) as (broker, admin):
        await fill(admin, *GROUPS)
        async with member_of(broker, "g4"):
            with failing("deleting groups failed for 2 of 10") as failed:
                await admin.delete_groups([*GROUPS, "missing"])
        assert {group: type(error) for group, error in failed.value.errors.items()} == {
            "g4": NonEmptyGroup,
            "missing": GroupIdNotFound,
        }
        assert [group.group_id for group in await admin.list_groups()] == ["g4"]


async def test_offsets_are_set_and_deleted_although_another_partition_is_refused() -> None:
    def denied(request: Any, true: Any) -> Any:
        true.topics[0].partitions[1].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return true

    def fenced(request: Any, true: Any) -> Any:
        for partition in true.topics[0].partitions:
            partition.error_code = ErrorCode.UNKNOWN_MEMBER_ID
        return true

    async with running() as (broker, admin):
        await fill(admin, "g")
        broker.on(ApiKey.OFFSET_COMMIT, answer=denied)
        with failing(r"setting offsets of group 'g' failed for 1 of 2: .*OffsetCommit of a-1") as failed:
            await admin.alter_consumer_group_offsets("g", {A0: 5, A1: 6})
        assert failed.value.results == {A0: OffsetAndMetadata(5)}
        assert {at: type(error) for at, error in failed.value.errors.items()} == {A1: TopicAuthorizationFailed}
        broker.on(ApiKey.OFFSET_DELETE, answer=denied)
        with failing(r"deleting offsets of group 'g' failed for 1 of 2: .*OffsetDelete of a-1") as failed:
            await admin.delete_consumer_group_offsets("g", [A0, A1])
        assert failed.value.results == {A0: None}
        # What is wrong with the group as a whole is not told for each partition.
        broker.on(ApiKey.OFFSET_COMMIT, answer=fenced)
        with pytest.raises(UnknownMemberId, match="offsets of group 'g' were not set: the group has members"):
            await admin.alter_consumer_group_offsets("g", {A0: 5, A1: 6})


async def test_partitions_that_stay_missing_time_out_and_the_others_have_their_offsets() -> None:
    async with running() as (_, admin):
        missing = TopicPartition("a", 9)
        await fill(admin, "g")
        with pytest.raises(AdminError) as failed:
            await admin.alter_consumer_group_offsets("g", {A0: 5, missing: 6}, timeout=0.3)
        assert failed.value.results == {A0: OffsetAndMetadata(5)}
        assert isinstance(failed.value.errors[missing], RequestTimeout)
        assert "no success within 0.3 s: UnknownTopicOrPartition" in str(failed.value)
        assert await admin.list_consumer_group_offsets("g") == {A0: OffsetAndMetadata(5)}


async def test_members_are_removed_although_others_are_unknown() -> None:
    async with running() as (broker, admin), member_of(broker, "g"):
        (member,) = (await admin.describe_groups("g"))["g"].members
        with failing("removing members of group 'g' failed for 2 of 3") as failed:
            await admin.remove_members("g", ["one", member, "two"])
        assert failed.value.results == {member: None}
        assert {key: type(error) for key, error in failed.value.errors.items()} == dict.fromkeys(
            ["one", "two"], UnknownMemberId
        )
        assert (await admin.describe_groups("g"))["g"].members == ()


# --- many groups ---------------------------------------------------------------------------------------------------


async def test_one_request_finds_the_coordinators_of_many_groups() -> None:
    groups = [f"g{number}" for number in range(1200)]
    async with running(nodes=3) as (broker, admin):
        assert await admin.list_offsets_of_groups(groups) == {group: {} for group in groups}
        assert await admin.list_offsets_of_groups(groups) == {group: {} for group in groups}
        (lookup,) = broker.requests.of(ApiKey.FIND_COORDINATOR)
        assert lookup.request.coordinator_keys == groups
        assert len(broker.requests.of(ApiKey.OFFSET_FETCH)) == 6


@pytest.mark.slow
async def test_the_coordinators_of_all_groups_of_a_big_cluster_are_looked_up_once() -> None:
    groups = [f"g{number}" for number in range(10_020)]
    async with running(nodes=3) as (broker, admin):
        assert len(await admin.list_offsets_of_groups(groups)) == len(groups)
        assert len(broker.requests.of(ApiKey.FIND_COORDINATOR)) == 1


async def test_a_coordinator_that_is_not_found_with_the_others_is_looked_up_again() -> None:
    def loading(request: Any, true: Any) -> Any:
        true.coordinators[0].error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return true

    async with running(nodes=3) as (broker, admin):
        broker.on(ApiKey.FIND_COORDINATOR, answer=loading)
        assert await admin.list_offsets_of_groups(GROUPS) == {group: {} for group in GROUPS}
        lookups = broker.requests.of(ApiKey.FIND_COORDINATOR)
        assert [one.request.coordinator_keys for one in lookups] == [GROUPS, GROUPS[:1]]


async def test_the_ends_of_many_new_topics_need_one_metadata_request() -> None:
    async with running() as (broker, admin):
        for number in range(50):
            broker.create_topic(f"t{number}")
        before = len(broker.requests.of(ApiKey.METADATA))
        specs = {TopicPartition(f"t{number}", 0): OffsetSpec.LATEST for number in range(50)}
        assert len(await admin.list_offsets(specs)) == 50
        assert len(broker.requests.of(ApiKey.METADATA)) - before == 1
        assert len(broker.requests.of(ApiKey.LIST_OFFSETS)) == 1
