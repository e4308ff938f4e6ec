"""What the admin does with groups and their offsets, whichever broker it talks to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_hex

import pytest
from contract.conftest import Where
from support.admin_errors import failing
from support.committed import open_from, raw
from support.fetching import numbers
from support.group_members import GroupMember, protocols, subscription
from support.transactional import settled

from aiokafkawire import (
    Client,
    GroupDescription,
    IsolationLevel,
    OffsetAndMetadata,
    OffsetSpec,
    RequestTimeout,
    TopicPartition,
    UsageError,
)
from aiokafkawire.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    NonEmptyGroup,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from aiokafkawire.group.consumer_protocol import Assignment, encode_assignment

pytestmark = pytest.mark.anyio


@pytest.fixture
def group() -> str:
    """A group that no other test uses."""
    return f"group-{token_hex(6)}"


@pytest.fixture
async def where(kafka: Client, topic: str) -> TopicPartition:
    """A partition of 30 records, each a second later than the one before; the topic's others are empty."""
    async with kafka.producer(batch_size=200) as producer:
        for number, value in enumerate(numbers(0, 30)):
            await producer.enqueue(topic, value, partition=0, timestamp_ms=1_000 * number)
    return TopicPartition(topic, 0)


@asynccontextmanager
async def member(cluster: Where, kafka: Client, group: str, *topics: str, **fields: str) -> AsyncIterator[GroupMember]:
    """A consumer that reads the first partition of each topic; the group has a coordinator that is ready."""
    await kafka.admin.list_consumer_group_offsets(group)
    async with raw(cluster) as client:
        one = GroupMember(client, group, protocol_type="consumer", **fields)  # type: ignore[arg-type]
        one.protocols = protocols("range", metadata=subscription(*topics))
        await one.enter()
        mine = encode_assignment(Assignment(tuple(TopicPartition(name, 0) for name in topics)))
        assert (await one.sync({one.member_id: mine})).error_code == 0
        await state(kafka, group, "Stable")
        yield one


async def state(kafka: Client, group: str, expected: str) -> GroupDescription:
    """The group, once it is in this state: Apache Kafka tells it when it is written."""

    async def ask() -> GroupDescription | None:
        try:
            return (await kafka.admin.describe_groups(group))[group]
        except GroupIdNotFound:
            return None

    found = await settled(ask, lambda one: one is not None and one.state == expected)
    assert found is not None
    return found


# --- groups --------------------------------------------------------------------------------------------------------


async def test_groups_are_listed_with_where_they_are(cluster: Where, kafka: Client, topic: str, group: str) -> None:
    await kafka.admin.alter_consumer_group_offsets(f"{group}-0", {TopicPartition(topic, 0): 1})
    async with member(cluster, kafka, group, topic):
        found = {one.group_id: one for one in await kafka.admin.list_groups() if one.group_id.startswith(group)}
        assert list(found) == [group, f"{group}-0"]
        alive, offsets_only = found.values()
        assert (alive.protocol_type, alive.state, alive.type) == ("consumer", "Stable", "classic")
        assert (offsets_only.protocol_type, offsets_only.state, offsets_only.type) == ("", "Empty", "classic")
        assert alive.coordinator == (await kafka.admin.describe_groups(group))[group].coordinator
        listed = [one.group_id for one in await kafka.admin.list_groups(states=["Stable"], types=["Classic"])]
        assert group in listed
        assert f"{group}-0" not in listed
        shares = await kafka.admin.list_groups(types=["share"])  # other tests may have some
        assert all(one.type == "share" and not one.group_id.startswith(group) for one in shares)
        with pytest.raises(UsageError, match=r"states must be a collection such as .*, got 'Stable'"):
            await kafka.admin.list_groups(states="Stable")


