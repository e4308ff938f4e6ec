"""FindCoordinator and the requests of group members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

import re
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.group import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ..cluster.api_error import ApiError
from ..cluster.deferred import Deferred
from ..cluster.replicas import NO_LEADER
from ..cluster.state import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from ..groups.join_group import JoinAttempt
from ..groups.members import join_refusal, sync_refusal
from ..serving.call import ServerCall
from .constants import MALFORMED, SHARE_GROUPS_SINCE

__all__ = ("find_coordinator", "heartbeat", "join_group", "leave_group", "sync_group")

_GROUP, _TRANSACTION, _SHARE_GROUP = range(3)
_SHARE_GROUPS_SINCE: Final = 6
_SEVERAL_KEYS_SINCE: Final = 4
_NO_PROTOCOL_SINCE: Final = 7  # of JoinGroup (KIP-559)
_SYNC_PROTOCOL_SINCE: Final = 5  # of SyncGroup (KIP-559)
_SEVERAL_LEAVE_SINCE: Final = 3  # KIP-345


async def find_coordinator(call: ServerCall, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Return the coordinator of each requested group or transactional id."""
    if call.version >= _SEVERAL_KEYS_SINCE:
        coordinators = [_coordinator(call, key, request.key_type) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=coordinators)
    found = _coordinator(call, request.key, request.key_type)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or "NONE",  # Apache Kafka's message for success in this API
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(call: ServerCall, key: str, key_type: int) -> Coordinator:
    topics = {_GROUP: OFFSETS_TOPIC, _TRANSACTION: TRANSACTIONS_TOPIC}
    if call.version >= _SHARE_GROUPS_SINCE:
        topics[_SHARE_GROUP] = SHARE_STATE_TOPIC
        if key_type == _SHARE_GROUP and not _is_share_key(key):
            return _none(key, ErrorCode.INVALID_REQUEST, "")
        if key_type == _SHARE_GROUP and not call.node.release.since(SHARE_GROUPS_SINCE):
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    if key_type not in topics:
        return _none(key, ErrorCode.INVALID_REQUEST, MALFORMED)
    topic = topics[key_type]
    leader = call.cluster.coordinator_partition(topic, key).leader
    if leader == NO_LEADER:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    node = call.cluster.node(leader)
    return Coordinator(
        key=key, node_id=node.node_id, host=node.host, port=node.port, error_code=ErrorCode.NONE, error_message=""
    )


def _is_share_key(key: str) -> bool:
    """Return whether this is the key of a group's share of a partition: ``group:topic id:partition``."""
    return re.fullmatch(r".*:[A-Za-z0-9_-]{22}:[+-]?\d{1,10}", key, re.DOTALL) is not None


def _none(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)


async def join_group(call: ServerCall, request: JoinGroupRequest) -> JoinGroupResponse:
    """Let a member join or rejoin a group; return the response when all members have joined."""
    asked = JoinAttempt.of(request, call.version, call.client_id or "", f"/{call.peer.host}")
    try:
        _check_coordinator(call, request.group_id)
        if request.group_id in call.cluster.share_groups:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        call.cluster.groups.join(request.group_id, asked)
        response = await asked.answer.wait()
    except ApiError as refused:
        response = join_refusal(refused.code, request.member_id)
    if response.protocol_name is None and call.version < _NO_PROTOCOL_SINCE:
        response.protocol_name = ""
    return response


async def sync_group(call: ServerCall, request: SyncGroupRequest) -> SyncGroupResponse:
    """Return a member's assignment once the leader of the group has sent the assignments."""
    answer: Deferred[SyncGroupResponse] = Deferred()
    try:
        if call.version >= _SYNC_PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        _check_coordinator(call, request.group_id)
        call.cluster.groups.sync(request, answer)
        return await answer.wait()
    except ApiError as refused:
        return sync_refusal(refused.code)


async def heartbeat(call: ServerCall, request: HeartbeatRequest) -> HeartbeatResponse:
    """Handle a member's heartbeat."""
    if not call.node.release.since("0.9.0"):
        return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        _check_coordinator(call, request.group_id)
        call.cluster.groups.heartbeat(request)
    except ApiError as refused:
        if refused.code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # a loading coordinator accepts heartbeats
            return HeartbeatResponse(error_code=refused.code)
    return HeartbeatResponse(error_code=ErrorCode.NONE)


async def leave_group(call: ServerCall, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove the requested members from a group."""
    several = call.version >= _SEVERAL_LEAVE_SINCE
    members = request.members if several else [MemberIdentity(member_id=request.member_id)]
    try:
        _check_coordinator(call, request.group_id)
        leaving = [(member.member_id, member.group_instance_id) for member in members]
        errors = call.cluster.groups.leave(request.group_id, leaving)
    except ApiError as refused:
        return LeaveGroupResponse(error_code=refused.code)
    if not several:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE,
        members=[
            MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error)
            for member, error in zip(members, errors, strict=True)
        ],
    )


def _check_coordinator(call: ServerCall, group_id: str) -> None:
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, group_id)
