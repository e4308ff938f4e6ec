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
    """Whether the offset was kept."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class OffsetCommitResponseTopic:
    """The answers for one topic; v10 names it by id (KIP-848)."""

    name: String = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: Array[OffsetCommitResponsePartition] = field("0+")


@message(ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+")
class OffsetCommitResponse(Response):
    """How each commit went."""

    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    topics: Array[OffsetCommitResponseTopic] = field("0+")


@nested
class OffsetCommitRequestPartition:
    """Where the group will go on in one partition."""

    partition_index: Int32 = field("0+")
    committed_offset: Int64 = field("0+")  # of the next record to read
    commit_timestamp: Int64 = field("1", default=-1)  # ms since 1970; -1: now
    # KIP-320: of the last record read; -1: not known
    committed_leader_epoch: Int32 = field("6+", default=-1, ignorable=True)
    committed_metadata: String | None = field("0+", nullable="0+")  # any text; offset.metadata.max.bytes limits it


@nested
class OffsetCommitRequestTopic:
    """The offsets for one topic; v10 names it by id (KIP-848)."""

    name: String = field("0-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: Array[OffsetCommitRequestPartition] = field("0+")


@message(ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+")
class OffsetCommitRequest(Request[OffsetCommitResponse]):
    """Offsets that a group has come to; its coordinator is to be asked.

    v9+ serves members of KIP-848 groups as well. v0, which kept the offsets in ZooKeeper, and v1 are gone in 4.0.
    """

    group_id: String = field("0+")
    # -1 and no member id: from outside of the group, which must have no members then
    generation_id_or_member_epoch: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String = field("1+", default="", ignorable=True)
    group_instance_id: String | None = field("7+", nullable="7+", default=None)  # KIP-345
    # -1: as the broker is configured, which is the only way since v5 (KIP-211)
    retention_time_ms: Int64 = field("2-4", default=-1, ignorable=True)
    topics: Array[OffsetCommitRequestTopic] = field("0+")


@nested
class OffsetFetchResponsePartition:
    """What was committed for one partition, up to v7."""

    partition_index: Int32 = field("0-7")
    committed_offset: Int64 = field("0-7")  # -1: nothing
    committed_leader_epoch: Int32 = field("5-7", default=-1, ignorable=True)  # KIP-320; -1: not known
    metadata: String | None = field("0-7", nullable="0-7")
    error_code: Int16 = field("0-7")  # v7+: UNSTABLE_OFFSET_COMMIT while a transaction decides (KIP-447)


@nested
class OffsetFetchResponseTopic:
    """The offsets of one topic, up to v7."""

    name: String = field("0-7")
    partitions: Array[OffsetFetchResponsePartition] = field("0-7")


@nested
class OffsetFetchResponsePartitions:
    """What was committed for one partition, from v8 on."""

    partition_index: Int32 = field("8+")
    committed_offset: Int64 = field("8+")  # -1: nothing
    committed_leader_epoch: Int32 = field("8+", default=-1, ignorable=True)  # KIP-320; -1: not known
    metadata: String | None = field("8+", nullable="8+")
    error_code: Int16 = field("8+")  # UNSTABLE_OFFSET_COMMIT while a transaction decides (KIP-447)


@nested
class OffsetFetchResponseTopics:
    """The offsets of one topic, from v8 on; v10 names it by id (KIP-848)."""

    name: String = field("8-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partitions: Array[OffsetFetchResponsePartitions] = field("8+")


@nested
class OffsetFetchResponseGroup:
    """The offsets of one group (KIP-709)."""

    group_id: String = field("8+")
    topics: Array[OffsetFetchResponseTopics] = field("8+")
    error_code: Int16 = field("8+", default=0)  # of the group as a whole


@message(ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchResponse(Response):
    """The offsets of the group, or with v8+ of each group."""

    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    topics: Array[OffsetFetchResponseTopic] = field("0-7", default=list)
    error_code: Int16 = field("2-7", default=0, ignorable=True)  # of the group as a whole (KIP-88)
    groups: Array[OffsetFetchResponseGroup] = field("8+", default=list)


@nested
class OffsetFetchRequestTopic:
    """The partitions of one topic, up to v7."""

    name: String = field("0-7")
    partition_indexes: Array[Int32] = field("0-7")


@nested
class OffsetFetchRequestTopics:
    """The partitions of one topic, from v8 on; v10 names it by id (KIP-848)."""

    name: String = field("8-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)
    partition_indexes: Array[Int32] = field("8+")


@nested
class OffsetFetchRequestGroup:
    """One group, and the topics to look up (KIP-709); null topics are all that it has offsets for."""

    group_id: String = field("8+")
    # KIP-848: checked if they are given; null and -1: from outside of the group
    member_id: String | None = field("9+", nullable="9+", default=None, ignorable=True)
    member_epoch: Int32 = field("9+", default=-1, ignorable=True)
    topics: Array[OffsetFetchRequestTopics] | None = field("8+", nullable="8+")


@message(ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchRequest(Request[OffsetFetchResponse]):
    """Where do the groups go on? v8+ asks for several at once (KIP-709); the coordinator of all of them is to be asked.

    Null topics (v2+, KIP-88) are all that the group has offsets for. v0, which read from ZooKeeper, is gone in 4.0.
    """

    group_id: String = field("0-7", default="")
    topics: Array[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7", default=list)
    groups: Array[OffsetFetchRequestGroup] = field("8+", default=list)
    # KIP-447: an offset that a pending transaction may change is an error, not an answer
    require_stable: Bool = field("7+", default=False)


@nested
class OffsetDeleteResponsePartition:
    """Whether the offset is gone; GROUP_SUBSCRIBED_TO_TOPIC: the group still reads it."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class OffsetDeleteResponseTopic:
    """The answers for one topic."""

    name: String = field("0+")
    partitions: Array[OffsetDeleteResponsePartition] = field("0+")


@message(ApiKey.OFFSET_DELETE, versions="0")
class OffsetDeleteResponse(Response):
    """How each deletion went."""

    error_code: Int16 = field("0+")  # of the group as a whole
    throttle_time_ms: Int32 = field("0+", default=0, ignorable=True)
    topics: Array[OffsetDeleteResponseTopic] = field("0+")


@nested
class OffsetDeleteRequestPartition:
    """A partition to forget."""

    partition_index: Int32 = field("0+")


@nested
class OffsetDeleteRequestTopic:
    """The partitions of one topic to forget."""

    name: String = field("0+")
    partitions: Array[OffsetDeleteRequestPartition] = field("0+")


@message(ApiKey.OFFSET_DELETE, versions="0")
class OffsetDeleteRequest(Request[OffsetDeleteResponse]):
    """Offsets that the group shall forget, of topics it no longer reads (KIP-496); its coordinator is to be asked."""

    group_id: String = field("0+")
    topics: Array[OffsetDeleteRequestTopic] = field("0+")
