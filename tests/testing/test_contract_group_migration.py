"""Classic groups that become consumer groups and back while they have members, as in Apache Kafka (KIP-848)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from support.consumer_members import ConsumerMember, NewMember, assign_at_once, consumer_group
from support.group_members import GroupMember, New, described, error, subscription
from support.patience import PATIENCE
from support.raw_client import RawClient

from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic
from aiokafkawire.protocol.primitives import Buffer

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


@pytest.fixture
def classic(new: New, name: str) -> New:
    """Makes classic consumers of the topic."""

    async def make(**fields: Any) -> GroupMember:
        given = {"protocol_type": "consumer", "protocols": [("range", subscription(name))]} | fields
        return await new(**given)

    return make


def assignment(topic: str, *indexes: int, user_data: bytes | None = None) -> bytes:
    parts = [ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=list(indexes))]
    return b"\0\0" + encode(ConsumerProtocolAssignment(assigned_partitions=parts, user_data=user_data), 0)


def owning(topic: str, *indexes: int) -> list[tuple[str, bytes]]:
    """Protocols whose subscription tells what the member owns."""
    owned = [ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=list(indexes))]
    return [("range", b"\0\1" + encode(ConsumerProtocolSubscription(topics=[topic], owned_partitions=owned), 1))]


def indexes(assigned: Buffer) -> list[int]:
    parts = decode(ConsumerProtocolAssignment, 0, bytes(assigned)[2:]).assigned_partitions
    return sorted(index for part in parts for index in part.partitions)


async def settled(member: GroupMember, name: str) -> None:
    """The member leads a group of its own, and reads both partitions."""
    await member.enter()
    assert (await member.sync({member.member_id: assignment(name, 0, 1)})).error_code == 0


# --- upgrades ------------------------------------------------------------------------------------------------------


async def test_a_classic_group_is_upgraded(
    client: RawClient, member: NewMember, classic: New, group: str, name: str
) -> None:
    old, new = await classic(), await member()
    await settled(old, name)
    joined = await new.join()
    assert (joined.error_code, joined.member_epoch, new.assigned) == (0, 2, set())
    found = await consumer_group(client, group)
    assert sorted(seen.member_type for seen in found.members) == [0, 1]
    assert error(await described(client, group)) == "GROUP_ID_NOT_FOUND"

    assert await old.heartbeat() == "REBALANCE_IN_PROGRESS"
    assert error(await old.sync()) == "REBALANCE_IN_PROGRESS"
    old.protocols = owning(name, 0, 1)
    rejoined = await old.join()
    assert (rejoined.error_code, rejoined.generation_id, rejoined.protocol_name) == (0, 1, "range")
    assert (rejoined.protocol_type, rejoined.leader, rejoined.members) == ("consumer", "", [])
    synced = await old.sync()
    (mine,) = indexes(synced.assignment)
    assert await old.heartbeat() == "REBALANCE_IN_PROGRESS"
    old.protocols = owning(name, mine)
    assert (await old.join()).generation_id == 2
    assert indexes((await old.sync()).assignment) == [mine]
    assert await old.heartbeat() == "NONE"
    await new.heartbeat()
    assert sorted([*new.indexes, mine]) == [0, 1]


async def test_a_classic_member_that_gives_up_everything(member: NewMember, classic: New, name: str) -> None:
    old, new = await classic(), await member()
    await settled(old, name)
    await new.join()
    rejoined = await old.join()
    assert (rejoined.error_code, rejoined.generation_id) == (0, 2)
    (mine,) = indexes((await old.sync()).assignment)
    await new.heartbeat()
    assert sorted([*new.indexes, mine]) == [0, 1]


async def test_an_upgrade_ends_a_rebalance(member: NewMember, classic: New, name: str) -> None:
    old, other, new = await classic(), await classic(), await member()
    await settled(old, name)
    waiting = await other.ask_to_enter()
    await old.hears_of_rebalance()
    assert (await new.join()).error_code == 0
    assert error(await other.joined(waiting)) == "REBALANCE_IN_PROGRESS"
    assert (await other.join()).error_code == 0


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (b"\0\0\1", "the embedded consumer protocol is malformed."),
        (
            None,
            (
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
                "assignor before re-attempting the upgrade."
            ),
        ),
    ],
    ids=["malformed", "custom"],
)
async def test_groups_that_cannot_be_upgraded(
    client: RawClient, member: NewMember, classic: New, group: str, name: str, part: bytes | None, reason: str
) -> None:
    old, new = await classic(), await member()
    await old.enter()
    await old.sync({old.member_id: assignment(name, 0, user_data=b"own") if part is None else part})
    refused = await new.join()
    assert (error(refused), refused.error_message) == (
        "GROUP_ID_NOT_FOUND", f"Cannot upgrade classic group {group} to consumer group because {reason}"
    )  # fmt: skip
    assert await old.heartbeat() == "NONE"


# --- classic members of consumer groups ----------------------------------------------------------------------------


async def test_a_classic_member_joins_a_consumer_group(member: NewMember, classic: New, first: int) -> None:
    one, late = await member(), await classic()
    await one.join()
    await one.acknowledge()
    required = await late.join()
    assert error(required) == "MEMBER_ID_REQUIRED"
    joined = await late.join()
    assert (joined.error_code, joined.generation_id, joined.skip_assignment) == (0, first + 1, False)
    synced = await late.sync()
    assert (synced.protocol_type, synced.protocol_name, indexes(synced.assignment)) == ("consumer", "range", [])
    assert await late.heartbeat() == "NONE"
    await one.heartbeat()
    assert await late.heartbeat() == "NONE"
    await one.acknowledge()
    assert await late.heartbeat() == "REBALANCE_IN_PROGRESS"
    assert (await late.join()).generation_id == first + 1
    assert sorted(indexes((await late.sync()).assignment) + one.indexes) == [0, 1]
    assert await late.heartbeat() == "NONE"
    left = await late.leave()
    assert [error(seen) for seen in left.members] == ["NONE"]
    assert error((await late.leave()).members[0]) == "UNKNOWN_MEMBER_ID"
    await one.heartbeat()
    assert one.indexes == [0, 1]


async def test_requests_of_classic_members_that_are_refused(member: NewMember, classic: New, new: New) -> None:
    one, late = await member(), await classic()
    await one.join()
    await late.enter()
    late.generation += 1
    assert await late.heartbeat() == "ILLEGAL_GENERATION"
    assert error(await late.sync()) == "ILLEGAL_GENERATION"
    late.generation -= 1
    late.protocols = [("other", b"")]
    assert error(await late.sync()) == "INCONSISTENT_GROUP_PROTOCOL"
    assert error(await late.join()) == "INCONSISTENT_GROUP_PROTOCOL"
    assert error(await (await classic(session_timeout_ms=1)).join()) == "INVALID_SESSION_TIMEOUT"
    stranger = await new(member_id=one.member_id, generation=one.epoch, protocol_type="consumer")
    assert await stranger.heartbeat() == "UNKNOWN_MEMBER_ID"


async def test_classic_members_commit_in_their_generation(
    client: RawClient, member: NewMember, classic: New, group: str, name: str
) -> None:
    async def commit(who: GroupMember, generation: int, version: int = 8) -> str:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=who.member_id,
            topics=[OffsetCommitRequestTopic(name=name, partitions=[partition])],
        )
        return error((await client.ask(request, version)).topics[0].partitions[0])

    one, late = await member(), await classic()
    await one.join()
    await late.enter()
    assert await commit(late, late.generation) == "NONE"
    assert await commit(late, late.generation + 1) == "ILLEGAL_GENERATION"
    assert await commit(late, late.generation - 1) == "ILLEGAL_GENERATION"


# --- downgrades ----------------------------------------------------------------------------------------------------


async def test_without_consumer_members_a_group_is_downgraded(
    client: RawClient, member: NewMember, classic: New, group: str, name: str
) -> None:
    old, new = await classic(), await member()
    await settled(old, name)
    await new.join()
    await old.join()
    await old.sync()
    assert (await new.leave()).error_code == 0
    with anyio.fail_after(PATIENCE):
        while (found := await described(client, group)).error_code:
            pass
    assert (found.group_state, found.protocol_type, len(found.members)) == ("PreparingRebalance", "consumer", 1)
    assert error(await consumer_group(client, group)) == "GROUP_ID_NOT_FOUND"
    assert await old.heartbeat() == "REBALANCE_IN_PROGRESS"
    joined = await old.join()
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 3, old.member_id)
    assert (await old.sync({old.member_id: assignment(name, 0, 1)})).error_code == 0
    assert await old.heartbeat() == "NONE"


async def test_a_classic_member_takes_the_place_of_a_static_one(
    client: RawClient, member: NewMember, classic: New, group: str, name: str, first: int
) -> None:
    new = await member(instance="a")
    await new.join()
    await new.acknowledge()
    await new.leave(-2)
    old = await classic(instance="a", protocols=owning(name))
    joined = await old.join()
    assert (joined.error_code, joined.generation_id) == (0, first)
    with anyio.fail_after(PATIENCE):
        while (found := await described(client, group)).error_code:
            pass
    assert (found.group_state, [seen.member_id for seen in found.members]) == ("Stable", [old.member_id])
    assert indexes((await old.sync()).assignment) == [0, 1]
    assert await old.heartbeat() == "NONE"


async def test_a_static_member_changes_its_protocol(member: NewMember, classic: New, name: str) -> None:
    old, other = await classic(instance="a"), await member()
    await settled(old, name)
    await other.join()
    new = await member(instance="a")
    joined = await new.join()
    assert joined.error_code == 0
    await new.acknowledge()
    await other.heartbeat()
    assert sorted(new.indexes + other.indexes) == [0, 1]
    assert await old.heartbeat() == "FENCED_INSTANCE_ID"
