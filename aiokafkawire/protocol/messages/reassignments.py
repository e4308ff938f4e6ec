"""Which brokers hold and lead partitions.

All of it is the controller's to do; brokers in KRaft mode take the requests and pass them on.
"""

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
    """How one partition's election went; ELECTION_NOT_NEEDED if the wanted leader leads already."""

    partition_id: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@nested
class ReplicaElectionResult:
    """The elections of one topic's partitions."""

    topic: String = field("0+")
    partition_result: Array[PartitionResult] = field("0+")


@message(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersResponse(Response):
    """How each election went; where all were asked for, those not needed are left out."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("1+", default=0)  # KIP-460
    replica_election_results: Array[ReplicaElectionResult] = field("0+")


@nested
class TopicPartitions:
    """Partitions of one topic."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@message(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersRequest(Request[ElectLeadersResponse]):
    """Elect leaders for these partitions (KIP-183), null for all."""

    # KIP-460: 0: the preferred replica (v0: always); 1: unclean, any live replica if none in sync is left
    election_type: Int8 = field("1+", default=0)
    topic_partitions: Array[TopicPartitions] | None = field("0+", nullable="0+")
    timeout_ms: Int32 = field("0+", default=60000)


@nested
class ReassignablePartitionResponse:
    """Whether the reassignment of one partition was begun or cancelled."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")


@nested
class ReassignableTopicResponse:
    """The answers for one topic's partitions."""

    name: String = field("0+")
    partitions: Array[ReassignablePartitionResponse] = field("0+")


@message(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Response):
    """Which reassignments were begun or cancelled; the copying goes on after the answer."""

    throttle_time_ms: Int32 = field("0+", default=0)
    allow_replication_factor_change: Bool = field("1+", default=True, ignorable=True)  # KIP-860: as asked
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    responses: Array[ReassignableTopicResponse] = field("0+")


@nested
class ReassignablePartition:
    """The brokers that shall hold the partition, the preferred leader first; null cancels a reassignment."""

    partition_index: Int32 = field("0+")
    replicas: Array[Int32] | None = field("0+", nullable="0+", default=None)


@nested
class ReassignableTopic:
    """The partitions of one topic to reassign."""

    name: String = field("0+")
    partitions: Array[ReassignablePartition] = field("0+")


@message(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse]):
    """Move partitions to other brokers, or call the moves off (KIP-455)."""

    timeout_ms: Int32 = field("0+", default=60000)
    allow_replication_factor_change: Bool = field("1+", default=True)  # KIP-860; false: refuse a list of another length
    topics: Array[ReassignableTopic] = field("0+")


@nested
class OngoingPartitionReassignment:
    """A partition on the move; replicas hold it now, those to come and those to go included."""

    partition_index: Int32 = field("0+")
    replicas: Array[Int32] = field("0+")
    adding_replicas: Array[Int32] = field("0+")
    removing_replicas: Array[Int32] = field("0+")


@nested
class OngoingTopicReassignment:
    """The partitions of one topic that are on the move."""

    name: String = field("0+")
    partitions: Array[OngoingPartitionReassignment] = field("0+")


@message(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(Response):
    """The reassignments under way; partitions without one are left out."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    topics: Array[OngoingTopicReassignment] = field("0+")


@nested
class ListPartitionReassignmentsTopics:
    """Partitions of one topic."""

    name: String = field("0+")
    partition_indexes: Array[Int32] = field("0+")


@message(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest(Request[ListPartitionReassignmentsResponse]):
    """Which of these partitions are on the move? Null asks for all (KIP-455)."""

    timeout_ms: Int32 = field("0+", default=60000)
    topics: Array[ListPartitionReassignmentsTopics] | None = field("0+", nullable="0+", default=None)
