"""Who votes in the controllers' Raft quorum, and how far each has come (KIP-595, KIP-853)."""

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
    """DOC(DescribeQuorumResponse.CurrentVoters)."""

    replica_id: Int32 = field("0+")
    replica_directory_id: Uuid = field("2+", default=ZERO_UUID)
    log_end_offset: Int64 = field("0+")
    last_fetch_timestamp: Int64 = field("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = field("1+", default=-1, ignorable=True)


@nested
class DescribeQuorumResponsePartitionData:
    """DOC(DescribeQuorumResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("2+", nullable="2+", default="", ignorable=True)
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    high_watermark: Int64 = field("0+")
    current_voters: Array[ReplicaState] = field("0+")
    observers: Array[ReplicaState] = field("0+")


@nested
class DescribeQuorumResponseTopicData:
    """DOC(DescribeQuorumResponse.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[DescribeQuorumResponsePartitionData] = field("0+")


@nested
class DescribeQuorumResponseListener:
    """DOC(DescribeQuorumResponse.Listeners)."""

    name: String = field("2+")
    host: String = field("2+")
    port: UInt16 = field("2+")


@nested
class Node:
    """DOC(DescribeQuorumResponse.Nodes)."""

    node_id: Int32 = field("2+")
    listeners: Array[DescribeQuorumResponseListener] = field("2+")


@message(ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("2+", nullable="2+", default="", ignorable=True)
    topics: Array[DescribeQuorumResponseTopicData] = field("0+")
    nodes: Array[Node] = field("2+", default=list)


@nested
class DescribeQuorumRequestPartitionData:
    """DOC(DescribeQuorumRequest.Partitions)."""

    partition_index: Int32 = field("0+")


@nested
class DescribeQuorumRequestTopicData:
    """DOC(DescribeQuorumRequest.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[DescribeQuorumRequestPartitionData] = field("0+")


@message(ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumRequest(Request[DescribeQuorumResponse]):
    """DOC."""

    topics: Array[DescribeQuorumRequestTopicData] = field("0+")


@message(ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+")
class AddRaftVoterResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", ignorable=True)


@nested
class AddRaftVoterRequestListener:
    """DOC(AddRaftVoterRequest.Listeners)."""

    name: String = field("0+")
    host: String = field("0+")
    port: UInt16 = field("0+")


@message(ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+")
class AddRaftVoterRequest(Request[AddRaftVoterResponse]):
    """DOC."""

    cluster_id: String | None = field("0+", nullable="0+")
    timeout_ms: Int32 = field("0+")
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")
    listeners: Array[AddRaftVoterRequestListener] = field("0+")
    ack_when_committed: Bool = field("1+", default=True)


@message(ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+")
class RemoveRaftVoterResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", ignorable=True)


@message(ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+")
class RemoveRaftVoterRequest(Request[RemoveRaftVoterResponse]):
    """DOC."""

    cluster_id: String | None = field("0+", nullable="0+")
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")


@nested
class CurrentLeader:
    """DOC(UpdateRaftVoterResponse.CurrentLeader)."""

    leader_id: Int32 = field("0+", default=-1)
    leader_epoch: Int32 = field("0+", default=-1)
    host: String = field("0+", default="")
    port: Int32 = field("0+", default=0)


@message(ApiKey.UPDATE_RAFT_VOTER, versions="0", flexible="0+")
class UpdateRaftVoterResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    current_leader: CurrentLeader = field("0+", tag=0, default=CurrentLeader)


@nested
class UpdateRaftVoterRequestListener:
    """DOC(UpdateRaftVoterRequest.Listeners)."""

    name: String = field("0+")
    host: String = field("0+")
    port: UInt16 = field("0+")


@nested
class KRaftVersionFeature:
    """DOC(UpdateRaftVoterRequest.KRaftVersionFeature)."""

    min_supported_version: Int16 = field("0+")
    max_supported_version: Int16 = field("0+")


@message(ApiKey.UPDATE_RAFT_VOTER, versions="0", flexible="0+")
class UpdateRaftVoterRequest(Request[UpdateRaftVoterResponse]):
    """DOC."""

    cluster_id: String | None = field("0+", nullable="0+")
    current_leader_epoch: Int32 = field("0+")
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")
    listeners: Array[UpdateRaftVoterRequestListener] = field("0+")
    k_raft_version_feature: KRaftVersionFeature = field("0+")
