"""The admin's requests about groups and their members."""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Final

from ..argument_checks import check_text, shown
from ..cluster.cluster import Cluster, Route
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Deadline
from ..errors import ConnectionLost, ErrorCode, UnknownMemberId, UnsupportedVersion, UsageError, WireError, broker_error
from ..protocol.messages.group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ..protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from ..protocol.schema import Versions
from ..types import CoordinatorType
from .describe_groups import describe_groups
from .descriptions import GroupListing, GroupMember

__all__ = ("delete_groups", "list_groups", "remove_members")

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
_BY_STATE: Final = Versions.parse("4+")  # KIP-518
_BY_TYPE: Final = Versions.parse("5+")  # KIP-848
_MANY_LEAVE: Final = Versions.parse("3+")  # KIP-345
_ONE_LEAVES: Final = Versions.parse("0-2")


# --- listing -------------------------------------------------------------------------------------------------------


async def list_groups(
    cluster: Cluster, states: Collection[str] | None, types: Collection[str] | None, deadline: Deadline
) -> list[GroupListing]:
    """List the groups of every broker by ListGroups requests. Raise as :meth:`Admin.list_groups`."""
    snapshot = await cluster.metadata.refresh(cluster.metadata.snapshot, deadline)
    found: dict[str, GroupListing] = {}
    for node in snapshot.nodes.values():
        response = await _list(cluster, node, list(states or ()), list(types or ()), deadline)
        for group in response.groups:
            found[group.group_id] = GroupListing(
                group.group_id,
                group.protocol_type,
                group.group_state or None,
                group.group_type or None,
                node.address,
            )
    return [found[group_id] for group_id in sorted(found)]


async def _list(
    cluster: Cluster, node: Node, states: list[str], types: list[str], deadline: Deadline
) -> ListGroupsResponse:
    def check(response: ListGroupsResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            raise broker_error(response.error_code, f"ListGroups of the broker at {node.address}")

    async def ask(types: list[str], wanted: Versions) -> ListGroupsResponse:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return await cluster.ask(_only(node), request, deadline, lane=_LANE, wanted=wanted, check=check)

    by_state = _BY_STATE if states else _ANY
    try:
        return await ask(types, _BY_TYPE if types else by_state)
    except UnsupportedVersion as refused:
        # Brokers without group types have only classic groups.
        if "classic" in [group_type.lower() for group_type in types]:
            return await ask([], by_state)
        if not (states or types):
            raise
        raise UnsupportedVersion(
            f"listing groups by state needs brokers since 2.6 (KIP-518), by type since 3.8 (KIP-848): {refused}"
        ) from None


def _only(node: Node) -> Route:
    """Return a route that sends requests to this broker only."""

    def route(snapshot: Snapshot) -> Node:
        current = snapshot.nodes.get(node.node_id)
        if current is None:
            left = f"broker {node.node_id} at {node.address} has left the cluster"
            raise ConnectionLost(f"{left}: other brokers take over its groups shortly, list the groups again")
        return current

    return route


# --- removing ------------------------------------------------------------------------------------------------------


async def delete_groups(cluster: Cluster, group_ids: Collection[str], deadline: Deadline) -> None:
    """Delete groups by DeleteGroups requests to their coordinators. Raise as :meth:`Admin.delete_groups`."""
    for group_id in dict.fromkeys(group_ids):
        await cluster.ask_coordinator(
            CoordinatorType.GROUP,
            group_id,
            DeleteGroupsRequest(groups_names=[group_id]),
            deadline,
            lane=_LANE,
            check=partial(_check_deleted, group_id),
        )


def _check_deleted(group_id: str, response: DeleteGroupsResponse) -> None:
    result = next((result for result in response.results if result.group_id == group_id), None)
    if result is None:
        raise WireError(f"the DeleteGroups response lacks the requested group {group_id!r}")
    if result.error_code != ErrorCode.NONE:
        raise broker_error(result.error_code, f"DeleteGroups of group {group_id!r}{_suffix(result.error_message)}")


async def remove_members(
    cluster: Cluster, group_id: str, members: Iterable[GroupMember | str] | None, reason: str | None, deadline: Deadline
) -> None:
    """Remove members from a group by LeaveGroup requests. Raise as :meth:`Admin.remove_members`."""
    everyone = members is None
    if members is None:
        members = (await describe_groups(cluster, [group_id], deadline, operations=False))[group_id].members
    members = list(members)
    _check_removable(group_id, members)
    leaving = [_identity(member, reason) for member in members]
    if not leaving:
        return
    try:
        response = await _leave(cluster, LeaveGroupRequest(group_id=group_id, members=leaving), _MANY_LEAVE, deadline)
    except UnsupportedVersion as refused:
        await _leave_one_by_one(cluster, group_id, leaving, refused, deadline, everyone=everyone)
        return
    for member in response.members:
        gone = everyone and member.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        if member.error_code != ErrorCode.NONE and not gone:
            name = member.member_id or member.group_instance_id
            raise broker_error(member.error_code, f"LeaveGroup of member {name!r} of group {group_id!r}")


def _check_removable(group_id: str, members: Iterable[GroupMember | str]) -> None:
    # Brokers that do not return the type of a member answer that there is no such member.
    if any(isinstance(member, GroupMember) and member.type is None for member in members):
        raise UnsupportedVersion(
            f"removing members of consumer group {group_id!r} needs brokers since 4.0 (KIP-1099); "
            "close these consumers, or wait until their sessions time out"
        )


def _identity(member: GroupMember | str, reason: str | None) -> MemberIdentity:
    if not isinstance(member, GroupMember):
        if not isinstance(member, str):
            raise UsageError(f"a member must be a GroupMember or a group_instance_id, got {shown(member)}")
        check_text("a group_instance_id", member)
    instance = member if isinstance(member, str) else member.group_instance_id
    # The instance id identifies a static member; its member id changes when it rejoins.
    member_id = member.member_id if isinstance(member, GroupMember) and instance is None else ""
    return MemberIdentity(member_id=member_id, group_instance_id=instance, reason=reason)


async def _leave_one_by_one(
    cluster: Cluster,
    group_id: str,
    leaving: Collection[MemberIdentity],
    refused: UnsupportedVersion,
    deadline: Deadline,
    *,
    everyone: bool,
) -> None:
    if any(member.group_instance_id is not None for member in leaving):
        raise UnsupportedVersion(f"removing static members needs brokers since 2.4 (KIP-345): {refused}") from None
    for member in leaving:
        try:
            request = LeaveGroupRequest(group_id=group_id, member_id=member.member_id)
            await _leave(cluster, request, _ONE_LEAVES, deadline)
        except UnknownMemberId:
            if not everyone:
                raise


async def _leave(
    cluster: Cluster, request: LeaveGroupRequest, wanted: Versions, deadline: Deadline
) -> LeaveGroupResponse:
    def check(response: LeaveGroupResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            raise broker_error(response.error_code, f"LeaveGroup of group {request.group_id!r}")

    return await cluster.ask_coordinator(
        CoordinatorType.GROUP, request.group_id, request, deadline, lane=_LANE, wanted=wanted, check=check
    )


def _suffix(message: str | None) -> str:
    return f": {message}" if message else ""
