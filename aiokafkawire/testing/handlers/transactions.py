"""InitProducerId: ids for idempotent producers; transactional ones find no coordinator yet."""

from ...errors import ErrorCode
from ...protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from ..call import Call

__all__ = ("init_producer_id",)


async def init_producer_id(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A producer id that nobody has had, with epoch 0."""
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    if request.transactional_id is None:
        return InitProducerIdResponse(
            error_code=ErrorCode.NONE, producer_id=call.cluster.next_producer_id(), producer_epoch=0
        )
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if request.transactional_id else ErrorCode.INVALID_REQUEST
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
