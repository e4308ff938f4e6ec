"""Members that say nothing for too long."""

from __future__ import annotations

import anyio
import pytest
from support.group_members import error
from support.raw_client import RawClient
from support.virtual_groups import Join, Watch, both, commit, state

pytestmark = pytest.mark.anyio


async def test_a_silent_member_is_out_when_its_session_ends(client: RawClient, new: Join) -> None:
    one = await new(session_timeout_ms=10_000)
    await one.settle()
    await anyio.sleep(9.999)
    assert await state(client) == ("Stable", 1)
    await anyio.sleep(0.002)
    assert await state(client) == ("Empty", 0)
    assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("sign_of_life", ["heartbeat", "commit", "join"])
async def test_signs_of_life_begin_the_session_anew(client: RawClient, new: Join, sign_of_life: str) -> None:
    one = await new(session_timeout_ms=10_000)
    await one.settle()
    for _ in range(5):
        await anyio.sleep(9)
        if sign_of_life == "heartbeat":
            assert await one.heartbeat() == "NONE"
        elif sign_of_life == "commit":
            assert await commit(one) == "NONE"
        else:
            await one.join()
            await one.sync()
    assert await state(client) == ("Stable", 1)


async def test_asking_for_the_part_is_no_sign_of_life_once_it_is_there(client: RawClient, new: Join) -> None:
    one = await new(session_timeout_ms=10_000)
    await one.settle()
    await anyio.sleep(9)
    assert (await one.sync()).assignment == b"mine"
    await anyio.sleep(1.1)
    assert await state(client) == ("Empty", 0)


async def test_others_are_told_when_a_session_ends(new: Join) -> None:
    one, other = await both(new, session_timeout_ms=10_000)
    await anyio.sleep(9)
    assert await other.heartbeat() == "NONE"
    await anyio.sleep(2)
    assert await other.heartbeat() == "REBALANCE_IN_PROGRESS"
    assert (await other.join()).leader == other.member_id
    assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"


async def test_who_waits_for_others_to_join_needs_no_heartbeats(new: Join) -> None:
    one, other = await new(), await new(session_timeout_ms=10_000)
    one.session_timeout_ms = one.rebalance_timeout_ms = 600_000
    await one.settle()
    watch, joining = Watch(), await other.ask_to_enter()
    await one.hears_of_rebalance()
    await anyio.sleep(200)
    await one.join()
    assert error(await other.joined(joining)) == "NONE"
    assert watch.now == 200


async def test_who_is_new_is_not_waited_for_longer_than_five_minutes(client: RawClient, new: Join) -> None:
    one, other = await new(), await new(session_timeout_ms=10_000)
    one.session_timeout_ms = one.rebalance_timeout_ms = 600_000
    await one.settle()
    watch, joining = Watch(), await other.ask_to_enter()
    await anyio.sleep(290)
    answer = await other.joined(joining)
    assert (error(answer), answer.member_id, watch.now) == ("UNKNOWN_MEMBER_ID", "", 300)
    assert await state(client) == ("PreparingRebalance", 1)


async def test_who_waits_for_its_part_needs_no_heartbeats(client: RawClient, new: Join) -> None:
    one, other = await both(new, session_timeout_ms=10_000, rebalance_timeout_ms=60_000)
    joining = await one.ask_to_join()
    await other.hears_of_rebalance()
    await other.join()
    await one.joined(joining)
    waiting = await other.ask_to_sync()
    for _ in range(4):
        await anyio.sleep(9)
        assert await one.heartbeat() == "NONE"
    await one.sync({other.member_id: b"late"})
    assert (await other.synced(waiting)).assignment == b"late"
    await anyio.sleep(5)
    assert await one.heartbeat() == "NONE"
    await anyio.sleep(4.9)
    assert await state(client) == ("Stable", 2)
    await anyio.sleep(0.2)
    assert await state(client) == ("PreparingRebalance", 1)  # the session began with the part


async def test_static_members_go_when_their_session_ends(client: RawClient, new: Join) -> None:
    one = await new(instance="a", session_timeout_ms=10_000)
    await one.settle()
    await anyio.sleep(8)
    back = await new(instance="a", session_timeout_ms=20_000)
    await back.join()
    await anyio.sleep(9)
    assert await state(client) == ("Stable", 1)
    await anyio.sleep(12)
    assert await state(client) == ("Empty", 0)


async def test_who_was_given_an_id_is_waited_for_as_long_as_a_session(new: Join) -> None:
    one, other = await both(new)
    third = await new(session_timeout_ms=10_000)
    await third.join()
    watch = Watch()
    joining = await one.ask_to_join()
    await other.hears_of_rebalance()
    await other.join()
    assert ((await one.joined(joining)).generation_id, watch.now) == (3, 10)
    assert error(await third.join()) == "UNKNOWN_MEMBER_ID"
