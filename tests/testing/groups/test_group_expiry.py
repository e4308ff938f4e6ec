"""Groups and offsets that are forgotten as time passes."""

from __future__ import annotations

import anyio
import pytest
from support.raw_client import RawClient
from support.virtual_groups import GROUP, Join, commit, reads, state

from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

pytestmark = pytest.mark.anyio


DAY = 24 * 3600
timed = pytest.mark.parametrize("settings", [{"clock": lambda: int(anyio.current_time() * 1000)}])


async def committed(client: RawClient) -> list[str]:
    """The topics that the group has offsets for."""
    asked = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    return [topic.name for topic in (await client.ask(OffsetFetchRequest(groups=[asked]), 9)).groups[0].topics]


@timed
class TestWhatIsForgotten:
    async def test_a_group_without_members_or_offsets(self, client: RawClient, new: Join) -> None:
        one = await new()
        await one.settle()
        await one.leave()
        assert await state(client) == ("Empty", 0)
        await anyio.sleep(601)
        assert await state(client) == ("Dead", 0)

    async def test_offsets_of_whom_nobody_knows_seven_days_after_the_commit(self, client: RawClient, new: Join) -> None:
        one = await new()
        assert await commit(one) == "NONE"
        await anyio.sleep(5 * DAY)
        assert await commit(one) == "NONE"
        await anyio.sleep(7 * DAY - 10)
        assert (await committed(client), await state(client)) == (["t"], ("Empty", 0))
        await anyio.sleep(610)
        assert (await committed(client), await state(client)) == ([], ("Dead", 0))

    async def test_a_group_s_offsets_seven_days_after_the_last_member_left(self, client: RawClient, new: Join) -> None:
        one = await new(session_timeout_ms=1_800_000, protocol_type="consumer", protocols=reads("t"))
        await one.settle()
        assert await commit(one) == "NONE"
        for _ in range(400):  # more than eight days
            await anyio.sleep(1799)
            assert await one.heartbeat() == "NONE"
        assert await committed(client) == ["t"]
        await one.leave()
        await anyio.sleep(7 * DAY - 10)
        assert await committed(client) == ["t"]
        await anyio.sleep(610)
        assert (await committed(client), await state(client)) == ([], ("Dead", 0))

    @pytest.mark.parametrize(("protocol_type", "left"), [("consumer", []), ("raw", ["t"])])
    async def test_what_consumers_no_longer_read(
        self, client: RawClient, new: Join, protocol_type: str, left: list[str]
    ) -> None:
        one = await new(session_timeout_ms=1_800_000, protocol_type=protocol_type, protocols=reads("another"))
        await one.settle()
        assert await commit(one) == "NONE"
        for _ in range(400):
            await anyio.sleep(1799)
            assert await one.heartbeat() == "NONE"
        assert await committed(client) == left
        assert await state(client) == ("Stable", 1)

    async def test_offsets_as_old_clients_want_it(self, client: RawClient) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
        for retention_ms, kept in ((3_600_000, ["t"]), (1_000, [])):
            request = OffsetCommitRequest(group_id=GROUP, retention_time_ms=retention_ms, topics=topics)
            await client.ask(request, 4)
            await anyio.sleep(1_200)
            assert await committed(client) == kept
