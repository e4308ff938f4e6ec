"""The controllers' own Raft quorum (KIP-595)."""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Bool, Int16, Int32, Int64, Records, String, UInt16, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "BeginQuorumEpochRequest",
    "BeginQuorumEpochRequestPartitionData",
    "BeginQuorumEpochRequestTopicData",
    "BeginQuorumEpochResponse",
    "BeginQuorumEpochResponsePartitionData",
    "BeginQuorumEpochResponseTopicData",
    "EndQuorumEpochRequest",
    "EndQuorumEpochRequestPartitionData",
    "EndQuorumEpochRequestTopicData",
    "EndQuorumEpochResponse",
    "EndQuorumEpochResponsePartitionData",
    "EndQuorumEpochResponseTopicData",
    "FetchSnapshotRequest",
    "FetchSnapshotRequestPartitionSnapshot",
    "FetchSnapshotRequestTopicSnapshot",
    "FetchSnapshotResponse",
    "FetchSnapshotResponsePartitionSnapshot",
    "FetchSnapshotResponseTopicSnapshot",
    "LeaderEndpoint",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "ReplicaInfo",
    "SnapshotId",
    "VoteRequest",
    "VoteRequestPartitionData",
    "VoteRequestTopicData",
    "VoteResponse",
    "VoteResponsePartitionData",
    "VoteResponseTopicData",
)


