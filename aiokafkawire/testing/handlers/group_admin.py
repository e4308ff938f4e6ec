"""DescribeGroups, ListGroups and DeleteGroups."""

from collections.abc import Sequence
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.group_admin import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from ..cluster.api_error import ApiError
from ..cluster.state import OFFSETS_TOPIC
from ..groups.group import ClassicGroup
from ..groups.states import CoordinatorState
from ..serving.call import ServerCall
from .constants import GROUP_OPERATIONS

__all__ = ("delete_groups", "describe_groups", "list_groups")

_NOT_FOUND_SINCE: Final = 6  # of DescribeGroups (KIP-1043)
_SHARE: Final = "share"


async def describe_groups(call: ServerCall, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe each requested group; the state of a missing group is Dead."""
    groups = []
    for group_id in request.groups:
        try:
            call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, group_id)
            call.cluster.share_groups.check_free(group_id, "classic")
            described = _described(call.cluster.groups.classic(group_id))
        except ApiError as refused:
            described = _absent(group_id, refused, call.version)
        if request.include_authorized_operations and not described.error_code:
            described.authorized_operations = GROUP_OPERATIONS
        groups.append(described)
    return DescribeGroupsResponse(groups=groups)


async def list_groups(call: ServerCall, request: ListGroupsRequest) -> ListGroupsResponse:
    """List the groups of the requested states and types that this broker coordinates."""
    states = [state.lower().strip() for state in request.states_filter]
    types = [kind.lower() for kind in request.types_filter]
    try:
        call.cluster.check_all_loaded(call.node)
    except ApiError as refused:
        return ListGroupsResponse(error_code=refused.code, groups=[])
    known = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state,
            group_type=group.kind,
        )
        for group in call.cluster.groups.all()
    ]
    known += [
        ListedGroup(group_id=shared.group_id, protocol_type=_SHARE, group_state=shared.state, group_type=_SHARE)
        for shared in call.cluster.share_groups.all()
    ]
    groups = [
        group
        for group in known
        if call.cluster.coordinator_partition(OFFSETS_TOPIC, group.group_id).leader == call.node.node_id
        and _passes(group.group_state.lower(), states)
        and _passes(group.group_type, types)
    ]
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=groups)


async def delete_groups(call: ServerCall, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete each requested group that has no members, and its offsets."""
    results = []
    for group_id in dict.fromkeys(request.groups_names):
        error = ErrorCode.NONE
        try:
            call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, group_id)
            if group_id in call.cluster.share_groups:
                call.cluster.share_groups.delete(group_id)
                call.cluster.shared.delete_group(group_id)
            else:
                call.cluster.groups.delete(group_id)
        except ApiError as refused:
            error = refused.code
        results.append(DeletableGroupResult(group_id=group_id, error_code=error))
    return DeleteGroupsResponse(results=results)


def _passes(value: str, allowed: Sequence[str]) -> bool:
    return not allowed or value in allowed


def _described(group: ClassicGroup) -> DescribedGroup:
    protocol = group.protocol if group.state == CoordinatorState.STABLE else None
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def _absent(group_id: str, refused: ApiError, version: int) -> DescribedGroup:
    absent = DescribedGroup(
        error_code=refused.code, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=[]
    )
    if refused.code == ErrorCode.GROUP_ID_NOT_FOUND:
        absent.group_state = CoordinatorState.DEAD
        if version < _NOT_FOUND_SINCE:
            absent.error_code = ErrorCode.NONE
        else:
            absent.error_message = refused.message
    return absent
