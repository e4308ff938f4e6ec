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
    """What a log remembers of a producer that wrote to it lately."""

    producer_id: Int64 = field("0+")
    producer_epoch: Int32 = field("0+")
    last_sequence: Int32 = field("0+", default=-1)  # -1: there is none
    last_timestamp: Int64 = field("0+", default=-1)  # ms since 1970, of its last batch; -1: there is none
    coordinator_epoch: Int32 = field("0+")  # of its last transaction marker; -1: there is none
    current_txn_start_offset: Int64 = field("0+", default=-1)  # -1: no transaction is open


@nested
class PartitionResponse:
    """The producers of one partition."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    active_producers: Array[ProducerState] = field("0+")


@nested
class TopicResponse:
    """The answers for one topic."""

    name: String = field("0+")
    partitions: Array[PartitionResponse] = field("0+")


@message(ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersResponse(Response):
    """Who writes to each partition, idempotent and transactional producers alone."""

    throttle_time_ms: Int32 = field("0+", default=0)
    topics: Array[TopicResponse] = field("0+")


@nested
class TopicRequest:
    """The partitions of one topic."""

    name: String = field("0+")
    partition_indexes: Array[Int32] = field("0+")


@message(ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersRequest(Request[DescribeProducersResponse]):
    """Who writes to these partitions? Leaders are asked, as a rule; followers answer from their own logs."""

    topics: Array[TopicRequest] = field("0+")


@nested
class TopicData:
    """The partitions of one topic that are in the transaction; once it ends, those that still lack their marker."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class DescribeTransactionsResponseTransactionState:
    """A transactional id, and how far its transaction is."""

    error_code: Int16 = field("0+")
    transactional_id: String = field("0+")
    # "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort" or "PrepareEpochFence"
    transaction_state: String = field("0+")
    transaction_timeout_ms: Int32 = field("0+")
    transaction_start_time_ms: Int64 = field("0+")  # since 1970; -1: there was none yet
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    topics: Array[TopicData] = field("0+")


@message(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsResponse(Response):
    """What each transactional id is doing."""

    throttle_time_ms: Int32 = field("0+", default=0)
    transaction_states: Array[DescribeTransactionsResponseTransactionState] = field("0+")


@message(ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsRequest(Request[DescribeTransactionsResponse]):
    """What are these transactional ids doing? Their coordinator is to be asked; an empty list gets no answers."""

    transactional_ids: Array[String] = field("0+")


@nested
class ListTransactionsResponseTransactionState:
    """A transactional id, and how far its transaction is."""

    transactional_id: String = field("0+")
    producer_id: Int64 = field("0+")
    transaction_state: String = field("0+")  # as in DescribeTransactionsResponseTransactionState


@message(ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsResponse(Response):
    """The transactional ids that pass the filters, of those that this broker coordinates."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")  # v2+: INVALID_REGULAR_EXPRESSION (KIP-1152)
    unknown_state_filters: Array[String] = field("0+")  # what the broker does not know as a state
    transaction_states: Array[ListTransactionsResponseTransactionState] = field("0+")


@message(ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsRequest(Request[ListTransactionsResponse]):
    """Which transactional ids does this broker coordinate? All brokers together know all of them.

    An empty list lets everything pass.
    """

    state_filters: Array[String] = field("0+")
    producer_id_filters: Array[Int64] = field("0+")
    duration_filter: Int64 = field("1+", default=-1)  # KIP-994: only those that have run for longer, in ms; -1: all
    # KIP-1152: a regular expression (RE2) for the whole id; null or empty: all
    transactional_id_pattern: String | None = field("2+", nullable="2+", default=None)
