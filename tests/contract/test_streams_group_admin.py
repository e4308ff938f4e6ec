"""What the admin does with streams groups (KIP-1071), whichever broker it talks to."""

from __future__ import annotations

from secrets import token_hex

import pytest
from contract.conftest import Where
from support.admin_errors import failing
from support.apache_kafka import ApacheKafka
from support.committed import raw
from support.streams_members import StreamsMember
from support.transactional import settled

from aiokafkawire import (
    Client,
    OffsetAndMetadata,
    StreamsGroupDescription,
    StreamsGroupMemberAssignment,
    StreamsGroupSubtopologyDescription,
    TopicPartition,
)
from aiokafkawire.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId
from aiokafkawire.network.connector import connect_tcp

pytestmark = pytest.mark.anyio


@pytest.fixture
def group() -> str:
    """A group that no other test uses."""
    return f"group-{token_hex(6)}"


async def test_groups_that_are_no_streams_groups(kafka: Client, topic: str, group: str) -> None:
    where, share = TopicPartition(topic, 0), f"{group}-share"
    missing = f"{group}-missing"
    await kafka.admin.alter_consumer_group_offsets(group, {where: 1})
    await kafka.admin.alter_share_group_offsets(share, {where: 1})
    for call in (kafka.admin.describe_streams_groups, kafka.admin.delete_streams_groups):
        for other in (group, share):
            with pytest.raises(GroupIdNotFound, match=f"of group '{other}': Group {other} is not a streams group"):
                await call(other)
        with pytest.raises(GroupIdNotFound, match=f"of group '{missing}': Group {missing} not found"):
            await call(missing)
        with failing("streams groups failed for 3 of 3: ") as failed:
            await call(group, share, missing)
        assert list(failed.value.errors) == [group, share, missing]
        assert await call([]) in (None, {})
    assert (await kafka.admin.describe_groups(group))[group].state == "Empty"
    await kafka.admin.delete_share_groups(share)


async def test_offsets_of_a_streams_group_are_those_of_any_group(kafka: Client, topic: str, group: str) -> None:
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    admin = kafka.admin
    assert await admin.list_streams_group_offsets(group) == {}
    await admin.alter_streams_group_offsets(group, {zero: 3, one: OffsetAndMetadata(4, "noted")})
    both = {zero: OffsetAndMetadata(3), one: OffsetAndMetadata(4, "noted")}
    assert await admin.list_streams_group_offsets(group, require_stable=True) == both
    assert await admin.list_streams_group_offsets(group, [zero]) == {zero: both[zero]}
    await admin.delete_streams_group_offsets(group, [zero])
    assert await admin.list_streams_group_offsets(group) == {one: both[one]}


@pytest.mark.kafka
async def test_a_streams_group_of_apache_kafka_is_described_changed_and_deleted(
    apache_kafka: ApacheKafka, group: str
) -> None:
    topic, bootstrap = f"topic-{group}", apache_kafka.bootstrap
    where = [TopicPartition(topic, index) for index in range(3)]
    async with Client(bootstrap) as kafka, raw(Where(bootstrap, connect_tcp)) as client:
        admin = kafka.admin
        await admin.create_topics({topic: 3})
        await admin.list_consumer_group_offsets(group)
        member = StreamsMember(client, group, topic)
        await member.join()

        async def described() -> StreamsGroupDescription:
            await member.own_tasks()
            return (await admin.describe_streams_groups(group, include_authorized_operations=True))[group]

        found = await settled(described, lambda one: one.state == "Stable" and bool(member.tasks))
        assert found.coordinator == (await admin.list_groups(types=["streams"]))[0].coordinator
        assert found.authorized_operations is not None
        assert "READ" in found.authorized_operations
        assert (found.group_epoch, found.topology_epoch) == (found.assignment_epoch, 0)
        assert found.subtopologies == (StreamsGroupSubtopologyDescription("0", (topic,), (), (), ()),)
        (known,) = found.members
        assert (known.member_id, known.member_epoch, known.process_id) == (member.member_id, member.epoch, "process")
        assert (known.client_id, known.client_host, known.is_classic) == ("raw", "/127.0.0.1", False)
        assert (known.user_endpoint, known.rack, known.group_instance_id) == (None, None, None)
        tasks = StreamsGroupMemberAssignment({"0": (0, 1, 2)}, {}, {})
        assert known.assignment == known.target_assignment == tasks
        with pytest.raises(UnknownMemberId, match="the group has members"):
            await admin.alter_streams_group_offsets(group, {where[0]: 1})
        with pytest.raises(NonEmptyGroup):
            await admin.delete_streams_groups(group)
        await member.leave()
        assert (await admin.describe_streams_groups(group))[group].state == "Empty"
        await admin.alter_streams_group_offsets(group, {where[0]: 1, where[1]: 2})
        await admin.delete_streams_group_offsets(group, [where[0]])
        assert await admin.list_streams_group_offsets(group) == {where[1]: OffsetAndMetadata(2)}
        with failing("deleting streams groups failed for 1 of 2") as failed:
            await admin.delete_streams_groups(group, f"{group}-missing")
        assert failed.value.results == {group: None}
        assert await admin.list_streams_group_offsets(group) == {}
