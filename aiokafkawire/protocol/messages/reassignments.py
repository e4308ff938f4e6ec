"""Which brokers hold and lead partitions."""

from ..api import ApiKey
from ..primitives import Array, Bool, Int8, Int16, Int32, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "ListPartitionReassignmentsTopics",
    "OngoingPartitionReassignment",
    "OngoingTopicReassignment",
    "PartitionResult",
    "ReassignablePartition",
    "ReassignablePartitionResponse",
    "ReassignableTopic",
    "ReassignableTopicResponse",
    "ReplicaElectionResult",
    "TopicPartitions",
)


@nested
class PartitionResult:
    """DOC(ElectLeadersResponse.PartitionResult)."""

    partition_id: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@nested
class ReplicaElectionResult:
    """DOC(ElectLeadersResponse.ReplicaElectionResults)."""

    topic: String = field("0+")
    partition_result: Array[PartitionResult] = field("0+")


@message(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("1+", default=0)
    replica_election_results: Array[ReplicaElectionResult] = field("0+")


@nested
class TopicPartitions:
    """DOC(ElectLeadersRequest.TopicPartitions)."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@message(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersRequest(Request[ElectLeadersResponse]):
    """DOC."""

    election_type: Int8 = field("1+", default=0)
    topic_partitions: Array[TopicPartitions] | None = field("0+", nullable="0+")
    timeout_ms: Int32 = field("0+", default=60000)


@nested
class ReassignablePartitionResponse:
    """DOC(AlterPartitionReassignmentsResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@nested
class ReassignableTopicResponse:
    """DOC(AlterPartitionReassignmentsResponse.Responses)."""

    name: String = field("0+")
    partitions: Array[ReassignablePartitionResponse] = field("0+")


@message(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    allow_replication_factor_change: Bool = field("1+", default=True, ignorable=True)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    responses: Array[ReassignableTopicResponse] = field("0+")


@nested
class ReassignablePartition:
    """DOC(AlterPartitionReassignmentsRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    replicas: Array[Int32] | None = field("0+", nullable="0+", default=None)


@nested
class ReassignableTopic:
    """DOC(AlterPartitionReassignmentsRequest.Topics)."""

    name: String = field("0+")
    partitions: Array[ReassignablePartition] = field("0+")


@message(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse]):
    """DOC."""

    timeout_ms: Int32 = field("0+", default=60000)
    allow_replication_factor_change: Bool = field("1+", default=True)
    topics: Array[ReassignableTopic] = field("0+")


@nested
class OngoingPartitionReassignment:
    """DOC(ListPartitionReassignmentsResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    replicas: Array[Int32] = field("0+")
    adding_replicas: Array[Int32] = field("0+")
    removing_replicas: Array[Int32] = field("0+")


@nested
class OngoingTopicReassignment:
    """DOC(ListPartitionReassignmentsResponse.Topics)."""

    name: String = field("0+")
    partitions: Array[OngoingPartitionReassignment] = field("0+")


@message(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    topics: Array[OngoingTopicReassignment] = field("0+")


@nested
class ListPartitionReassignmentsTopics:
    """DOC(ListPartitionReassignmentsRequest.Topics)."""

    name: String = field("0+")
    partition_indexes: Array[Int32] = field("0+")


@message(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest(Request[ListPartitionReassignmentsResponse]):
    """DOC."""

    timeout_ms: Int32 = field("0+", default=60000)
    topics: Array[ListPartitionReassignmentsTopics] | None = field("0+", nullable="0+", default=None)
