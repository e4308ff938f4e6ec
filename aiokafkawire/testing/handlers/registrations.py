"""UnregisterBroker and UnregisterController: nodes that are gone for good."""

from ...errors import ErrorCode
from ...protocol.messages.controller import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from ..serving.call import ServerCall

__all__ = ("unregister_broker", "unregister_controller")


async def unregister_broker(call: ServerCall, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Forget a stopped broker until it starts again; a running broker registers again at once."""
    node = next((node for node in call.cluster.nodes if node.node_id == request.broker_id and node.registered), None)
    if node is None:
        return UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message="")
    node.registered = node.alive
    return UnregisterBrokerResponse(error_code=ErrorCode.NONE, error_message="")


async def unregister_controller(call: ServerCall, request: UnregisterControllerRequest) -> UnregisterControllerResponse:
    """Forget a controller; a running controller registers again at once. The active one refuses."""
    known = {node.node_id for node in call.cluster.nodes if node.registered}
    if request.controller_id == call.cluster.quorum.leader:
        return UnregisterControllerResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Controller cannot unregister itself while it is active.",
        )
    if request.controller_id not in known:
        return UnregisterControllerResponse(
            error_code=ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            error_message=f"Controller ID {request.controller_id} is not currently registered.",
        )
    return UnregisterControllerResponse(error_code=ErrorCode.NONE, error_message="")
