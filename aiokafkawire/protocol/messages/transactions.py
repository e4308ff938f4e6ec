"""Idempotent and transactional producers."""

from ..api import ApiKey
from ..primitives import Bool, Int16, Int32, Int64, String
from ..schema import Request, Response, field, message

__all__ = (
    "InitProducerIdRequest",
    "InitProducerIdResponse",
)


@message(ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+")
class InitProducerIdResponse(Response):
    """The producer id and epoch to write with."""

    throttle_time_ms: Int32 = field("0+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    producer_id: Int64 = field("0+", default=-1)
    producer_epoch: Int16 = field("0+")
    ongoing_txn_producer_id: Int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: Int16 = field("6+", default=-1)


@message(ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+", unstable="6")
class InitProducerIdRequest(Request[InitProducerIdResponse]):
    """A producer id and epoch: fresh ones, or for a transactional id its next epoch, which fences older producers."""

    transactional_id: String | None = field("0+", nullable="0+")
    transaction_timeout_ms: Int32 = field("0+")
    producer_id: Int64 = field("3+", default=-1)  # KIP-360: go on from this one
    producer_epoch: Int16 = field("3+", default=-1)
    enable2_pc: Bool = field("6+", default=False)  # KIP-939
    keep_prepared_txn: Bool = field("6+", default=False)
