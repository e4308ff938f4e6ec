"""Groups of Kafka Streams applications (KIP-1071)."""

from ..api import ApiKey
from ..primitives import Array, Bool, Int8, Int16, Int32, Int64, String, UInt16
from ..schema import Request, Response, field, message, nested

__all__ = (
    "Assignment",
    "CopartitionGroup",
    "DescribedGroup",
    "Endpoint",
    "EndpointToPartitions",
    "KeyValue",
    "Member",
    "Status",
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
    "StreamsGroupDescribeResponseSubtopology",
    "StreamsGroupDescribeResponseTopology",
    "StreamsGroupDescribeResponseTopologyDescription",
    "StreamsGroupDescribeResponseTopologyDescriptionGlobalStore",
    "StreamsGroupDescribeResponseTopologyDescriptionNode",
    "StreamsGroupDescribeResponseTopologyDescriptionSubtopology",
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatRequestSubtopology",
    "StreamsGroupHeartbeatRequestTopology",
    "StreamsGroupHeartbeatResponse",
    "StreamsGroupTopologyDescriptionUpdateRequest",
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription",
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore",
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode",
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology",
    "StreamsGroupTopologyDescriptionUpdateResponse",
    "TaskIds",
    "TaskOffset",
    "TopicInfo",
    "TopicPartition",
)


@nested
class Status:
    """DOC(StreamsGroupHeartbeatResponse.Status)."""

    status_code: Int8 = field("0+")
    status_detail: String = field("0+")


@nested
class TaskIds:
    """DOC(StreamsGroupHeartbeatResponse.ActiveTasks)."""

    subtopology_id: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class Endpoint:
    """DOC(StreamsGroupHeartbeatResponse.UserEndpoint)."""

    host: String = field("0+")
    port: UInt16 = field("0+")


