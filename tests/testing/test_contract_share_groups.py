"""Members of share groups and the groups' offsets (KIP-932), as Apache Kafka 4.3 keeps them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import anyio
import pytest
from support.group_members import described, listed
from support.patience import PATIENCE
from support.raw_client import RawClient, batch_of
from support.share_members import ACCEPT, ShareMember, configure, kafka_id, new_share_group

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from aiokafkawire.protocol.messages.group import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from aiokafkawire.protocol.messages.group_admin import DeleteGroupsRequest
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic
from aiokafkawire.protocol.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DescribedGroup,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    ShareGroupDescribeRequest,
)

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio

REJOIN = "The member must abandon all its partitions and rejoin."
NO_TOPICS = "SubscribedTopicNames must be set in first request."
New: TypeAlias = Callable[..., Awaitable[ShareMember]]


@pytest.fixture
async def share_group(client: RawClient) -> AsyncIterator[str]:
    async for group in new_share_group(client):
        yield group


@pytest.fixture
async def new(kafka: Kafka, share_group: str) -> AsyncIterator[New]:
    """Makes members that have not joined, each with a connection of its own."""
    async with AsyncExitStack() as stack:

        async def make(group: str = share_group) -> ShareMember:
            return ShareMember(await stack.enter_async_context(await kafka.client()), group)

        yield make


def error(answer: Any) -> tuple[ErrorCode, str | None]:
    return ErrorCode(answer.error_code), answer.error_message


async def shown(client: RawClient, group: str) -> DescribedGroup:
    request = ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=True)
    return (await client.ask(request, 1)).groups[0]


async def settled(members: list[ShareMember], partitions: int) -> list[set[int]]:
    """The partitions of each member, as soon as all partitions have one and no assignment changes."""
    with anyio.fail_after(PATIENCE):
        while True:
            before = [member.epoch for member in members]
            for member in members:
                assert not (await member.heartbeat()).error_code
            found = [{index for _, index in member.assignment} for member in members]
            if [member.epoch for member in members] == before and set().union(*found) == set(range(partitions)):
                return found


async def test_a_member_joins_stays_and_leaves(
    client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str, first: int, release: str | None
) -> None:
    member = await new()
    joined = await member.heartbeat(topic.name or "")
    assert (error(joined), joined.member_id) == ((ErrorCode.NONE, None), member.member_id)
    assert (joined.member_epoch, joined.heartbeat_interval_ms, joined.assignment is None) == (first, 5000, False)
    assert await settled([member], 1) == [{0}]
    assert member.assignment == [(topic.topic_id, 0)]
    again = await member.heartbeat()
    assert (again.member_epoch, again.assignment) == (member.epoch, None)
    group = await shown(client, share_group)
    assert error(group) == (ErrorCode.NONE, None)
    assert (group.group_state, group.assignor_name, group.authorized_operations) == ("Stable", "simple", 3400)
    assert group.group_epoch == group.assignment_epoch == member.epoch
    (known,) = group.members
    assert (known.member_id, known.member_epoch, known.rack_id) == (member.member_id, member.epoch, None)
    assert (known.client_id, known.client_host) == ("raw", "/127.0.0.1")
    assert known.subscribed_topic_names == [topic.name]
    (assigned,) = known.assignment.topic_partitions
    assert (assigned.topic_id, assigned.topic_name, assigned.partitions) == (topic.topic_id, topic.name, [0])
    left = await member.leave()
    assert error(left) == (ErrorCode.NONE, None)
    assert (left.member_epoch, left.member_id, left.heartbeat_interval_ms) == (-1, member.member_id, 0)
    group = await shown(client, share_group)
    assert (group.group_state, group.members) == ("Empty", [])
    is_4_4 = release is not None and release.startswith("4.4")  # which ends with an empty assignment
    assert group.group_epoch == group.assignment_epoch + (not is_4_4)


@pytest.mark.parametrize(("members", "partitions"), [(1, 3), (2, 3), (3, 2), (4, 3), (4, 2)])
async def test_partitions_are_divided_evenly(kafka: Kafka, new: New, members: int, partitions: int) -> None:
    topic = await kafka.topic(partitions)
    joined = [await new() for _ in range(members)]
    for member in joined:
        await member.heartbeat(topic.name or "")
    found = await settled(joined, partitions)
    sharing = -(-members // partitions)
    counts = [sum(index in assigned for assigned in found) for index in range(partitions)]
    assert all(counts)
    assert sum(counts) <= sharing * partitions
    assert min(map(len, found)) >= 1


async def test_members_get_what_leavers_had(kafka: Kafka, new: New) -> None:
    topic = await kafka.topic(2)
    one, other = await new(), await new()
    for member in (one, other):
        await member.heartbeat(topic.name or "")
    assert sorted(map(sorted, await settled([one, other], 2))) == [[0], [1]]
    await other.leave()
    assert await settled([one], 2) == [{0, 1}]


async def test_subscriptions_change(kafka: Kafka, new: New) -> None:
    first, second = await kafka.topic(), await kafka.topic()
    member = await new()
    await member.join(first.name or "")
    assert {name for name, _ in member.assignment} == {first.topic_id}
    await member.heartbeat(first.name or "", second.name or "")
    with anyio.fail_after(PATIENCE):
        while {name for name, _ in member.assignment} != {first.topic_id, second.topic_id}:
            await member.heartbeat()
    await member.heartbeat(second.name or "")
    with anyio.fail_after(PATIENCE):
        while {name for name, _ in member.assignment} != {second.topic_id}:
            await member.heartbeat()


async def test_topics_that_do_not_exist(new: New) -> None:
    member = await new()
    joined = await member.heartbeat("no-such-topic")
    assert error(joined) == (ErrorCode.NONE, None)
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions == []


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid."),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST, NO_TOPICS),
        ({"subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST, NO_TOPICS),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST, None),
        ({"member_id": "x" * 37}, ErrorCode.INVALID_REQUEST, None),
        ({"member_id": " "}, ErrorCode.INVALID_REQUEST, "MemberId can't be empty."),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST, "RackId can't be empty."),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
    ],
)
async def test_wrong_heartbeats(new: New, fields: dict[str, Any], code: ErrorCode, message: str | None) -> None:
    member = await new()
    fields = {"subscribed_topic_names": ["t"], **fields}
    assert error(await member.heartbeat(**fields)) == (code, message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, None),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
    ],
)
async def test_wrong_heartbeats_of_leavers(new: New, fields: dict[str, Any], message: str | None) -> None:
    assert error(await (await new()).heartbeat(epoch=-1, **fields)) == (ErrorCode.INVALID_REQUEST, message)


async def test_groups_and_members_that_do_not_exist(
    client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str
) -> None:
    member = await new()
    missing = ErrorCode.GROUP_ID_NOT_FOUND
    assert error(await member.heartbeat(epoch=3)) == (missing, f"Share group {share_group} not found.")
    assert error(await member.leave()) == (missing, f"Group {share_group} not found.")
    group = await shown(client, share_group)
    assert error(group) == (missing, f"Group {share_group} not found.")
    assert (group.group_state, group.assignor_name, group.authorized_operations) == ("", "", -(2**31))
    await (await new()).join(topic.name or "")
    message = f"Member {member.member_id} is not a member of group {share_group}."
    unknown = (ErrorCode.UNKNOWN_MEMBER_ID, message)
    assert error(await member.heartbeat(epoch=3)) == error(await member.leave()) == unknown


async def raised(member: ShareMember) -> None:
    """Let a member send heartbeats until its epoch is another one."""
    epoch = member.epoch
    with anyio.fail_after(PATIENCE):
        while member.epoch == epoch:
            assert not (await member.heartbeat()).error_code


async def test_epochs_are_fenced(topic: MetadataResponseTopic, new: New) -> None:
    member = await new()
    await member.join(topic.name or "")
    for epoch in (member.epoch + 1, member.epoch + 7):
        refused = await member.heartbeat(epoch=epoch)
        known = f"({epoch}) than the one known by the group coordinator ({member.epoch})"
        message = f"The share group member has a greater member epoch {known}. {REJOIN}"
        assert error(refused) == (ErrorCode.FENCED_MEMBER_EPOCH, message)
    old, other = member.epoch, await new()
    await other.heartbeat(topic.name or "")
    await raised(member)
    await other.leave()
    await raised(member)
    refused = await member.heartbeat(epoch=old)
    assert refused.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    again = await member.heartbeat(topic.name or "", epoch=0)
    assert (again.member_epoch, again.assignment is None) == (member.epoch, False)


async def test_a_heartbeat_with_the_subscription_returns_the_assignment_again(
    topic: MetadataResponseTopic, new: New
) -> None:
    member = await new()
    await member.join(topic.name or "")
    epoch, member.assignment = member.epoch, []
    assert (await member.heartbeat()).assignment is None
    again = await member.heartbeat(topic.name or "")
    assert (error(again), again.member_epoch) == ((ErrorCode.NONE, None), epoch)
    assert member.assignment == [(topic.topic_id, 0)]


async def test_intervals_are_configs_of_the_group(
    client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str
) -> None:
    await configure(client, share_group, share_heartbeat_interval_ms="7000")
    member = await new()
    assert (await member.heartbeat(topic.name or "")).heartbeat_interval_ms == 7000


# --- beside other groups ---------------------------------------------------------------------------------------


def joining(group: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def consumer_heartbeat(group: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        member_epoch=epoch,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )


def commit(group: str, topic: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )


async def test_a_share_group_is_no_classic_group(
    client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str
) -> None:
    member = await new()
    await member.join(topic.name or "")
    assert (await client.ask(joining(share_group), 3)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    heartbeat = HeartbeatRequest(group_id=share_group, generation_id=1, member_id="x")
    assert (await client.ask(heartbeat, 3)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    committed = await client.ask(commit(share_group, topic.name or ""), 8)
    assert committed.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    message = f"Group {share_group} is not a classic group."
    classic = await described(client, share_group)
    assert (error(classic), classic.group_state) == ((ErrorCode.GROUP_ID_NOT_FOUND, message), "Dead")
    assert (await described(client, share_group, 5)).error_code == ErrorCode.NONE


async def test_a_share_group_is_no_consumer_group(
    client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str
) -> None:
    member = await new()
    await member.join(topic.name or "")
    refused = (ErrorCode.GROUP_ID_NOT_FOUND, f"Group {share_group} is not a consumer group.")
    for epoch in (0, 3, -1):
        assert error(await client.ask(consumer_heartbeat(share_group, epoch), 1)) == refused
    describe = ConsumerGroupDescribeRequest(group_ids=[share_group], include_authorized_operations=False)
    assert error((await client.ask(describe, 1)).groups[0]) == refused
    await member.leave()
    assert error(await client.ask(consumer_heartbeat(share_group, 0), 1)) == refused


async def test_a_consumer_group_is_no_share_group(
    client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str
) -> None:
    assert not (await client.ask(consumer_heartbeat(share_group, 0), 1)).error_code
    refused = (ErrorCode.GROUP_ID_NOT_FOUND, f"Group {share_group} is not a share group.")
    member = await new()
    assert error(await member.heartbeat(topic.name or "")) == error(await member.leave()) == refused


async def test_a_classic_group_is_no_share_group(
    client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str
) -> None:
    assert not (await client.ask(joining(share_group), 3)).error_code
    refused = (ErrorCode.GROUP_ID_NOT_FOUND, f"Group {share_group} is not a share group.")
    assert error(await (await new()).heartbeat(topic.name or "")) == refused
    assert error(await shown(client, share_group)) == refused
    assert error(await alter(client, share_group, topic.name or "", 0)) == refused
    assert error(await forget(client, share_group, topic.name or "")) == refused


async def test_share_groups_are_listed(
    client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str
) -> None:
    member = await new()
    await member.join(topic.name or "")
    for types, states in ((["share"], []), ([], ["stable"]), (["SHARE"], ["Stable"])):
        group = (await listed(client, *states, types=types))[share_group]
        assert (group.group_type, group.protocol_type, group.group_state) == ("share", "share", "Stable")
    assert share_group not in await listed(client, types=["classic"])
    await member.leave()
    assert (await listed(client, types=["share"]))[share_group].group_state == "Empty"


async def test_deletion(client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str) -> None:
    member = await new()
    await member.join(topic.name or "")
    (refused,) = (await client.ask(DeleteGroupsRequest(groups_names=[share_group]), 2)).results
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    await member.leave()
    (deleted,) = (await client.ask(DeleteGroupsRequest(groups_names=[share_group]), 2)).results
    assert deleted.error_code == ErrorCode.NONE
    assert (await shown(client, share_group)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


# --- offsets ---------------------------------------------------------------------------------------------------


async def alter(client: RawClient, group: str, topic: str, *offsets: int) -> AlterShareGroupOffsetsResponse:
    """Set the offsets of partitions from 0 on."""
    partitions = [
        AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in enumerate(offsets)
    ]
    asked = AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
    return await client.ask(AlterShareGroupOffsetsRequest(group_id=group, topics=[asked]), 0)


async def alter_once_known(client: RawClient, group: str, topic: str, *offsets: int) -> AlterShareGroupOffsetsResponse:
    """Set offsets of a new topic, which Apache Kafka's coordinator knows a moment later."""
    with anyio.fail_after(PATIENCE):
        while True:
            answer = await alter(client, group, topic, *offsets)
            if answer.error_code or not answer.responses[0].partitions[0].error_code:
                return answer


