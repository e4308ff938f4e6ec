"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn and WriteTxnMarkers."""

from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.state import OFFSETS_TOPIC
from ..serving.call import ServerCall
from ..transactions.transaction import Ids

__all__ = ("add_offsets_to_txn", "add_partitions_to_txn", "end_txn", "init_producer_id", "write_txn_markers")

_NONE: Final = -1
_FENCED_SINCE: Final = {
    InitProducerIdRequest: 4,
    AddPartitionsToTxnRequest: 2,
    AddOffsetsToTxnRequest: 2,
    EndTxnRequest: 2,
}
"""The versions of these requests since which clients know PRODUCER_FENCED (KIP-588)."""
_BATCHED_SINCE: Final = 4  # the AddPartitionsToTxn of brokers names several transactions (KIP-890)
_BUMPED_SINCE: Final = 5  # EndTxn returns the next epoch (KIP-890)


# --- producer ids --------------------------------------------------------------------------------------------------


async def init_producer_id(call: ServerCall, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Return a producer id and epoch: new ones, or, for a transactional id, the id's producer id and next epoch."""
    try:
        producer_id, epoch = _init(call, request)
    except ApiError as refused:
        error = _as_known(call, InitProducerIdRequest, refused.code)
        return InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)
    return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=epoch)


def _init(call: ServerCall, request: InitProducerIdRequest) -> Ids:
    expected = request.producer_id, request.producer_epoch
    if (expected[0] == _NONE) != (expected[1] == _NONE):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return call.cluster.next_producer_id(), 0
    _check_id(request.transactional_id)
    transactions = call.cluster.transactions
    transactions.check_timeout(request.transaction_timeout_ms)
    transactions.check(request.transactional_id, call.node.node_id)
    return transactions.initialize(
        request.transactional_id, request.transaction_timeout_ms, None if expected[0] == _NONE else expected
    )


def _check_id(transactional_id: str) -> None:
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST)


def _as_known(call: ServerCall, request: type, code: ErrorCode) -> ErrorCode:
    """Return ``code``, with PRODUCER_FENCED replaced by INVALID_PRODUCER_EPOCH in versions that do not know it."""
    if code is ErrorCode.PRODUCER_FENCED and call.version < _FENCED_SINCE[request]:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


# --- adding to a transaction ---------------------------------------------------------------------------------------


async def add_partitions_to_txn(call: ServerCall, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    """Add partitions to a transaction; since v4, brokers send the request, and it can name several transactions."""
    if call.version >= _BATCHED_SINCE:
        results = [
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=_added(call, transaction)
            )
            for transaction in request.transactions
        ]
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_added(call, transaction))


def _added(call: ServerCall, asked: AddPartitionsToTxnTransaction) -> list[AddPartitionsToTxnTopicResult]:
    partitions = [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions]
    unknown = [partition for partition in partitions if not call.cluster.topics.has(partition)]
    if unknown:
        rest = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        return _results(asked.topics, rest | dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    ids = asked.producer_id, asked.producer_epoch
    transactions = call.cluster.transactions
    errors = dict.fromkeys(partitions, ErrorCode.NONE)
    try:
        _check_id(asked.transactional_id)
        transactions.check(asked.transactional_id, call.node.node_id)
        if asked.verify_only:
            return _results(asked.topics, {partition: _verified(call, asked, partition) for partition in partitions})
        transactions.add(asked.transactional_id, ids, partitions, bumps=call.version >= _BATCHED_SINCE)
    except ApiError as refused:
        errors = dict.fromkeys(partitions, _as_known(call, AddPartitionsToTxnRequest, refused.code))
    return _results(asked.topics, errors)


def _verified(call: ServerCall, asked: AddPartitionsToTxnTransaction, partition: TopicPartition) -> ErrorCode:
    try:
        call.cluster.transactions.verify(asked.transactional_id, (asked.producer_id, asked.producer_epoch), partition)
    except ApiError as refused:
        return refused.code
    return ErrorCode.NONE


def _results(
    topics: list[AddPartitionsToTxnTopic], errors: dict[TopicPartition, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=errors[TopicPartition(topic.name, index)]
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


async def add_offsets_to_txn(call: ServerCall, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Add to a transaction the partition of ``__consumer_offsets`` that stores the offsets of a group."""
    offsets = call.cluster.coordinator_partition(OFFSETS_TOPIC, request.group_id)
    transactions = call.cluster.transactions
    try:
        _check_id(request.transactional_id)
        transactions.check(request.transactional_id, call.node.node_id)
        partition = TopicPartition(OFFSETS_TOPIC, offsets.index)
        transactions.add(request.transactional_id, (request.producer_id, request.producer_epoch), [partition])
    except ApiError as refused:
        return AddOffsetsToTxnResponse(error_code=_as_known(call, AddOffsetsToTxnRequest, refused.code))
    return AddOffsetsToTxnResponse(error_code=ErrorCode.NONE)


# --- end -----------------------------------------------------------------------------------------------------------


async def end_txn(call: ServerCall, request: EndTxnRequest) -> EndTxnResponse:
    """Commit or abort a transaction, without waiting for the markers."""
    transactions = call.cluster.transactions
    bumps = call.version >= _BUMPED_SINCE
    try:
        _check_id(request.transactional_id)
        transactions.check(request.transactional_id, call.node.node_id)
        ids = request.producer_id, request.producer_epoch
        then = transactions.end(request.transactional_id, ids, commit=request.committed, bumps=bumps)
    except ApiError as refused:
        return EndTxnResponse(error_code=_as_known(call, EndTxnRequest, refused.code))
    return EndTxnResponse(error_code=ErrorCode.NONE, producer_id=then[0], producer_epoch=then[1])


async def write_txn_markers(call: ServerCall, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Write the transaction markers that a coordinator or an operator (KIP-664) requests."""
    results = [
        WritableTxnMarkerResult(
            producer_id=marker.producer_id,
            topics=[
                WritableTxnMarkerTopicResult(
                    name=topic.name,
                    partitions=[
                        WritableTxnMarkerPartitionResult(
                            partition_index=index, error_code=_marked(call, marker, topic.name, index)
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in marker.topics
            ],
        )
        for marker in request.markers
    ]
    return WriteTxnMarkersResponse(markers=results)


def _marked(call: ServerCall, marker: WritableTxnMarker, topic: str, index: int) -> ErrorCode:
    cluster, node = call.cluster, call.node
    try:
        partition = cluster.topics.partition(topic, index)
        if node.node_id not in partition.replicas:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition.check_leader(node.node_id)
        if marker.producer_id < 0:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka does not handle this case, either
        if topic == OFFSETS_TOPIC:
            cluster.committed.complete(marker.producer_id, commit=marker.transaction_result)
            return ErrorCode.NONE
        if partition.lacks_replicas:
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS)
        partition.log.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            timestamp=cluster.clock(),
            leader_epoch=partition.leader_epoch,
            version=marker.transaction_version,
        )
    except ApiError as refused:
        return refused.code
    partition.replicate()
    cluster.changed(partition)
    return ErrorCode.NONE
