"""Produce: appending record batches to logs, and the wait until the batches are committed."""

import logging
from collections.abc import Iterable
from typing import Final

import anyio
import attrs

from ...errors import ErrorCode
from ...protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ...records.batch import RecordBatch
from ..cluster.api_error import ApiError, Disconnect
from ..cluster.replicas import HostedPartition
from ..cluster.state import ClusterState
from ..cluster.topics import HostedTopic
from ..logs.appending import append_batch
from ..logs.message_sets import BATCHES_PRODUCED_SINCE, up_converted
from ..logs.validation import first_headers, only_batch
from ..serving.call import ServerCall
from ..transactions.verification import check_transactional_id, verify_batch

__all__ = ("produce",)

_ALL: Final = -1  # acks
_HINTS_SINCE: Final = 10  # an error response names the leader (KIP-951)
_TOPIC_IDS_SINCE: Final = 13
_ADMIN_CLIENT: Final = "__admin_client"
"""The client id that may write to internal topics."""
_VERIFICATION: Final = "transaction.partition.verification.enable"
"""The setting of brokers that check with the coordinator that a batch belongs to a transaction (KIP-890)."""
_WITHOUT_LOG_START: Final = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)
"""The errors of an append whose response has no log start offset."""

_log = logging.getLogger(__name__)


@attrs.frozen
class _Appended:
    """A batch that was appended to the leader's log, and the response for its partition."""

    topic: HostedTopic
    partition: HostedPartition
    leader_epoch: int
    end_offset: int
    answer: PartitionProduceResponse

    def outcome(self, call: ServerCall) -> ErrorCode | None:
        """Return the final error code for the batch; None while the batch is neither committed nor failed."""
        if call.cluster.topics.get(self.topic.name) is not self.topic:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = self.partition
        if (partition.leader, partition.leader_epoch) != (call.node.node_id, self.leader_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if partition.log.high_watermark < self.end_offset:
            return None
        if partition.lacks_replicas:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE


async def produce(call: ServerCall, request: ProduceRequest) -> ProduceResponse | None:
    """Append each batch. With acks=0 there is no response, and an error disconnects the client."""
    appended: list[_Appended] = []
    try:
        check_transactional_id(request.transactional_id, first_headers(request))
    except ApiError as refused:
        responses = [_refused(topic, refused) for topic in request.topic_data]
    else:
        responses = [_topic(call, topic, request, appended) for topic in request.topic_data]
    if request.acks == _ALL:
        await _committed(call, appended, request.timeout_ms)
    if request.acks != 0:
        leaders = _name_leaders(call, responses) if call.version >= _HINTS_SINCE else []
        return ProduceResponse(responses=responses, node_endpoints=leaders)
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                error = ErrorCode(partition.error_code).name
                raise Disconnect(f"acks=0, and {topic.name or topic.topic_id}-{partition.index} failed with {error}")
    return None


# --- appends -----------------------------------------------------------------------------------------------------


def _topic(
    call: ServerCall, data: TopicProduceData, request: ProduceRequest, appended: list[_Appended]
) -> TopicProduceResponse:
    topic = _named(call, data)
    responses = []
    for partition in data.partition_data:
        try:
            responses.append(_partition(call, topic, partition, request, appended))
        except ApiError as refused:
            _log.info("%s-%d rejects a batch: %s", data.name or data.topic_id, partition.index, refused)
            responses.append(_refusal(partition.index, refused))
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=responses)


def _refused(data: TopicProduceData, refused: ApiError) -> TopicProduceResponse:
    """Return the response for a topic, with this error for each requested partition."""
    responses = [_refusal(partition.index, refused) for partition in data.partition_data]
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=responses)


def _named(call: ServerCall, data: TopicProduceData | TopicProduceResponse) -> HostedTopic | None:
    topics = call.cluster.topics
    return topics.by_id(data.topic_id) if call.version >= _TOPIC_IDS_SINCE else topics.get(data.name)


