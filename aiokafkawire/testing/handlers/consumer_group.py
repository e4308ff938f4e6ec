"""ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848)."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from ...errors import ErrorCode
from ...protocol.acl_codes import AclOperation, ResourceType
from ...protocol.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseTopicPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
    Member,
)
from ..cluster.api_error import ApiError
from ..cluster.state import OFFSETS_TOPIC, ClusterState
from ..groups.consumer_group import ConsumerGroup
from ..groups.consumer_member import ConsumerMember, TopicIdPartition
from ..groups.heartbeat_messages import by_topic
from ..groups.heartbeats import HeartbeatAttempt
from ..serving.call import ServerCall
from .constants import GROUP_OPERATIONS

__all__ = ("consumer_group_describe", "consumer_group_heartbeat")

_REVOKING_DESCRIBED_SINCE: Final = "4.3"
"""The first release that describes a member with the partitions that it has not revoked yet."""
_MESSAGES: Final = {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
}


async def consumer_group_heartbeat(
    call: ServerCall, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Let a member join, stay in or leave a consumer group, and return its assignment if that changed."""
    may_describe = partial(call.rights.may, AclOperation.DESCRIBE, ResourceType.TOPIC)
    attempt = HeartbeatAttempt(request, call.version, call.client_id or "", f"/{call.peer.host}", may_describe)
    heartbeats = call.cluster.groups.heartbeats
    try:
        _check_release(call)
        heartbeats.check(attempt)
        call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, request.group_id)
        call.cluster.share_groups.check_free(request.group_id, "consumer")
        call.cluster.check_group_writable(request.group_id)
        return heartbeats.heartbeat(attempt)
    except ApiError as refused:
        return ConsumerGroupHeartbeatResponse(
            error_code=refused.code,
            error_message=refused.message or _MESSAGES.get(refused.code),
            member_epoch=0,
            heartbeat_interval_ms=0,
        )


def _check_release(call: ServerCall) -> None:
    if not call.node.release.since("4.0"):  # where groups are coordinated by the classic protocol alone, by default
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)


async def consumer_group_describe(
    call: ServerCall, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe each requested consumer group."""
    groups = []
    for group_id in request.group_ids:
        try:
            _check_release(call)
            if not group_id:
                raise ApiError(ErrorCode.INVALID_GROUP_ID)
            call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, group_id)
            call.cluster.share_groups.check_free(group_id, "consumer")
            described = _described(call, call.cluster.groups.consumer.get(group_id))
        except ApiError as refused:
            described = _absent(group_id, refused)
        if request.include_authorized_operations and not described.error_code:
            described.authorized_operations = GROUP_OPERATIONS
        groups.append(described)
    return ConsumerGroupDescribeResponse(groups=groups)


def _absent(group_id: str, refused: ApiError) -> DescribedGroup:
    return DescribedGroup(
        error_code=refused.code,
        error_message=refused.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


def _described(call: ServerCall, group: ConsumerGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor or call.cluster.settings.group_consumer_assignors[0],
        members=[_member(call, group, member) for member in group.members.values()],
    )


def _member(call: ServerCall, group: ConsumerGroup, member: ConsumerMember) -> Member:
    cluster = call.cluster
    has_revoking = call.node.release.since(_REVOKING_DESCRIBED_SINCE)
    return Member(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(cluster, member.held if has_revoking else member.assigned),
        target_assignment=_assignment(cluster, group.targets.get(member.member_id, frozenset())),
        member_type=member.classic is None,
    )


def _assignment(
    cluster: ClusterState, partitions: Iterable[TopicIdPartition]
) -> ConsumerGroupDescribeResponseAssignment:
    topics = ((cluster.topic_name(topic_id), topic_id, indexes) for topic_id, indexes in by_topic(partitions))
    return ConsumerGroupDescribeResponseAssignment(
        topic_partitions=[
            ConsumerGroupDescribeResponseTopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for name, topic_id, indexes in topics
            if name is not None
        ]
    )
