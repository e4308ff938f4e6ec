"""Looking at producers and transactions from outside (KIP-664)."""

from ..api import ApiKey
from ..primitives import Array, Int16, Int32, Int64, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
    "DescribeTransactionsResponseTransactionState",
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "ListTransactionsResponseTransactionState",
    "PartitionResponse",
    "ProducerState",
    "TopicData",
    "TopicRequest",
    "TopicResponse",
)


@nested
class ProducerState:
    """DOC(DescribeProducersResponse.ActiveProducers)."""

    producer_id: Int64 = field("0+")
    producer_epoch: Int32 = field("0+")
    last_sequence: Int32 = field("0+", default=-1)
    last_timestamp: Int64 = field("0+", default=-1)
    coordinator_epoch: Int32 = field("0+")
    current_txn_start_offset: Int64 = field("0+", default=-1)


@nested
class PartitionResponse:
    """DOC(DescribeProducersResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    active_producers: Array[ProducerState] = field("0+")


@nested
class TopicResponse:
    """DOC(DescribeProducersResponse.Topics)."""

    name: String = field("0+")
    partitions: Array[PartitionResponse] = field("0+")


@message(ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    topics: Array[TopicResponse] = field("0+")


@nested
class TopicRequest:
    """DOC(DescribeProducersRequest.Topics)."""

    name: String = field("0+")
    partition_indexes: Array[Int32] = field("0+")


@message(ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersRequest(Request[DescribeProducersResponse]):
    """DOC."""

    topics: Array[TopicRequest] = field("0+")


@nested
class TopicData:
    """DOC(DescribeTransactionsResponse.Topics)."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class DescribeTransactionsResponseTransactionState:
    """DOC(DescribeTransactionsResponse.TransactionStates)."""

    error_code: Int16 = field("0+")
    transactional_id: String = field("0+")
    transaction_state: String = field("0+")
    transaction_timeout_ms: Int32 = field("0+")
    transaction_start_time_ms: Int64 = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    topics: Array[TopicData] = field("0+")


@message(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    transaction_states: Array[DescribeTransactionsResponseTransactionState] = field("0+")


@message(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsRequest(Request[DescribeTransactionsResponse]):
    """DOC."""

    transactional_ids: Array[String] = field("0+")


@nested
class ListTransactionsResponseTransactionState:
    """DOC(ListTransactionsResponse.TransactionStates)."""

    transactional_id: String = field("0+")
    producer_id: Int64 = field("0+")
    transaction_state: String = field("0+")


@message(ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    unknown_state_filters: Array[String] = field("0+")
    transaction_states: Array[ListTransactionsResponseTransactionState] = field("0+")


@message(ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsRequest(Request[ListTransactionsResponse]):
    """DOC."""

    state_filters: Array[String] = field("0+")
    producer_id_filters: Array[Int64] = field("0+")
    duration_filter: Int64 = field("1+", default=-1)
    transactional_id_pattern: String | None = field("2+", nullable="2+", default=None)
