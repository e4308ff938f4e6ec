"""The requests that elect leaders and reassign partitions, and the outcomes in their responses."""

from collections.abc import Collection, Mapping, Sequence

from ..errors import ErrorCode, KafkaError
from ..group.consumer_protocol import by_topic
from ..protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from ..types import ElectionType, TopicPartition
from .response_errors import error_of, raise_for
from .topic_descriptions import PartitionReassignment

__all__ = (
    "elect_request",
    "elected",
    "list_reassignments_request",
    "ongoing_reassignments",
    "reassign_request",
    "reassigned",
)


# --- elections -----------------------------------------------------------------------------------------------------


def elect_request(
    election_type: ElectionType, partitions: Collection[TopicPartition] | None, timeout_ms: int
) -> ElectLeadersRequest:
    """Return the request that elects leaders of these partitions, or of all partitions for None."""
    topics = None
    if partitions is not None:
        topics = [TopicPartitions(topic=name, partitions=indexes) for name, indexes in by_topic(partitions).items()]
    return ElectLeadersRequest(election_type=election_type, topic_partitions=topics, timeout_ms=timeout_ms)


def elected(response: ElectLeadersResponse) -> dict[TopicPartition, bool | KafkaError]:
    """Return for each partition of a response whether a leader was elected, False if none was needed; or its error.

    Raises:
        BrokerError: the whole request failed.
    """
    raise_for(response.error_code, "electing leaders")
    found: dict[TopicPartition, bool | KafkaError] = {}
    for topic in response.replica_election_results:
        for result in topic.partition_result:
            partition = TopicPartition(topic.topic, result.partition_id)
            if result.error_code == ErrorCode.ELECTION_NOT_NEEDED:
                found[partition] = False
            else:
                what = f"electing a leader of {partition}"
                found[partition] = error_of(result.error_code, what, result.error_message) or True
    return found


# --- reassignments -------------------------------------------------------------------------------------------------


def reassign_request(
    targets: Mapping[TopicPartition, Sequence[int] | None], timeout_ms: int, *, change_replication_factor: bool
) -> AlterPartitionReassignmentsRequest:
    """Return the request that moves partitions to other brokers, or cancels the moves for None."""
    topics = [
        ReassignableTopic(
            name=name,
            partitions=[
                ReassignablePartition(partition_index=index, replicas=_listed(targets[TopicPartition(name, index)]))
                for index in indexes
            ],
        )
        for name, indexes in by_topic(targets).items()
    ]
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms, allow_replication_factor_change=change_replication_factor, topics=topics
    )


def _listed(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


def reassigned(response: AlterPartitionReassignmentsResponse) -> dict[TopicPartition, KafkaError | None]:
    """Return the error of each partition of a response; None for success.

    Raises:
        BrokerError: the whole request failed.
    """
    raise_for(response.error_code, "reassigning partitions", response.error_message)
    found: dict[TopicPartition, KafkaError | None] = {}
    for topic in response.responses:
        for answer in topic.partitions:
            partition = TopicPartition(topic.name, answer.partition_index)
            found[partition] = error_of(answer.error_code, f"reassigning {partition}", answer.error_message)
    return found


def list_reassignments_request(
    partitions: Collection[TopicPartition] | None, timeout_ms: int
) -> ListPartitionReassignmentsRequest:
    """Return the request for the ongoing reassignments of these partitions, or of all partitions for None."""
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)


def ongoing_reassignments(response: ListPartitionReassignmentsResponse) -> dict[TopicPartition, PartitionReassignment]:
    """Return the ongoing reassignments, sorted by partition.

    Raises:
        BrokerError: the request failed.
    """
    raise_for(response.error_code, "reassigning partitions", response.error_message)
    found = {
        TopicPartition(topic.name, partition.partition_index): PartitionReassignment(
            tuple(partition.replicas), tuple(partition.adding_replicas), tuple(partition.removing_replicas)
        )
        for topic in response.topics
        for partition in topic.partitions
    }
    return dict(sorted(found.items()))
