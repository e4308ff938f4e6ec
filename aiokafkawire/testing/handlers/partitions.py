"""CreatePartitions, DeleteRecords and DescribeTopicPartitions."""

from collections import Counter
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ...protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ...protocol.primitives import ZERO_UUID
from ..cluster.api_error import ApiError
from ..cluster.replicas import HostedPartition
from ..cluster.topics import MOST_PARTITIONS, HostedTopic, invalid_name
from ..serving.call import ServerCall
from .constants import NO_OPERATIONS, TOPIC_OPERATIONS
from .mutations import Mutations

__all__ = ("create_partitions", "delete_records", "describe_topic_partitions")

_UP_TO_HIGH_WATERMARK: Final = -1
_MOST_PARTITIONS: Final = 2000  # max.request.partition.size.limit


async def create_partitions(call: ServerCall, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Add partitions to each requested topic; an error of one topic does not affect other topics (KIP-195)."""
    times, mutations = Counter(topic.name for topic in request.topics), Mutations(call, strict_since=3)
    results = {}
    left = MOST_PARTITIONS
    for asked in request.topics:
        error, message = ErrorCode.NONE, None
        try:
            if times[asked.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = call.cluster.topics.get(asked.name)
            left -= max(0, asked.count - len(topic.partitions)) if topic else 0
            if left < 0:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka handles this case in CreateTopics only
            if mutations.limited and topic is not None:
                _extend(call, asked, validate_only=True)
                mutations.record(asked.count - len(topic.partitions))
            _extend(call, asked, request.validate_only)
        except ApiError as refused:
            error, message = refused.code, refused.message
        results[asked.name] = CreatePartitionsTopicResult(name=asked.name, error_code=error, error_message=message)
    return CreatePartitionsResponse(results=list(results.values()), throttle_time_ms=mutations.throttle_time_ms)


def _extend(call: ServerCall, asked: CreatePartitionsTopic, validate_only: bool) -> None:
    assignments = None if asked.assignments is None else [assignment.broker_ids for assignment in asked.assignments]
    call.cluster.topics.add_partitions(asked.name, asked.count, assignments, validate_only=validate_only)


# --- record deletion ---------------------------------------------------------------------------------------------


async def delete_records(call: ServerCall, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete the records below the requested offset of each partition, if this broker leads it (KIP-107)."""
    offsets_of: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            offsets_of.setdefault(topic.name, {})[partition.partition_index] = partition.offset
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name, partitions=[_deleted(call, name, index, offset) for index, offset in offsets.items()]
            )
            for name, offsets in offsets_of.items()
        ]
    )


def _deleted(call: ServerCall, name: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    error, low_watermark = ErrorCode.NONE, -1
    try:
        low_watermark = _delete(call, name, index, offset)
    except ApiError as refused:
        error = refused.code
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=error)


def _delete(call: ServerCall, name: str, index: int, offset: int) -> int:
    partition = call.cluster.topics.partition(name, index)
    topic = call.cluster.topics.get(name)
    if topic is not None and topic.is_internal:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition.check_leader(call.node.node_id)
    if topic is not None and topic.config("cleanup.policy") == "compact":
        raise ApiError(ErrorCode.POLICY_VIOLATION)
    log = partition.log
    if offset == _UP_TO_HIGH_WATERMARK:
        offset = log.high_watermark
    elif offset < 0:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    log.delete_before(offset)
    call.cluster.changed(partition)
    return log.log_start_offset


# --- descriptions ------------------------------------------------------------------------------------------------


async def describe_topic_partitions(
    call: ServerCall, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe topics, sorted by name, up to the requested number of partitions; a cursor names the next (KIP-966)."""
    cursor = request.cursor
    begin = cursor.topic_name if cursor else ""
    wanted = [topic.name for topic in request.topics]
    if cursor and (cursor.partition_index < 0 or (wanted and begin not in wanted)):
        return _all_refused(wanted, ErrorCode.INVALID_REQUEST)
    if "" in wanted:
        return _all_refused(wanted, ErrorCode.UNKNOWN_SERVER_ERROR)  # as Apache Kafka does
    names = sorted(dict.fromkeys(wanted or [topic.name for topic in call.cluster.topics]))
    left = max(1, min(_MOST_PARTITIONS, request.response_partition_limit))
    response = DescribeTopicPartitionsResponse(topics=[])
    for name in names:
        if name < begin:
            continue
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = call.cluster.topics.get(name)
        if topic is None:
            response.topics.append(_missing(name))
            continue
        first = cursor.partition_index if cursor and name == begin else 0
        end = min(first + left, len(topic.partitions))
        response.topics.append(_described(topic, first, end))
        left -= max(0, end - first)
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return response


def _all_refused(names: list[str], error: ErrorCode) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=[_refused(name, error, NO_OPERATIONS) for name in names])


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    invalid = invalid_name(name) is not None
    error = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _refused(name, error, TOPIC_OPERATIONS)


def _refused(name: str, error: ErrorCode, operations: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, topic_id=ZERO_UUID, partitions=[], topic_authorized_operations=operations
    )


def _described(topic: HostedTopic, first: int, end: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(partition) for partition in topic.partitions[first:end]],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(partition: HostedPartition) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE,  # without a leader, too, unlike in Metadata
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.in_sync_replicas),
        eligible_leader_replicas=list(partition.eligible_leader_replicas),
        last_known_elr=[],
        offline_replicas=partition.offline_replicas,
    )
