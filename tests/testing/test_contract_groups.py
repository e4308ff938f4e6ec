"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup, as Apache Kafka answers them."""

from __future__ import annotations

from typing import Any

import pytest
from support.group_members import (
    New,
    both,
    described,
    described_once_known,
    error,
    listed,
    protocols,
    subscription,
)
from support.raw_client import RawClient

from aiokafkawire.protocol.messages.group import LeaveGroupRequest, MemberIdentity, SyncGroupRequest

pytestmark = pytest.mark.anyio


# --- one member ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(10))
async def test_a_member_comes_stays_and_goes(client: RawClient, new: New, group: str, version: int) -> None:
    one = await new()
    joined = await one.enter(version)
    assert (joined.generation_id, joined.leader, joined.skip_assignment) == (1, one.member_id, False)
    assert (joined.protocol_type, joined.protocol_name) == ("raw" if version >= 7 else None, "range")
    assert [(m.member_id, m.group_instance_id, bytes(m.metadata)) for m in joined.members] == [
        (one.member_id, None, b"of range")
    ]
    assert one.member_id.startswith("raw-")
    assert (await described_once_known(client, group)).group_state == "CompletingRebalance"

    synced = await one.sync({one.member_id: b"all"}, min(version, 5))
    assert (synced.error_code, synced.assignment) == (0, b"all")
    assert (synced.protocol_type, synced.protocol_name) == (("raw", "range") if version >= 5 else (None, None))
    assert await one.heartbeat(min(version, 4)) == "NONE"
    assert (await described(client, group)).group_state == "Stable"

    left = await one.leave(min(version, 5))
    assert left.error_code == 0
    assert [(m.member_id, m.error_code) for m in left.members] == ([(one.member_id, 0)] if version >= 3 else [])
    assert (await described(client, group)).group_state == "Empty"
    assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("version", range(4, 10))
async def test_who_comes_without_an_id_is_given_one(client: RawClient, new: New, group: str, version: int) -> None:
    one = await new()
    answer = await one.join(version)
    assert (error(answer), answer.generation_id, answer.leader) == ("MEMBER_ID_REQUIRED", -1, "")
    assert answer.protocol_name == (None if version >= 7 else "")
    found = await described_once_known(client, group)
    assert (found.group_state, found.protocol_type, found.members) == ("Empty", "", [])
    assert (await listed(client))[group].protocol_type == ""


REFUSED_JOINS = {
    "no group": ({"group": ""}, "INVALID_GROUP_ID"),
    "too short a session": ({"session_timeout_ms": 5_999}, "INVALID_SESSION_TIMEOUT"),
    "too long a session": ({"session_timeout_ms": 1_800_001}, "INVALID_SESSION_TIMEOUT"),
    "no protocol": ({"protocols": []}, "INCONSISTENT_GROUP_PROTOCOL"),
    "no protocol type": ({"protocol_type": ""}, "INCONSISTENT_GROUP_PROTOCOL"),
    "an id in a group that is not there": ({"member_id": "raw-1"}, "UNKNOWN_MEMBER_ID"),
    "no group, too short a session": ({"group": "", "session_timeout_ms": 1}, "INVALID_GROUP_ID"),
}


@pytest.mark.parametrize("version", [0, 6, 7, 9])
@pytest.mark.parametrize(("fields", "expected"), REFUSED_JOINS.values(), ids=REFUSED_JOINS)
async def test_joins_that_are_refused(new: New, fields: dict[str, Any], expected: str, version: int) -> None:
    one = await new()
    for name, value in fields.items():
        setattr(one, name, value)
    answer = await one.join(version)
    assert (error(answer), answer.member_id, answer.leader) == (expected, one.member_id, "")
    assert (answer.generation_id, answer.members) == (-1, [])
    assert answer.protocol_name == (None if version >= 7 else "")


async def test_a_refused_join_makes_the_group_all_the_same(client: RawClient, new: New, group: str) -> None:
    assert error(await (await new(protocols=[])).join()) == "INCONSISTENT_GROUP_PROTOCOL"
    assert (await described_once_known(client, group)).group_state == "Empty"


@pytest.mark.parametrize(
    "fields",
    [{"protocols": protocols("roundrobin")}, {"protocol_type": "connect"}, {"protocols": []}, {"protocol_type": ""}],
)
async def test_protocols_must_fit_the_group(new: New, fields: dict[str, Any]) -> None:
    await (await new()).settle()
    assert error(await (await new(**fields)).join()) == "INCONSISTENT_GROUP_PROTOCOL"


