"""How long rebalances of a group take, and who is kept."""

from __future__ import annotations

import anyio
import pytest
from support.group_members import described, error, protocols
from support.raw_client import RawClient
from support.virtual_groups import GROUP, Join, Watch, both, state

from aiokafkawire.protocol.messages.group import LeaveGroupRequest, MemberIdentity

pytestmark = pytest.mark.anyio


async def test_the_slowest_member_says_how_long_a_rebalance_may_take(new: Join) -> None:
    one, other = await new(rebalance_timeout_ms=30_000), await new(rebalance_timeout_ms=20_000)
    await one.settle()
    watch, joining = Watch(), await other.ask_to_enter()
    await anyio.sleep(20)
    assert ((await other.joined(joining)).leader, watch.now) == (other.member_id, 30)
    assert await one.heartbeat() == "UNKNOWN_MEMBER_ID"


async def test_in_version_0_the_session_says_how_long_a_rebalance_may_take(new: Join) -> None:
    one = await new(session_timeout_ms=7_000, rebalance_timeout_ms=50_000)
    await one.joined(await one.ask_to_join(0), 0)
    await one.sync(version=0)
    other, watch = await new(session_timeout_ms=6_000), Watch()
    joining = await other.ask_to_join(0)
    await anyio.sleep(5)
    await one.hears_of_rebalance()
    await other.joined(joining, 0)
    assert watch.now == 7


async def test_who_does_not_ask_for_its_part_in_time_is_out(client: RawClient, new: Join) -> None:
    one, other = await both(new, rebalance_timeout_ms=30_000)
    joining = await one.ask_to_join()
    await other.hears_of_rebalance()
    await other.join()
    await one.joined(joining)
    await one.sync({one.member_id: b"all"})
    watch = Watch()
    assert await state(client) == ("Stable", 2)
    await anyio.sleep(29.9)
    assert await one.heartbeat() == await other.heartbeat() == "NONE"
    await anyio.sleep(0.2)
    assert await one.heartbeat() == "REBALANCE_IN_PROGRESS"
    assert await other.heartbeat() == "UNKNOWN_MEMBER_ID"
    assert ((await one.join()).generation_id, watch.now) == (4, 30.1)


async def test_a_rebalance_nobody_joins_goes_on_until_sessions_end(client: RawClient, new: Join) -> None:
    one = await new(instance="a", session_timeout_ms=100_000, rebalance_timeout_ms=30_000)
    other = await new(rebalance_timeout_ms=30_000)
    await one.settle()
    joining = await other.ask_to_enter()
    await one.hears_of_rebalance()
    await client.ask(LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=other.member_id)]), 5)
    assert error(await other.joined(joining)) == "UNKNOWN_MEMBER_ID"
    await anyio.sleep(70)
    assert await state(client) == ("PreparingRebalance", 1)
    await anyio.sleep(40)
    assert await state(client) == ("Empty", 0)


@pytest.mark.parametrize("settings", [{"group_initial_rebalance_delay_ms": 3_000}])
class TestANewGroupWaitsForMore:
    async def test_for_the_delay(self, new: Join) -> None:
        one, watch = await new(), Watch()
        assert ((await one.enter()).generation_id, watch.now) == (1, 3)

    async def test_for_as_long_as_more_come(self, new: Join) -> None:
        one, other, third = [await new() for _ in range(3)]
        watch = Watch()
        joining = [await one.ask_to_enter()]
        await anyio.sleep(2)
        joining.append(await other.ask_to_enter())
        await anyio.sleep(3)
        joining.append(await third.ask_to_enter())
        answers = [await member.joined(sent) for member, sent in zip((one, other, third), joining, strict=True)]
        assert [answer.generation_id for answer in answers] == [1, 1, 1]
        assert (len(answers[0].members), watch.now) == (3, 9)

    async def test_but_no_longer_than_the_rebalance_timeout(self, new: Join) -> None:
        one, other, third = [await new(rebalance_timeout_ms=4_000) for _ in range(3)]
        watch = Watch()
        joining = await one.ask_to_enter()
        await anyio.sleep(2)
        await other.ask_to_enter()
        await anyio.sleep(1.5)
        await third.ask_to_enter()
        assert len((await one.joined(joining)).members) == 3
        assert watch.now == 4

    async def test_and_ends_with_the_delay_when_all_have_left(self, client: RawClient, new: Join) -> None:
        one = await new()
        joining = await one.ask_to_enter()
        await client.ask(LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=one.member_id)]), 5)
        assert error(await one.joined(joining)) == "UNKNOWN_MEMBER_ID"
        assert await state(client) == ("PreparingRebalance", 0)
        await anyio.sleep(3.1)
        assert await state(client) == ("Empty", 0)


@pytest.mark.parametrize("settings", [{"group_max_size": 2}])
class TestAFullGroup:
    async def test_takes_no_more(self, new: Join) -> None:
        one, other = await both(new)
        third = await new(instance="c")
        answer = await third.join()
        assert (error(answer), answer.member_id) == ("GROUP_MAX_SIZE_REACHED", "")
        assert await one.heartbeat() == await other.heartbeat() == "NONE"
        assert (await other.join()).generation_id == 2

    async def test_keeps_who_joins_first(self, new: Join) -> None:
        one, other = await both(new)
        await other.leave()
        third, fourth = await new(instance="c"), await new(instance="d")
        sent = await third.ask_to_join()
        await one.hears_of_rebalance()
        again = await fourth.ask_to_join()
        while len((await described(one.client, GROUP)).members) < 3:
            pass
        answer = await one.join()
        assert error(answer) == "GROUP_MAX_SIZE_REACHED"
        await anyio.sleep(50)  # that one is gone is noticed when the rebalance timeout ends, in Kafka as here
        assert error(await third.joined(sent)) == error(await fourth.joined(again)) == "NONE"


async def test_metadata_that_cannot_be_read_holds_up_nobody(new: Join) -> None:
    # Apache Kafka answers these never: the join fails inside.
    for metadata in (b"\0\0\xff\xff\xff\xff", b"\0\1\0\0\0\1\x7f\xff"):
        one = await new(protocol_type="consumer", protocols=protocols("range", metadata=metadata))
        assert (await one.enter()).error_code == 0
        await one.leave()
