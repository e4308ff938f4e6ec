"""Classic groups and their coordinators.

A member finds the coordinator, joins (JoinGroup), gets its part of the work (SyncGroup), and says that it is alive
(Heartbeat). When a heartbeat is answered with REBALANCE_IN_PROGRESS, it joins again.
"""

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
    error_code: Int16 = field("4+")  # v5+: also TRANSACTION_ABORTABLE (KIP-890)
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
    # of share groups, which only brokers ask for: group id:topic id:partition
    coordinator_keys: Array[String] = field("4+", default=list)


@nested
class JoinGroupResponseMember:
    """A member, as its leader sees it, with what it sent for the chosen protocol."""

    member_id: String = field("0+")
    group_instance_id: String | None = field("5+", nullable="5+", default=None, ignorable=True)  # KIP-345
    metadata: Bytes = field("0+")  # of consumers: a ConsumerProtocolSubscription


@message(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupResponse(Response):
    """The generation that the member now belongs to; the leader alone is told who the members are, since it assigns.

    v4+: MEMBER_ID_REQUIRED brings the member id to join again with (KIP-394).
    """

    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    generation_id: Int32 = field("0+", default=-1)
    protocol_type: String | None = field("7+", nullable="7+", default=None, ignorable=True)  # KIP-559
    protocol_name: String | None = field("0+", nullable="7+")  # v7+: null if there is none, as with an error (KIP-559)
    leader: String = field("0+")  # a member id
    # KIP-814: a static leader is back, and what it assigned before stands
    skip_assignment: Bool = field("9+", default=False)
    member_id: String = field("0+")
    members: Array[JoinGroupResponseMember] = field("0+")  # empty for all but the leader


@nested
class JoinGroupRequestProtocol:
    """A way of assigning that the member knows, and what it tells the leader for it."""

    name: String = field("0+")
    metadata: Bytes = field("0+")  # of consumers: a ConsumerProtocolSubscription


@message(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupRequest(Request[JoinGroupResponse]):
    """Joins a group, as a rule by a rebalance; the answer comes when all members have joined.

    v4+: who joins without a member id, and is not static, is told one and has to join again (KIP-394).
    """

    group_id: String = field("0+")
    session_timeout_ms: Int32 = field("0+")
    # KIP-62; before it, the session timeout served for both
    rebalance_timeout_ms: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String = field("0+")  # empty at first
    # KIP-345: makes a static member, which may restart without a rebalance
    group_instance_id: String | None = field("5+", nullable="5+", default=None)
    protocol_type: String = field("0+")  # such as "consumer" or "connect"; the same for all members
    # in order of preference; one of them must be known to all members
    protocols: Array[JoinGroupRequestProtocol] = field("0+")
    reason: String | None = field("8+", nullable="8+", default=None, ignorable=True)  # KIP-800: for the broker's log


@message(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupResponse(Response):
    """The member's part of the work, as the leader assigned it."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    protocol_type: String | None = field("5+", nullable="5+", default=None, ignorable=True)  # KIP-559, as is the name
    protocol_name: String | None = field("5+", nullable="5+", default=None, ignorable=True)
    assignment: Bytes = field("0+")  # of consumers: a ConsumerProtocolAssignment


@nested
class SyncGroupRequestAssignment:
    """What the leader assigns to one member."""

    member_id: String = field("0+")
    assignment: Bytes = field("0+")  # of consumers: a ConsumerProtocolAssignment


@message(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupRequest(Request[SyncGroupResponse]):
    """Asks for the member's part of the work; the leader brings the parts of all, the others none."""

    group_id: String = field("0+")
    generation_id: Int32 = field("0+")
    member_id: String = field("0+")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)  # KIP-345
    # KIP-559: v5+ requires both, and refuses what is not the group's
    protocol_type: String | None = field("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: String | None = field("5+", nullable="5+", default=None, ignorable=True)
    assignments: Array[SyncGroupRequestAssignment] = field("0+")


@message(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatResponse(Response):
    """Whether the member is still in; REBALANCE_IN_PROGRESS asks it to join again."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0+")


@message(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatRequest(Request[HeartbeatResponse]):
    """Says that the member is alive, as it must within each session timeout."""

    group_id: String = field("0+")
    generation_id: Int32 = field("0+")
    member_id: String = field("0+")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)  # KIP-345


@nested
class MemberResponse:
    """Whether one member is out (KIP-345)."""

    member_id: String = field("3+")
    group_instance_id: String | None = field("3+", nullable="3+")
    error_code: Int16 = field("3+")


@message(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupResponse(Response):
    """Whether the member is out; v3+ says it for each."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0+")  # v3+: of the request as a whole
    members: Array[MemberResponse] = field("3+", default=list)


@nested
class MemberIdentity:
    """A member that leaves, or that an admin removes (KIP-345)."""

    member_id: String = field("3+")  # may be empty if the instance id says who
    group_instance_id: String | None = field("3+", nullable="3+", default=None)
    reason: String | None = field("5+", nullable="5+", default=None, ignorable=True)  # KIP-800: for the broker's log


@message(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupRequest(Request[LeaveGroupResponse]):
    """Takes a member out of the group; v3+ takes several, static ones too (KIP-345)."""

    group_id: String = field("0+")
    member_id: String = field("0-2", default="")
    members: Array[MemberIdentity] = field("3+", default=list)
