"""FindCoordinator: which broker looks after a group or a transactional id."""

from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.group import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ..state import Node

__all__ = ("find_coordinator",)

_GROUP, _TRANSACTION, _SHARE_GROUP = range(3)
_SHARE_GROUPS_SINCE: Final = 6
_SEVERAL_KEYS_SINCE: Final = 4
_MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)


async def find_coordinator(node: Node, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    """This node, for every group and transactional id: the only one there is."""
    if version >= _SEVERAL_KEYS_SINCE:
        coordinators = [_coordinator(node, key, request.key_type, version) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=coordinators)
    found = _coordinator(node, request.key, request.key_type, version)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or "NONE",  # as Apache Kafka spells success here
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(node: Node, key: str, key_type: int, version: int) -> Coordinator:
    error, message = ErrorCode.NONE, ""
    if key_type == _SHARE_GROUP and version >= _SHARE_GROUPS_SINCE:
        error, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available."
    elif key_type not in (_GROUP, _TRANSACTION):
        error, message = ErrorCode.INVALID_REQUEST, _MALFORMED
    if error is not ErrorCode.NONE:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
    return Coordinator(
        key=key, node_id=node.node_id, host=node.host, port=node.port, error_code=error, error_message=message
    )
