"""ListOffsets: offsets by time."""

from enum import IntEnum
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ...types import OffsetAndTimestamp
from ..call import Call
from ..refused import Refused
from ..replicas import Partition

__all__ = ("OffsetName", "list_offsets")


class OffsetName(IntEnum):
    """The timestamps that are not times."""

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
"""The version of the request that each name of an offset came with; other negative timestamps have none."""

_NEVER: Final = 2**15


async def list_offsets(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """The offset of each partition for the time or name asked for; -1 where there is none."""
    topics = []
    for topic in request.topics:
        indexes = [asked.partition_index for asked in topic.partitions]
        answers = []
        for asked in {asked.partition_index: asked for asked in topic.partitions}.values():
            try:
                if indexes.count(asked.partition_index) > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST)
                answers.append(_found(call, topic.name, asked))
            except Refused as refused:
                answers.append(
                    ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=refused.code)
                )
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _found(call: Call, topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
    if asked.timestamp < 0 and call.version < _SINCE.get(asked.timestamp, _NEVER):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION)
    partition = call.node.led(topic, asked.partition_index)
    partition.check_epoch(asked.current_leader_epoch)
    found = _look_up(partition, asked.timestamp)
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=ErrorCode.NONE)
    if found is not None:
        answer.offset = found.offset
        answer.timestamp = found.timestamp
        if call.version >= 4 and found.leader_epoch is not None:
            answer.leader_epoch = found.leader_epoch
    return answer


def _look_up(partition: Partition, timestamp: int) -> OffsetAndTimestamp | None:
    log = partition.log
    match timestamp:
        case OffsetName.LATEST:
            return OffsetAndTimestamp(log.high_watermark, leader_epoch=partition.leader_epoch)
        case OffsetName.EARLIEST | OffsetName.EARLIEST_LOCAL:
            return OffsetAndTimestamp(log.log_start_offset, leader_epoch=partition.leader_epoch)
        case OffsetName.MAX_TIMESTAMP:
            return log.find_max_timestamp()
        case OffsetName.LATEST_TIERED | OffsetName.EARLIEST_PENDING_UPLOAD:
            return None  # no log has remote storage
        case _:
            return log.find_timestamp(timestamp)