@nested
class VoteResponsePartitionData:
    """DOC(VoteResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    vote_granted: Bool = field("0+")


@nested
class VoteResponseTopicData:
    """DOC(VoteResponse.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[VoteResponsePartitionData] = field("0+")


@nested
class NodeEndpoint:
    """DOC(VoteResponse.NodeEndpoints)."""

    node_id: Int32 = field("1+")
    host: String = field("1+")
    port: UInt16 = field("1+")


@message(ApiKey.VOTE, versions="0-2", flexible="0+")
class VoteResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    topics: Array[VoteResponseTopicData] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("1+", tag=0, default=list)


@nested
class VoteRequestPartitionData:
    """DOC(VoteRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    replica_epoch: Int32 = field("0+")
    replica_id: Int32 = field("0+")
    replica_directory_id: Uuid = field("1+", default=ZERO_UUID, ignorable=True)
    voter_directory_id: Uuid = field("1+", default=ZERO_UUID, ignorable=True)
    last_offset_epoch: Int32 = field("0+")
    last_offset: Int64 = field("0+")
    pre_vote: Bool = field("2+", default=False)


@nested
class VoteRequestTopicData:
    """DOC(VoteRequest.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[VoteRequestPartitionData] = field("0+")


@message(ApiKey.VOTE, versions="0-2", flexible="0+")
class VoteRequest(Request[VoteResponse]):
    """DOC."""

    cluster_id: String | None = field("0+", nullable="0+", default=None)
    voter_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Array[VoteRequestTopicData] = field("0+")


@nested
class BeginQuorumEpochResponsePartitionData:
    """DOC(BeginQuorumEpochResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class BeginQuorumEpochResponseTopicData:
    """DOC(BeginQuorumEpochResponse.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[BeginQuorumEpochResponsePartitionData] = field("0+")


@message(ApiKey.BEGIN_QUORUM_EPOCH, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    topics: Array[BeginQuorumEpochResponseTopicData] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("1+", tag=0, default=list)


@nested
class BeginQuorumEpochRequestPartitionData:
    """DOC(BeginQuorumEpochRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    voter_directory_id: Uuid = field("1+", default=ZERO_UUID, ignorable=True)
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class BeginQuorumEpochRequestTopicData:
    """DOC(BeginQuorumEpochRequest.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[BeginQuorumEpochRequestPartitionData] = field("0+")


@nested
class LeaderEndpoint:
    """DOC(BeginQuorumEpochRequest.LeaderEndpoints)."""

    name: String = field("1+")
    host: String = field("1+")
    port: UInt16 = field("1+")


@message(ApiKey.BEGIN_QUORUM_EPOCH, versions="0-1", flexible="1+")
class BeginQuorumEpochRequest(Request[BeginQuorumEpochResponse]):
    """DOC."""

    cluster_id: String | None = field("0+", nullable="0+", default=None)
    voter_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Array[BeginQuorumEpochRequestTopicData] = field("0+")
    leader_endpoints: Array[LeaderEndpoint] = field("1+", default=list, ignorable=True)


@nested
class EndQuorumEpochResponsePartitionData:
    """DOC(EndQuorumEpochResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class EndQuorumEpochResponseTopicData:
    """DOC(EndQuorumEpochResponse.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[EndQuorumEpochResponsePartitionData] = field("0+")


@message(ApiKey.END_QUORUM_EPOCH, versions="0-1", flexible="1+")
class EndQuorumEpochResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    topics: Array[EndQuorumEpochResponseTopicData] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("1+", tag=0, default=list)


@nested
class ReplicaInfo:
    """DOC(EndQuorumEpochRequest.PreferredCandidates)."""

    candidate_id: Int32 = field("1+")
    candidate_directory_id: Uuid = field("1+")


@nested
class EndQuorumEpochRequestPartitionData:
    """DOC(EndQuorumEpochRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    preferred_successors: Array[Int32] = field("0", default=list, ignorable=True)
    preferred_candidates: Array[ReplicaInfo] = field("1+", default=list, ignorable=True)


@nested
class EndQuorumEpochRequestTopicData:
    """DOC(EndQuorumEpochRequest.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[EndQuorumEpochRequestPartitionData] = field("0+")


@message(ApiKey.END_QUORUM_EPOCH, versions="0-1", flexible="1+")
class EndQuorumEpochRequest(Request[EndQuorumEpochResponse]):
    """DOC."""

    cluster_id: String | None = field("0+", nullable="0+", default=None)
    topics: Array[EndQuorumEpochRequestTopicData] = field("0+")
    leader_endpoints: Array[LeaderEndpoint] = field("1+", default=list, ignorable=True)


@nested
class SnapshotId:
    """DOC(FetchSnapshotResponse.SnapshotId)."""

    end_offset: Int64 = field("0+")
    epoch: Int32 = field("0+")


@nested
class LeaderIdAndEpoch:
    """DOC(FetchSnapshotResponse.CurrentLeader)."""

    leader_id: Int32 = field("0+", default=0)
    leader_epoch: Int32 = field("0+", default=0)


@nested
class FetchSnapshotResponsePartitionSnapshot:
    """DOC(FetchSnapshotResponse.Partitions)."""

    index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    snapshot_id: SnapshotId = field("0+")
    current_leader: LeaderIdAndEpoch = field("0+", tag=0, default=LeaderIdAndEpoch)
    size: Int64 = field("0+")
    position: Int64 = field("0+")
    unaligned_records: Records = field("0+")


@nested
class FetchSnapshotResponseTopicSnapshot:
    """DOC(FetchSnapshotResponse.Topics)."""

    name: String = field("0+")
    partitions: Array[FetchSnapshotResponsePartitionSnapshot] = field("0+")


@message(ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+")
class FetchSnapshotResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    topics: Array[FetchSnapshotResponseTopicSnapshot] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("1+", tag=0, default=list)


@nested
class FetchSnapshotRequestPartitionSnapshot:
    """DOC(FetchSnapshotRequest.Partitions)."""

    partition: Int32 = field("0+")
    current_leader_epoch: Int32 = field("0+")
    snapshot_id: SnapshotId = field("0+")
    position: Int64 = field("0+")
    replica_directory_id: Uuid = field("1+", tag=0, default=ZERO_UUID, ignorable=True)


@nested
class FetchSnapshotRequestTopicSnapshot:
    """DOC(FetchSnapshotRequest.Topics)."""

    name: String = field("0+")
    partitions: Array[FetchSnapshotRequestPartitionSnapshot] = field("0+")


@message(ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+")
class FetchSnapshotRequest(Request[FetchSnapshotResponse]):
    """DOC."""

    cluster_id: String | None = field("0+", nullable="0+", tag=0, default=None)
    replica_id: Int32 = field("0+", default=-1)
    max_bytes: Int32 = field("0+", default=2**31 - 1)
    topics: Array[FetchSnapshotRequestTopicSnapshot] = field("0+")
