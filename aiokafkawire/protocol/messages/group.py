"""Groups and their coordinators."""

from ..api import ApiKey
from ..primitives import Array, Bool, Bytes, Int8, Int16, Int32, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "Coordinator",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "JoinGroupRequest",
    "JoinGroupRequestProtocol",
    "JoinGroupResponse",
    "JoinGroupResponseMember",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "MemberIdentity",
    "MemberResponse",
    "SyncGroupRequest",
    "SyncGroupRequestAssignment",
    "SyncGroupResponse",
)


@nested
class Coordinator:
    """The broker that coordinates one key."""

    key: String = field("4+")
    node_id: Int32 = field("4+")
    host: String = field("4+")
    port: Int32 = field("4+")
    error_code: Int16 = field("4+")
    error_message: String | None = field("4+", nullable="4+", ignorable=True)


@message(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorResponse(Response):
    """The coordinator, or with v4+ one for each key."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0-3", default=0)
    error_message: String | None = field("1-3", nullable="1-3", default="", ignorable=True)
    node_id: Int32 = field("0-3", default=0)
    host: String = field("0-3", default="")
    port: Int32 = field("0-3", default=0)
    coordinators: Array[Coordinator] = field("4+", default=list)


@message(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorRequest(Request[FindCoordinatorResponse]):
    """Which broker coordinates this group or transactional id? v4+ asks for several at once (KIP-699)."""

    key: String = field("0-3", default="")
    key_type: Int8 = field("1+", default=0)  # 0: group; 1: transaction; 2: share group (KIP-932)
    coordinator_keys: Array[String] = field("4+", default=list)


@nested
class JoinGroupResponseMember:
    """DOC(JoinGroupResponse.Members)."""

    member_id: String = field("0+")
    group_instance_id: String | None = field("5+", nullable="5+", default=None, ignorable=True)
    metadata: Bytes = field("0+")


@message(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    generation_id: Int32 = field("0+", default=-1)
    protocol_type: String | None = field("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: String | None = field("0+", nullable="7+")
    leader: String = field("0+")
    skip_assignment: Bool = field("9+", default=False)
    member_id: String = field("0+")
    members: Array[JoinGroupResponseMember] = field("0+")


@nested
class JoinGroupRequestProtocol:
    """DOC(JoinGroupRequest.Protocols)."""

    name: String = field("0+")
    metadata: Bytes = field("0+")


@message(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupRequest(Request[JoinGroupResponse]):
    """DOC."""

    group_id: String = field("0+")
    session_timeout_ms: Int32 = field("0+")
    rebalance_timeout_ms: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String = field("0+")
    group_instance_id: String | None = field("5+", nullable="5+", default=None)
    protocol_type: String = field("0+")
    protocols: Array[JoinGroupRequestProtocol] = field("0+")
    reason: String | None = field("8+", nullable="8+", default=None, ignorable=True)


@message(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    protocol_type: String | None = field("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: String | None = field("5+", nullable="5+", default=None, ignorable=True)
    assignment: Bytes = field("0+")


@nested
class SyncGroupRequestAssignment:
    """DOC(SyncGroupRequest.Assignments)."""

    member_id: String = field("0+")
    assignment: Bytes = field("0+")


@message(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupRequest(Request[SyncGroupResponse]):
    """DOC."""

    group_id: String = field("0+")
    generation_id: Int32 = field("0+")
    member_id: String = field("0+")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)
    protocol_type: String | None = field("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: String | None = field("5+", nullable="5+", default=None, ignorable=True)
    assignments: Array[SyncGroupRequestAssignment] = field("0+")


@message(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0+")


@message(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatRequest(Request[HeartbeatResponse]):
    """DOC."""

    group_id: String = field("0+")
    generation_id: Int32 = field("0+")
    member_id: String = field("0+")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)


@nested
class MemberResponse:
    """DOC(LeaveGroupResponse.Members)."""

    member_id: String = field("3+")
    group_instance_id: String | None = field("3+", nullable="3+")
    error_code: Int16 = field("3+")


@message(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    members: Array[MemberResponse] = field("3+", default=list)


@nested
class MemberIdentity:
    """DOC(LeaveGroupRequest.Members)."""

    member_id: String = field("3+")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)
    reason: String | None = field("5+", nullable="5+", default=None, ignorable=True)


@message(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupRequest(Request[LeaveGroupResponse]):
    """DOC."""

    group_id: String = field("0+")
    member_id: String = field("0-2", default="")
    members: Array[MemberIdentity] = field("3+", default=list)
