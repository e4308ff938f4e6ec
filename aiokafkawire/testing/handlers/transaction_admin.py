"""DescribeProducers, DescribeTransactions and ListTransactions, for operators (KIP-664)."""

from collections.abc import Iterable

from ...errors import ErrorCode
from ...protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
    PartitionResponse,
    ProducerState,
    TopicData,
    TopicResponse,
)
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.topics import invalid_name
from ..serving.call import ServerCall
from ..transactions.transaction import State

__all__ = ("describe_producers", "describe_transactions", "list_transactions")

_UNKNOWN = "This server does not host this topic-partition."


async def describe_producers(call: ServerCall, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Return the active producers of each requested partition, whether this broker leads or follows it."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_producers(call, topic.name, index) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _producers(call: ServerCall, topic: str, index: int) -> PartitionResponse:
    try:
        fault = invalid_name(topic)
        if fault is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if call.cluster.topics.get(topic) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN)
        partition = call.cluster.topics.partition(topic, index)
        if call.node.node_id not in partition.replicas:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    except ApiError as refused:
        return PartitionResponse(
            partition_index=index, error_code=refused.code, error_message=refused.message, active_producers=[]
        )
    producers = [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=-1 if producer.first_offset is None else producer.first_offset,
        )
        for producer in partition.log.producers.active()
    ]
    return PartitionResponse(partition_index=index, error_code=ErrorCode.NONE, active_producers=producers)


async def describe_transactions(call: ServerCall, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Describe each requested transactional id, if this broker coordinates it."""
    return DescribeTransactionsResponse(
        transaction_states=[_described(call, transactional_id) for transactional_id in request.transactional_ids]
    )


def _described(call: ServerCall, transactional_id: str) -> DescribeTransactionsResponseTransactionState:
    try:
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        call.cluster.transactions.check(transactional_id, call.node.node_id)
        found = call.cluster.transactions.describe(transactional_id)
    except ApiError as refused:
        return DescribeTransactionsResponseTransactionState(
            error_code=refused.code,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    return DescribeTransactionsResponseTransactionState(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=found.state,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=_by_topic(found.partitions),
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TopicData]:
    topics: dict[str, TopicData] = {}
    for partition in partitions:
        topic = topics.setdefault(partition.topic, TopicData(topic=partition.topic, partitions=[]))
        topic.partitions.append(partition.partition)
    return list(topics.values())


async def list_transactions(call: ServerCall, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the transactional ids that this broker coordinates and that pass every filter."""
    transactions = call.cluster.transactions
    names = {state.value for state in State}
    try:
        found = transactions.select(
            transactions.coordinated_by(call.node.node_id),
            states=request.state_filters,
            producer_ids=request.producer_id_filters,
            longer_than_ms=request.duration_filter,
            pattern=request.transactional_id_pattern,
        )
    except ApiError as refused:
        return ListTransactionsResponse(error_code=refused.code, unknown_state_filters=[], transaction_states=[])
    return ListTransactionsResponse(
        error_code=ErrorCode.NONE,
        unknown_state_filters=[name for name in dict.fromkeys(request.state_filters) if name not in names],
        transaction_states=[
            ListTransactionsResponseTransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state,
            )
            for transaction in found
        ],
    )