async def test_a_group_is_described_with_its_members_and_offsets(
    cluster: Where, kafka: Client, topic: str, group: str
) -> None:
    where, noted = TopicPartition(topic, 2), OffsetAndMetadata(7, "on time", 0)
    await kafka.admin.alter_consumer_group_offsets(group, {where: noted})
    async with member(cluster, kafka, group, topic, instance="static") as one:
        (found,) = (await kafka.admin.describe_groups(group, include_authorized_operations=True)).values()
        assert (found.group_id, found.state, found.protocol_type, found.protocol) == (
            group,
            "Stable",
            "consumer",
            "range",
        )
        (described,) = found.members
        assert (described.member_id, described.group_instance_id) == (one.member_id, "static")
        assert (described.client_id, described.client_host) == ("raw", "/127.0.0.1")
        assert (described.assignment, described.subscription) == ((TopicPartition(topic, 0),), (topic,))
        assert found.offsets == {where: noted}
        assert found.authorized_operations == frozenset(
            {"READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
        )


async def test_an_empty_group_has_offsets_too_and_others_are_described_beside_it(
    cluster: Where, kafka: Client, topic: str, group: str
) -> None:
    where = TopicPartition(topic, 1)
    await kafka.admin.alter_consumer_group_offsets(group, {where: 3})
    async with member(cluster, kafka, f"{group}-2", topic):
        found = await kafka.admin.describe_groups(f"{group}-2", group)
    assert list(found) == [f"{group}-2", group]
    assert (found[group].state, found[group].members, found[group].protocol) == ("Empty", (), "")
    assert found[group].offsets == {where: OffsetAndMetadata(3)}
    assert found[group].authorized_operations is None
    assert found[f"{group}-2"].offsets == {}


async def test_a_member_of_another_kind_of_group_has_no_assignment_to_read(
    cluster: Where, kafka: Client, group: str
) -> None:
    await kafka.admin.list_consumer_group_offsets(group)
    async with raw(cluster) as client:
        await GroupMember(client, group).settle()
        (described,) = (await state(kafka, group, "Stable")).members
        assert (described.assignment, described.subscription) == ((), ())


async def test_a_group_that_is_not_there(kafka: Client, topic: str, group: str) -> None:
    with pytest.raises(GroupIdNotFound, match=f"DescribeGroups of group '{group}': Group {group} not found"):
        await kafka.admin.describe_groups(group)
    with pytest.raises(GroupIdNotFound, match=f"DeleteGroups of group '{group}'"):
        await kafka.admin.delete_groups(group)
    with pytest.raises(GroupIdNotFound, match=f"OffsetDelete of group '{group}'"):
        await kafka.admin.delete_consumer_group_offsets(group, [TopicPartition(topic, 0)])
    assert await kafka.admin.list_consumer_group_offsets(group) == {}
    assert await kafka.admin.consumer_group_lag(group) == {}
    assert await kafka.admin.list_offsets_of_groups(group, f"{group}-2") == {group: {}, f"{group}-2": {}}


async def test_groups_are_told_apart_from_those_that_fail(
    cluster: Where, kafka: Client, topic: str, group: str
) -> None:
    await kafka.admin.alter_consumer_group_offsets(f"{group}-2", {TopicPartition(topic, 0): 1})
    missing = f"{group}-3"
    async with member(cluster, kafka, group, topic):
        with failing(f"describing groups failed for 1 of 3: .*{missing} not found") as failed:
            await kafka.admin.describe_groups(group, missing, f"{group}-2")
        described = {name: found.state for name, found in failed.value.results.items()}
        assert described == {group: "Stable", f"{group}-2": "Empty"}
        with failing("deleting groups failed for 2 of 3") as failed:
            await kafka.admin.delete_groups(group, f"{group}-2", missing)
        assert failed.value.results == {f"{group}-2": None}
        errors = {name: type(error) for name, error in failed.value.errors.items()}
        assert errors == {group: NonEmptyGroup, missing: GroupIdNotFound}
        found = (await kafka.admin.describe_groups(group))[group].members
        with failing(f"removing members of group '{group}' failed for 1 of 2") as failed:
            await kafka.admin.remove_members(group, ["nobody", *found])
        assert (list(failed.value.errors), list(failed.value.results)) == (["nobody"], list(found))


async def test_groups_without_members_are_deleted(cluster: Where, kafka: Client, topic: str, group: str) -> None:
    for name in (group, f"{group}-2"):
        await kafka.admin.alter_consumer_group_offsets(name, {TopicPartition(topic, 0): 1})
    async with member(cluster, kafka, group, topic):
        with pytest.raises(NonEmptyGroup, match=rf"DeleteGroups of group '{group}'.*still has members; stop them"):
            await kafka.admin.delete_groups(group)
        await kafka.admin.remove_members(group, reason="a test ends")
        await state(kafka, group, "Empty")
    await kafka.admin.delete_groups(group, f"{group}-2")
    assert not any(one.group_id.startswith(group) for one in await kafka.admin.list_groups())
    assert await kafka.admin.list_consumer_group_offsets(group) == {}


# --- members -------------------------------------------------------------------------------------------------------


async def test_members_are_removed(cluster: Where, kafka: Client, topic: str, group: str) -> None:
    async with member(cluster, kafka, group, topic) as one:
        with pytest.raises(UnknownMemberId, match=f"LeaveGroup of member 'nobody' of group '{group}'"):
            await kafka.admin.remove_members(group, ["nobody"])
        found = (await kafka.admin.describe_groups(group))[group]
        await kafka.admin.remove_members(group, found.members)
        assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"
        assert (await state(kafka, group, "Empty")).members == ()
        await kafka.admin.remove_members(group)  # nobody is left
    with pytest.raises(UsageError, match="members must be a collection"):
        await kafka.admin.remove_members(group, "static")


async def test_static_members_are_removed_by_their_instance_id(
    cluster: Where, kafka: Client, topic: str, group: str
) -> None:
    async with member(cluster, kafka, group, topic, instance="static") as one:
        await kafka.admin.remove_members(group, ["static"])
        assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"


# --- offsets -------------------------------------------------------------------------------------------------------


async def test_offsets_are_set_and_listed(kafka: Client, topic: str, group: str) -> None:
    zero, one, two = (TopicPartition(topic, index) for index in range(3))
    noted = OffsetAndMetadata(7, "on time", leader_epoch=0)
    await kafka.admin.alter_consumer_group_offsets(group, {zero: noted, two: 3})
    await kafka.admin.alter_consumer_group_offsets(group, {})
    assert await kafka.admin.list_consumer_group_offsets(group) == {zero: noted, two: OffsetAndMetadata(3)}
    assert await kafka.admin.list_consumer_group_offsets(group, [zero, one]) == {zero: noted}
    assert await kafka.admin.list_consumer_group_offsets(group, []) == {}
    await kafka.admin.alter_consumer_group_offsets(f"{group}-2", {one: 5})
    assert await kafka.admin.list_offsets_of_groups(group, f"{group}-2", group) == {
        group: {zero: noted, two: OffsetAndMetadata(3)},
        f"{group}-2": {one: OffsetAndMetadata(5)},
    }
    assert await kafka.admin.list_offsets_of_groups() == {}


async def test_a_consumer_goes_on_where_the_admin_says(kafka: Client, where: TopicPartition, group: str) -> None:
    await kafka.admin.alter_consumer_group_offsets(group, {where: 12})
    async with kafka.consumer(group_id=group) as consumer:
        assert await consumer.committed([where]) == {where: OffsetAndMetadata(12)}


async def test_offsets_are_reset_to_ends_times_and_numbers(kafka: Client, where: TopicPartition, group: str) -> None:
    one, two = TopicPartition(where.topic, 1), TopicPartition(where.topic, 2)
    reset = kafka.admin.reset_consumer_group_offsets
    starts: list[tuple[OffsetSpec | int, int]] = [
        (OffsetSpec.EARLIEST, 0),
        (OffsetSpec.at(20_500), 21),
        (OffsetSpec.LATEST, 30),
        (OffsetSpec.at(99_000), 30),
        (4, 4),
    ]
    for start, offset in starts:
        expected = {where: OffsetAndMetadata(offset)}
        assert await reset(group, {where: start}) == expected
        assert await kafka.admin.list_consumer_group_offsets(group) == expected
    assert await reset(group, {one: OffsetSpec.LATEST, two: 9}) == {
        one: OffsetAndMetadata(0),
        two: OffsetAndMetadata(9),
    }
    with pytest.raises(UsageError, match=f"{where} can begin at an offset or an OffsetSpec"):
        await reset(group, {where: "earliest"})  # type: ignore[dict-item]


async def test_a_group_with_members_keeps_its_offsets(
    cluster: Where, kafka: Client, where: TopicPartition, group: str
) -> None:
    await kafka.admin.alter_consumer_group_offsets(group, {where: 3})
    told = (
        f"offsets of group '{group}' were not set: the group has members, and only members can commit; stop them first"
    )
    async with member(cluster, kafka, group, where.topic):
        with pytest.raises(UnknownMemberId, match=told):
            await kafka.admin.alter_consumer_group_offsets(group, {where: 5})
        with pytest.raises(UnknownMemberId, match=told):
            await kafka.admin.reset_consumer_group_offsets(group, {where: OffsetSpec.LATEST})
        with pytest.raises(GroupSubscribedToTopic, match=f"OffsetDelete of {where} for group '{group}'"):
            await kafka.admin.delete_consumer_group_offsets(group, [where])
        assert await kafka.admin.list_consumer_group_offsets(group) == {where: OffsetAndMetadata(3)}


async def test_a_group_of_another_kind_keeps_them_while_it_has_members(
    cluster: Where, kafka: Client, where: TopicPartition, group: str
) -> None:
    await kafka.admin.alter_consumer_group_offsets(group, {where: 3})
    async with raw(cluster) as client:
        await GroupMember(client, group).settle()
        with pytest.raises(NonEmptyGroup, match=f"OffsetDelete of group '{group}'.*stop them first"):
            await kafka.admin.delete_consumer_group_offsets(group, [where])


async def test_offsets_are_deleted(kafka: Client, topic: str, group: str) -> None:
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    await kafka.admin.alter_consumer_group_offsets(group, {zero: 1, one: 2})
    await kafka.admin.delete_consumer_group_offsets(group, [zero])
    assert await kafka.admin.list_consumer_group_offsets(group) == {one: OffsetAndMetadata(2)}
    await kafka.admin.delete_consumer_group_offsets(group, [])
    missing = TopicPartition(topic, 9)
    told = f"deleting offsets of group '{group}' failed for 1 of 2: .*OffsetDelete of {missing} for group '{group}'"
    with failing(told) as failed:
        await kafka.admin.delete_consumer_group_offsets(group, [missing, one])
    assert failed.value.results == {one: None}
    assert isinstance(failed.value.errors[missing], UnknownTopicOrPartition)
    assert await kafka.admin.list_consumer_group_offsets(group) == {}


async def test_what_cannot_be_set_is_told_in_time(kafka: Client, topic: str, group: str) -> None:
    await kafka.admin.list_consumer_group_offsets(group)  # the time below is for the attempts, and not to connect
    with pytest.raises(RequestTimeout, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await kafka.admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 9): 1}, timeout=0.5)
    with pytest.raises(UsageError, match=f"topic '{topic}' has 3 partitions, no 9"):
        await kafka.admin.reset_consumer_group_offsets(group, {TopicPartition(topic, 9): OffsetSpec.EARLIEST})