async def test_a_member_cannot_change_to_what_no_other_knows(new: New) -> None:
    one = await new()
    await one.settle()
    one.protocols = protocols("roundrobin")
    assert error(await one.join()) == "INCONSISTENT_GROUP_PROTOCOL"
    assert await one.heartbeat() == "NONE"


async def test_an_id_of_nobody(new: New) -> None:
    await (await new()).settle()
    stranger = await new(member_id="raw-of-nobody", generation=1)
    assert error(await stranger.join()) == "UNKNOWN_MEMBER_ID"
    assert error(await stranger.sync()) == "UNKNOWN_MEMBER_ID"
    assert await stranger.heartbeat() == "UNKNOWN_MEMBER_ID"
    assert [error(member) for member in (await stranger.leave()).members] == ["UNKNOWN_MEMBER_ID"]
    assert error(await stranger.leave(2)) == "UNKNOWN_MEMBER_ID"


async def test_a_group_of_nobody(new: New) -> None:
    one = await new(member_id="raw-1", generation=1)
    assert error(await one.sync()) == "UNKNOWN_MEMBER_ID"
    assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"
    left = await one.leave()
    assert (left.error_code, [error(member) for member in left.members]) == (0, ["UNKNOWN_MEMBER_ID"])
    assert error(await one.leave(0)) == "UNKNOWN_MEMBER_ID"


async def test_no_group_id(new: New) -> None:
    one = await new(member_id="raw-1", generation=1)
    one.group = ""
    assert error(await one.sync()) == await one.heartbeat() == "INVALID_GROUP_ID"
    for version in (0, 2, 3, 5):
        left = await one.leave(version)
        assert (error(left), left.members) == ("INVALID_GROUP_ID", [])


async def test_another_generation(new: New) -> None:
    one = await new()
    await one.settle()
    for one.generation in (0, 2, -1):
        assert error(await one.sync()) == "ILLEGAL_GENERATION"
        assert await one.heartbeat() == "ILLEGAL_GENERATION"


async def test_sync_must_name_the_protocol(new: New, group: str) -> None:
    one = await new()
    await one.enter()
    for kind, name in (("raw", None), (None, "range"), (None, None), ("connect", "range"), ("raw", "roundrobin")):
        for version in (4, 5):
            if version == 4 and (kind, name) != (None, None):
                continue  # it cannot say
            request = SyncGroupRequest(
                group_id=group,
                generation_id=one.generation,
                member_id=one.member_id,
                protocol_type=kind,
                protocol_name=name,
                assignments=[],
            )
            if version == 5:
                assert error(await one.client.ask(request, 5)) == "INCONSISTENT_GROUP_PROTOCOL"
    assert error(await one.sync(version=4)) == "NONE"


async def test_a_leader_that_forgets_itself_gets_nothing(new: New) -> None:
    one = await new()
    await one.enter()
    synced = await one.sync({"someone else": b"part"})
    assert (synced.error_code, synced.assignment) == (0, b"")


async def test_a_part_can_be_asked_for_again(new: New) -> None:
    one = await new()
    await one.settle()
    synced = await one.sync({one.member_id: b"another"})
    assert (synced.error_code, synced.assignment, synced.protocol_name) == (0, b"mine", "range")


async def test_a_join_that_was_answered_in_vain_is_answered_again(new: New) -> None:
    one = await new()
    first = await one.enter()
    assert await one.join() == first
    assert one.generation == 1


async def test_a_generation_follows_on_each_return(client: RawClient, new: New, group: str) -> None:
    for generation in (1, 3, 5):  # an empty group is a generation, too
        one = await new()
        assert (await one.enter()).generation_id == generation
        await one.leave()
    assert (await described_once_known(client, group)).protocol_type == "raw"


async def test_a_group_without_members_takes_any_type(client: RawClient, new: New, group: str) -> None:
    one, other = await new(), await new(protocol_type="connect", protocols=protocols("sessioned"))
    await one.settle()
    await one.leave()
    assert (await other.enter()).protocol_type == "connect"
    assert (await described(client, group)).protocol_type == "connect"


# --- several members -----------------------------------------------------------------------------------------------


