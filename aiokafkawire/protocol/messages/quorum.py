"""The controllers' own Raft quorum (KIP-595).

A candidate asks for votes, the elected leader begins its epoch, and ends it when it resigns. All of this is between
controllers; snapshots are fetched by brokers, too, which follow the log without a vote. There is one partition: 0 of
``__cluster_metadata``. A ``cluster_id`` that is not the receiver's own is refused, a null one is not looked at.
A controller is named by its id, and from v1 on by the id of its log directory as well (KIP-853); zero is not known.
"""

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
    """Whether the vote was given, and the leader and epoch that the voter knows of."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    leader_id: Int32 = field("0+")  # -1: not known
    leader_epoch: Int32 = field("0+")
    vote_granted: Bool = field("0+")


@nested
class VoteResponseTopicData:
    """The votes for one topic's partitions."""

    topic_name: String = field("0+")
    partitions: Array[VoteResponsePartitionData] = field("0+")


@nested
class NodeEndpoint:
    """Where a leader that the answer names listens (KIP-853)."""

    node_id: Int32 = field("1+")
    host: String = field("1+")
    port: UInt16 = field("1+")


@message(ApiKey.VOTE, versions="0-2", flexible="0+")
class VoteResponse(Response):
    """A voter's yes or no."""

    error_code: Int16 = field("0+")
    topics: Array[VoteResponseTopicData] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("1+", tag=0, default=list)  # KIP-853


@nested
class VoteRequestPartitionData:
    """The candidate, the epoch it stands for, and where its log ends."""

    partition_index: Int32 = field("0+")
    replica_epoch: Int32 = field("0+")  # the candidate's: one higher than before, unless this is a pre-vote
    replica_id: Int32 = field("0+")  # the candidate
    replica_directory_id: Uuid = field("1+", default=ZERO_UUID, ignorable=True)  # KIP-853: the candidate's
    voter_directory_id: Uuid = field("1+", default=ZERO_UUID, ignorable=True)  # KIP-853: the receiver's
    last_offset_epoch: Int32 = field("0+")  # of the candidate's last record
    last_offset: Int64 = field("0+")  # one past the candidate's last record
    pre_vote: Bool = field("2+", default=False)  # KIP-996: would the voter give its vote? Nothing changes


@nested
class VoteRequestTopicData:
    """The votes that are asked for in one topic."""

    topic_name: String = field("0+")
    partitions: Array[VoteRequestPartitionData] = field("0+")


@message(ApiKey.VOTE, versions="0-2", flexible="0+")
class VoteRequest(Request[VoteResponse]):
    """A candidate asks a voter for its vote."""

    cluster_id: String | None = field("0+", nullable="0+", default=None)
    voter_id: Int32 = field("1+", default=-1, ignorable=True)  # KIP-853: the receiver
    topics: Array[VoteRequestTopicData] = field("0+")


@nested
class BeginQuorumEpochResponsePartitionData:
    """The leader and epoch that the voter knows of."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    leader_id: Int32 = field("0+")  # -1: not known
    leader_epoch: Int32 = field("0+")


@nested
class BeginQuorumEpochResponseTopicData:
    """The answers for one topic's partitions."""

    topic_name: String = field("0+")
    partitions: Array[BeginQuorumEpochResponsePartitionData] = field("0+")


