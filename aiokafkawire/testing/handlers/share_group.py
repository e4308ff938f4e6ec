"""ShareGroupHeartbeat and ShareGroupDescribe (KIP-932)."""

from collections.abc import Iterable
from uuid import UUID

from ...errors import ErrorCode
from ...protocol.messages.share_group import (
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescribeResponseAssignment,
    ShareGroupDescribeResponseTopicPartitions,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatResponseAssignment,
    ShareGroupHeartbeatResponseTopicPartitions,
)
from ..cluster.api_error import ApiError
from ..cluster.state import OFFSETS_TOPIC
from ..serving.call import ServerCall
from ..share.assignor import SharedPartition
from ..share.share_group import ShareGroup, ShareGroupMember
from ..share.share_groups import LEAVE_EPOCH, check_heartbeat
from .constants import GROUP_OPERATIONS, SHARE_GROUPS_SINCE

__all__ = ("check_share_coordinator", "check_share_version", "share_group_describe", "share_group_heartbeat")


def check_share_version(call: ServerCall) -> None:
    """Check that the release enables share groups: 4.1 has the requests, but not the feature ``share.version``.

    Raises:
        ApiError: UNSUPPORTED_VERSION.
    """
    if not call.node.release.since(SHARE_GROUPS_SINCE):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)


def check_share_coordinator(call: ServerCall, group_id: str) -> None:
    """Check that this broker coordinates a share group.

    Raises:
        ApiError: UNSUPPORTED_VERSION, INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
    """
    check_share_version(call)
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, group_id)


async def share_group_heartbeat(call: ServerCall, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    """Let a member join a share group, stay in it or leave it."""
    try:
        check_share_version(call)
        check_heartbeat(request)
        check_share_coordinator(call, request.group_id)
        call.cluster.check_group_writable(request.group_id)
        if request.member_epoch == LEAVE_EPOCH:
            return _leave(call, request)
        member, is_news = call.cluster.share_groups.heartbeat(request, call.client_id or "", f"/{call.peer.host}")
    except ApiError as refused:
        return ShareGroupHeartbeatResponse(
            error_code=refused.code, error_message=refused.message, member_epoch=0, heartbeat_interval_ms=0
        )
    interval = call.cluster.configs.group(request.group_id, "share.heartbeat.interval.ms")
    return ShareGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=int(interval),
        assignment=_assignment(member.assigned) if is_news else None,
    )


def _leave(call: ServerCall, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    call.cluster.share_groups.leave(request.group_id, request.member_id)
    return ShareGroupHeartbeatResponse(
        error_code=ErrorCode.NONE, member_id=request.member_id, member_epoch=LEAVE_EPOCH, heartbeat_interval_ms=0
    )


def _assignment(partitions: Iterable[SharedPartition]) -> ShareGroupHeartbeatResponseAssignment:
    return ShareGroupHeartbeatResponseAssignment(
        topic_partitions=[
            ShareGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in _by_topic(partitions).items()
        ]
    )


def _by_topic(partitions: Iterable[SharedPartition]) -> dict[UUID, list[int]]:
    found: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return found


async def share_group_describe(call: ServerCall, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Describe each requested share group."""
    groups = []
    for group_id in request.group_ids:
        try:
            check_share_coordinator(call, group_id)
            described = _described(call, call.cluster.share_groups.get(group_id))
            if request.include_authorized_operations:
                described.authorized_operations = GROUP_OPERATIONS
        except ApiError as refused:
            described = DescribedGroup(
                error_code=refused.code,
                error_message=refused.message,
                group_id=group_id,
                group_state="",
                group_epoch=0,
                assignment_epoch=0,
                assignor_name="",
                members=[],
            )
        groups.append(described)
    return ShareGroupDescribeResponse(groups=groups)


def _described(call: ServerCall, group: ShareGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name="simple",
        members=[_member(call, member) for member in group.members.values()],
    )


def _member(call: ServerCall, member: ShareGroupMember) -> Member:
    topics = [
        ShareGroupDescribeResponseTopicPartitions(
            topic_id=topic_id, topic_name=call.cluster.topic_name(topic_id) or "", partitions=indexes
        )
        for topic_id, indexes in _by_topic(member.assigned).items()
    ]
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        assignment=ShareGroupDescribeResponseAssignment(topic_partitions=topics),
    )