async def forget(client: RawClient, group: str, topic: str) -> DeleteShareGroupOffsetsResponse:
    asked = DeleteShareGroupOffsetsRequestTopic(topic_name=topic)
    return await client.ask(DeleteShareGroupOffsetsRequest(group_id=group, topics=[asked]), 0)


async def offsets(client: RawClient, group: str, *topics: str, version: int = 1) -> dict[str, list[tuple[int, int]]]:
    """The start offset and the lag of each topic's first two partitions; no topics are all topics."""
    named = [DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0]) for name in topics]
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=named or None)
    (answer,) = (await client.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), version)).groups
    assert error(answer) == (ErrorCode.NONE, None)
    return {
        topic.topic_name: [(partition.start_offset, partition.lag) for partition in topic.partitions]
        for topic in answer.topics
    }


async def test_offsets_of_a_group(client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str) -> None:
    name = topic.name or ""
    await configure(client, share_group, share_auto_offset_reset="earliest")
    assert await offsets(client, share_group) == {}
    assert await offsets(client, share_group, "no-such-topic") == {"no-such-topic": [(-1, -1)]}
    member = await new()
    await member.join(name)
    assert await offsets(client, share_group) == await offsets(client, share_group, name) == {name: [(-1, -1)]}
    await client.produce(name, batch_of(*[b"x"] * 5))
    assert await member.fetched(topic.topic_id) == [(0, 4, 1)]
    assert await offsets(client, share_group) == {name: [(-1, -1)]}
    await member.acknowledge(topic.topic_id, (0, 1, ACCEPT))
    assert await offsets(client, share_group) == {name: [(0, 3)]}
    await member.acknowledge(topic.topic_id, (4, 4, ACCEPT))
    assert await offsets(client, share_group) == {name: [(2, 2)]}
    assert await offsets(client, share_group, version=0) == {name: [(2, -1)]}


