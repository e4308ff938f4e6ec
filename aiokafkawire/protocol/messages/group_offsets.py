"""Offsets that groups have committed."""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Bool, Int16, Int32, Int64, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
    "OffsetDeleteRequest",
    "OffsetDeleteRequestPartition",
    "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse",
    "OffsetDeleteResponsePartition",
    "OffsetDeleteResponseTopic",
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopic",
    "OffsetFetchRequestTopics",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic",
    "OffsetFetchResponseTopics",
)


@nested
class OffsetCommitResponsePartition:
    """DOC(OffsetCommitResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class OffsetCommitResponseTopic:
    """DOC(OffsetCommitResponse.Topics)."""

    name: String = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: Array[OffsetCommitResponsePartition] = field("0+")


@message(ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+")
class OffsetCommitResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    topics: Array[OffsetCommitResponseTopic] = field("0+")


@nested
class OffsetCommitRequestPartition:
    """DOC(OffsetCommitRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    committed_offset: Int64 = field("0+")
    commit_timestamp: Int64 = field("1", default=-1)
    committed_leader_epoch: Int32 = field("6+", default=-1, ignorable=True)
    committed_metadata: String | None = field("0+", nullable="0+")


@nested
class OffsetCommitRequestTopic:
    """DOC(OffsetCommitRequest.Topics)."""

    name: String = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: Array[OffsetCommitRequestPartition] = field("0+")


@message(ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+")
class OffsetCommitRequest(Request[OffsetCommitResponse]):
    """DOC."""

    group_id: String = field("0+")
    generation_id_or_member_epoch: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String = field("1+", default="", ignorable=True)
    group_instance_id: String | None = field("7+", nullable="7+", default=None)
    retention_time_ms: Int64 = field("2-4", default=-1, ignorable=True)
    topics: Array[OffsetCommitRequestTopic] = field("0+")


@nested
class OffsetFetchResponsePartition:
    """DOC(OffsetFetchResponse.Partitions)."""

    partition_index: Int32 = field("0-7")
    committed_offset: Int64 = field("0-7")
    committed_leader_epoch: Int32 = field("5-7", default=-1, ignorable=True)
    metadata: String | None = field("0-7", nullable="0-7")
    error_code: Int16 = field("0-7")


@nested
class OffsetFetchResponseTopic:
    """DOC(OffsetFetchResponse.Topics)."""

    name: String = field("0-7")
    partitions: Array[OffsetFetchResponsePartition] = field("0-7")


@nested
class OffsetFetchResponsePartitions:
    """DOC(OffsetFetchResponse.Partitions)."""

    partition_index: Int32 = field("8+")
    committed_offset: Int64 = field("8+")
    committed_leader_epoch: Int32 = field("8+", default=-1, ignorable=True)
    metadata: String | None = field("8+", nullable="8+")
    error_code: Int16 = field("8+")


@nested
class OffsetFetchResponseTopics:
    """DOC(OffsetFetchResponse.Topics)."""

    name: String = field("8-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: Array[OffsetFetchResponsePartitions] = field("8+")


@nested
class OffsetFetchResponseGroup:
    """DOC(OffsetFetchResponse.Groups)."""

    group_id: String = field("8+")
    topics: Array[OffsetFetchResponseTopics] = field("8+")
    error_code: Int16 = field("8+", default=0)


@message(ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    topics: Array[OffsetFetchResponseTopic] = field("0-7", default=list)
    error_code: Int16 = field("2-7", default=0, ignorable=True)
    groups: Array[OffsetFetchResponseGroup] = field("8+", default=list)


@nested
class OffsetFetchRequestTopic:
    """DOC(OffsetFetchRequest.Topics)."""

    name: String = field("0-7")
    partition_indexes: Array[Int32] = field("0-7")


@nested
class OffsetFetchRequestTopics:
    """DOC(OffsetFetchRequest.Topics)."""

    name: String = field("8-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partition_indexes: Array[Int32] = field("8+")


@nested
class OffsetFetchRequestGroup:
    """DOC(OffsetFetchRequest.Groups)."""

    group_id: String = field("8+")
    member_id: String | None = field("9+", nullable="9+", default=None, ignorable=True)
    member_epoch: Int32 = field("9+", default=-1, ignorable=True)
    topics: Array[OffsetFetchRequestTopics] | None = field("8+", nullable="8+")


@message(ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchRequest(Request[OffsetFetchResponse]):
    """DOC."""

    group_id: String = field("0-7", default="")
    topics: Array[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7", default=list)
    groups: Array[OffsetFetchRequestGroup] = field("8+", default=list)
    require_stable: Bool = field("7+", default=False)


@nested
class OffsetDeleteResponsePartition:
    """DOC(OffsetDeleteResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class OffsetDeleteResponseTopic:
    """DOC(OffsetDeleteResponse.Topics)."""

    name: String = field("0+")
    partitions: Array[OffsetDeleteResponsePartition] = field("0+")


@message(ApiKey.OFFSET_DELETE, versions="0")
class OffsetDeleteResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0, ignorable=True)
    topics: Array[OffsetDeleteResponseTopic] = field("0+")


@nested
class OffsetDeleteRequestPartition:
    """DOC(OffsetDeleteRequest.Partitions)."""

    partition_index: Int32 = field("0+")


@nested
class OffsetDeleteRequestTopic:
    """DOC(OffsetDeleteRequest.Topics)."""

    name: String = field("0+")
    partitions: Array[OffsetDeleteRequestPartition] = field("0+")


@message(ApiKey.OFFSET_DELETE, versions="0")
class OffsetDeleteRequest(Request[OffsetDeleteResponse]):
    """DOC."""

    group_id: String = field("0+")
    topics: Array[OffsetDeleteRequestTopic] = field("0+")
