"""The admin's requests about groups and their members."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final

from ..argument_checks import check_text, shown
from ..cluster.cluster import Cluster, Route
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Deadline
from ..errors import (
    ConnectionLost,
    GroupIdNotFound,
    KafkaError,
    UnknownMemberId,
    UnsupportedVersion,
    UsageError,
    WireError,
)
from ..protocol.messages.group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ..protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from ..protocol.schema import Versions
from ..types import CoordinatorType
from .concurrent_outcomes import ask_one_by_one
from .coordinator_outcomes import ask_coordinators, call_by_coordinator
from .describe_groups import describe_groups
from .descriptions import GroupListing, GroupMember
from .outcomes import Outcomes, results_of
from .repeats import Repeats
from .response_errors import error_of, raise_for

__all__ = ("delete_groups", "delete_of_type", "list_groups", "remove_members")

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
_BY_STATE: Final = Versions.parse("4+")  # KIP-518
_BY_TYPE: Final = Versions.parse("5+")  # KIP-848
_MANY_LEAVE: Final = Versions.parse("3+")  # KIP-345
_ONE_LEAVES: Final = Versions.parse("0-2")


# --- listing -------------------------------------------------------------------------------------------------------


async def list_groups(
    cluster: Cluster, states: Collection[str] | None, types: Collection[str] | None, deadline: Deadline
) -> Outcomes[int, list[GroupListing]]:
    """Return the groups that each broker coordinates, or its error, by the broker's id.

    Raises:
        UnsupportedVersion: a broker is too old to filter by state or by type.
    """
    snapshot = await cluster.metadata.refresh(cluster.metadata.snapshot, deadline)

    async def listed(node_id: int) -> list[GroupListing]:
        node = snapshot.nodes[node_id]
        response = await _list(cluster, node, list(states or ()), list(types or ()), deadline)
        return [
            GroupListing(
                group.group_id,
                group.protocol_type,
                group.group_state or None,
                group.group_type or None,
                node.address,
            )
            for group in response.groups
        ]

    found = await ask_one_by_one(list(snapshot.nodes), listed)
    for outcome in found.values():
        if isinstance(outcome, UnsupportedVersion | UsageError):
            raise outcome
    return found


async def _list(
    cluster: Cluster, node: Node, states: list[str], types: list[str], deadline: Deadline
) -> ListGroupsResponse:
    def check(response: ListGroupsResponse) -> None:
        raise_for(response.error_code, f"ListGroups of the broker at {node.address}")

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


async def delete_groups(cluster: Cluster, group_ids: Collection[str], deadline: Deadline) -> Outcomes[str, None]:
    """Delete groups by DeleteGroups requests to their coordinators; return None or the error for each group.

    Raise UnsupportedVersion if all coordinators are too old.
    """
    return await ask_coordinators(
        cluster,
        CoordinatorType.GROUP,
        group_ids,
        deadline,
        request=lambda some: DeleteGroupsRequest(groups_names=some),
        outcomes=_deleted,
        refusals=(GroupIdNotFound,),
    )


async def delete_of_type(
    cluster: Cluster,
    group_ids: Iterable[str],
    deadline: Deadline,
    describe: Callable[[list[str]], Awaitable[Mapping[str, object]]],
) -> Outcomes[str, None]:
    """Delete the groups that ``describe`` describes; return None or the error for each group.

    DeleteGroups deletes groups of any type, so ``describe`` has to return an error for groups of other types.
    """

    async def delete(some: list[str]) -> Outcomes[str, None]:
        described = await describe(some)
        known = [group_id for group_id, outcome in described.items() if not isinstance(outcome, KafkaError)]
        deleted = await delete_groups(cluster, known, deadline)
        return {
            group_id: outcome if isinstance(outcome, KafkaError) else deleted[group_id]
            for group_id, outcome in described.items()
        }

    return await call_by_coordinator(cluster, CoordinatorType.GROUP, group_ids, deadline, delete)


def _deleted(response: DeleteGroupsResponse) -> dict[str, KafkaError | None]:
    return {
        result.group_id: error_of(result.error_code, f"DeleteGroups of group {result.group_id!r}", result.error_message)
        for result in response.results
    }


async def remove_members(
    cluster: Cluster, group_id: str, members: Iterable[GroupMember | str] | None, reason: str | None, deadline: Deadline
) -> Outcomes[GroupMember | str, None]:
    """Remove members from a group by LeaveGroup requests; return None or the error for each member.

    Raise as :meth:`Admin.remove_members` if the error is about the whole group.
    """
    everyone = members is None
    if members is None:
        described = await describe_groups(cluster, [group_id], deadline, operations=False)
        members = results_of("describing groups", described)[group_id].members
    members = list(members)
    _check_removable(group_id, members)
    identities = [_identity(member, reason) for member in members]
    leaving = dict(zip(members, identities, strict=True))
    if not leaving:
        return {}
    request = LeaveGroupRequest(group_id=group_id, members=list(leaving.values()))
    repeats = Repeats(UnknownMemberId)
    try:
        response = await _leave(cluster, request, _MANY_LEAVE, deadline, repeats)
    except UnsupportedVersion as refused:
        outcomes = await _leave_one_by_one(cluster, group_id, leaving, refused, deadline)
    else:
        left = _left(group_id, leaving, response)
        outcomes = {member: repeats.explained(outcome) for member, outcome in left.items()}
    return {
        member: None if everyone and isinstance(error, UnknownMemberId) else error for member, error in outcomes.items()
    }


def _left(
    group_id: str, leaving: Mapping[GroupMember | str, MemberIdentity], response: LeaveGroupResponse
) -> Outcomes[GroupMember | str, None]:
    answers = {(member.group_instance_id or member.member_id): member.error_code for member in response.members}
    found: Outcomes[GroupMember | str, None] = {}
    for member, identity in leaving.items():
        name = identity.group_instance_id or identity.member_id
        if name in answers:
            found[member] = error_of(answers[name], f"LeaveGroup of member {name!r} of group {group_id!r}")
        else:
            found[member] = WireError(f"the LeaveGroup response for group {group_id!r} lacks the member {name!r}")
    return found


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
    leaving: Mapping[GroupMember | str, MemberIdentity],
    refused: UnsupportedVersion,
    deadline: Deadline,
) -> Outcomes[GroupMember | str, None]:
    if any(identity.group_instance_id is not None for identity in leaving.values()):
        raise UnsupportedVersion(f"removing static members needs brokers since 2.4 (KIP-345): {refused}") from None
    found: Outcomes[GroupMember | str, None] = {}
    for member, identity in leaving.items():
        repeats = Repeats(UnknownMemberId)
        try:
            request = LeaveGroupRequest(group_id=group_id, member_id=identity.member_id)
            await _leave(cluster, request, _ONE_LEAVES, deadline, repeats)
            found[member] = None
        except UnsupportedVersion:
            raise
        except KafkaError as error:
            found[member] = repeats.explained(error)
    return found


async def _leave(
    cluster: Cluster, request: LeaveGroupRequest, wanted: Versions, deadline: Deadline, repeats: Repeats
) -> LeaveGroupResponse:
    def check(response: LeaveGroupResponse) -> None:
        raise_for(response.error_code, f"LeaveGroup of group {request.group_id!r}")

    return await cluster.ask_coordinator(
        CoordinatorType.GROUP,
        request.group_id,
        request,
        deadline,
        lane=_LANE,
        wanted=wanted,
        check=check,
        unanswered=repeats.unanswered,
    )
