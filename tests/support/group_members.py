"""Members of classic groups, one connection each: what they ask is asked as it stands, nothing is retried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any, cast

import anyio
import attrs
from support.raw_client import RawClient

from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from aiokafkawire.protocol.messages.group import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from aiokafkawire.protocol.messages.group_admin import (
    DescribedGroup,
    DescribeGroupsRequest,
    ListedGroup,
    ListGroupsRequest,
)

from .patience import PATIENCE

__all__ = (
    "GroupMember",
    "New",
    "both",
    "described",
    "described_once_known",
    "error",
    "listed",
    "new_group",
    "protocols",
    "subscription",
)

_names = (f"group-{number}" for number in count())
_NOT_READY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def error(answer: Any) -> str:
    """The name of an answer's error."""
    return ErrorCode(answer.error_code).name


def subscription(*topics: str) -> bytes:
    """What a consumer tells the leader: a version, and the topics."""
    return b"\0\0" + encode(ConsumerProtocolSubscription(topics=list(topics)), 0)


def protocols(*names: str, metadata: bytes = b"") -> list[tuple[str, bytes]]:
    return [(name, metadata or b"of " + name.encode()) for name in names]


async def new_group(client: RawClient) -> str:
    """A name that no group has, and whose coordinator is ready; Apache Kafka's takes a moment at first."""
    name = next(_names)
    with anyio.fail_after(PATIENCE):
        while (await client.ask(FindCoordinatorRequest(key=name), 0)).error_code in _NOT_READY:
            pass
        while (await described(client, name)).error_code in _NOT_READY:
            pass
    return name


async def described(client: RawClient, group: str, version: int = 6) -> DescribedGroup:
    return (await client.ask(DescribeGroupsRequest(groups=[group]), version)).groups[0]


async def described_once_known(client: RawClient, group: str) -> DescribedGroup:
    """Of a group that its first member has just made: Apache Kafka may answer JoinGroup before the group is committed,
    and describes and lists what is committed."""
    with anyio.fail_after(PATIENCE):
        while (found := await described(client, group)).error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            pass
    return found


async def listed(
    client: RawClient, *states: str, types: Sequence[str] = (), version: int = 5
) -> dict[str, ListedGroup]:
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    answer = await client.ask(request, version)
    assert answer.error_code == 0
    return {group.group_id: group for group in answer.groups}


@attrs.define
class GroupMember:
    """What a member knows of itself."""

    client: RawClient
    group: str
    instance: str | None = None
    protocols: list[tuple[str, bytes]] = attrs.field(factory=lambda: protocols("range"))
    protocol_type: str = "raw"
    session_timeout_ms: int = 60_000
    rebalance_timeout_ms: int = 60_000
    member_id: str = ""
    generation: int = -1
    leads: bool = False

    async def ask_to_join(self, version: int = 9) -> int:
        """Send a JoinGroup; the answer may be far away."""
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in self.protocols],
        )
        return await self.client.send(request, version)

    async def joined(self, correlation_id: int, version: int = 9) -> JoinGroupResponse:
        """The answer to a JoinGroup; what it says of the member is remembered."""
        answer = cast("JoinGroupResponse", await self.client.answer(JoinGroupRequest, version, correlation_id))
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
        if not answer.error_code:
            self.generation = answer.generation_id
            self.leads = answer.leader == answer.member_id
        return answer

    async def join(self, version: int = 9) -> JoinGroupResponse:
        """Send one JoinGroup and wait for its answer."""
        return await self.joined(await self.ask_to_join(version), version)

    async def ask_to_enter(self, version: int = 9) -> int:
        """Get a member id if one is needed, and send a JoinGroup with it."""
        if version >= 4 and self.instance is None and not self.member_id:
            assert error(await self.join(version)) == "MEMBER_ID_REQUIRED"
        return await self.ask_to_join(version)

    async def enter(self, version: int = 9) -> JoinGroupResponse:
        """Join, by two requests if it takes two."""
        answer = await self.joined(await self.ask_to_enter(version), version)
        assert answer.error_code == 0, answer
        return answer

    async def ask_to_sync(self, parts: Mapping[str, bytes] | None = None, version: int = 5) -> int:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type if version >= 5 else None,
            protocol_name=self.protocols[0][0] if version >= 5 else None,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=part) for member, part in (parts or {}).items()
            ],
        )
        return await self.client.send(request, version)

    async def synced(self, correlation_id: int, version: int = 5) -> SyncGroupResponse:
        return cast("SyncGroupResponse", await self.client.answer(SyncGroupRequest, version, correlation_id))

    async def sync(self, parts: Mapping[str, bytes] | None = None, version: int = 5) -> SyncGroupResponse:
        """Ask for this member's part; ``parts`` is what the leader brings."""
        return await self.synced(await self.ask_to_sync(parts, version), version)

    async def settle(self) -> None:
        """Enter a group without others, and assign to itself."""
        await self.enter()
        assert (await self.sync({self.member_id: b"mine"})).error_code == 0

    async def heartbeat(self, version: int = 4) -> str:
        """Send a heartbeat; the error's name."""
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance if version >= 3 else None,
        )
        return error(await self.client.ask(request, version))

    async def hears_of_rebalance(self) -> None:
        """Send heartbeats until one says that a rebalance is under way."""
        with anyio.fail_after(PATIENCE):
            while (heard := await self.heartbeat()) != "REBALANCE_IN_PROGRESS":
                assert heard == "NONE"

    async def leave(self, version: int = 5) -> LeaveGroupResponse:
        if version < 3:
            return await self.client.ask(LeaveGroupRequest(group_id=self.group, member_id=self.member_id), version)
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        return await self.client.ask(LeaveGroupRequest(group_id=self.group, members=[identity]), version)


New = Callable[..., Awaitable[GroupMember]]
"""Makes a member with these fields."""


async def both(one: GroupMember, other: GroupMember) -> None:
    """Have two members in one stable generation, the first leading."""
    await one.settle()
    joining = await other.ask_to_enter()
    await one.hears_of_rebalance()
    assert (await one.join()).error_code == (await other.joined(joining)).error_code == 0
    assert (one.leads, other.leads) == (True, False)
    assert error(await one.sync({one.member_id: b"1", other.member_id: b"2"})) == "NONE"
    assert (await other.sync()).assignment == b"2"
