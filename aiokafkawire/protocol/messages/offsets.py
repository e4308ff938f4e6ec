"""Looking up offsets by time."""

from ..api import ApiKey
from ..primitives import Array, Int8, Int16, Int32, Int64, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "EpochEndOffset",
    "ListOffsetsPartition",
    "ListOffsetsPartitionResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListOffsetsTopic",
    "ListOffsetsTopicResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "OffsetForLeaderPartition",
    "OffsetForLeaderTopic",
    "OffsetForLeaderTopicResult",
)


@nested
class ListOffsetsPartitionResponse:
    """The offset that was found, -1 if there is none."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    old_style_offsets: Array[Int64] = field("0", default=list)
    timestamp: Int64 = field("1+", default=-1)
    offset: Int64 = field("1+", default=-1)
    leader_epoch: Int32 = field("4+", default=-1)


@nested
class ListOffsetsTopicResponse:
    """The answers for one topic."""

    name: String = field("0+")
    partitions: Array[ListOffsetsPartitionResponse] = field("0+")


@message(ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsResponse(Response):
    """The first offset at or after each timestamp."""

    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    topics: Array[ListOffsetsTopicResponse] = field("0+")


@nested
class ListOffsetsPartition:
    """What to look up in one partition."""

    partition_index: Int32 = field("0+")
    current_leader_epoch: Int32 = field("4+", default=-1, ignorable=True)
    timestamp: Int64 = field("0+")
    # v0 answers with several offsets, of segments before the timestamp
    max_num_offsets: Int32 = field("0", default=1)


@nested
class ListOffsetsTopic:
    """The partitions of one topic."""

    name: String = field("0+")
    partitions: Array[ListOffsetsPartition] = field("0+")


@message(ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsRequest(Request[ListOffsetsResponse]):
    """The offset for a timestamp: -1 is the end, -2 the beginning, -3 the highest timestamp (v7+, KIP-734)."""

    replica_id: Int32 = field("0+")  # consumers say -1
    isolation_level: Int8 = field("2+", default=0)
    topics: Array[ListOffsetsTopic] = field("0+")
    timeout_ms: Int32 = field("10+", default=0, ignorable=True)  # KIP-1075: reading remote storage takes its time


@nested
class EpochEndOffset:
    """DOC(OffsetForLeaderEpochResponse.Partitions)."""

    error_code: Int16 = field("0+")
    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("1+", default=-1, ignorable=True)
    end_offset: Int64 = field("0+", default=-1)


@nested
class OffsetForLeaderTopicResult:
    """DOC(OffsetForLeaderEpochResponse.Topics)."""

    topic: String = field("0+")
    partitions: Array[EpochEndOffset] = field("0+")


@message(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    topics: Array[OffsetForLeaderTopicResult] = field("0+")


@nested
class OffsetForLeaderPartition:
    """DOC(OffsetForLeaderEpochRequest.Partitions)."""

    partition: Int32 = field("0+")
    current_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    leader_epoch: Int32 = field("0+")


@nested
class OffsetForLeaderTopic:
    """DOC(OffsetForLeaderEpochRequest.Topics)."""

    topic: String = field("0+")
    partitions: Array[OffsetForLeaderPartition] = field("0+")


@message(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse]):
    """DOC."""

    replica_id: Int32 = field("3+", default=-2, ignorable=True)
    topics: Array[OffsetForLeaderTopic] = field("0+")
