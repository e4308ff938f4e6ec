"""ListOffsets and OffsetForLeaderEpoch: offsets by time and by leader epoch."""

from collections import Counter
from enum import IntEnum
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.offsets import (
    EpochEndOffset,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ...types import IsolationLevel, OffsetAndTimestamp
from ..cluster.api_error import ApiError
from ..cluster.replicas import HostedPartition
from ..serving.call import ServerCall

__all__ = ("OffsetName", "list_offsets", "offset_for_leader_epoch")

_CONSUMER: Final = -1  # replica ids of clients that are not replicas
_DEBUGGER: Final = -2


class OffsetName(IntEnum):
    """A special timestamp in ListOffsets, which stands for an offset."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


_SINCE: Final[dict[int, int]] = {
    OffsetName.LATEST: 1,
    OffsetName.EARLIEST: 1,
    OffsetName.MAX_TIMESTAMP: 7,
    OffsetName.EARLIEST_LOCAL: 8,
    OffsetName.LATEST_TIERED: 9,
    OffsetName.EARLIEST_PENDING_UPLOAD: 11,
}
"""The request version that introduced each special timestamp; other negative timestamps are unknown."""

_NEVER: Final = 2**15


async def list_offsets(call: ServerCall, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Return each partition's offset for the requested timestamp or :class:`OffsetName`; -1 if there is none."""
    times = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    topics: dict[str, dict[int, ListOffsetsPartition]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            topics.setdefault(topic.name, {})[asked.partition_index] = asked
    answers: dict[str, list[ListOffsetsPartitionResponse]] = {name: [] for name in topics}
    for name, partitions in topics.items():
        for index, asked in partitions.items():
            try:
                if times[name, index] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST)
                answers[name].append(_found(call, name, asked, request))
            except ApiError as refused:
                answers[name].append(ListOffsetsPartitionResponse(partition_index=index, error_code=refused.code))
    return ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name=name, partitions=found) for name, found in answers.items()]
    )


async def offset_for_leader_epoch(
    call: ServerCall, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Return the end offset of each requested epoch, or of the last one before if an epoch has no records (KIP-279)."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_epoch_end(call, topic.topic, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _epoch_end(call: ServerCall, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = call.node.hosted(topic, asked.partition)
        partition.check_epoch(asked.current_leader_epoch)
        partition.check_leader(call.node.node_id)
    except ApiError as refused:
        return EpochEndOffset(error_code=refused.code, partition=asked.partition)
    end = partition.epoch_end(asked.leader_epoch, call.node.node_id)
    return EpochEndOffset(
        error_code=ErrorCode.NONE, partition=asked.partition, leader_epoch=end.epoch, end_offset=end.end_offset
    )


def _found(
    call: ServerCall, topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest
) -> ListOffsetsPartitionResponse:
    if asked.timestamp < 0 and call.version and call.version < _SINCE.get(asked.timestamp, _NEVER):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    partition = call.node.hosted(topic, asked.partition_index)
    partition.check_epoch(asked.current_leader_epoch)
    if request.replica_id != _DEBUGGER:
        partition.check_leader(call.node.node_id)
    end = _end(partition, call.node.node_id, request)
    if call.version == 0:
        offsets = _segments(partition, asked, end, call.cluster.clock())
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, error_code=ErrorCode.NONE, old_style_offsets=offsets
        )
    found = _look_up(partition, asked.timestamp, end)
    ends = (OffsetName.EARLIEST, OffsetName.EARLIEST_LOCAL)
    if asked.timestamp not in ends and (found is None or found.offset >= end):
        _check_caught_up(partition, request, call.version)
        found = found if asked.timestamp == OffsetName.LATEST else None
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=ErrorCode.NONE)
    if found is not None:
        answer.offset = found.offset
        answer.timestamp = found.timestamp
        if call.version >= 4 and found.leader_epoch is not None:
            answer.leader_epoch = found.leader_epoch
    return answer


def _segments(partition: HostedPartition, asked: ListOffsetsPartition, end: int, now: int) -> list[int]:
    """Return the offsets that ListOffsets v0 has instead of one offset, highest first.

    These are the start offsets of all segments that are older than the requested time, and, if there is one, also
    ``end``, unless the request is for EARLIEST. The log has one segment, which counts as written at ``now``.
    """
    if asked.max_num_offsets < 0:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    start = partition.log.log_start_offset
    found = [] if 0 <= asked.timestamp <= now else [start]
    if end > start and found and asked.timestamp != OffsetName.EARLIEST:
        found.insert(0, end)
    return found[: asked.max_num_offsets]


def _end(partition: HostedPartition, node: int, request: ListOffsetsRequest) -> int:
    """Return the end of the records that the client may read; for brokers and debuggers, the end of the log."""
    if request.replica_id != _CONSUMER:
        return partition.end_offset(node)
    if request.isolation_level == IsolationLevel.READ_COMMITTED:
        return partition.last_stable_offset(node)
    return partition.high_watermark(node)


def _check_caught_up(partition: HostedPartition, request: ListOffsetsRequest, version: int) -> None:
    """Check that a new leader knows which of its records are committed (KIP-207).

    Raises:
        ApiError: OFFSET_NOT_AVAILABLE; before v5, LEADER_NOT_AVAILABLE.
    """
    if request.replica_id == _CONSUMER and partition.leader_epoch_start > partition.log.high_watermark:
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE)


def _look_up(partition: HostedPartition, timestamp: int, end: int) -> OffsetAndTimestamp | None:
    log = partition.log
    match timestamp:
        case OffsetName.LATEST:
            return OffsetAndTimestamp(end, leader_epoch=partition.leader_epoch)
        case OffsetName.EARLIEST | OffsetName.EARLIEST_LOCAL:
            return OffsetAndTimestamp(
                log.log_start_offset, leader_epoch=max(0, partition.epochs.at(log.log_start_offset))
            )
        case OffsetName.MAX_TIMESTAMP:
            return log.find_max_timestamp()
        case OffsetName.LATEST_TIERED | OffsetName.EARLIEST_PENDING_UPLOAD:
            return None  # no log has remote storage
        case _:
            return log.find_timestamp(timestamp)