async def test_offsets_are_set_while_nobody_reads(
    kafka: Kafka, client: RawClient, new: New, share_group: str, first: int
) -> None:
    topic = await kafka.topic(2)
    name = topic.name or ""
    await client.produce(name, batch_of(*[b"x"] * 5))
    altered = await alter_once_known(client, share_group, name, 3)
    assert error(altered) == (ErrorCode.NONE, None)
    assert [error(partition) for partition in altered.responses[0].partitions] == [(ErrorCode.NONE, None)]
    assert (altered.responses[0].topic_name, altered.responses[0].topic_id) == (name, topic.topic_id)
    group = await shown(client, share_group)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Empty", first - 1, first - 1)
    assert (await offsets(client, share_group))[name][0] == (3, 2)
    member = await new()
    await member.join(name, partitions=2)
    assert await member.fetched(topic.topic_id) == [(3, 4, 1)]
    refused = (ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
    assert error(await alter(client, share_group, name, 0)) == refused
    assert error(await forget(client, share_group, name)) == refused
    await member.leave()
    assert error(await alter(client, share_group, name, 1)) == (ErrorCode.NONE, None)
    assert (await offsets(client, share_group))[name][0] == (1, 4)
    forgotten = await forget(client, share_group, name)
    assert error(forgotten.responses[0]) == (ErrorCode.NONE, None)
    assert await offsets(client, share_group) == {}


async def test_offsets_of_what_does_not_exist(
    client: RawClient, topic: MetadataResponseTopic, new: New, share_group: str
) -> None:
    message = "This server does not host this topic-partition."
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    missing = (ErrorCode.GROUP_ID_NOT_FOUND, f"Group {share_group} not found.")
    assert error(await forget(client, share_group, topic.name or "")) == missing
    await alter(client, share_group, "no-such-topic", 0)
    assert error(await shown(client, share_group)) == missing
    altered = await alter_once_known(client, share_group, topic.name or "", 0, 0)
    assert [error(partition) for partition in altered.responses[0].partitions] == [(ErrorCode.NONE, None), unknown]
    altered = await alter(client, share_group, "no-such-topic", 0)
    assert [error(partition) for partition in altered.responses[0].partitions] == [unknown]
    forgotten = await forget(client, share_group, "no-such-topic")
    assert (error(forgotten.responses[0]), forgotten.responses[0].topic_id) == (unknown, UUID(int=0))
    assert error((await forget(client, share_group, topic.name or "")).responses[0]) == (ErrorCode.NONE, None)
    forgotten = await forget(client, share_group, topic.name or "")
    nothing = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete.")
    assert (error(forgotten.responses[0]), forgotten.responses[0].topic_id) == (nothing, UUID(int=0))


async def test_the_offsets_that_were_set_are_described_and_no_others(
    kafka: Kafka, client: RawClient, share_group: str
) -> None:
    name = (await kafka.topic(2)).name or ""
    await client.produce(name, batch_of(*[b"x"] * 5))
    for offset in (3, 9):
        await alter_once_known(client, share_group, name, offset)
        assert await offsets(client, share_group) == {name: [(offset, 5 - offset)]}


# --- coordinators ----------------------------------------------------------------------------------------------


async def test_the_share_coordinator_of_a_partition(
    client: RawClient, topic: MetadataResponseTopic, share_group: str
) -> None:
    topic_id = kafka_id(topic.topic_id)

    async def found(key: str) -> tuple[str, int, bool]:
        with anyio.fail_after(PATIENCE):
            while True:
                request = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
                (answer,) = (await client.ask(request, 6)).coordinators
                if answer.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    return ErrorCode(answer.error_code).name, answer.port, answer.node_id >= 0

    name, port, _ = await found(f"{share_group}:{topic_id}:0")
    assert (name, port > 0) == ("NONE", True)
    assert await found(f"a:b:{topic_id}:0") == ("NONE", port, True)
    for key in (share_group, f"{share_group}:{topic.topic_id}:0", f"{share_group}:{topic_id}:x"):
        assert await found(key) == ("INVALID_REQUEST", -1, False)
