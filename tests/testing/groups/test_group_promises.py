"""Members that ask again on another connection, or are put out while they wait: every request is answered."""

from __future__ import annotations

import anyio
import pytest
from support.group_members import GroupMember, error
from support.raw_client import RawClient
from support.virtual_groups import GROUP, Join, both, state

from aiokafkawire.protocol.messages.group import LeaveGroupRequest, MemberIdentity
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


async def regenerated(one: GroupMember, other: GroupMember) -> None:
    """Have both in the next generation, whose parts are not given out yet."""
    joining = await one.ask_to_join()
    await other.hears_of_rebalance()
    await other.join()
    await one.joined(joining)


async def test_a_join_that_is_sent_again_is_answered_twice(new: Join) -> None:
    one, other = await both(new)
    again = await new(member_id=one.member_id)
    first = await one.ask_to_join()
    await other.hears_of_rebalance()
    second = await again.ask_to_join()
    answer = await one.joined(first)
    assert (error(answer), answer.member_id) == ("REBALANCE_IN_PROGRESS", one.member_id)
    await other.join()
    assert (await again.joined(second)).generation_id == other.generation


async def test_a_sync_that_is_sent_again_is_answered_twice(new: Join) -> None:
    one, other = await both(new)
    await regenerated(one, other)
    again = await new(member_id=other.member_id, generation=other.generation)
    first = await other.ask_to_sync()
    await anyio.wait_all_tasks_blocked()
    second = await again.ask_to_sync()
    assert error(await other.synced(first)) == "REBALANCE_IN_PROGRESS"
    await one.sync({one.member_id: b"1", other.member_id: b"2"})
    assert (await again.synced(second)).assignment == b"2"


async def test_who_is_put_out_while_it_waits_for_its_part_is_told(client: RawClient, new: Join) -> None:
    one, other = await both(new)
    await regenerated(one, other)
    waiting = await other.ask_to_sync()
    await anyio.wait_all_tasks_blocked()
    await client.ask(LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=other.member_id)]), 5)
    assert error(await other.synced(waiting)) == "UNKNOWN_MEMBER_ID"
    assert await state(client) == ("PreparingRebalance", 1)


async def test_a_rebalance_timeout_of_0_leaves_time_to_others(client: RawClient, new: Join) -> None:
    one = await new(instance="a")
    await one.settle()
    back = await new(instance="a", rebalance_timeout_ms=0)
    await back.join()
    other = await new(instance="b", rebalance_timeout_ms=500)
    assert (await other.join()).generation_id == 2
    await other.sync({other.member_id: b"mine"})
    await other.leave()
    assert await state(client) == ("PreparingRebalance", 1)


async def test_groups_load_once_when_the_cluster_starts_again() -> None:
    broker = Broker(2, port=None)
    async with broker:
        broker.move_coordinator(GROUP, 3 - broker.coordinator(GROUP), loading=600)
        assert broker._cluster.groups.store.loading
    async with broker:
        assert broker._cluster.groups.store.loading == []
