"""DescribeGroups, ListGroups and DeleteGroups, as Apache Kafka answers them."""

from __future__ import annotations

import pytest
from support.group_members import New, described, described_once_known, error, listed
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

pytestmark = pytest.mark.anyio

NOT_ASKED = -(2**31)


@pytest.mark.parametrize("version", range(7))
async def test_every_version_describes_a_group(client: RawClient, new: New, group: str, version: int) -> None:
    one = await new(instance="a")
    await one.settle()
    found = await described(client, group, version)
    assert (found.error_code, found.error_message, found.group_id) == (0, None, group)
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "raw", "range")
    (member,) = found.members
    assert member.member_id == one.member_id
    assert member.group_instance_id == ("a" if version >= 4 else None)
    assert (member.client_id, member.client_host) == ("raw", "/127.0.0.1")
    assert (bytes(member.member_metadata), bytes(member.member_assignment)) == (b"of range", b"mine")
    assert found.authorized_operations == NOT_ASKED


async def test_members_show_what_they_said_once_the_group_is_stable(client: RawClient, new: New, group: str) -> None:
    one, other = await new(), await new()
    await one.enter()
    found = await described_once_known(client, group)
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("CompletingRebalance", "raw", "")
    assert [(bytes(m.member_metadata), bytes(m.member_assignment)) for m in found.members] == [(b"", b"")]
    await one.sync({one.member_id: b"mine"})
    await other.ask_to_enter()
    await one.hears_of_rebalance()
    found = await described(client, group)
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("PreparingRebalance", "raw", "")
    parts = {m.member_id: (bytes(m.member_metadata), bytes(m.member_assignment)) for m in found.members}
    assert parts == {one.member_id: (b"", b"mine"), other.member_id: (b"", b"")}


@pytest.mark.parametrize("version", range(7))
async def test_a_group_that_is_not_there_is_dead(client: RawClient, group: str, version: int) -> None:
    with_operations = version >= 3
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=with_operations)
    (found,) = (await client.ask(request, version)).groups
    assert (found.group_id, found.group_state, found.protocol_type, found.members) == (group, "Dead", "", [])
    if version >= 6:  # KIP-1043
        assert (error(found), found.error_message) == ("GROUP_ID_NOT_FOUND", f"Group {group} not found.")
        assert found.authorized_operations == NOT_ASKED
    else:
        assert (found.error_code, found.error_message) == (0, None)
        assert found.authorized_operations == (3400 if with_operations else NOT_ASKED)


async def test_several_groups_are_described(client: RawClient, new: New, group: str) -> None:
    await (await new()).settle()
    request = DescribeGroupsRequest(groups=[group, "no-such-group"], include_authorized_operations=True)
    found = {one.group_id: one for one in (await client.ask(request, 6)).groups}
    assert (found[group].group_state, found[group].authorized_operations) == ("Stable", 3400)
    assert found["no-such-group"].group_state == "Dead"


@pytest.mark.parametrize("version", range(6))
async def test_every_version_lists_groups(client: RawClient, new: New, group: str, version: int) -> None:
    await (await new()).settle()
    found = (await listed(client, version=version))[group]
    assert found.protocol_type == "raw"
    assert found.group_state == ("Stable" if version >= 4 else "")
    assert found.group_type == ("classic" if version >= 5 else "")


async def test_groups_are_listed_by_state_and_type(client: RawClient, new: New, group: str) -> None:
    one = await new()
    await one.settle()
    assert group in await listed(client, "Stable")
    assert group in await listed(client, "Empty", " sTABLE ", "NoState")
    assert group not in await listed(client, "Empty")
    assert await listed(client, "NoState") == {}
    assert group in await listed(client, types=["Classic"])
    assert group in await listed(client, "stable", types=["consumer", "classic"])
    assert group not in await listed(client, types=["consumer"])
    assert await listed(client, types=["no-type"]) == {}
    await one.leave()
    assert group in await listed(client, "Empty", version=4)


@pytest.mark.parametrize("version", range(3))
async def test_groups_without_members_are_deleted(
    client: RawClient, new: New, group: str, name: str, version: int
) -> None:
    async def delete(*groups: str) -> dict[str, str]:
        results = (await client.ask(DeleteGroupsRequest(groups_names=list(groups)), version)).results
        return {one.group_id: error(one) for one in results}

    assert await delete(group) == {group: "GROUP_ID_NOT_FOUND"}
    one = await new()
    await one.join()  # it has an id, and is no member yet
    assert await delete(group) == {group: "NONE"}
    assert error(await one.join()) == "UNKNOWN_MEMBER_ID"
    one.member_id = ""
    await one.enter()
    assert await delete(group, "no-such-group") == {group: "NON_EMPTY_GROUP", "no-such-group": "GROUP_ID_NOT_FOUND"}
    await one.sync()
    assert await delete(group) == {group: "NON_EMPTY_GROUP"}
    committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=1,
        member_id=one.member_id,
        topics=[OffsetCommitRequestTopic(name=name, partitions=[committed])],
    )
    assert (await client.ask(request, 9)).topics[0].partitions[0].error_code == 0
    await one.leave()
    assert await delete(group, group) == {group: "NONE"}
    assert await delete(group) == {group: "GROUP_ID_NOT_FOUND"}
    assert (await described(client, group)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert group not in await listed(client)
    request_all = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    assert (await client.ask(request_all, 9)).groups[0].topics == []
