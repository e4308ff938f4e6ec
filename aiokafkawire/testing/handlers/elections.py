"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments: leaders and replicas of partitions."""

from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    PartitionResult,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
    TopicPartitions,
)
from ...types import ElectionType
from ..cluster.api_error import ApiError
from ..cluster.reassignment import cancel, reassign
from ..cluster.replicas import HostedPartition
from ..cluster.state import ClusterState
from ..serving.call import ServerCall

__all__ = ("alter_partition_reassignments", "elect_leaders", "list_partition_reassignments")


_MESSAGES: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}
"""Kafka's messages for errors that are raised without a message."""


# --- elections ---------------------------------------------------------------------------------------------------


async def elect_leaders(call: ServerCall, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect preferred leaders; in an unclean election, elect any replica of a partition without a leader (KIP-460).

    A request without partitions means all partitions; the response then omits partitions that need no election.
    """
    cluster = call.cluster
    kind = request.election_type if call.version >= 1 else ElectionType.PREFERRED
    asked = request.topic_partitions
    results = []
    for topic in _all_partitions(cluster) if asked is None else asked:
        elected = [_elect(cluster, topic.topic, index, kind) for index in topic.partitions]
        if asked is None:
            elected = [result for result in elected if result.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        results.append(ReplicaElectionResult(topic=topic.topic, partition_result=elected))
    error = ErrorCode.NONE if kind in tuple(ElectionType) else ErrorCode.INVALID_REQUEST
    return ElectLeadersResponse(error_code=error, replica_election_results=results)


def _all_partitions(cluster: ClusterState) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic=topic.name, partitions=list(range(len(topic.partitions)))) for topic in cluster.topics
    ]


def _elect(cluster: ClusterState, topic: str, index: int, kind: int) -> PartitionResult:
    try:
        if kind not in tuple(ElectionType):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
        partition = _existing(
            cluster, topic, index, f"No such topic as {topic}", f"No such partition as {topic}-{index}"
        )
        if kind == ElectionType.PREFERRED:
            partition.elect_preferred()
        else:
            partition.elect_any()
    except ApiError as refused:
        message = refused.message or _MESSAGES.get(refused.code)
        return PartitionResult(partition_id=index, error_code=refused.code, error_message=message)
    cluster.changed(partition)
    return PartitionResult(partition_id=index, error_code=ErrorCode.NONE, error_message=None)


# --- reassignments -----------------------------------------------------------------------------------------------


async def alter_partition_reassignments(
    call: ServerCall, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Start or cancel the reassignment of each requested partition (KIP-455)."""
    responses = []
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = ReassignablePartitionResponse(
                partition_index=asked.partition_index, error_code=ErrorCode.NONE, error_message=None
            )
            try:
                _reassign(call.cluster, topic.name, asked, request.allow_replication_factor_change)
            except ApiError as refused:
                answer.error_code, answer.error_message = refused.code, refused.message
            answers.append(answer)
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=answers))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=responses,
    )


def _reassign(cluster: ClusterState, topic: str, asked: ReassignablePartition, any_count: bool) -> None:
    """Start or cancel a reassignment, or raise ApiError; ``any_count`` allows to change the number of replicas."""
    index = asked.partition_index
    partition = _existing(
        cluster, topic, index, f"Unable to find a topic named {topic}.", f"Unable to find partition {topic}:{index}."
    )
    if asked.replicas is None:
        cancel(partition)
    else:
        before = [node for node in partition.replicas if node not in partition.adding]
        cluster.topics.check_replicas(asked.replicas)
        if not any_count and len(asked.replicas) != len(before):
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {len(before)} to {len(asked.replicas)}",
            )
        reassign(partition, asked.replicas)
    cluster.changed(partition)


async def list_partition_reassignments(
    call: ServerCall, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List the ongoing reassignments of the requested partitions, or of all partitions (KIP-455)."""
    asked = request.topics
    if asked is None:
        asked = [
            ListPartitionReassignmentsTopics(name=topic.name, partition_indexes=list(range(len(topic.partitions))))
            for topic in call.cluster.topics
        ]
    topics = []
    for listed in asked:
        topic = call.cluster.topics.get(listed.name)
        known = topic.partitions if topic is not None else []
        moving = [_ongoing(known[index]) for index in listed.partition_indexes if 0 <= index < len(known)]
        ongoing = [reassignment for reassignment in moving if reassignment is not None]
        if ongoing:
            topics.append(OngoingTopicReassignment(name=listed.name, partitions=ongoing))
    return ListPartitionReassignmentsResponse(error_code=ErrorCode.NONE, error_message=None, topics=topics)


def _ongoing(partition: HostedPartition) -> OngoingPartitionReassignment | None:
    if not partition.adding and not partition.removing:
        return None
    return OngoingPartitionReassignment(
        partition_index=partition.index,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding),
        removing_replicas=list(partition.removing),
    )


def _existing(cluster: ClusterState, topic: str, index: int, no_topic: str, no_partition: str) -> HostedPartition:
    found = cluster.topics.get(topic)
    if found is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, no_topic)
    if not 0 <= index < len(found.partitions):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, no_partition)
    return found.partitions[index]
