"""What tests of groups in virtual time have in common: one group, its members, and how long things took."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from support.group_members import GroupMember, described, error, subscription
from support.raw_client import RawClient

from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aiokafkawire.testing.broker import Broker

__all__ = ("GROUP", "Join", "Watch", "both", "commit", "reach", "reads", "state")

GROUP = "g"
Join = Callable[..., Awaitable[GroupMember]]


async def reach(broker: Broker, node_id: int = 1) -> RawClient:
    return RawClient(await broker.connect(f"memory-{node_id}", 9092))


def reads(*topics: str) -> list[tuple[str, bytes]]:
    return [("range", subscription(*topics))]


class Watch:
    """Tells the seconds since it was made."""

    def __init__(self) -> None:
        self._since = anyio.current_time()

    @property
    def now(self) -> float:
        return round(anyio.current_time() - self._since, 3)


async def state(client: RawClient) -> tuple[str, int]:
    found = await described(client, GROUP)
    return found.group_state, len(found.members)


async def commit(member: GroupMember) -> str:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    return error((await member.client.ask(request, 9)).topics[0].partitions[0])


async def both(new: Join, **fields: Any) -> tuple[GroupMember, GroupMember]:
    """Two members of one stable generation, the first leading."""
    one, other = await new(**fields), await new(**fields)
    await one.settle()
    joining = await other.ask_to_enter()
    await one.hears_of_rebalance()
    await one.join()
    await other.joined(joining)
    await one.sync({one.member_id: b"1", other.member_id: b"2"})
    assert (await other.sync()).assignment == b"2"
    return one, other
