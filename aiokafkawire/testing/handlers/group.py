"""FindCoordinator: which broker looks after a group or a transactional id."""

from ...errors import ErrorCode
from ...protocol.messages.group import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ..state import Node

__all__ = ("find_coordinator",)

_KEY_TYPES = (0, 1)  # groups and transactional ids; share groups (2) have no coordinator here
_SEVERAL_KEYS_SINCE = 4


async def find_coordinator(node: Node, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    """This node, for every key: the only one there is."""
    known = request.key_type in _KEY_TYPES
    error = ErrorCode.NONE if known else ErrorCode.INVALID_REQUEST
    node_id, host, port = (node.node_id, node.host, node.port) if known else (-1, "", -1)
    if version < _SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(error_code=error, error_message=None, node_id=node_id, host=host, port=port)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=error, error_message=None)
            for key in request.coordinator_keys
        ]
    )