async def test_lag_is_what_is_left_to_read(kafka: Client, where: TopicPartition, group: str) -> None:
    one, two = TopicPartition(where.topic, 1), TopicPartition(where.topic, 2)
    await kafka.admin.alter_consumer_group_offsets(group, {where: 12, one: 0, two: 5})
    assert await kafka.admin.consumer_group_lag(group) == {where: 18, one: 0, two: 0}
    async with kafka.producer(transactional_id=group) as producer, producer.transaction() as tx:
        await tx.send(where.topic, b"30", partition=0)
        assert (await open_from(kafka, where)) == (30, 31)
        assert (await kafka.admin.consumer_group_lag(group))[where] == 19
        stable = await kafka.admin.consumer_group_lag(group, isolation_level=IsolationLevel.READ_COMMITTED)
        assert stable[where] == 18


async def test_offsets_of_an_open_transaction_are_waited_for_if_asked(
    kafka: Client, where: TopicPartition, group: str
) -> None:
    admin = kafka.admin
    await admin.alter_consumer_group_offsets(group, {where: 1})
    async with kafka.producer(transactional_id=group) as producer:
        async with producer.transaction() as tx:
            await tx.commit_offsets({where: 5}, group=group)
            assert await admin.list_consumer_group_offsets(group) == {where: OffsetAndMetadata(1)}
            for partitions in (None, [where]):
                with pytest.raises(RequestTimeout, match="UNSTABLE_OFFSET_COMMIT"):
                    await admin.list_consumer_group_offsets(group, partitions, require_stable=True, timeout=0.2)
            with failing("UNSTABLE_OFFSET_COMMIT") as failed:
                await admin.list_offsets_of_groups(group, f"{group}-2", require_stable=True, timeout=1.0)
            assert failed.value.results == {f"{group}-2": {}}
            assert isinstance(failed.value.errors[group], RequestTimeout)
        stable = await admin.list_consumer_group_offsets(group, require_stable=True)
        assert stable == {where: OffsetAndMetadata(5)}
