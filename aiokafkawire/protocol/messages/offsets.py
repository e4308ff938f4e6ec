"""Looking up offsets by time and by leader epoch."""

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
    error_code: Int16 = field("0+")  # v5+: OFFSET_NOT_AVAILABLE while a new leader catches up (KIP-207)
    old_style_offsets: Array[Int64] = field("0", default=list)
    # KIP-79; ms since 1970, of the record; -1 if the beginning or end was asked for
    timestamp: Int64 = field("1+", default=-1)
    offset: Int64 = field("1+", default=-1)
    leader_epoch: Int32 = field("4+", default=-1)  # KIP-320: of the record


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
    current_leader_epoch: Int32 = field("4+", default=-1, ignorable=True)  # KIP-320; -1: not checked
    timestamp: Int64 = field("0+")  # ms since 1970, or one of the request's negative numbers
    # v0 answers with several offsets, of segments before the timestamp
    max_num_offsets: Int32 = field("0", default=1)


@nested
class ListOffsetsTopic:
    """The partitions of one topic."""

    name: String = field("0+")
    partitions: Array[ListOffsetsPartition] = field("0+")


@message(ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsRequest(Request[ListOffsetsResponse]):
    """The offset for a timestamp: -1 is the end, -2 the beginning, -3 the highest timestamp (v7+, KIP-734).

    With tiered storage: -4 is where the local log begins (v8+, KIP-405), -5 the last offset in the remote one (v9+,
    KIP-1005), -6 the first that is not uploaded yet (v11+, KIP-1023). Leaders are to be asked. v0 is gone in 4.0.
    """

    replica_id: Int32 = field("0+")  # consumers say -1
    # 0: read_uncommitted; 1: read_committed, whose end is the last stable offset (KIP-98)
    isolation_level: Int8 = field("2+", default=0)
    topics: Array[ListOffsetsTopic] = field("0+")
    timeout_ms: Int32 = field("10+", default=0, ignorable=True)  # KIP-1075: reading remote storage takes its time


@nested
class EpochEndOffset:
    """Where an epoch ended: the offset after its last record."""

    error_code: Int16 = field("0+")
    partition: Int32 = field("0+")
    # KIP-279: the highest that is not above the one asked for; -1: there is none
    leader_epoch: Int32 = field("1+", default=-1, ignorable=True)
    end_offset: Int64 = field("0+", default=-1)  # of that epoch; -1: there is none


@nested
class OffsetForLeaderTopicResult:
    """The answers for one topic."""

    topic: String = field("0+")
    partitions: Array[EpochEndOffset] = field("0+")


@message(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse(Response):
    """Where each epoch ended; a position beyond that is of a log that was cut off since."""

    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    topics: Array[OffsetForLeaderTopicResult] = field("0+")


@nested
class OffsetForLeaderPartition:
    """The epoch to look up for one partition."""

    partition: Int32 = field("0+")
    # KIP-320: the leader refuses if it knows another; -1: not checked
    current_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    leader_epoch: Int32 = field("0+")  # of the last record that the asker has


@nested
class OffsetForLeaderTopic:
    """The partitions of one topic."""

    topic: String = field("0+")
    partitions: Array[OffsetForLeaderPartition] = field("0+")


@message(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse]):
    """Where did these epochs end (KIP-101)? Followers and consumers (KIP-320) ask the leader, to notice a log cut off.

    Below v3 it takes the right to cluster actions, which consumers lack. v0 and v1 are gone in 4.0.
    """

    replica_id: Int32 = field("3+", default=-2, ignorable=True)  # KIP-392: consumers say -1; -2 is for debugging
    topics: Array[OffsetForLeaderTopic] = field("0+")
