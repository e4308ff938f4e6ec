"""ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848)."""

from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ..cluster.api_error import ApiError
from ..cluster.state import OFFSETS_TOPIC
from ..groups.heartbeats import HeartbeatAttempt
from ..serving.call import ServerCall

__all__ = ("consumer_group_heartbeat",)

_MESSAGES: Final = {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
}


async def consumer_group_heartbeat(
    call: ServerCall, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Let a member join, stay in or leave a consumer group, and return its assignment if that changed."""
    attempt = HeartbeatAttempt(request, call.version, call.client_id or "", f"/{call.peer.host}")
    heartbeats = call.cluster.groups.heartbeats
    try:
        heartbeats.check(attempt)
        call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, request.group_id)
        return heartbeats.heartbeat(attempt)
    except ApiError as refused:
        return ConsumerGroupHeartbeatResponse(
            error_code=refused.code,
            error_message=refused.message or _MESSAGES.get(refused.code),
            member_epoch=0,
            heartbeat_interval_ms=0,
        )
