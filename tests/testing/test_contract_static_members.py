"""Static members of groups (KIP-345), as Apache Kafka treats them."""

from __future__ import annotations

import pytest
from support.group_members import New, both, error, protocols

pytestmark = pytest.mark.anyio


async def test_a_static_member_needs_no_second_request(new: New) -> None:
    one = await new(instance="a")
    joined = await one.join()
    assert (error(joined), joined.leader) == ("NONE", one.member_id)
    assert one.member_id.startswith("a-")
    assert [member.group_instance_id for member in joined.members] == ["a"]


@pytest.mark.parametrize("version", range(5, 10))
async def test_a_leader_that_is_back_takes_its_place_without_a_rebalance(new: New, version: int) -> None:
    one, back = await new(instance="a"), await new(instance="a")
    await one.settle()
    answer = await back.join(version)
    assert (error(answer), answer.generation_id, answer.member_id) == ("NONE", 1, back.member_id)
    assert back.member_id != one.member_id
    if version >= 9:  # KIP-814
        assert (answer.leader, answer.skip_assignment) == (back.member_id, True)
        assert [member.member_id for member in answer.members] == [back.member_id]
    else:
        assert (answer.leader, answer.skip_assignment, answer.members) == (one.member_id, False, [])
    assert (await back.sync()).assignment == b"mine"
    assert await back.heartbeat() == "NONE"


async def test_a_follower_that_is_back_takes_its_place(new: New) -> None:
    one, other, back = await new(instance="a"), await new(instance="b"), await new(instance="b")
    await both(one, other)
    answer = await back.join()
    assert (answer.generation_id, answer.leader) == (2, one.member_id)
    assert (answer.skip_assignment, answer.members) == (False, [])
    assert (await back.sync()).assignment == b"2"
    assert await one.heartbeat() == "NONE"


async def test_whose_place_was_taken_is_fenced(new: New, group: str) -> None:
    one, back = await new(instance="a"), await new(instance="a")
    await one.settle()
    await back.join()
    assert await one.heartbeat() == "FENCED_INSTANCE_ID"
    assert error(await one.sync()) == "FENCED_INSTANCE_ID"
    answer = await one.join()
    assert (error(answer), answer.member_id) == ("FENCED_INSTANCE_ID", one.member_id)
    assert [error(member) for member in (await one.leave()).members] == ["FENCED_INSTANCE_ID"]
    one.instance = None
    assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"
    assert await back.heartbeat() == "NONE"


async def test_an_instance_of_nobody(new: New) -> None:
    one = await new()
    await one.settle()
    one.instance = "nobody"
    assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"
    assert error(await one.join()) == "UNKNOWN_MEMBER_ID"


async def test_an_instance_with_an_id_that_waits_to_join(new: New) -> None:
    one = await new()
    await one.join()
    one.instance = "a"
    answer = await one.join()
    assert (error(answer), answer.member_id) == ("UNKNOWN_SERVER_ERROR", "")


async def test_who_waits_to_join_is_fenced_by_its_return(new: New) -> None:
    one, other, back = await new(), await new(instance="b"), await new(instance="b")
    await one.settle()
    joining = await other.ask_to_join()
    await one.hears_of_rebalance()
    returning = await back.ask_to_join()
    answer = await other.joined(joining)
    assert (error(answer), answer.leader) == ("FENCED_INSTANCE_ID", "")
    assert (await one.join()).generation_id == (await back.joined(returning)).generation_id == 2


async def test_who_waits_for_its_part_is_fenced_by_its_return(new: New) -> None:
    one, other, back = await new(), await new(instance="b"), await new(instance="b")
    await one.settle()
    joining = await other.ask_to_join()
    await one.hears_of_rebalance()
    await one.join()
    await other.joined(joining)
    waiting = await other.ask_to_sync()
    assert await one.heartbeat() == "NONE"
    returning = await back.ask_to_join()
    assert error(await other.synced(waiting)) == "FENCED_INSTANCE_ID"
    await one.hears_of_rebalance()  # whom the leader assigns to is not there any more
    assert (await one.join()).generation_id == (await back.joined(returning)).generation_id == 3


async def test_a_return_that_changes_the_protocol_begins_a_rebalance(new: New) -> None:
    one = await new(protocols=protocols("range", "roundrobin"))
    other, back = await new(instance="b", protocols=protocols("range", "roundrobin")), await new(instance="b")
    await both(one, other)
    back.protocols = protocols("roundrobin")
    returning = await back.ask_to_join()
    await one.hears_of_rebalance()
    assert (await one.join()).protocol_name == (await back.joined(returning)).protocol_name == "roundrobin"


async def test_static_members_stay_when_they_do_not_join_in_time(new: New) -> None:
    one, other = await new(instance="a", rebalance_timeout_ms=200), await new(rebalance_timeout_ms=200)
    await one.settle()
    answer = await other.enter()
    assert {member.group_instance_id for member in answer.members} == {"a", None}
    assert answer.leader == other.member_id
    one.generation = 2
    assert await one.heartbeat() == "NONE"
