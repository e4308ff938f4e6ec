"""What the admin does with share groups (KIP-932) and their offsets, whichever broker it talks to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeAlias
from uuid import UUID

import pytest
from contract.conftest import Where
from support.admin_errors import failing
from support.apache_kafka import ApacheKafka
from support.committed import raw
from support.consumer_members import ConsumerMember, configure_group
from support.patience import PATIENCE
from support.raw_client import RawClient
from support.share_members import ACCEPT, ShareMember, new_share_group
from support.streams_members import StreamsMember

from aiokafkawire import Client, GroupListing, ShareGroupDescription, SharePartitionOffsetInfo, TopicPartition
from aiokafkawire.errors import (
    GroupIdNotFound,
    NonEmptyGroup,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from aiokafkawire.network.connector import connect_tcp

pytestmark = pytest.mark.anyio

NewMember: TypeAlias = Callable[..., Awaitable[ShareMember]]
Call: TypeAlias = Callable[[], Awaitable[object]]

UNREAD = SharePartitionOffsetInfo(None)


@pytest.fixture
async def client(cluster: Where) -> AsyncIterator[RawClient]:
    async with raw(cluster) as client:
        yield client


@pytest.fixture
async def group(client: RawClient) -> AsyncIterator[str]:
    """A group that no other test uses, which begins at the earliest offsets."""
    async for group in new_share_group(client):
        await configure_group(client, group, share_auto_offset_reset="earliest")
        yield group


@pytest.fixture
async def member(cluster: Where, topic: str, group: str) -> AsyncIterator[NewMember]:
    """Lets members join the group, one connection each."""
    async with AsyncExitStack() as stack:

        async def join(group: str = group, topic: str = topic) -> ShareMember:
            new = ShareMember(await stack.enter_async_context(raw(cluster)), group)
            await new.join(topic, partitions=3)
            return new

        yield join


async def fill(kafka: Client, topic: str, count: int = 5) -> None:
    """Write records to partition 0."""
    async with kafka.producer() as producer:
        await producer.send_many(topic, [b"x"] * count, partition=0)


async def described(kafka: Client, group: str) -> ShareGroupDescription:
    return (await kafka.admin.describe_share_groups(group))[group]


def is_of(group: str, listed: GroupListing) -> bool:
    """Whether it is the group of a test, or another one of the same test."""
    return listed.group_id == group or listed.group_id.startswith(f"{group}-")


def all_of(topic: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, index) for index in range(3))


async def id_of(kafka: Client, topic: str) -> UUID:
    topic_id = (await kafka.admin.describe_topic(topic)).topic_id
    assert topic_id is not None
    return topic_id


# --- descriptions --------------------------------------------------------------------------------------------------


async def test_a_group_is_described_with_its_members(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    one = await member()
    await one.heartbeat(rack_id="shelf")
    found = (await kafka.admin.describe_share_groups([group], include_authorized_operations=True))[group]
    assert (found.group_id, found.state, found.assignor) == (group, "Stable", "simple")
    assert found.group_epoch == found.assignment_epoch == one.epoch
    assert found.authorized_operations == frozenset({"READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})
    assert found.coordinator == (await kafka.admin.list_groups(types=["share"]))[0].coordinator
    (known,) = found.members
    assert (known.member_id, known.member_epoch, known.rack) == (one.member_id, one.epoch, "shelf")
    assert (known.client_id, known.client_host) == ("raw", "/127.0.0.1")
    assert (known.subscription, known.assignment) == ((topic,), all_of(topic))
    await one.leave()
    empty = await described(kafka, group)
    assert (empty.state, empty.members, empty.authorized_operations) == ("Empty", (), None)
    assert empty.group_epoch > empty.assignment_epoch


async def test_several_groups_are_described_together(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    one = await member()
    other = f"{group}-other"
    await kafka.admin.alter_share_group_offsets(other, {TopicPartition(topic, 0): 0})
    found = await kafka.admin.describe_share_groups(other, group, other)
    assert {name: (each.group_id, each.state) for name, each in found.items()} == {
        other: (other, "Empty"),
        group: (group, "Stable"),
    }
    assert list(found) == [other, group]
    assert [each.member_id for each in found[group].members] == [one.member_id]
    assert await kafka.admin.describe_share_groups([]) == {}
    missing = f"{group}-missing"
    told = f"ShareGroupDescribe of group '{missing}': Group {missing} not found"
    with failing(told) as failed:
        await kafka.admin.describe_share_groups(group, missing, other)
    assert list(failed.value.results) == [group, other]
    assert {name: type(error) for name, error in failed.value.errors.items()} == {missing: GroupIdNotFound}
    with pytest.raises(GroupIdNotFound, match=told):
        await kafka.admin.describe_share_groups(missing)


async def test_groups_of_all_types_are_told_apart(
    cluster: Where, kafka: Client, topic: str, group: str, member: NewMember
) -> None:
    one = await member()
    await kafka.admin.alter_consumer_group_offsets(f"{group}-classic", {TopicPartition(topic, 0): 1})
    async with raw(cluster) as client:
        consumer = ConsumerMember(client, f"{group}-consumer", [topic])
        assert not (await consumer.join()).error_code

        async def listed(**chosen: list[str]) -> list[tuple[str, str, str | None]]:
            found = await kafka.admin.list_groups(**chosen)  # type: ignore[arg-type]
            return [
                (each.group_id.removeprefix(group), each.protocol_type, each.type)
                for each in found
                if is_of(group, each)
            ]

        share, classic, consumers = (
            ("", "share", "share"),
            ("-classic", "", "classic"),
            ("-consumer", *["consumer"] * 2),
        )
        assert await listed() == [share, classic, consumers]
        assert await listed(types=["share"]) == await listed(types=["Share"], states=["stable", "dead"]) == [share]
        assert await listed(types=["classic", "consumer"]) == [classic, consumers]
        assert await listed(types=["share", "classic"], states=["Empty"]) == [classic]
        assert await listed(types=["streams"]) == []
        await one.leave()
        assert await listed(types=["share"], states=["Stable"]) == []
        assert await listed(types=["share", "classic"], states=["Empty"]) == [share, classic]
        await consumer.leave()


@pytest.mark.kafka
async def test_streams_groups_of_apache_kafka(apache_kafka: ApacheKafka, new_name: Callable[[], str]) -> None:
    topic = new_name()
    group = f"streams-{topic}"
    async with Client(apache_kafka.bootstrap) as kafka, raw(Where(apache_kafka.bootstrap, connect_tcp)) as client:
        await kafka.admin.create_topics({topic: 1})
        await kafka.admin.list_consumer_group_offsets(group)
        member = StreamsMember(client, group, topic)
        await member.join()
        (found,) = [one for one in await kafka.admin.list_groups(types=["streams"]) if one.group_id == group]
        assert (found.type, found.protocol_type) == ("streams", "streams")
        for call in (changes(kafka, group, topic) | reads(kafka, group, topic)).values():
            with pytest.raises(GroupIdNotFound, match=f"Group {group} is not a share group"):
                await call()
        await member.leave()
        listed = await kafka.admin.list_groups(types=["streams", "share"], states=["Empty"])
        assert [one.type for one in listed if one.group_id == group] == ["streams"]
        await kafka.admin.delete_groups(group)


# --- offsets -------------------------------------------------------------------------------------------------------


async def test_offsets_and_lag_of_a_group(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    one = await member()
    await fill(kafka, topic)
    zero = TopicPartition(topic, 0)
    unread = dict.fromkeys(all_of(topic), UNREAD)
    assert await kafka.admin.list_share_group_offsets(group) == unread
    read = await id_of(kafka, topic)
    assert await one.fetched(read) == [(0, 4, 1)]
    await one.acknowledge(read, (0, 1, ACCEPT))
    # The records 0 and 1 are done, and the offset is stored with the next step.
    assert await kafka.admin.list_share_group_offsets(group) == unread | {zero: SharePartitionOffsetInfo(0, 0, 3)}
    await one.acknowledge(read, (2, 3, ACCEPT))
    assert await kafka.admin.list_share_group_offsets(group, [zero]) == {zero: SharePartitionOffsetInfo(2, 0, 1)}
    assert await kafka.admin.list_share_group_offsets(group, []) == {}


async def test_a_group_of_our_consumer(kafka: Client, topic: str, group: str) -> None:
    zero = TopicPartition(topic, 0)
    await fill(kafka, topic)
    async with kafka.share_consumer(topic, group_id=group) as consumer:
        found = [record.offset for record in await consumer.poll(max_records=5, timeout=PATIENCE)]
        while len(found) < 5:
            await consumer.commit()
            found += [record.offset for record in await consumer.poll(max_records=5, timeout=PATIENCE)]
        state = await described(kafka, group)
        (member,) = state.members
        assert (state.state, member.subscription, member.assignment) == ("Stable", (topic,), all_of(topic))
        with pytest.raises(NonEmptyGroup):
            await kafka.admin.alter_share_group_offsets(group, {zero: 0})
    assert found == [0, 1, 2, 3, 4]
    assert (await described(kafka, group)).state == "Empty"
    await kafka.admin.alter_share_group_offsets(group, {zero: 2})
    assert (await kafka.admin.list_share_group_offsets(group))[zero] == SharePartitionOffsetInfo(2, 0, 3)
    async with kafka.share_consumer(topic, group_id=group) as consumer:
        first = (await consumer.poll(max_records=1, timeout=PATIENCE))[0]
        assert first.offset == 2


async def test_offsets_are_set_and_deleted(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    zero, first, _ = all_of(topic)
    await fill(kafka, topic)
    await kafka.admin.alter_share_group_offsets(group, {zero: 3})  # which makes the group
    assert (await described(kafka, group)).state == "Empty"
    assert await kafka.admin.list_share_group_offsets(group) == {zero: SharePartitionOffsetInfo(3, 0, 2)}
    await kafka.admin.alter_share_group_offsets(group, {zero: 1, first: 7})
    found = (await kafka.admin.list_offsets_of_share_groups(group))[group]
    assert found == {zero: SharePartitionOffsetInfo(1, 0, 4), first: SharePartitionOffsetInfo(7, 0, 0)}
    one = await member()
    read = await id_of(kafka, topic)
    assert await one.fetched(read) == [(1, 4, 1)]
    await one.leave()
    await kafka.admin.delete_share_group_offsets(group, [topic])
    assert await kafka.admin.list_share_group_offsets(group) == {}
    with pytest.raises(UnknownTopicOrPartition, match=f"for topic '{topic}': There is no offset information"):
        await kafka.admin.delete_share_group_offsets(group, topic)
    assert (await described(kafka, group)).state == "Empty"


async def test_nothing_to_set_or_delete(kafka: Client, group: str) -> None:
    await kafka.admin.alter_share_group_offsets(group, {})
    await kafka.admin.delete_share_group_offsets(group, [])
    await kafka.admin.delete_share_groups([])
    with pytest.raises(GroupIdNotFound):
        await described(kafka, group)


# --- groups that are not as wanted ---------------------------------------------------------------------------------


def changes(kafka: Client, group: str, topic: str) -> dict[str, Call]:
    """All calls that change a group."""
    return {
        "AlterShareGroupOffsets": lambda: kafka.admin.alter_share_group_offsets(group, {TopicPartition(topic, 0): 1}),
        "DeleteShareGroupOffsets": lambda: kafka.admin.delete_share_group_offsets(group, topic),
        "DeleteGroups": lambda: kafka.admin.delete_share_groups(group),
    }


def reads(kafka: Client, group: str, topic: str) -> dict[str, Call]:
    """All calls that tell of a group."""
    return {
        "describe": lambda: kafka.admin.describe_share_groups(group),
        "list": lambda: kafka.admin.list_share_group_offsets(group),
        "list partitions": lambda: kafka.admin.list_share_group_offsets(group, [TopicPartition(topic, 0)]),
    }


async def test_a_group_with_members_is_not_changed(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    one = await member()
    before = await kafka.admin.list_share_group_offsets(group)
    for api, call in changes(kafka, group, topic).items():
        with pytest.raises(NonEmptyGroup, match=f"{api} of group '{group}'.*The group still has members; stop them"):
            await call()
    assert await kafka.admin.list_share_group_offsets(group) == before
    assert not (await one.heartbeat()).error_code


async def test_a_group_that_does_not_exist(kafka: Client, topic: str, group: str) -> None:
    calls = changes(kafka, group, topic) | reads(kafka, group, topic)
    del calls["AlterShareGroupOffsets"]  # makes the group
    for call in calls.values():
        with pytest.raises(GroupIdNotFound, match=f"of group '{group}': Group {group} not found"):
            await call()


@pytest.mark.parametrize("kind", ["classic", "consumer"])
async def test_a_group_of_another_type(cluster: Where, kafka: Client, topic: str, group: str, kind: str) -> None:
    where = TopicPartition(topic, 0)
    await kafka.admin.alter_consumer_group_offsets(group, {where: 2})
    async with raw(cluster) as client:
        if kind == "consumer":
            consumer = ConsumerMember(client, group, [topic])
            assert not (await consumer.join()).error_code
            await consumer.leave()
        for call in (changes(kafka, group, topic) | reads(kafka, group, topic)).values():
            with pytest.raises(GroupIdNotFound, match=f"of group '{group}': Group {group} is not a share group"):
                await call()
    assert (await kafka.admin.list_consumer_group_offsets(group))[where].offset == 2
    assert (await kafka.admin.describe_groups(group))[group].type == kind


async def test_a_share_group_is_no_other_group(kafka: Client, topic: str, group: str) -> None:
    where = TopicPartition(topic, 0)
    await kafka.admin.alter_share_group_offsets(group, {where: 0})
    calls: list[Call] = [
        lambda: kafka.admin.describe_groups(group),
        lambda: kafka.admin.remove_members(group),
        lambda: kafka.admin.alter_consumer_group_offsets(group, {where: 1}),
        lambda: kafka.admin.delete_consumer_group_offsets(group, [where]),
    ]
    for call in calls:
        with pytest.raises(GroupIdNotFound):
            await call()


@pytest.mark.slow
async def test_partitions_and_topics_that_do_not_exist(kafka: Client, topic: str, group: str) -> None:
    zero, missing = TopicPartition(topic, 0), TopicPartition(f"{topic}-missing", 0)
    told = f"AlterShareGroupOffsets of group '{group}' for {missing}: This server does not host this topic-partition"
    with pytest.raises(RequestTimeout, match=told):
        await kafka.admin.alter_share_group_offsets(group, {missing: 1}, timeout=0.3)
    with pytest.raises(GroupIdNotFound):
        await described(kafka, group)
    with failing(f"for {topic}-3: This server does not host") as failed:
        await kafka.admin.alter_share_group_offsets(group, {zero: 1, TopicPartition(topic, 3): 1}, timeout=1)
    assert failed.value.results == {zero: 1}
    assert isinstance(failed.value.errors[TopicPartition(topic, 3)], RequestTimeout)
    assert list(await kafka.admin.list_share_group_offsets(group)) == [zero]
    assert await kafka.admin.list_share_group_offsets(group, [TopicPartition(topic, 3), missing]) == {}
    with failing(f"for topic '{missing.topic}': This server does not host") as failed:
        await kafka.admin.delete_share_group_offsets(group, [missing.topic, topic])
    assert failed.value.results == {topic: None}
    assert isinstance(failed.value.errors[missing.topic], UnknownTopicOrPartition)
    assert await kafka.admin.list_share_group_offsets(group) == {}  # the other topic is done nevertheless


# --- deletion ------------------------------------------------------------------------------------------------------


async def test_groups_are_deleted(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    where, other, classic = TopicPartition(topic, 0), f"{group}-other", f"{group}-classic"
    await (await member()).leave()
    await kafka.admin.alter_share_group_offsets(other, {where: 0})
    await kafka.admin.alter_consumer_group_offsets(classic, {where: 0})
    for wrong in (classic, f"{group}-missing"):
        with pytest.raises(GroupIdNotFound, match=f"Group {wrong} "):
            await kafka.admin.delete_share_groups(wrong)
    with failing(f"deleting share groups failed for 1 of 2: .*Group {classic} ") as failed:
        await kafka.admin.delete_share_groups(classic, group)
    assert failed.value.results == {group: None}
    await kafka.admin.delete_share_groups(other)
    left = [each.group_id for each in await kafka.admin.list_groups() if is_of(group, each)]
    assert left == [classic]
    again = await member()
    await again.leave()


async def test_a_deleted_group_begins_anew(kafka: Client, topic: str, group: str, member: NewMember) -> None:
    await fill(kafka, topic)
    await kafka.admin.alter_share_group_offsets(group, {TopicPartition(topic, 0): 4})
    await kafka.admin.delete_share_groups(group)
    one = await member()
    read = await id_of(kafka, topic)
    assert await one.fetched(read) == [(0, 4, 1)]
