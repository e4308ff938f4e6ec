"""StreamsGroupDescribe (KIP-1071). This broker has no streams groups, since no application can join one."""

from ...errors import ErrorCode
from ...protocol.messages.streams_group import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from ..cluster.api_error import ApiError
from ..cluster.state import OFFSETS_TOPIC
from ..serving.call import ServerCall
from .constants import SHARE_GROUPS_SINCE

__all__ = ("streams_group_describe",)


async def streams_group_describe(
    call: ServerCall, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    """Answer for each group that it does not exist, or is of another type."""
    groups = []
    for group_id in request.group_ids:
        refused = _refusal(call, group_id)
        groups.append(
            DescribedGroup(
                error_code=refused.code,
                error_message=refused.message,
                group_id=group_id,
                group_state="",
                group_epoch=0,
                assignment_epoch=0,
                members=[],
            )
        )
    return StreamsGroupDescribeResponse(groups=groups)


def _refusal(call: ServerCall, group_id: str) -> ApiError:
    # 4.1 has the requests, but not the feature streams.version; share groups came with the same release.
    if not call.node.release.since(SHARE_GROUPS_SINCE):
        return ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return ApiError(ErrorCode.INVALID_GROUP_ID)
    try:
        call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, group_id)
        call.cluster.share_groups.check_free(group_id, "streams")
        call.cluster.groups.get(group_id)
    except ApiError as refused:
        return refused
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
