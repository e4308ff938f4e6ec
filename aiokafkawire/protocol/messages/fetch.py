"""Reading records from partitions."""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Int8, Int16, Int32, Int64, Records, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AbortedTransaction",
    "EpochEndOffset",
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchTopic",
    "FetchableTopicResponse",
    "ForgottenTopic",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "ReplicaState",
    "SnapshotId",
)


@nested
class EpochEndOffset:
    """Where the log parts from what the reader had: read again from there (KIP-320, KIP-595)."""

    epoch: Int32 = field("12+", default=-1)
    end_offset: Int64 = field("12+", default=-1)


@nested
class LeaderIdAndEpoch:
    """Who leads the partition now (KIP-951)."""

    leader_id: Int32 = field("12+", default=-1)
    leader_epoch: Int32 = field("12+", default=-1)


@nested
class SnapshotId:
    """The snapshot that a follower should load (KIP-630)."""

    end_offset: Int64 = field("4+", default=-1)
    epoch: Int32 = field("4+", default=-1)


@nested
class AbortedTransaction:
    """A producer whose records from this offset on were aborted (KIP-98)."""

    producer_id: Int64 = field("4+")
    first_offset: Int64 = field("4+")


@nested
class PartitionData:
    """What was read of one partition."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    high_watermark: Int64 = field("0+")
    last_stable_offset: Int64 = field("4+", default=-1, ignorable=True)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field("12+", tag=0, default=EpochEndOffset)
    current_leader: LeaderIdAndEpoch = field("12+", tag=1, default=LeaderIdAndEpoch)
    snapshot_id: SnapshotId = field("12+", tag=2, default=SnapshotId)
    aborted_transactions: Array[AbortedTransaction] | None = field("4+", nullable="4+", default=list, ignorable=True)
    preferred_read_replica: Int32 = field("11+", default=-1)  # KIP-392
    records: Records | None = field("0+", nullable="0+")


@nested
class FetchableTopicResponse:
    """What was read of one topic."""

    topic: String = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partitions: Array[PartitionData] = field("0+")


@nested
class NodeEndpoint:
    """Where a new leader listens (KIP-951)."""

    node_id: Int32 = field("16+")
    host: String = field("16+")
    port: Int32 = field("16+")
    rack: String | None = field("16+", nullable="16+", default=None)


@message(ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchResponse(Response):
    """Record batches of each partition; the last one may be cut off."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("7+", default=0, ignorable=True)
    session_id: Int32 = field("7+", default=0)
    responses: Array[FetchableTopicResponse] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("16+", tag=0, default=list)


@nested
class ReplicaState:
    """Who follows; consumers leave it at -1 (KIP-903)."""

    replica_id: Int32 = field("15+", default=-1)
    replica_epoch: Int64 = field("15+", default=-1)


@nested
class FetchPartition:
    """Where to read one partition from."""

    partition: Int32 = field("0+")
    current_leader_epoch: Int32 = field("9+", default=-1, ignorable=True)  # KIP-320
    fetch_offset: Int64 = field("0+")
    last_fetched_epoch: Int32 = field("12+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: Int32 = field("0+")
    replica_directory_id: Uuid = field("17+", tag=0, default=ZERO_UUID, ignorable=True)
    high_watermark: Int64 = field("18+", tag=1, default=2**63 - 1, ignorable=True)  # KIP-1166


@nested
class FetchTopic:
    """The partitions to read of one topic; v13 names it by id (KIP-516)."""

    topic: String = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partitions: Array[FetchPartition] = field("0+")


@nested
class ForgottenTopic:
    """Partitions to leave out of the session from now on (KIP-227)."""

    topic: String = field("7-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partitions: Array[Int32] = field("7+")


@message(ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchRequest(Request[FetchResponse]):
    """Records from the given offsets on. Brokers of 4.0 and later serve v4 and up (record batches v2)."""

    cluster_id: String | None = field("12+", nullable="12+", tag=0, default=None, ignorable=True)
    replica_id: Int32 = field("0-14", default=-1)
    replica_state: ReplicaState = field("15+", tag=1, default=ReplicaState)
    max_wait_ms: Int32 = field("0+")
    min_bytes: Int32 = field("0+")
    max_bytes: Int32 = field("3+", default=0x7FFFFFFF, ignorable=True)  # KIP-74
    isolation_level: Int8 = field("4+", default=0, ignorable=True)  # 0: read_uncommitted; 1: read_committed (KIP-98)
    # KIP-227; session 0, epoch -1 is a full fetch without a session
    session_id: Int32 = field("7+", default=0, ignorable=True)
    session_epoch: Int32 = field("7+", default=-1, ignorable=True)
    topics: Array[FetchTopic] = field("0+")
    forgotten_topics_data: Array[ForgottenTopic] = field("7+", default=list)
    rack_id: String = field("11+", default="", ignorable=True)  # KIP-392
