"""Offsets, descriptions and lists of consumer groups, as Apache Kafka answers them (KIP-848)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from support.consumer_members import ConsumerMember, NewMember, assign_at_once, consumer_group, settle
from support.group_members import described, error, listed
from support.patience import PATIENCE
from support.raw_client import RawClient
from support.transactional import TransactionalProducer

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group_admin import DeleteGroupsRequest
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio


@pytest.fixture
async def topic(kafka: Kafka) -> MetadataResponseTopic:
    return await kafka.topic(2)


@pytest.fixture
async def member(kafka: Kafka, client: RawClient, group: str, name: str) -> AsyncIterator[NewMember]:
    await assign_at_once(client, group)
    async with AsyncExitStack() as stack:

        async def make(**fields: Any) -> ConsumerMember:
            given = {"topics": [name]} | fields
            return ConsumerMember(await stack.enter_async_context(await kafka.client()), group, **given)

        yield make


async def commit(
    client: RawClient, group: str, name: str, epoch: int = -1, member_id: str = "", version: int = 9, index: int = 0
) -> str:
    partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=name, partitions=[partition])],
    )
    return error((await client.ask(request, version)).topics[0].partitions[0])


async def fetch(client: RawClient, group: str, name: str, epoch: int = -1, member_id: str | None = None) -> str | int:
    """The committed offset of the first partition, or the error of the group."""
    topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0])]
    asked = OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=epoch, topics=topics)
    (answer,) = (await client.ask(OffsetFetchRequest(groups=[asked], require_stable=False), 9)).groups
    return error(answer) if answer.error_code else answer.topics[0].partitions[0].committed_offset


# --- offsets -------------------------------------------------------------------------------------------------------


async def test_members_commit_in_their_epoch(member: NewMember, group: str, name: str) -> None:
    one = await member()
    await one.join()
    assert await commit(one.client, group, name, one.epoch, one.member_id) == "NONE"
    assert await commit(one.client, group, name, one.epoch + 1, one.member_id) == "STALE_MEMBER_EPOCH"
    assert await commit(one.client, group, name, one.epoch - 1, one.member_id) == "STALE_MEMBER_EPOCH"
    assert await commit(one.client, group, name, one.epoch, "nobody") == "UNKNOWN_MEMBER_ID"
    assert await commit(one.client, group, name) == "UNKNOWN_MEMBER_ID"
    assert await commit(one.client, group, name, one.epoch, one.member_id, 8) == "UNSUPPORTED_VERSION"


async def test_an_older_epoch_will_do_for_a_partition_held_since(
    member: NewMember, group: str, name: str, first: int
) -> None:
    one, other = await member(), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    await settle(one, other)
    (mine,), (theirs,) = one.indexes, other.indexes
    relaxed = "NONE" if first > 1 else "STALE_MEMBER_EPOCH"  # KIP-1251, since 4.3
    assert one.epoch == first + 1
    assert await commit(one.client, group, name, first, one.member_id, index=mine) == relaxed
    assert await commit(one.client, group, name, first - 1, one.member_id, index=mine) == "STALE_MEMBER_EPOCH"
    assert await commit(one.client, group, name, first, one.member_id, index=theirs) == "STALE_MEMBER_EPOCH"
    assert await commit(other.client, group, name, first, other.member_id, index=theirs) == "STALE_MEMBER_EPOCH"


async def test_anyone_commits_to_a_group_without_members(
    client: RawClient, member: NewMember, group: str, name: str
) -> None:
    one = await member()
    await one.join()
    await one.leave()
    assert await commit(client, group, name) == "NONE"
    assert await commit(client, group, name, 3, "nobody") == "UNKNOWN_MEMBER_ID"
    assert await fetch(client, group, name) == 1


async def test_offsets_outlive_a_change_of_the_type(
    client: RawClient, member: NewMember, group: str, name: str
) -> None:
    assert await commit(client, group, name) == "NONE"
    one = await member()
    assert (await one.join()).error_code == 0
    assert await fetch(client, group, name, one.epoch, one.member_id) == 1


async def test_members_fetch_in_their_epoch(client: RawClient, member: NewMember, group: str, name: str) -> None:
    one = await member()
    await one.join()
    assert await fetch(client, group, name, one.epoch, one.member_id) == -1
    assert await fetch(client, group, name) == -1
    assert await fetch(client, group, name, one.epoch + 1, one.member_id) == "STALE_MEMBER_EPOCH"
    assert await fetch(client, group, name, one.epoch, "nobody") == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("version", [3, 5])
async def test_members_commit_in_transactions(
    client: RawClient, member: NewMember, group: str, name: str, version: int
) -> None:
    producer = await TransactionalProducer(client).initialized()
    one = await member()
    await one.join()

    async def commit(epoch: int = -1, member_id: str = "") -> str:
        await producer.add_offsets(group)
        fields = {"generation_id_or_member_epoch": epoch, "member_id": member_id}
        return ErrorCode(await producer.commit_offset(group, name, 7, version, **fields)).name

    assert await commit(one.epoch, one.member_id) == "NONE"
    assert await commit() == "NONE"
    assert await commit(one.epoch + 1, one.member_id) == "ILLEGAL_GENERATION"
    assert await commit(one.epoch - 1, one.member_id) == "ILLEGAL_GENERATION"
    assert await commit(one.epoch, "nobody") == "UNKNOWN_MEMBER_ID"
    await producer.ended(commit=True)


async def test_offsets_of_subscribed_topics_stay(
    client: RawClient, kafka: Kafka, member: NewMember, group: str, name: str
) -> None:
    other = await kafka.topic()
    one = await member()
    await one.join()
    for topic in (name, other.name or ""):
        assert await commit(client, group, topic, one.epoch, one.member_id) == "NONE"
    topics = [
        OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
        for topic in (name, other.name or "")
    ]
    answer = await client.ask(OffsetDeleteRequest(group_id=group, topics=topics), 0)
    assert [(found.name, error(found.partitions[0])) for found in answer.topics] == [
        (name, "GROUP_SUBSCRIBED_TO_TOPIC"), (other.name, "NONE")
    ]  # fmt: skip


async def test_only_groups_without_members_are_deleted(client: RawClient, member: NewMember, group: str) -> None:
    one = await member()
    await one.join()
    request = DeleteGroupsRequest(groups_names=[group])
    assert error((await client.ask(request, 2)).results[0]) == "NON_EMPTY_GROUP"
    await one.leave()
    assert error((await client.ask(request, 2)).results[0]) == "NONE"
    assert error(await consumer_group(client, group)) == "GROUP_ID_NOT_FOUND"


# --- descriptions --------------------------------------------------------------------------------------------------


async def known(client: RawClient, group: str, state: str) -> Any:
    """The description of a group once it has this state; Apache Kafka describes what is committed."""
    with anyio.fail_after(PATIENCE):
        while (found := await consumer_group(client, group)).group_state != state:
            pass
    return found


async def test_descriptions(
    client: RawClient, member: NewMember, group: str, topic: MetadataResponseTopic, first: int
) -> None:
    one, other = await member(instance="a"), await member(regex="nothing.*")
    await one.join(rack_id="r1")
    await one.acknowledge()
    found = await known(client, group, "Stable")
    assert (found.error_code, found.group_epoch, found.assignment_epoch, found.assignor_name) == (
        0,
        first,
        first,
        "uniform",
    )
    assert found.authorized_operations == -(2**31)
    assert (await consumer_group(client, group, operations=True)).authorized_operations == 3400
    (only,) = found.members
    assert (only.member_id, only.instance_id, only.rack_id, only.member_epoch) == (one.member_id, "a", "r1", first)
    assert (only.client_id, only.subscribed_topic_names) == ("raw", [topic.name])
    assert only.subscribed_topic_regex in (None, "")
    assert only.member_type == 1
    for assignment in (only.assignment, only.target_assignment):
        (part,) = assignment.topic_partitions
        assert (part.topic_id, part.topic_name, sorted(part.partitions)) == (topic.topic_id, topic.name, [0, 1])

    await other.join(server_assignor="range")
    found = await known(client, group, "Reconciling")
    assert found.assignor_name == "range"
    members = {seen.member_id: seen for seen in found.members}
    assert members[other.member_id].subscribed_topic_regex == "nothing.*"
    assert members[other.member_id].assignment.topic_partitions == []
    targets = members[other.member_id].target_assignment.topic_partitions
    assert [len(part.partitions) for part in targets] == [1]
    assert (await consumer_group(client, group, 0)).members[0].member_type == -1

    await settle(one, other)
    await known(client, group, "Stable")
    await other.leave()
    assert (await known(client, group, "Assigning")).group_epoch > found.group_epoch
    await one.leave()
    empty = await known(client, group, "Empty")
    assert (empty.members, empty.assignor_name) == ([], "uniform")


async def test_a_consumer_group_is_not_a_classic_one(client: RawClient, member: NewMember, group: str) -> None:
    missing = await consumer_group(client, group)
    assert (error(missing), missing.error_message) == ("GROUP_ID_NOT_FOUND", f"Group {group} not found.")
    assert (missing.group_state, missing.group_epoch, missing.assignor_name) == ("", 0, "")
    await (await member()).join()
    await known(client, group, "Stable")
    found = await described(client, group)
    assert (error(found), found.group_state) == ("GROUP_ID_NOT_FOUND", "Dead")
    assert found.error_message == f"Group {group} is not a classic group."
    found = await described(client, group, 5)
    assert (error(found), found.group_state) == ("NONE", "Dead")
    assert error(await consumer_group(client, "")) == "INVALID_GROUP_ID"


async def test_a_classic_group_is_not_a_consumer_group(client: RawClient, group: str, name: str) -> None:
    await commit(client, group, name)
    with anyio.fail_after(PATIENCE):
        while (found := await consumer_group(client, group)).error_message == f"Group {group} not found.":
            pass
    assert (error(found), found.error_message) == (
        "GROUP_ID_NOT_FOUND", f"Group {group} is not a consumer group."
    )  # fmt: skip


async def test_lists(client: RawClient, member: NewMember, group: str) -> None:
    await (await member()).join()
    await known(client, group, "Stable")
    found = (await listed(client))[group]
    assert (found.protocol_type, found.group_state, found.group_type) == ("consumer", "Stable", "consumer")
    assert group in await listed(client, types=["Consumer"])
    assert group not in await listed(client, types=["classic"])
    assert group in await listed(client, "STABLE")
    assert group not in await listed(client, "reconciling", "Assigning", "empty")