@message(ApiKey.BEGIN_QUORUM_EPOCH, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse(Response):
    """Whether the voter accepts the new leader."""

    error_code: Int16 = field("0+")
    topics: Array[BeginQuorumEpochResponseTopicData] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("1+", tag=0, default=list)  # KIP-853


@nested
class BeginQuorumEpochRequestPartitionData:
    """Who was elected, and in which epoch."""

    partition_index: Int32 = field("0+")
    voter_directory_id: Uuid = field("1+", default=ZERO_UUID, ignorable=True)  # KIP-853: the receiver's
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class BeginQuorumEpochRequestTopicData:
    """The new leaders of one topic's partitions."""

    topic_name: String = field("0+")
    partitions: Array[BeginQuorumEpochRequestPartitionData] = field("0+")


@nested
class LeaderEndpoint:
    """Where the sender listens, by the listener's name (KIP-853)."""

    name: String = field("1+")
    host: String = field("1+")
    port: UInt16 = field("1+")


@message(ApiKey.BEGIN_QUORUM_EPOCH, versions="0-1", flexible="1+")
class BeginQuorumEpochRequest(Request[BeginQuorumEpochResponse]):
    """The new leader announces its election to a voter."""

    cluster_id: String | None = field("0+", nullable="0+", default=None)
    voter_id: Int32 = field("1+", default=-1, ignorable=True)  # KIP-853: the receiver
    topics: Array[BeginQuorumEpochRequestTopicData] = field("0+")
    leader_endpoints: Array[LeaderEndpoint] = field("1+", default=list, ignorable=True)


@nested
class EndQuorumEpochResponsePartitionData:
    """The leader and epoch that the voter knows of."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    leader_id: Int32 = field("0+")  # -1: not known
    leader_epoch: Int32 = field("0+")


@nested
class EndQuorumEpochResponseTopicData:
    """The answers for one topic's partitions."""

    topic_name: String = field("0+")
    partitions: Array[EndQuorumEpochResponsePartitionData] = field("0+")


@message(ApiKey.END_QUORUM_EPOCH, versions="0-1", flexible="1+")
class EndQuorumEpochResponse(Response):
    """The voter has heard that its leader resigns."""

    error_code: Int16 = field("0+")
    topics: Array[EndQuorumEpochResponseTopicData] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("1+", tag=0, default=list)  # KIP-853


@nested
class ReplicaInfo:
    """A voter that may stand for election (KIP-853)."""

    candidate_id: Int32 = field("1+")
    candidate_directory_id: Uuid = field("1+")


@nested
class EndQuorumEpochRequestPartitionData:
    """Who resigns, and who should stand for election, the best first."""

    partition_index: Int32 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    preferred_successors: Array[Int32] = field("0", default=list, ignorable=True)
    preferred_candidates: Array[ReplicaInfo] = field("1+", default=list, ignorable=True)  # KIP-853


@nested
class EndQuorumEpochRequestTopicData:
    """The leaders of one topic's partitions that resign."""

    topic_name: String = field("0+")
    partitions: Array[EndQuorumEpochRequestPartitionData] = field("0+")


@message(ApiKey.END_QUORUM_EPOCH, versions="0-1", flexible="1+")
class EndQuorumEpochRequest(Request[EndQuorumEpochResponse]):
    """The leader announces its resignation to a voter, so that the next election need not wait for a timeout."""

    cluster_id: String | None = field("0+", nullable="0+", default=None)
    topics: Array[EndQuorumEpochRequestTopicData] = field("0+")
    leader_endpoints: Array[LeaderEndpoint] = field("1+", default=list, ignorable=True)  # KIP-853


@nested
class SnapshotId:
    """A snapshot, named by the offset after its last record and the epoch of that record."""

    end_offset: Int64 = field("0+")
    epoch: Int32 = field("0+")


@nested
class LeaderIdAndEpoch:
    """Who leads the partition now; -1 is not known, and both are 0 where the field is left out."""

    leader_id: Int32 = field("0+", default=0)
    leader_epoch: Int32 = field("0+", default=0)


@nested
class FetchSnapshotResponsePartitionSnapshot:
    """A piece of the snapshot, which may begin and end within a record batch."""

    index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    snapshot_id: SnapshotId = field("0+")
    current_leader: LeaderIdAndEpoch = field("0+", tag=0, default=LeaderIdAndEpoch)
    size: Int64 = field("0+")  # bytes of the whole snapshot
    position: Int64 = field("0+")  # the piece's first byte within the snapshot
    unaligned_records: Records = field("0+")


@nested
class FetchSnapshotResponseTopicSnapshot:
    """The pieces of one topic's snapshots."""

    name: String = field("0+")
    partitions: Array[FetchSnapshotResponsePartitionSnapshot] = field("0+")


@message(ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+")
class FetchSnapshotResponse(Response):
    """A piece of the snapshot; the follower asks again from its end until it has them all (KIP-630)."""

    throttle_time_ms: Int32 = field("0+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    topics: Array[FetchSnapshotResponseTopicSnapshot] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("1+", tag=0, default=list)  # KIP-853


@nested
class FetchSnapshotRequestPartitionSnapshot:
    """Which snapshot to read, and from which byte."""

    partition: Int32 = field("0+")
    current_leader_epoch: Int32 = field("0+")  # -1: not known
    snapshot_id: SnapshotId = field("0+")
    position: Int64 = field("0+")  # bytes
    replica_directory_id: Uuid = field("1+", tag=0, default=ZERO_UUID, ignorable=True)  # KIP-853: the follower's


@nested
class FetchSnapshotRequestTopicSnapshot:
    """The snapshots to read of one topic's partitions."""

    name: String = field("0+")
    partitions: Array[FetchSnapshotRequestPartitionSnapshot] = field("0+")


@message(ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+")
class FetchSnapshotRequest(Request[FetchSnapshotResponse]):
    """A follower asks the leader for the snapshot that its answer to a fetch has named (KIP-630)."""

    cluster_id: String | None = field("0+", nullable="0+", tag=0, default=None)
    replica_id: Int32 = field("0+", default=-1)  # the follower
    max_bytes: Int32 = field("0+", default=2**31 - 1)  # of all pieces together
    topics: Array[FetchSnapshotRequestTopicSnapshot] = field("0+")
