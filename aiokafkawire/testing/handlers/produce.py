"""Produce: record batches into logs."""

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
from ..refused import Disconnect, Refused
from ..state import ClusterState, Node
from ..topics import Partition
from ..validation import validated

__all__ = ("produce",)

_TOPIC_IDS_SINCE = 13


async def produce(node: Node, request: ProduceRequest, version: int) -> ProduceResponse | None:
    """Append each batch; no answer with acks=0, where an error closes the connection instead."""
    cluster = node.cluster
    responses = [_topic(cluster, topic, request.acks, version) for topic in request.topic_data]
    if request.acks != 0:
        return ProduceResponse(responses=responses)
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                error = ErrorCode(partition.error_code).name
                raise Disconnect(f"acks=0, and {topic.name or topic.topic_id}-{partition.index} failed with {error}")
    return None


def _topic(cluster: ClusterState, topic: TopicProduceData, acks: int, version: int) -> TopicProduceResponse:
    name: str | None = topic.name
    if version >= _TOPIC_IDS_SINCE:
        found = cluster.topics.by_id(topic.topic_id)
        name = found.name if found else None
    responses = []
    for data in topic.partition_data:
        try:
            responses.append(_append(cluster, name, data, acks, version))
        except Refused as refused:
            responses.append(_refusal(data.index, refused))
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=responses)


def _append(
    cluster: ClusterState, name: str | None, data: PartitionProduceData, acks: int, version: int
) -> PartitionProduceResponse:
    if name is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    partition: Partition = cluster.topics.partition(name, data.index)
    if acks not in (-1, 0, 1):
        raise Refused(ErrorCode.INVALID_REQUIRED_ACKS)
    settings = cluster.settings
    batch = validated(
        data.records,
        version,
        max_bytes=settings.message_max_bytes,
        newest_timestamp=cluster.clock() + settings.message_timestamp_after_max_ms,
    )
    log = partition.log
    base_offset = log.append(batch, partition.leader_epoch)
    cluster.arrivals.notify(log)
    return PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=base_offset,
        log_start_offset=log.log_start_offset,
    )


def _refusal(index: int, refused: Refused) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=refused.code,
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in refused.record_errors
        ],
        error_message=refused.message,
    )
