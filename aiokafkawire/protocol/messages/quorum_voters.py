"""Who votes in the controllers' Raft quorum, and how far each has come (KIP-595, KIP-853).

Any broker takes the requests to describe, add and remove, and passes them on to the leader of the quorum; that
controller takes them itself, too (KIP-919). Updates are between controllers. A ``cluster_id`` that is not the
receiver's own is refused, a null one is not looked at.
"""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Bool, Int16, Int32, Int64, String, UInt16, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AddRaftVoterRequest",
    "AddRaftVoterRequestListener",
    "AddRaftVoterResponse",
    "CurrentLeader",
    "DescribeQuorumRequest",
    "DescribeQuorumRequestPartitionData",
    "DescribeQuorumRequestTopicData",
    "DescribeQuorumResponse",
    "DescribeQuorumResponseListener",
    "DescribeQuorumResponsePartitionData",
    "DescribeQuorumResponseTopicData",
    "KRaftVersionFeature",
    "Node",
    "RemoveRaftVoterRequest",
    "RemoveRaftVoterResponse",
    "ReplicaState",
    "UpdateRaftVoterRequest",
    "UpdateRaftVoterRequestListener",
    "UpdateRaftVoterResponse",
)


@nested
class ReplicaState:
    """How far a voter or an observer has come, as the leader sees it."""

    replica_id: Int32 = field("0+")
    replica_directory_id: Uuid = field("2+", default=ZERO_UUID)  # KIP-853
    log_end_offset: Int64 = field("0+")  # -1: not known
    # KIP-836: both in ms since 1970 by the leader's clock; -1: not known
    last_fetch_timestamp: Int64 = field("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = field("1+", default=-1, ignorable=True)


@nested
class DescribeQuorumResponsePartitionData:
    """The partition's leader, its voters, and the observers, which follow without a vote (brokers, say)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("2+", nullable="2+", default="", ignorable=True)  # KIP-853
    leader_id: Int32 = field("0+")  # -1: not known
    leader_epoch: Int32 = field("0+")
    high_watermark: Int64 = field("0+")  # -1: not known
    current_voters: Array[ReplicaState] = field("0+")
    observers: Array[ReplicaState] = field("0+")


@nested
class DescribeQuorumResponseTopicData:
    """The quorums of one topic's partitions."""

    topic_name: String = field("0+")
    partitions: Array[DescribeQuorumResponsePartitionData] = field("0+")


@nested
class DescribeQuorumResponseListener:
    """Where a controller listens, by the listener's name."""

    name: String = field("2+")
    host: String = field("2+")
    port: UInt16 = field("2+")


@nested
class Node:
    """A voter and its listeners (KIP-853)."""

    node_id: Int32 = field("2+")
    listeners: Array[DescribeQuorumResponseListener] = field("2+")


@message(ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumResponse(Response):
    """Who leads, who votes, who watches, and how far each has come."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("2+", nullable="2+", default="", ignorable=True)  # KIP-853
    topics: Array[DescribeQuorumResponseTopicData] = field("0+")
    nodes: Array[Node] = field("2+", default=list)  # KIP-853


@nested
class DescribeQuorumRequestPartitionData:
    """A partition to describe; there is only 0."""

    partition_index: Int32 = field("0+")


@nested
class DescribeQuorumRequestTopicData:
    """The topic to describe: ``__cluster_metadata``, no other has a quorum."""

    topic_name: String = field("0+")
    partitions: Array[DescribeQuorumRequestPartitionData] = field("0+")


@message(ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumRequest(Request[DescribeQuorumResponse]):
    """How does the controllers' quorum stand? Later versions change the answer alone."""

    topics: Array[DescribeQuorumRequestTopicData] = field("0+")


@message(ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+")
class AddRaftVoterResponse(Response):
    """Whether the voter was added."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", ignorable=True)


@nested
class AddRaftVoterRequestListener:
    """Where the new voter listens, by the listener's name."""

    name: String = field("0+")
    host: String = field("0+")
    port: UInt16 = field("0+")


@message(ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+")
class AddRaftVoterRequest(Request[AddRaftVoterResponse]):
    """A controller that is to vote (KIP-853); it must have caught up with the leader."""

    cluster_id: String | None = field("0+", nullable="0+")
    timeout_ms: Int32 = field("0+")
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")
    listeners: Array[AddRaftVoterRequestListener] = field("0+")
    # KIP-1186; false: the answer comes once the leader has written the change
    ack_when_committed: Bool = field("1+", default=True)


@message(ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+")
class RemoveRaftVoterResponse(Response):
    """Whether the voter was removed."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", ignorable=True)


@message(ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+")
class RemoveRaftVoterRequest(Request[RemoveRaftVoterResponse]):
    """A controller that is to vote no longer (KIP-853)."""

    cluster_id: String | None = field("0+", nullable="0+")
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")


@nested
class CurrentLeader:
    """Who leads the quorum now, and where it listens; leader -1 is not known."""

    leader_id: Int32 = field("0+", default=-1)
    leader_epoch: Int32 = field("0+", default=-1)
    host: String = field("0+", default="")
    port: Int32 = field("0+", default=0)


@message(ApiKey.UPDATE_RAFT_VOTER, versions="0", flexible="0+")
class UpdateRaftVoterResponse(Response):
    """Whether the update was taken, and who leads."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    current_leader: CurrentLeader = field("0+", tag=0, default=CurrentLeader)


@nested
class UpdateRaftVoterRequestListener:
    """Where the voter listens, by the listener's name."""

    name: String = field("0+")
    host: String = field("0+")
    port: UInt16 = field("0+")


@nested
class KRaftVersionFeature:
    """The levels of ``kraft.version`` that the voter can run."""

    min_supported_version: Int16 = field("0+")
    max_supported_version: Int16 = field("0+")


@message(ApiKey.UPDATE_RAFT_VOTER, versions="0", flexible="0+")
class UpdateRaftVoterRequest(Request[UpdateRaftVoterResponse]):
    """A voter sends the leader its listeners and the versions that it supports (KIP-853)."""

    cluster_id: String | None = field("0+", nullable="0+")
    current_leader_epoch: Int32 = field("0+")  # -1: not known
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")
    listeners: Array[UpdateRaftVoterRequestListener] = field("0+")
    k_raft_version_feature: KRaftVersionFeature = field("0+")