def _partition(
    call: ServerCall,
    topic: HostedTopic | None,
    data: PartitionProduceData,
    request: ProduceRequest,
    appended: list[_Appended],
) -> PartitionProduceResponse:
    if topic is None:
        by_id = call.version >= _TOPIC_IDS_SINCE
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = call.cluster.topics.partition(topic.name, data.index)
    records = data.records
    if call.version < BATCHES_PRODUCED_SINCE:
        records = up_converted(records)
    batch = None if records is None and call.version < BATCHES_PRODUCED_SINCE else only_batch(records, call.version)
    if request.acks not in (_ALL, 0, 1):
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic.is_internal and call.client_id != _ADMIN_CLIENT:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition.check_leader(call.node.node_id)
    if batch is None:  # nothing to append
        return PartitionProduceResponse(index=data.index, error_code=ErrorCode.NONE, base_offset=-1)
    if batch.header.is_transactional and _verifies(call):
        verify_batch(call.cluster.transactions, request.transactional_id, partition, batch.header, call.version)
    try:
        base_offset, timestamp = _append(call.cluster, topic, partition, batch, request.acks)
    except ApiError as refused:
        if refused.code in _WITHOUT_LOG_START:
            raise
        _log.info("%s-%d rejects a batch: %s", topic.name, data.index, refused)
        return _refusal(data.index, refused, partition.log.log_start_offset)
    answer = PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=base_offset,
        log_append_time_ms=timestamp,
        log_start_offset=partition.log.log_start_offset,
    )
    end_offset = base_offset + batch.header.last_offset_delta + 1
    appended.append(_Appended(topic, partition, partition.leader_epoch, end_offset, answer))
    return answer


def _append(
    cluster: ClusterState, topic: HostedTopic, partition: HostedPartition, batch: RecordBatch, acks: int
) -> tuple[int, int]:
    appended = append_batch(topic, partition, batch, cluster.clock(), all_replicas=acks == _ALL)
    cluster.changed(partition)
    return appended


def _refusal(index: int, refused: ApiError, log_start_offset: int = -1) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=refused.code,
        base_offset=-1,
        log_start_offset=log_start_offset,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in refused.record_errors
        ],
        error_message=refused.message,
    )


# --- acks=all ----------------------------------------------------------------------------------------------------


async def _committed(call: ServerCall, appended: list[_Appended], timeout_ms: int) -> None:
    """Wait until each batch is committed or failed; after the timeout, the remaining ones get REQUEST_TIMED_OUT.

    A batch that gets an error here stays in the log, and its offset stays in the response.
    """
    waiting = _unsettled(call, appended)
    if not waiting:
        return
    logs = [batch.partition.log for batch in waiting]
    with call.cluster.fetch_purgatory.watch(logs) as watch, anyio.move_on_after(max(0, timeout_ms) / 1000):
        while waiting:
            await watch.wait()
            waiting = _unsettled(call, waiting)
    for batch in waiting:
        batch.answer.error_code = ErrorCode.REQUEST_TIMED_OUT


def _unsettled(call: ServerCall, appended: Iterable[_Appended]) -> list[_Appended]:
    """Set the final error codes in the responses; return the batches that have no final error code yet."""
    waiting = []
    for batch in appended:
        outcome = batch.outcome(call)
        if outcome is None:
            waiting.append(batch)
        else:
            batch.answer.error_code = outcome
    return waiting


# --- leader hints ------------------------------------------------------------------------------------------------


def _name_leaders(call: ServerCall, responses: list[TopicProduceResponse]) -> list[NodeEndpoint]:
    """Set the leader in the response of each partition that another broker leads, and return the leaders' endpoints."""
    named: set[int] = set()
    for response in responses:
        for answer in response.partition_responses:
            if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                topic = _named(call, response)
                if topic is not None and answer.index < len(topic.partitions):
                    partition = topic.partitions[answer.index]
                    answer.current_leader = LeaderIdAndEpoch(
                        leader_id=partition.leader, leader_epoch=partition.leader_epoch
                    )
                    named.add(partition.leader)
    return [
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in call.cluster.alive
        if node.node_id in named
    ]


def _verifies(call: ServerCall) -> bool:
    return call.cluster.configs.broker(_VERIFICATION, call.node.node_id) == "true"