async def test_a_second_member_brings_a_rebalance(client: RawClient, new: New, group: str) -> None:
    one, other = await new(), await new()
    await one.settle()
    joining = await other.ask_to_enter()
    await one.hears_of_rebalance()
    assert (await described(client, group)).group_state == "PreparingRebalance"
    assert error(await one.sync()) == "REBALANCE_IN_PROGRESS"
    first, second = await one.join(), await other.joined(joining)
    assert first.generation_id == second.generation_id == 2
    assert first.leader == second.leader == one.member_id
    assert {member.member_id for member in first.members} == {one.member_id, other.member_id}
    assert second.members == []
    waiting = await other.ask_to_sync()
    assert await one.heartbeat() == "NONE"
    assert (await one.sync({one.member_id: b"1", other.member_id: b"2"})).assignment == b"1"
    assert (await other.synced(waiting)).assignment == b"2"


async def test_a_follower_that_has_nothing_new_to_say_stays_in_its_generation(new: New) -> None:
    one, other = await new(), await new()
    await both(one, other)
    answer = await other.join()
    assert (error(answer), answer.generation_id, answer.leader) == ("NONE", 2, one.member_id)
    assert answer.members == []
    assert await one.heartbeat() == "NONE"


async def test_a_leader_that_joins_again_begins_a_rebalance(new: New) -> None:
    one, other = await new(), await new()
    await both(one, other)
    joining = await one.ask_to_join()
    await other.hears_of_rebalance()
    assert (await other.join()).generation_id == (await one.joined(joining)).generation_id == 3


async def test_a_follower_that_has_something_new_to_say_begins_a_rebalance(new: New) -> None:
    one, other = await new(), await new()
    await both(one, other)
    other.protocols = protocols("range", metadata=b"new")
    joining = await other.ask_to_join()
    await one.hears_of_rebalance()
    roster = {member.member_id: bytes(member.metadata) for member in (await one.join()).members}
    assert roster == {one.member_id: b"of range", other.member_id: b"new"}
    assert (await other.joined(joining)).generation_id == 3


async def test_a_rebalance_interrupts_who_waits_for_its_part(new: New) -> None:
    one, other = await new(), await new()
    await one.settle()
    joining = await other.ask_to_enter()
    await one.hears_of_rebalance()
    await one.join()
    await other.joined(joining)
    waiting = await other.ask_to_sync()
    assert await one.heartbeat() == "NONE"
    one.protocols = protocols("range", metadata=b"new")
    joining = await one.ask_to_join()
    answer = await other.synced(waiting)
    assert (error(answer), answer.assignment) == ("REBALANCE_IN_PROGRESS", b"")
    assert (await other.join()).generation_id == (await one.joined(joining)).generation_id == 3


async def test_a_follower_s_leaving_is_told_by_a_heartbeat(new: New) -> None:
    one, other = await new(), await new()
    await both(one, other)
    await other.leave()
    assert await one.heartbeat() == "REBALANCE_IN_PROGRESS"
    answer = await one.join()
    assert (answer.generation_id, len(answer.members)) == (3, 1)


async def test_when_the_leader_leaves_another_leads(new: New) -> None:
    one, other = await new(), await new()
    await both(one, other)
    await one.leave()
    assert await other.heartbeat() == "REBALANCE_IN_PROGRESS"
    assert (await other.join()).leader == other.member_id


@pytest.mark.parametrize(
    ("likes", "chosen"),
    [
        (["ab", "ba", "ba"], "b"),
        (["ab", "ab", "ba"], "a"),
        (["abc", "cb", "bc"], "b"),
        (["ab", "ba"], None),
        (["range roundrobin", "roundrobin range"], None),
        (["sticky cooperative-sticky", "cooperative-sticky sticky"], None),
        (["range cooperative-sticky", "cooperative-sticky range"], None),
    ],
)
async def test_the_protocol_that_most_prefer(new: New, likes: list[str], chosen: str | None) -> None:
    members = [await new(protocols=protocols(*(like.split() if " " in like else like))) for like in likes]
    await members[0].settle()
    joining = [await member.ask_to_enter() for member in members[1:]]
    if len(members) > 2:
        # One connection after the other: nobody else knows when a JoinGroup has arrived.
        await members[0].hears_of_rebalance()
    await members[0].hears_of_rebalance()
    answer = await members[0].join()
    while len(answer.members) < len(members):  # the last came too late for this generation
        await members[0].hears_of_rebalance()
        for member, sent in list(zip(members[1:], joining, strict=True)):
            if any(one.member_id == member.member_id for one in answer.members):
                await member.joined(sent)
                joining[members.index(member) - 1] = await member.ask_to_join()
        answer = await members[0].join()
    ties = {"ab": "a", "range roundrobin": "range", "sticky cooperative-sticky": "sticky"}
    assert answer.protocol_name == (chosen or ties.get(likes[0], "range"))
    roster = {one.member_id: bytes(one.metadata) for one in answer.members}
    assert set(roster.values()) == {b"of " + (answer.protocol_name or "").encode()}


