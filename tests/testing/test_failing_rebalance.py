"""A rebalance that fails at each of its steps, before the broker has done its part and after: by orders alone."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio import BrokenResourceError, EndOfStream
from support.group_members import GroupMember, described, error
from support.patience import SOON
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.faults.request_log import RequestOutcome

pytestmark = pytest.mark.anyio

STEPS = [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT]
FAILURES: dict[str, dict[str, Any]] = {
    "the request is lost": {"drop": "before"},
    "the answer is lost": {"drop": "after"},
    "half of the answer": {"cut": True},
    "the coordinator has moved": {"answer": ErrorCode.NOT_COORDINATOR},
    "all over": {"answer": ErrorCode.UNKNOWN_MEMBER_ID},
}


async def connect(broker: Broker) -> RawClient:
    return RawClient(await broker.connect("memory-1", 9092))


async def settle(broker: Broker, group: str) -> GroupMember:
    """Enter the group as a consumer does: from the start after each failure, until a heartbeat is well."""
    member = GroupMember(await connect(broker), group)
    while True:
        try:
            joined = error(await member.join())
            if joined == "NONE" and error(await member.sync({member.member_id: b"all"})) == "NONE":
                if await member.heartbeat() == "NONE":
                    return member
            elif joined == "UNKNOWN_MEMBER_ID":
                member.member_id = ""
        except (EndOfStream, BrokenResourceError):
            await member.client.stream.aclose()
            member.client = await connect(broker)


@pytest.mark.parametrize("failure", FAILURES.values(), ids=list(FAILURES))
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
async def test_a_member_gets_over_a_failure_at_each_step(step: ApiKey, failure: dict[str, Any]) -> None:
    async with Broker(port=None, strict=True) as broker:
        # The first JoinGroup gets a member id, the second enters the group.
        broker.on(step, after=1 if step is ApiKey.JOIN_GROUP else 0, group="g", **failure)
        with anyio.fail_after(SOON):
            member = await settle(broker, "g")
        async with member.client:
            group = await described(member.client, "g")
        assert group.group_state == "Stable"
        assert member.member_id in [one.member_id for one in group.members]
        failed = [asked for asked in broker.requests.of(step) if asked.outcome is not RequestOutcome.ANSWERED]
        assert len(failed) == (0 if "answer" in failure else 1)


async def test_what_happens_while_the_leader_is_held_up() -> None:
    async with Broker(port=None) as broker, await connect(broker) as one, await connect(broker) as two:
        leader, follower = GroupMember(one, "g"), GroupMember(two, "g")
        await leader.settle()
        joining = await follower.ask_to_enter()
        await leader.hears_of_rebalance()
        await leader.join()
        await follower.joined(joining)
        async with broker.hold(ApiKey.SYNC_GROUP, where=lambda request: request.assignments) as held:
            bringing = await leader.ask_to_sync({leader.member_id: b"1", follower.member_id: b"2"})
            await held.arrived()
            waiting = await follower.ask_to_sync()
            (asked,) = await broker.requests.wait_for(
                ApiKey.SYNC_GROUP, where=lambda request: request.member_id == follower.member_id
            )
            await anyio.wait_all_tasks_blocked()
            assert asked.outcome is RequestOutcome.PENDING
            held.release()
            assert bytes((await leader.synced(bringing)).assignment) == b"1"
            assert bytes((await follower.synced(waiting)).assignment) == b"2"
