"""ConsumerGroupHeartbeat, as Apache Kafka answers it (KIP-848)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import anyio
import pytest
from support.consumer_members import ConsumerMember, NewMember, assign_at_once, held, settle
from support.group_members import GroupMember, New, error
from support.patience import PATIENCE
from support.raw_client import RawClient

from aiokafkawire.protocol.messages.metadata import MetadataResponseTopic
from aiokafkawire.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from .conftest import Kafka

pytestmark = pytest.mark.anyio


@pytest.fixture
async def topic(kafka: Kafka) -> MetadataResponseTopic:
    return await kafka.topic(4)


@pytest.fixture
async def member(kafka: Kafka, client: RawClient, group: str, name: str) -> AsyncIterator[NewMember]:
    """Makes members of the group, each with a connection of its own."""
    await assign_at_once(client, group)
    async with AsyncExitStack() as stack:

        async def make(**fields: Any) -> ConsumerMember:
            given = {"topics": [name]} | fields
            return ConsumerMember(await stack.enter_async_context(await kafka.client()), group, **given)

        yield make


# --- members -------------------------------------------------------------------------------------------------------


async def test_the_first_member_gets_everything_at_once(
    member: NewMember, topic: MetadataResponseTopic, first: int
) -> None:
    one = await member()
    joined = await one.join()
    assert (joined.error_code, joined.member_id, joined.error_message) == (0, one.member_id, None)
    assert (joined.member_epoch, joined.heartbeat_interval_ms) == (first, 5_000)
    assert one.assigned == {(topic.topic_id, index) for index in range(4)}
    again = await one.acknowledge()
    assert (again.error_code, again.member_epoch, again.assignment) == (0, first, None)


async def test_in_version_0_the_coordinator_makes_the_member_id(member: NewMember) -> None:
    one = await member()
    joined = await one.join(0, member_id="")
    assert re.fullmatch(r"[\w-]{22}", joined.member_id or "")  # a UUID in Base64
    assert (await one.heartbeat(0)).error_code == 0


async def test_a_partition_moves_when_its_holder_has_given_it_up(
    member: NewMember, topic: MetadataResponseTopic, first: int
) -> None:
    one, other = await member(), await member()
    await one.join()
    await one.acknowledge()
    joined = await other.join()
    assert (joined.member_epoch, other.assigned) == (first + 1, set())

    told = await one.heartbeat()
    assert (told.member_epoch, len(one.assigned or ())) == (first, 2)
    assert (await other.heartbeat()).assignment is None
    late = await one.heartbeat()
    assert (late.member_epoch, late.assignment) == (first, None)

    given_up = await one.acknowledge()
    assert (given_up.member_epoch, given_up.assignment) == (first + 1, None)
    taken = await other.heartbeat()
    assert (taken.member_epoch, len(other.assigned or ())) == (first + 1, 2)
    assert (one.assigned or set()) | (other.assigned or set()) == {(topic.topic_id, index) for index in range(4)}


async def test_who_leaves_leaves_its_partitions(member: NewMember, first: int) -> None:
    one, other = await member(), await member()
    await one.join()
    await other.join()
    await settle(one, other)
    assert (len(one.indexes), len(other.indexes)) == (2, 2)
    left = await other.leave()
    assert (left.error_code, left.member_id, left.member_epoch) == (0, other.member_id, -1)
    assert left.heartbeat_interval_ms == 0
    await settle(one)
    assert (one.epoch, one.indexes) == (first + 2, [0, 1, 2, 3])
    again = await other.leave()
    assert error(again) == "UNKNOWN_MEMBER_ID"
    assert again.error_message == f"Member {other.member_id} is not a member of group {other.group}."


async def test_a_full_heartbeat_is_answered_in_full(member: NewMember, name: str, first: int) -> None:
    one = await member()
    await one.join()
    await one.acknowledge()
    full = await one.heartbeat(
        rebalance_timeout_ms=1_000, subscribed_topic_names=[name], topic_partitions=held(one.owned)
    )
    assert (full.member_epoch, full.assignment is not None) == (first, True)
    part = await one.heartbeat(rebalance_timeout_ms=1_000, subscribed_topic_names=[name])
    assert part.assignment is None


async def test_a_member_joins_again_with_epoch_0(member: NewMember, first: int) -> None:
    one = await member()
    await one.join()
    await one.acknowledge()
    again = await one.join()
    assert (again.error_code, again.member_epoch, one.indexes) == (0, first, [0, 1, 2, 3])


async def test_a_lost_answer_does_not_fence_the_member(member: NewMember, first: int) -> None:
    one, other = await member(), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    await one.heartbeat()
    await one.acknowledge()
    assert one.epoch == first + 1
    again = await one.heartbeat(member_epoch=first, topic_partitions=held(one.owned))
    assert (again.error_code, again.member_epoch) == (0, first + 1)
    assert error(await one.heartbeat(member_epoch=first)) == "FENCED_MEMBER_EPOCH"


async def test_a_heartbeat_that_waits_for_partitions_ends_the_previous_epoch(member: NewMember, first: int) -> None:
    one, other = await member(), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    third = await member()
    await third.join()
    assert (await other.acknowledge()).member_epoch == first + 2
    assert (await other.heartbeat(member_epoch=first + 1, topic_partitions=[])).error_code == 0
    assert (await other.acknowledge()).member_epoch == first + 2
    assert error(await other.heartbeat(member_epoch=first + 1, topic_partitions=[])) == "FENCED_MEMBER_EPOCH"


# --- subscriptions -------------------------------------------------------------------------------------------------


async def test_who_subscribes_to_other_topics_gives_up_the_old_ones(
    kafka: Kafka, member: NewMember, name: str, first: int
) -> None:
    new = await kafka.topic(2)
    one = await member()
    await one.join()
    await one.acknowledge()
    changed = await one.heartbeat(subscribed_topic_names=[new.name])
    assert (changed.member_epoch, one.assigned) == (first, set())
    await settle(one)
    assert (one.epoch, one.assigned) == (first + 1, {(new.topic_id, 0), (new.topic_id, 1)})


async def test_members_with_different_topics(kafka: Kafka, member: NewMember, topic: MetadataResponseTopic) -> None:
    new = await kafka.topic(4)
    one, other = await member(), await member(topics=[topic.name, new.name])
    await one.join()
    await other.join()
    await settle(one, other)
    assert one.assigned == {(topic.topic_id, index) for index in range(4)}
    assert other.assigned == {(new.topic_id, index) for index in range(4)}


async def test_the_range_assignor(kafka: Kafka, member: NewMember, topic: MetadataResponseTopic) -> None:
    new = await kafka.topic(3)
    members = [await member(topics=[topic.name, new.name], member_id=f"{letter}-{uuid4()}") for letter in "ba"]
    for one in members:
        await one.join(server_assignor="range")
    await settle(*members)
    assert members[1].assigned == {
        *((topic.topic_id, index) for index in (0, 1)), *((new.topic_id, index) for index in (0, 1))
    }  # fmt: skip
    assert members[0].assigned == {*((topic.topic_id, index) for index in (2, 3)), (new.topic_id, 2)}


async def test_new_partitions_are_assigned(
    client: RawClient, kafka: Kafka, member: NewMember, name: str, first: int
) -> None:
    one = await member()
    await one.join()
    await one.acknowledge()
    topic = CreatePartitionsTopic(name=name, count=6, assignments=None)
    created = await client.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=False), 3)
    assert created.results[0].error_code == 0
    await kafka.described(client, name, 6)
    await until_assigned(one, 6)
    assert (one.epoch, one.indexes) == (first + 1, [0, 1, 2, 3, 4, 5])


async def test_a_topic_that_comes_later_is_assigned(
    kafka: Kafka, client: RawClient, member: NewMember, first: int
) -> None:
    later = f"later-{uuid4()}"
    one = await member(topics=[later])
    joined = await one.join()
    assert (joined.member_epoch, one.assigned) == (first, set())
    await kafka.topic_with(client, later)
    await until_assigned(one, 1)
    assert one.epoch == first + 1


async def test_a_deleted_topic_is_given_up(client: RawClient, member: NewMember, name: str, first: int) -> None:
    one = await member()
    await one.join()
    await one.acknowledge()
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
    assert (await client.ask(request, 6)).responses[0].error_code == 0
    await until_assigned(one, 0)
    await settle(one)
    assert one.epoch == first + 1


async def test_a_regular_expression(kafka: Kafka, client: RawClient, member: NewMember) -> None:
    stem = f"re.{uuid4()}"
    await kafka.topic_with(client, f"{stem}-a")
    await kafka.topic_with(client, f"x{stem}-a")
    one = await member(topics=None, regex=rf"re\.{stem[3:]}-[[:lower:]]")
    joined = await one.join()
    assert (joined.error_code, joined.member_epoch, one.assigned) == (0, 1, set())
    await until_assigned(one, 1)


async def until_assigned(member: ConsumerMember, count: int) -> None:
    with anyio.fail_after(PATIENCE):
        while len(member.assigned or ()) != count:
            assert (await member.heartbeat()).error_code == 0
    assert (await member.acknowledge()).error_code == 0


BAD_REGULAR_EXPRESSIONS = {
    "(a": "missing closing )",
    "[a": "missing closing ]",
    "a)": "regexp/syntax: internal error",
    "*a": "missing argument to repetition operator",
    "a**": "invalid nested repetition operator",
    "a{1001}": "invalid repeat count",
    "(?=a)": "invalid or unsupported Perl syntax",
    "(?P=a)": "invalid or unsupported Perl syntax",
    "(?P<n-x>a)": "invalid named capture",
    r"\1": "invalid escape sequence",
    r"\p{Letter}": "invalid character class range",
    "[a--]": "invalid character class range",
    "a\\": "trailing backslash at end of expression",
}


@pytest.mark.parametrize("regex", BAD_REGULAR_EXPRESSIONS)
async def test_bad_regular_expressions(member: NewMember, regex: str) -> None:
    one = await member(topics=None, regex=regex)
    refused = await one.join()
    assert error(refused) == "INVALID_REGULAR_EXPRESSION"
    assert refused.error_message == (
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {BAD_REGULAR_EXPRESSIONS[regex]}."
    )
    assert error(await one.heartbeat(member_epoch=1)) == "GROUP_ID_NOT_FOUND"


async def test_regular_expressions_in_the_syntax_of_re2(member: NewMember) -> None:
    one = await member(topics=None, regex="a")
    await one.join()
    for regex in (r"\pL+", "a(?i)b", "(?i-s:a)b", "a{,2}", "^*a", "[[:^alpha:]]", r"[\d-z]", r"\Q.*\E", r"\x{41}"):
        assert (await one.heartbeat(subscribed_topic_regex=regex)).error_code == 0


# --- static members ------------------------------------------------------------------------------------------------


async def test_a_static_member_comes_back_to_its_partitions(member: NewMember, first: int) -> None:
    one, other = await member(instance="a"), await member()
    await one.join()
    await other.join()
    await settle(one, other)
    mine, theirs = one.assigned, other.assigned
    left = await one.leave(-2)
    assert (left.error_code, left.member_epoch, left.member_id) == (0, -2, one.member_id)
    assert (await other.acknowledge()).member_epoch == first + 1
    again = await member(instance="a")
    joined = await again.join()
    assert (joined.member_epoch, again.assigned) == (first + 1, mine)
    await settle(again, other)
    assert other.assigned == theirs
    late = await one.heartbeat(member_epoch=first + 1)
    assert error(late) == "FENCED_INSTANCE_ID"
    assert late.error_message == (
        f"Static member {one.member_id} with instance id a was fenced by member {again.member_id}."
    )
    assert error(await one.leave()) == "FENCED_INSTANCE_ID"
    assert error(await again.leave()) == "NONE"


async def test_a_static_member_comes_back_with_the_same_id(member: NewMember, first: int) -> None:
    one = await member(instance="a")
    await one.join()
    await one.leave(-2)
    joined = await one.join()
    assert (joined.error_code, joined.member_epoch, one.indexes) == (0, first, [0, 1, 2, 3])
    assert error(await one.join()) == "UNRELEASED_INSTANCE_ID"


async def test_an_instance_id_in_use_is_not_given_away(member: NewMember) -> None:
    one, other = await member(instance="a"), await member(instance="a")
    await one.join()
    refused = await other.join()
    assert error(refused) == "UNRELEASED_INSTANCE_ID"
    assert refused.error_message == (
        f"Static member {other.member_id} with instance id a cannot join the group because the instance id is owned "
        f"by {one.member_id} member."
    )
    unknown = await one.heartbeat(instance_id="b")
    assert (error(unknown), unknown.error_message) == ("UNKNOWN_MEMBER_ID", "Instance id b is unknown.")


# --- refusals ------------------------------------------------------------------------------------------------------


async def test_epochs_that_are_fenced(member: NewMember, first: int) -> None:
    one, other = await member(), await member()
    await one.join()
    ahead = await one.heartbeat(member_epoch=first + 1)
    assert error(ahead) == "FENCED_MEMBER_EPOCH"
    assert ahead.error_message == (
        f"The consumer group member has a greater member epoch ({first + 1}) than the one known by the group "
        f"coordinator ({first}). The member must abandon all its partitions and rejoin."
    )
    await other.join()
    await other.leave()
    await settle(one)
    behind = await one.heartbeat(member_epoch=first)
    assert (error(behind), "smaller" in (behind.error_message or "")) == ("FENCED_MEMBER_EPOCH", True)


async def test_who_is_not_there(member: NewMember, new: New, group: str) -> None:
    one = await member()
    missing = await one.heartbeat(member_epoch=1)
    assert (error(missing), missing.error_message) == (
        "GROUP_ID_NOT_FOUND", f"Consumer group {group} not found."
    )  # fmt: skip
    left = await one.leave()
    assert (error(left), left.error_message) == ("GROUP_ID_NOT_FOUND", f"Group {group} not found.")
    await one.join()
    stranger = await member()
    unknown = await stranger.heartbeat(member_epoch=1)
    assert (error(unknown), unknown.error_message) == (
        "UNKNOWN_MEMBER_ID", f"Member {stranger.member_id} is not a member of group {group}."
    )  # fmt: skip


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no member id": ({"member_id": ""}, "INVALID_REQUEST", "MemberId can't be empty."),
    "no group": ({"group_id": " "}, "INVALID_REQUEST", "GroupId can't be empty."),
    "no instance": ({"instance_id": ""}, "INVALID_REQUEST", "InstanceId can't be empty."),
    "no rack": ({"rack_id": ""}, "INVALID_REQUEST", "RackId can't be empty."),
    "no timeout": (
        {"rebalance_timeout_ms": -1},
        "INVALID_REQUEST",
        "RebalanceTimeoutMs must be provided in first request.",
    ),
    "partitions unknown": (
        {"topic_partitions": None},
        "INVALID_REQUEST",
        "TopicPartitions must be empty when (re-)joining.",
    ),
    "partitions": (
        {"topic_partitions": held({(UUID(int=1), 0)})},
        "INVALID_REQUEST",
        "TopicPartitions must be empty when (re-)joining.",
    ),
    "no subscription": (
        {"subscribed_topic_names": None},
        "INVALID_REQUEST",
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    ),
    "leaves for now, not static": ({"member_epoch": -2}, "INVALID_REQUEST", "InstanceId can't be null."),
    "odd epoch": ({"member_epoch": -3}, "INVALID_REQUEST", "MemberEpoch is invalid."),
    "assignor": (
        {"server_assignor": "best"},
        "UNSUPPORTED_ASSIGNOR",
        "ServerAssignor best is not supported. Supported assignors: uniform, range.",
    ),
}


@pytest.mark.parametrize(("fields", "expected", "message"), REFUSED.values(), ids=REFUSED)
async def test_requests_that_are_refused(
    member: NewMember, fields: dict[str, Any], expected: str, message: str
) -> None:
    refused = await (await member()).join(**fields)
    assert (error(refused), refused.error_message) == (expected, message)
    assert (refused.member_id, refused.member_epoch, refused.assignment) == (None, 0, None)


async def test_a_rebalance_timeout_ends_a_membership(member: NewMember) -> None:
    one, other = await member(rebalance_timeout_ms=500), await member()
    await one.join()
    await one.acknowledge()
    await other.join()
    await one.heartbeat()
    with anyio.fail_after(PATIENCE):
        while other.indexes != [0, 1, 2, 3]:
            assert (await other.acknowledge()).error_code == 0
    assert error(await one.heartbeat()) == "UNKNOWN_MEMBER_ID"


# --- classic members -----------------------------------------------------------------------------------------------


async def test_an_empty_group_is_of_either_type(client: RawClient, member: NewMember, new: New, first: int) -> None:
    one, classic = await member(), await new()
    await one.join()
    await one.leave()
    await classic.settle()
    await classic.leave()
    joined = await one.join()
    assert (joined.error_code, joined.member_epoch) == (0, first)


async def test_a_classic_group_of_another_protocol_is_no_consumer_group(
    member: NewMember, new: New, group: str
) -> None:
    one, classic = await member(), await new()
    await classic.settle()
    refused = await one.join()
    assert error(refused) == "GROUP_ID_NOT_FOUND"
    assert refused.error_message == (
        f"Cannot upgrade classic group {group} to consumer group because the group does not use the consumer "
        "embedded protocol."
    )
    stays = await one.heartbeat(member_epoch=1)
    assert (error(stays), stays.error_message) == ("GROUP_ID_NOT_FOUND", f"Group {group} is not a consumer group.")


async def test_requests_of_classic_members_who_are_not_there(member: NewMember, new: New) -> None:
    one, classic = await member(), await new(member_id="nobody", generation=2)
    await one.join()
    assert isinstance(classic, GroupMember)
    assert await classic.heartbeat() == "UNKNOWN_MEMBER_ID"
    assert error(await classic.sync()) == "UNKNOWN_MEMBER_ID"
    assert error((await classic.leave()).members[0]) == "UNKNOWN_MEMBER_ID"
    assert error(await classic.join()) == "INCONSISTENT_GROUP_PROTOCOL"
