"""Produce: record batches into logs."""

import logging
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ...records.batch import RecordBatch
from ..call import Call
from ..refused import Disconnect, Refused
from ..replicas import Partition
from ..state import ClusterState
from ..validation import only_batch, validated

__all__ = ("produce",)

_TOPIC_IDS_SINCE: Final = 13
_WITHOUT_LOG_START: Final = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)
"""Errors of the append that do not tell where the log begins, as all others do."""

_log = logging.getLogger(__name__)


async def produce(call: Call, request: ProduceRequest) -> ProduceResponse | None:
    """Append each batch; no answer with acks=0, where an error closes the connection instead."""
    responses = [_topic(call, topic, request.acks) for topic in request.topic_data]
    if request.acks != 0:
        return ProduceResponse(responses=responses)
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                error = ErrorCode(partition.error_code).name
                raise Disconnect(f"acks=0, and {topic.name or topic.topic_id}-{partition.index} failed with {error}")
    return None


def _topic(call: Call, topic: TopicProduceData, acks: int) -> TopicProduceResponse:
    name: str | None = topic.name
    if call.version >= _TOPIC_IDS_SINCE:
        found = call.cluster.topics.by_id(topic.topic_id)
        name = found.name if found else None
    responses = []
    for data in topic.partition_data:
        try:
            responses.append(_partition(call, name, data, acks))
        except Refused as refused:
            _log.info("%s-%d refuses a batch: %s", name or topic.topic_id, data.index, refused)
            responses.append(_refusal(data.index, refused))
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=responses)


def _partition(call: Call, name: str | None, data: PartitionProduceData, acks: int) -> PartitionProduceResponse:
    if name is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = call.node.led(name, data.index)
    batch = only_batch(data.records, call.version)
    if acks not in (-1, 0, 1):
        raise Refused(ErrorCode.INVALID_REQUIRED_ACKS)
    try:
        base_offset, timestamp = _append(call.cluster, partition, batch)
    except Refused as refused:
        if refused.code in _WITHOUT_LOG_START:
            raise
        _log.info("%s-%d refuses a batch: %s", name, data.index, refused)
        return _refusal(data.index, refused, partition.log.log_start_offset)
    return PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=base_offset,
        log_append_time_ms=timestamp,
        log_start_offset=partition.log.log_start_offset,
    )


def _append(cluster: ClusterState, partition: Partition, batch: RecordBatch) -> tuple[int, int]:
    settings = cluster.settings
    batch = validated(
        batch,
        max_bytes=settings.message_max_bytes,
        now=cluster.clock(),
        after_max_ms=settings.message_timestamp_after_max_ms,
    )
    appended = partition.log.append(batch, partition.leader_epoch)
    partition.replicate()
    cluster.changed(partition)
    return appended


def _refusal(index: int, refused: Refused, log_start_offset: int = -1) -> PartitionProduceResponse:
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
