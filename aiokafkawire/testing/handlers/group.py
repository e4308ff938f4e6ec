"""FindCoordinator: which broker looks after a group or a transactional id."""

from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.group import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ..call import Call
from ..replicas import NO_LEADER
from ..state import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

__all__ = ("find_coordinator",)

_GROUP, _TRANSACTION, _SHARE_GROUP = range(3)
_SHARE_GROUPS_SINCE: Final = 6
_SEVERAL_KEYS_SINCE: Final = 4
_MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)


async def find_coordinator(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """The broker that leads the partition which the group or transactional id belongs to."""
    if call.version >= _SEVERAL_KEYS_SINCE:
        coordinators = [_coordinator(call, key, request.key_type) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=coordinators)
    found = _coordinator(call, request.key, request.key_type)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or "NONE",  # as Apache Kafka spells success here
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(call: Call, key: str, key_type: int) -> Coordinator:
    if key_type == _SHARE_GROUP and call.version >= _SHARE_GROUPS_SINCE:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    if key_type not in (_GROUP, _TRANSACTION):
        return _none(key, ErrorCode.INVALID_REQUEST, _MALFORMED)
    topic = OFFSETS_TOPIC if key_type == _GROUP else TRANSACTIONS_TOPIC
    leader = call.cluster.coordinator_partition(topic, key).leader
    if leader == NO_LEADER:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    node = call.cluster.node(leader)
    return Coordinator(
        key=key, node_id=node.node_id, host=node.host, port=node.port, error_code=ErrorCode.NONE, error_message=""
    )


def _none(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
