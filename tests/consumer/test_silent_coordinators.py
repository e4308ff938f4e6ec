"""Members of consumer groups (KIP-848) whose coordinator neither answers nor closes its connections."""

from __future__ import annotations

import anyio
from support.group_lives import GROUP, TOPIC, Life, in_a_group
from support.readers import Reader


async def join(life: Life, name: str) -> Reader:
    return await life.readers.join(await life.client(name), GROUP, TOPIC, group_protocol="consumer")


def test_members_find_the_next_coordinator_within_its_session_timeout() -> None:
    @in_a_group(group_consumer_session_timeout_ms=6_000, group_consumer_heartbeat_interval_ms=2_000)
    async def _(life: Life) -> None:
        one, two = await join(life, "one"), await join(life, "two")
        await life.settled(one, two)
        await life.under_way()
        told, frozen = [one.words(), two.words()], life.coordinator
        life.broker.freeze_node(frozen)
        await anyio.sleep(3)
        life.broker.fence_node(frozen)
        assert life.coordinator != frozen
        await anyio.sleep(30)
        assert [one.words(), two.words()] == told
        await life.all_read()
        assert life.once()
        life.broker.thaw_node(frozen)
