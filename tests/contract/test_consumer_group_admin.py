"""What the admin does with consumer groups (KIP-848) and their offsets, whichever broker it talks to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from secrets import token_hex
from typing import Any

import anyio
import pytest
from contract.conftest import Where
from support.admin_errors import failing
from support.committed import raw
from support.consumer_members import ConsumerMember, NewMember, assign_at_once, configure_group, settle
from support.group_members import GroupMember, error, protocols, subscription
from support.patience import PATIENCE
from support.transactional import settled

from aiokafkawire import Client, GroupDescription, OffsetAndMetadata, OffsetSpec, TopicPartition
from aiokafkawire.errors import GroupIdNotFound, GroupSubscribedToTopic, NonEmptyGroup, UnknownMemberId

pytestmark = pytest.mark.anyio


@pytest.fixture
def group() -> str:
    """A group that no other test uses."""
    return f"group-{token_hex(6)}"


@pytest.fixture
async def member(cluster: Where, kafka: Client, topic: str, group: str) -> AsyncIterator[NewMember]:
    """Lets consumers join the group, one connection each; the group has a coordinator that is ready."""
    await kafka.admin.list_consumer_group_offsets(group)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(raw(cluster))
        await assign_at_once(client, group)
        joined: list[ConsumerMember] = []

        async def join(rack: str | None = None, **fields: Any) -> ConsumerMember:
            client = await stack.enter_async_context(raw(cluster))
            one = ConsumerMember(client, group, **{"topics": [topic], **fields})
            assert (await one.join(rack_id=rack)).error_code == 0
            if not joined and one.topics == [topic]:  # a new topic, which the coordinator may know a moment later
                with anyio.fail_after(PATIENCE):
                    while one.assigned is None or len(one.assigned) < 3:
                        assert (await one.heartbeat()).error_code == 0
            joined.append(one)
            return one

        yield join


async def state(kafka: Client, group: str, expected: str, members: int | None = None) -> GroupDescription:
    """The group, once it is in this state with so many members: Apache Kafka describes what it has written."""

    async def ask() -> GroupDescription | None:
        try:
            return (await kafka.admin.describe_consumer_groups(group))[group]
        except GroupIdNotFound:
            return None

    found = await settled(
        ask,
        lambda one: one is not None and one.state == expected and members in (None, len(one.members)),
    )
    assert found is not None
    return found


def all_of(topic: str, *indexes: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, index) for index in indexes or range(3))


# --- descriptions --------------------------------------------------------------------------------------------------


async def test_a_group_is_described_with_its_members_and_offsets(
    kafka: Client, topic: str, group: str, member: NewMember
) -> None:
    noted = {TopicPartition(topic, 2): OffsetAndMetadata(7, "on time", 0)}
    await kafka.admin.alter_consumer_group_offsets(group, noted)
    one = await member(instance="static", rack="shelf")
    await settle(one)
    await state(kafka, group, "Stable")
    found = (await kafka.admin.describe_consumer_groups(group, include_authorized_operations=True))[group]
    assert (found.group_id, found.type, found.state) == (group, "consumer", "Stable")
    assert (found.protocol_type, found.protocol, found.offsets) == ("consumer", "uniform", noted)
    assert found.group_epoch == found.assignment_epoch == one.epoch
    assert found.authorized_operations == frozenset({"READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})
    assert found.coordinator == (await kafka.admin.list_groups())[0].coordinator
    (described,) = found.members
    assert (described.member_id, described.group_instance_id) == (one.member_id, "static")
    assert (described.client_id, described.client_host, described.rack) == ("raw", "/127.0.0.1", "shelf")
    assert (described.type, described.member_epoch) == ("consumer", one.epoch)
    assert (described.subscription, described.subscribed_pattern) == ((topic,), None)
    assert described.assignment == described.target_assignment == all_of(topic)
    again = await kafka.admin.describe_groups(group)
    assert again[group].members == found.members
    assert again[group].authorized_operations is None


async def test_the_states_of_a_group(
    cluster: Where, kafka: Client, topic: str, group: str, member: NewMember, kafka_release: str | None
) -> None:
    one = await member()
    stable = await state(kafka, group, "Stable")
    assert stable.group_epoch == stable.assignment_epoch
    two = await member()
    changing = await state(kafka, group, "Reconciling", 2)
    found = {each.member_id: each for each in changing.members}
    assert len(found[one.member_id].target_assignment or ()) == 2
    assert (found[one.member_id].assignment, found[two.member_id].assignment) == (all_of(topic), ())
    assert len(found[two.member_id].target_assignment or ()) == 1
    await settle(one, two)
    assert {len(each.assignment) for each in (await state(kafka, group, "Stable", 2)).members} == {1, 2}
    if kafka_release in ("4.0", "4.1", "4.2"):  # which make each assignment at once
        return
    async with raw(cluster) as client:
        await configure_group(client, group, consumer_assignment_interval_ms="15000")
    await two.leave()
    waiting = await state(kafka, group, "Assigning", 1)
    assert waiting.group_epoch is not None
    assert waiting.assignment_epoch is not None
    assert waiting.group_epoch > waiting.assignment_epoch
    await one.leave()
    empty = await state(kafka, group, "Empty")
    assert (empty.members, empty.type, empty.protocol) == ((), "consumer", "uniform")


async def test_a_pattern_is_described(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    await member(topics=[], regex=f"{topic}-.*")
    (found,) = (await kafka.admin.describe_consumer_groups(group))[group].members
    assert (found.subscription, found.subscribed_pattern) == ((), f"{topic}-.*")


async def test_members_of_both_protocols(
    cluster: Where, kafka: Client, topic: str, group: str, member: NewMember
) -> None:
    new = await member()
    async with raw(cluster) as client:
        old = GroupMember(client, group, protocol_type="consumer")
        old.protocols = protocols("range", metadata=subscription(topic))
        await old.enter()
        found = await settled(
            lambda: kafka.admin.describe_consumer_groups(group), lambda found: len(found[group].members) == 2
        )
        assert found[group].type == "consumer"
        types = {one.member_id: one.type for one in found[group].members}
        assert types == {new.member_id: "consumer", old.member_id: "classic"}
        await kafka.admin.remove_members(group, [one for one in found[group].members if one.type == "classic"])
        (left,) = (await settled(lambda: kafka.admin.describe_groups(group), lambda it: len(it[group].members) == 1))[
            group
        ].members
        assert left.member_id == new.member_id


async def test_groups_of_both_types_are_described_together(
    cluster: Where, kafka: Client, topic: str, group: str, member: NewMember
) -> None:
    await member()
    offsets_only, classic = f"{group}-0", f"{group}-1"
    await kafka.admin.alter_consumer_group_offsets(offsets_only, {TopicPartition(topic, 0): 1})
    async with raw(cluster) as client:
        one = GroupMember(client, classic)
        await one.settle()
        await state(kafka, classic, "Stable")
        found = await kafka.admin.describe_consumer_groups([classic, group, offsets_only])
    assert list(found) == [classic, group, offsets_only]
    assert [one.type for one in found.values()] == ["classic", "consumer", "classic"]
    assert [one.protocol_type for one in found.values()] == ["raw", "consumer", ""]
    assert (found[classic].group_epoch, found[classic].assignment_epoch) == (None, None)
    (described,) = found[classic].members
    assert (described.type, described.member_epoch, described.target_assignment) == ("classic", None, None)
    assert await kafka.admin.describe_classic_groups(classic, offsets_only) == {
        classic: found[classic],
        offsets_only: found[offsets_only],
    }
    told = f"DescribeGroups of group '{group}': .*is not a classic group"
    with failing(told) as failed:
        await kafka.admin.describe_classic_groups(classic, group)
    assert list(failed.value.results) == [classic]


async def test_a_group_that_is_not_there(kafka: Client, group: str, member: NewMember) -> None:
    await member()
    told = f"DescribeGroups of group '{group}-2': Group {group}-2 not found"
    with failing(told) as failed:
        await kafka.admin.describe_consumer_groups(group, f"{group}-2")
    assert list(failed.value.results) == [group]
    with pytest.raises(GroupIdNotFound, match=told):
        await kafka.admin.describe_consumer_groups(f"{group}-2")


async def test_groups_are_listed_by_type_and_state(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    await kafka.admin.alter_consumer_group_offsets(f"{group}-0", {TopicPartition(topic, 0): 1})
    one = await member()
    await state(kafka, group, "Stable")

    async def listed(**chosen: list[str]) -> list[tuple[str, str | None, str | None]]:
        found = await kafka.admin.list_groups(**chosen)  # type: ignore[arg-type]
        return [(one.protocol_type, one.state, one.type) for one in found if one.group_id.startswith(group)]

    consumer, classic = ("consumer", "Stable", "consumer"), ("", "Empty", "classic")
    assert await listed() == [consumer, classic]
    assert await listed(types=["Consumer"]) == await listed(states=["stable"]) == [consumer]
    assert await listed(types=["classic"]) == [classic]
    assert await listed(types=["consumer"], states=["Empty", "Reconciling"]) == []
    await one.leave()
    await state(kafka, group, "Empty")
    assert await listed(types=["consumer"], states=["Empty"]) == [("consumer", "Empty", "consumer")]


# --- members -------------------------------------------------------------------------------------------------------


async def test_members_are_removed(kafka: Client, group: str, member: NewMember) -> None:
    one, two = await member(), await member()
    with pytest.raises(UnknownMemberId, match=f"LeaveGroup of member 'nobody' of group '{group}'"):
        await kafka.admin.remove_members(group, ["nobody"])
    found = await kafka.admin.describe_groups(group)
    await kafka.admin.remove_members(group, [each for each in found[group].members if each.member_id == one.member_id])
    assert error(await one.heartbeat()) == "UNKNOWN_MEMBER_ID"
    await settle(two)
    assert [each.member_id for each in (await state(kafka, group, "Stable", 1)).members] == [two.member_id]
    await one.join()
    await kafka.admin.remove_members(group, reason="a test ends")
    assert (await state(kafka, group, "Empty")).members == ()
    assert error(await two.heartbeat()) == "UNKNOWN_MEMBER_ID"
    await kafka.admin.remove_members(group)  # nobody is left


async def test_static_members_are_removed_by_their_instance_id(kafka: Client, group: str, member: NewMember) -> None:
    here, away = await member(instance="here"), await member(instance="away")
    assert (await away.leave(-2)).error_code == 0
    await state(kafka, group, "Reconciling", 2)
    await kafka.admin.remove_members(group, ["away"])
    await settle(here)
    (left,) = (await state(kafka, group, "Stable", 1)).members
    assert left.group_instance_id == "here"
    await kafka.admin.remove_members(group, [left])
    assert error(await here.heartbeat()) == "UNKNOWN_MEMBER_ID"


# --- offsets -------------------------------------------------------------------------------------------------------


async def test_a_group_with_members_keeps_its_offsets(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    where = TopicPartition(topic, 0)
    committed = {where: OffsetAndMetadata(3)}
    await kafka.admin.alter_consumer_group_offsets(group, committed)
    await member()
    told = f"offsets of group '{group}' were not set: the group has members, .*; stop them first"
    with pytest.raises(UnknownMemberId, match=told):
        await kafka.admin.alter_consumer_group_offsets(group, {where: 5})
    with pytest.raises(UnknownMemberId, match=told):
        await kafka.admin.reset_consumer_group_offsets(group, {where: OffsetSpec.LATEST})
    with pytest.raises(GroupSubscribedToTopic, match=f"OffsetDelete of {where} for group '{group}'"):
        await kafka.admin.delete_consumer_group_offsets(group, [where])
    with pytest.raises(NonEmptyGroup, match=rf"DeleteGroups of group '{group}'.*still has members; stop them"):
        await kafka.admin.delete_groups(group)
    assert await kafka.admin.list_consumer_group_offsets(group) == committed
    assert await kafka.admin.list_offsets_of_groups(group, f"{group}-2") == {group: committed, f"{group}-2": {}}


async def test_offsets_for_topics_that_nobody_reads_are_deleted(
    kafka: Client, topic: str, group: str, member: NewMember
) -> None:
    await kafka.admin.create_topics({f"{topic}-2": 1})
    other = TopicPartition(f"{topic}-2", 0)
    await kafka.admin.alter_consumer_group_offsets(group, {other: 3})
    await member()
    await kafka.admin.delete_consumer_group_offsets(group, [other])
    assert await kafka.admin.list_consumer_group_offsets(group) == {}


async def test_a_group_without_members_is_changed_and_deleted(
    kafka: Client, topic: str, group: str, member: NewMember
) -> None:
    zero, one, two = all_of(topic)
    async with kafka.producer() as producer:
        for _ in range(5):
            await producer.send(topic, b"x", partition=0)
    await (await member()).leave()
    await state(kafka, group, "Empty")
    await kafka.admin.alter_consumer_group_offsets(group, {zero: 3, two: 8})
    assert await kafka.admin.reset_consumer_group_offsets(group, {one: OffsetSpec.LATEST}) == {
        one: OffsetAndMetadata(0)
    }
    assert await kafka.admin.consumer_group_lag(group) == {zero: 2, one: 0, two: 0}
    await kafka.admin.delete_consumer_group_offsets(group, [two])
    assert await kafka.admin.list_consumer_group_offsets(group) == {
        zero: OffsetAndMetadata(3),
        one: OffsetAndMetadata(0),
    }
    assert (await state(kafka, group, "Empty")).type == "consumer"
    await kafka.admin.delete_groups(group)
    assert await kafka.admin.list_consumer_group_offsets(group) == {}
    for call in (kafka.admin.describe_consumer_groups, kafka.admin.delete_groups):
        with pytest.raises(GroupIdNotFound):
            await call(group)
