"""DescribeQuorum, AddRaftVoter and RemoveRaftVoter: the Raft quorum of the controllers."""

from collections.abc import Iterable

from ...errors import ErrorCode
from ...protocol.messages.quorum_voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponseListener,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Node,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    ReplicaState,
)
from ..cluster.api_error import ApiError
from ..cluster.quorum import CONTROLLER_LISTENER, QuorumMember
from ..serving.call import ServerCall

__all__ = ("add_raft_voter", "describe_quorum", "remove_raft_voter")

_METADATA_TOPIC = "__cluster_metadata"
_NODES_SINCE = 2  # KIP-853


async def describe_quorum(call: ServerCall, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the quorum of partition 0 of the metadata log; no other partition has one."""
    asked = [
        (topic.topic_name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    ]
    if asked != [(_METADATA_TOPIC, 0)]:
        return DescribeQuorumResponse(
            error_code=ErrorCode.NONE,
            topics=[
                DescribeQuorumResponseTopicData(
                    topic_name=topic.topic_name,
                    partitions=[
                        _failed(partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )
    quorum = call.cluster.quorum
    if call.node.is_controller and call.node.node_id != quorum.leader:
        return _refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    described = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_code=ErrorCode.NONE,
        leader_id=quorum.leader,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=_states(quorum.voters),
        observers=_states(quorum.observers),
    )
    topic = DescribeQuorumResponseTopicData(topic_name=_METADATA_TOPIC, partitions=[described])
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=[topic], nodes=_nodes(call))


def _refused(code: ErrorCode) -> DescribeQuorumResponse:
    topic = DescribeQuorumResponseTopicData(topic_name=_METADATA_TOPIC, partitions=[_failed(0, code)])
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=[topic])


async def add_raft_voter(call: ServerCall, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Add a voter to the quorum."""
    names = [listener.name for listener in request.listeners]
    try:
        call.cluster.quorum.add(request.cluster_id, request.voter_id, request.voter_directory_id, names)
    except ApiError as refused:
        return AddRaftVoterResponse(error_code=refused.code, error_message=refused.message)
    return AddRaftVoterResponse(error_code=ErrorCode.NONE, error_message=None)


async def remove_raft_voter(call: ServerCall, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Remove a voter from the quorum."""
    try:
        call.cluster.quorum.remove(request.cluster_id, request.voter_id, request.voter_directory_id)
    except ApiError as refused:
        return RemoveRaftVoterResponse(error_code=refused.code, error_message=refused.message)
    return RemoveRaftVoterResponse(error_code=ErrorCode.NONE, error_message=None)


def _failed(partition: int, code: ErrorCode) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        partition_index=partition,
        error_code=code,
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )


def _states(members: Iterable[QuorumMember]) -> list[ReplicaState]:
    return [
        ReplicaState(
            replica_id=member.node_id,
            replica_directory_id=member.directory_id,
            log_end_offset=member.log_end_offset,
            last_fetch_timestamp=member.last_fetch,
            last_caught_up_timestamp=member.last_caught_up,
        )
        for member in members
    ]


def _nodes(call: ServerCall) -> list[Node]:
    """Return the listeners of the voters, which v0 and v1 lack."""
    if call.version < _NODES_SINCE:
        return []
    found = []
    for voter in call.cluster.quorum.voters:
        at = call.cluster.controllers.get(voter.node_id) or call.cluster.node(voter.node_id)
        listener = DescribeQuorumResponseListener(name=CONTROLLER_LISTENER, host=at.host, port=at.port)
        found.append(Node(node_id=voter.node_id, listeners=[listener]))
    return found