@nested
class TopicPartition:
    """DOC(StreamsGroupHeartbeatResponse.ActivePartitions)."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class EndpointToPartitions:
    """DOC(StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint)."""

    user_endpoint: Endpoint = field("0+")
    active_partitions: Array[TopicPartition] = field("0+")
    standby_partitions: Array[TopicPartition] = field("0+")


@message(ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    member_id: String = field("0+")
    member_epoch: Int32 = field("0+")
    heartbeat_interval_ms: Int32 = field("0+")
    acceptable_recovery_lag_legacy: Int32 = field("0", default=0)
    task_offset_interval_ms: Int32 = field("0+")
    acceptable_recovery_lag: Int64 = field("1+", default=-1, ignorable=True)
    status: Array[Status] | None = field("0+", nullable="0+")
    active_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    standby_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    warmup_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    topology_description_required: Bool = field("1+", default=False)
    endpoint_information_epoch: Int32 = field("0+")
    partitions_by_user_endpoint: Array[EndpointToPartitions] | None = field("0+", nullable="0+", default=None)


@nested
class KeyValue:
    """DOC(StreamsGroupHeartbeatRequest.TopicConfigs)."""

    key: String = field("0+")
    value: String = field("0+")


@nested
class TopicInfo:
    """DOC(StreamsGroupHeartbeatRequest.StateChangelogTopics)."""

    name: String = field("0+")
    partitions: Int32 = field("0+")
    replication_factor: Int16 = field("0+")
    topic_configs: Array[KeyValue] = field("0+")


@nested
class CopartitionGroup:
    """DOC(StreamsGroupHeartbeatRequest.CopartitionGroups)."""

    source_topics: Array[Int16] = field("0+")
    source_topic_regex: Array[Int16] = field("0+")
    repartition_source_topics: Array[Int16] = field("0+")


@nested
class StreamsGroupHeartbeatRequestSubtopology:
    """DOC(StreamsGroupHeartbeatRequest.Subtopologies)."""

    subtopology_id: String = field("0+")
    source_topics: Array[String] = field("0+")
    source_topic_regex: Array[String] = field("0+")
    state_changelog_topics: Array[TopicInfo] = field("0+")
    repartition_sink_topics: Array[String] = field("0+")
    repartition_source_topics: Array[TopicInfo] = field("0+")
    copartition_groups: Array[CopartitionGroup] = field("0+")


@nested
class StreamsGroupHeartbeatRequestTopology:
    """DOC(StreamsGroupHeartbeatRequest.Topology)."""

    epoch: Int32 = field("0+")
    subtopologies: Array[StreamsGroupHeartbeatRequestSubtopology] = field("0+")


@nested
class TaskOffset:
    """DOC(StreamsGroupHeartbeatRequest.TaskOffsets)."""

    subtopology_id: String = field("0+")
    partition: Int32 = field("0+")
    offset: Int64 = field("0+")


@message(ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatRequest(Request[StreamsGroupHeartbeatResponse]):
    """DOC."""

    group_id: String = field("0+")
    member_id: String = field("0+")
    member_epoch: Int32 = field("0+")
    endpoint_information_epoch: Int32 = field("0+")
    instance_id: String | None = field("0+", nullable="0+", default=None)
    rack_id: String | None = field("0+", nullable="0+", default=None)
    rebalance_timeout_ms: Int32 = field("0+", default=-1)
    topology: StreamsGroupHeartbeatRequestTopology | None = field("0+", nullable="0+", default=None)
    active_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    standby_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    warmup_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    process_id: String | None = field("0+", nullable="0+", default=None)
    user_endpoint: Endpoint | None = field("0+", nullable="0+", default=None)
    client_tags: Array[KeyValue] | None = field("0+", nullable="0+", default=None)
    task_offsets: Array[TaskOffset] | None = field("0+", nullable="0+", default=None)
    task_end_offsets: Array[TaskOffset] | None = field("0+", nullable="0+", default=None)
    shutdown_application: Bool = field("0+", default=False)


@nested
class StreamsGroupDescribeResponseSubtopology:
    """DOC(StreamsGroupDescribeResponse.Subtopologies)."""

    subtopology_id: String = field("0+")
    source_topics: Array[String] = field("0+")
    repartition_sink_topics: Array[String] = field("0+")
    state_changelog_topics: Array[TopicInfo] = field("0+")
    repartition_source_topics: Array[TopicInfo] = field("0+")


@nested
class StreamsGroupDescribeResponseTopology:
    """DOC(StreamsGroupDescribeResponse.Topology)."""

    epoch: Int32 = field("0+")
    subtopologies: Array[StreamsGroupDescribeResponseSubtopology] | None = field("0+", nullable="0+", default=None)


@nested
class Assignment:
    """DOC(StreamsGroupDescribeResponse.Assignment)."""

    active_tasks: Array[TaskIds] = field("0+")
    standby_tasks: Array[TaskIds] = field("0+")
    warmup_tasks: Array[TaskIds] = field("0+")


@nested
class Member:
    """DOC(StreamsGroupDescribeResponse.Members)."""

    member_id: String = field("0+")
    member_epoch: Int32 = field("0+")
    instance_id: String | None = field("0+", nullable="0+", default=None)
    rack_id: String | None = field("0+", nullable="0+", default=None)
    client_id: String = field("0+")
    client_host: String = field("0+")
    topology_epoch: Int32 = field("0+")
    process_id: String = field("0+")
    user_endpoint: Endpoint | None = field("0+", nullable="0+", default=None)
    client_tags: Array[KeyValue] = field("0+")
    task_offsets: Array[TaskOffset] = field("0+")
    task_end_offsets: Array[TaskOffset] = field("0+")
    assignment: Assignment = field("0+")
    target_assignment: Assignment = field("0+")
    is_classic: Bool = field("0+")


@nested
class StreamsGroupDescribeResponseTopologyDescriptionNode:
    """DOC(StreamsGroupDescribeResponse.Nodes)."""

    name: String = field("1+")
    node_type: Int8 = field("1+")
    source_topics: Array[String] = field("1+")
    sink_topic: String | None = field("1+", nullable="1+", default=None)
    stores: Array[String] = field("1+")
    successors: Array[String] = field("1+")


@nested
class StreamsGroupDescribeResponseTopologyDescriptionSubtopology:
    """DOC(StreamsGroupDescribeResponse.Subtopologies)."""

    subtopology_id: String = field("1+")
    nodes: Array[StreamsGroupDescribeResponseTopologyDescriptionNode] = field("1+")


@nested
class StreamsGroupDescribeResponseTopologyDescriptionGlobalStore:
    """DOC(StreamsGroupDescribeResponse.GlobalStores)."""

    source: StreamsGroupDescribeResponseTopologyDescriptionNode = field("1+")
    processor: StreamsGroupDescribeResponseTopologyDescriptionNode = field("1+")


@nested
class StreamsGroupDescribeResponseTopologyDescription:
    """DOC(StreamsGroupDescribeResponse.TopologyDescription)."""

    subtopologies: Array[StreamsGroupDescribeResponseTopologyDescriptionSubtopology] = field("1+")
    global_stores: Array[StreamsGroupDescribeResponseTopologyDescriptionGlobalStore] = field("1+")


@nested
class DescribedGroup:
    """DOC(StreamsGroupDescribeResponse.Groups)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    group_id: String = field("0+")
    group_state: String = field("0+")
    group_epoch: Int32 = field("0+")
    assignment_epoch: Int32 = field("0+")
    topology: StreamsGroupDescribeResponseTopology | None = field("0+", nullable="0+", default=None)
    members: Array[Member] = field("0+")
    authorized_operations: Int32 = field("0+", default=-(2**31))
    topology_description: StreamsGroupDescribeResponseTopologyDescription | None = field(
        "1+", nullable="1+", default=None
    )
    topology_description_status: Int8 = field("1+", default=0)
    assignor_name: String | None = field("1+", nullable="1+", default=None, ignorable=True)


@message(ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    groups: Array[DescribedGroup] = field("0+")


@message(ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class StreamsGroupDescribeRequest(Request[StreamsGroupDescribeResponse]):
    """DOC."""

    group_ids: Array[String] = field("0+")
    include_authorized_operations: Bool = field("0+")
    include_topology_description: Bool = field("1+", default=False)


@message(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode:
    """DOC(StreamsGroupTopologyDescriptionUpdateRequest.Nodes)."""

    name: String = field("0+")
    node_type: Int8 = field("0+")
    source_topics: Array[String] = field("0+")
    sink_topic: String | None = field("0+", nullable="0+", default=None)
    stores: Array[String] = field("0+")
    successors: Array[String] = field("0+")


@nested
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology:
    """DOC(StreamsGroupTopologyDescriptionUpdateRequest.Subtopologies)."""

    subtopology_id: String = field("0+")
    nodes: Array[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode] = field("0+")


@nested
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore:
    """DOC(StreamsGroupTopologyDescriptionUpdateRequest.GlobalStores)."""

    source: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode = field("0+")
    processor: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode = field("0+")


@nested
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription:
    """DOC(StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription)."""

    subtopologies: Array[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology] = field("0+")
    global_stores: Array[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore] = field("0+")


@message(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateRequest(Request[StreamsGroupTopologyDescriptionUpdateResponse]):
    """DOC."""

    group_id: String = field("0+")
    member_id: String = field("0+")
    topology_epoch: Int32 = field("0+")
    topology_description: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription = field("0+")