async def test_who_does_not_join_in_time_is_out(new: New) -> None:
    one, other = await new(rebalance_timeout_ms=200), await new(rebalance_timeout_ms=200)
    await one.settle()
    answer = await other.enter()
    assert (answer.leader, len(answer.members)) == (other.member_id, 1)
    assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"


async def test_in_version_0_the_session_timeout_is_the_rebalance_timeout(new: New) -> None:
    one = await new(rebalance_timeout_ms=1)
    await one.enter(0)
    await one.sync({}, 0)
    other = await new(rebalance_timeout_ms=1)
    joining = await other.ask_to_join(0)
    await one.hears_of_rebalance()
    assert (await one.join(0)).generation_id == (await other.joined(joining, 0)).generation_id == 2


async def test_a_leader_that_does_not_assign_in_time_is_out(new: New) -> None:
    one, other = await new(rebalance_timeout_ms=300), await new(rebalance_timeout_ms=300)
    await one.settle()
    joining = await other.ask_to_enter()
    await one.hears_of_rebalance()
    await one.join()
    await other.joined(joining)
    assert error(await other.sync()) == "REBALANCE_IN_PROGRESS"
    assert (await other.join()).leader == other.member_id
    assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"


# --- leaving -------------------------------------------------------------------------------------------------------


async def test_who_was_given_an_id_can_leave_before_joining(new: New) -> None:
    one = await new()
    await one.join()
    assert [error(member) for member in (await one.leave()).members] == ["NONE"]
    assert error(await one.join()) == "UNKNOWN_MEMBER_ID"


async def test_a_rebalance_waits_for_who_was_given_an_id(client: RawClient, new: New, group: str) -> None:
    one, other, third = await new(), await new(), await new()
    await both(one, other)
    assert error(await third.join()) == "MEMBER_ID_REQUIRED"
    joining = await one.ask_to_join()
    await other.hears_of_rebalance()
    again = await other.ask_to_join()
    assert await third.heartbeat() == "UNKNOWN_MEMBER_ID"
    assert (await described(client, group)).group_state == "PreparingRebalance"
    assert (await third.leave()).error_code == 0
    assert (await one.joined(joining)).generation_id == (await other.joined(again)).generation_id == 3


async def test_several_leave_at_once(new: New, group: str) -> None:
    one, other, static = await new(), await new(), await new(instance="s")
    await both(one, other)
    joining = await static.ask_to_enter()
    await one.hears_of_rebalance()
    await one.ask_to_join()
    await other.hears_of_rebalance()
    request = LeaveGroupRequest(
        group_id=group,
        members=[
            MemberIdentity(member_id=other.member_id, reason="tired"),
            MemberIdentity(member_id="nobody"),
            MemberIdentity(member_id="", group_instance_id="s"),
            MemberIdentity(member_id="", group_instance_id="nobody"),
            MemberIdentity(member_id=""),
            MemberIdentity(member_id=one.member_id, group_instance_id="s"),
        ],
    )
    left = await other.client.ask(request, 5)
    assert left.error_code == 0
    assert [(m.member_id, m.group_instance_id, error(m)) for m in left.members] == [
        (other.member_id, None, "NONE"),
        ("nobody", None, "UNKNOWN_MEMBER_ID"),
        ("", "s", "NONE"),
        ("", "nobody", "UNKNOWN_MEMBER_ID"),
        ("", None, "UNKNOWN_MEMBER_ID"),
        (one.member_id, "s", "UNKNOWN_MEMBER_ID"),
    ]
    answer = await static.joined(joining)
    assert (error(answer), answer.member_id) == ("UNKNOWN_MEMBER_ID", "")


# --- consumers -----------------------------------------------------------------------------------------------------


async def test_metadata_is_the_members_own_affair(new: New) -> None:
    for metadata in (b"\0", b"\x7f\xff", subscription("t")):
        one = await new(protocol_type="consumer", protocols=[("range", metadata)])
        joined = await one.enter()
        assert [bytes(member.metadata) for member in joined.members] == [metadata]
        await one.leave()
