"""Groups of Kafka Streams applications (KIP-1071).

All of these go to the group's coordinator. A topology falls into subtopologies, and each of these into tasks, one for
each partition of its input. A task is active, or a standby that copies the state, or a warm-up that will take over
once it has caught up. A member joins with its topology and sends heartbeats; in both directions, null is what has not
changed since the last one. There since Kafka 4.1 (early access) and for production since 4.2; v1 is of 4.4.
"""

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
    """Something that the application should know about its group."""

    # 0: stale topology; 1: missing source topics; 2: incorrectly partitioned topics; 3: missing internal topics;
    # 4: the application is to shut down; 5: the assignment is delayed; 6: missing client tags (v1+)
    status_code: Int8 = field("0+")
    status_detail: String = field("0+")


@nested
class TaskIds:
    """Tasks of one subtopology, by partition."""

    subtopology_id: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class Endpoint:
    """Where a member answers queries about its state (``application.server``)."""

    host: String = field("0+")
    port: UInt16 = field("0+")


@nested
class TopicPartition:
    """Partitions of one topic."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class EndpointToPartitions:
    """The partitions whose state a member holds, for who wants to query it."""

    user_endpoint: Endpoint = field("0+")
    active_partitions: Array[TopicPartition] = field("0+")
    standby_partitions: Array[TopicPartition] = field("0+")


@message(ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatResponse(Response):
    """The member's epoch and its tasks."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    member_id: String = field("0+")
    member_epoch: Int32 = field("0+")
    heartbeat_interval_ms: Int32 = field("0+")  # until the next heartbeat is due
    acceptable_recovery_lag_legacy: Int32 = field("0", default=0)  # offsets
    task_offset_interval_ms: Int32 = field("0+")  # how often to send task offsets
    # offsets; a warm-up task within it has caught up; -1: not told
    acceptable_recovery_lag: Int64 = field("1+", default=-1, ignorable=True)
    status: Array[Status] | None = field("0+", nullable="0+")
    active_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    standby_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    warmup_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    # KIP-1331: send StreamsGroupTopologyDescriptionUpdate
    topology_description_required: Bool = field("1+", default=False)
    endpoint_information_epoch: Int32 = field("0+")  # of partitions_by_user_endpoint
    partitions_by_user_endpoint: Array[EndpointToPartitions] | None = field("0+", nullable="0+", default=None)


@nested
class KeyValue:
    """A topic's setting, or a client's tag."""

    key: String = field("0+")
    value: String = field("0+")


@nested
class TopicInfo:
    """An internal topic as it shall be, or is."""

    name: String = field("0+")
    partitions: Int32 = field("0+")  # 0: as the subtopology needs; in heartbeats always 0 for changelogs
    replication_factor: Int16 = field("0+")  # 0: the broker's default
    topic_configs: Array[KeyValue] = field("0+")


@nested
class CopartitionGroup:
    """Topics that must have equally many partitions, by their places in the subtopology's lists."""

    source_topics: Array[Int16] = field("0+")
    source_topic_regex: Array[Int16] = field("0+")
    repartition_source_topics: Array[Int16] = field("0+")


@nested
class StreamsGroupHeartbeatRequestSubtopology:
    """What a subtopology reads and writes, and which internal topics it needs."""

    subtopology_id: String = field("0+")
    source_topics: Array[String] = field("0+")
    source_topic_regex: Array[String] = field("0+")
    state_changelog_topics: Array[TopicInfo] = field("0+")
    repartition_sink_topics: Array[String] = field("0+")
    repartition_source_topics: Array[TopicInfo] = field("0+")
    copartition_groups: Array[CopartitionGroup] = field("0+")


@nested
class StreamsGroupHeartbeatRequestTopology:
    """What the coordinator must know of a topology to create topics and assign tasks."""

    epoch: Int32 = field("0+")
    subtopologies: Array[StreamsGroupHeartbeatRequestSubtopology] = field("0+")


@nested
class TaskOffset:
    """An offset of one task, summed up over its changelogs."""

    subtopology_id: String = field("0+")
    partition: Int32 = field("0+")
    offset: Int64 = field("0+")


@message(ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatRequest(Request[StreamsGroupHeartbeatResponse]):
    """A member joins a Streams group, stays in it, or leaves."""

    group_id: String = field("0+")
    member_id: String = field("0+")  # the member makes it up and keeps it
    # 0: join; -1: leave; -2: leave for a while (static members); else as the last answer has it
    member_epoch: Int32 = field("0+")
    endpoint_information_epoch: Int32 = field("0+")  # as the last answer has it
    instance_id: String | None = field("0+", nullable="0+", default=None)
    rack_id: String | None = field("0+", nullable="0+", default=None)
    # how long the member may take to give up tasks; -1: as before
    rebalance_timeout_ms: Int32 = field("0+", default=-1)
    topology: StreamsGroupHeartbeatRequestTopology | None = field("0+", nullable="0+", default=None)  # only to join
    active_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    standby_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    warmup_tasks: Array[TaskIds] | None = field("0+", nullable="0+", default=None)
    # of the instance, which may run several members
    process_id: String | None = field("0+", nullable="0+", default=None)
    user_endpoint: Endpoint | None = field("0+", nullable="0+", default=None)
    client_tags: Array[KeyValue] | None = field("0+", nullable="0+", default=None)  # for standbys on other racks
    # null before v1: brokers of 4.2 and 4.3 refuse these two
    task_offsets: Array[TaskOffset] | None = field("0+", nullable="0+", default=None)
    task_end_offsets: Array[TaskOffset] | None = field("0+", nullable="0+", default=None)
    shutdown_application: Bool = field("0+", default=False)  # asks all members to shut down


@nested
class StreamsGroupDescribeResponseSubtopology:
    """What a subtopology reads and writes, its patterns resolved to topics."""

    subtopology_id: String = field("0+")
    source_topics: Array[String] = field("0+")
    repartition_sink_topics: Array[String] = field("0+")
    state_changelog_topics: Array[TopicInfo] = field("0+")
    repartition_source_topics: Array[TopicInfo] = field("0+")


@nested
class StreamsGroupDescribeResponseTopology:
    """The group's topology; null subtopologies while source topics are missing or do not fit."""

    epoch: Int32 = field("0+")
    subtopologies: Array[StreamsGroupDescribeResponseSubtopology] | None = field("0+", nullable="0+", default=None)


@nested
class Assignment:
    """The tasks of one member."""

    active_tasks: Array[TaskIds] = field("0+")
    standby_tasks: Array[TaskIds] = field("0+")
    warmup_tasks: Array[TaskIds] = field("0+")


@nested
class Member:
    """A member, the tasks it has, and those it shall have."""

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
    # as it last reported them
    task_offsets: Array[TaskOffset] = field("0+")
    task_end_offsets: Array[TaskOffset] = field("0+")
    assignment: Assignment = field("0+")
    target_assignment: Assignment = field("0+")
    is_classic: Bool = field("0+")  # it still speaks the classic protocol


@nested
class StreamsGroupDescribeResponseTopologyDescriptionNode:
    """A node of the processing graph (KIP-1331)."""

    name: String = field("1+")
    node_type: Int8 = field("1+")  # 1: source; 2: processor; 3: sink
    source_topics: Array[String] = field("1+")  # of sources only; empty if chosen by a pattern
    sink_topic: String | None = field("1+", nullable="1+", default=None)  # of sinks only; null: chosen for each record
    stores: Array[String] = field("1+")  # of processors only
    successors: Array[String] = field("1+")


@nested
class StreamsGroupDescribeResponseTopologyDescriptionSubtopology:
    """The nodes of one subtopology."""

    subtopology_id: String = field("1+")
    nodes: Array[StreamsGroupDescribeResponseTopologyDescriptionNode] = field("1+")


@nested
class StreamsGroupDescribeResponseTopologyDescriptionGlobalStore:
    """A global store: the source it is read from and the processor that fills it."""

    source: StreamsGroupDescribeResponseTopologyDescriptionNode = field("1+")
    processor: StreamsGroupDescribeResponseTopologyDescriptionNode = field("1+")


@nested
class StreamsGroupDescribeResponseTopologyDescription:
    """The whole processing graph, as a member has described it (KIP-1331)."""

    subtopologies: Array[StreamsGroupDescribeResponseTopologyDescriptionSubtopology] = field("1+")
    global_stores: Array[StreamsGroupDescribeResponseTopologyDescriptionGlobalStore] = field("1+")


@nested
class DescribedGroup:
    """A Streams group and its members, or why it cannot be described."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    group_id: String = field("0+")
    group_state: String = field("0+")
    group_epoch: Int32 = field("0+")
    assignment_epoch: Int32 = field("0+")  # the group_epoch that the assignment was made for
    topology: StreamsGroupDescribeResponseTopology | None = field("0+", nullable="0+", default=None)
    members: Array[Member] = field("0+")
    authorized_operations: Int32 = field("0+", default=-(2**31))  # a bit for each operation; -2**31: not asked for
    topology_description: StreamsGroupDescribeResponseTopologyDescription | None = field(
        "1+", nullable="1+", default=None
    )
    # KIP-1331: 0: not asked for; 1: not stored; 2: error; 3: available
    topology_description_status: Int8 = field("1+", default=0)
    assignor_name: String | None = field("1+", nullable="1+", default=None, ignorable=True)  # KIP-1357


@message(ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse(Response):
    """The groups as their coordinator knows them."""

    throttle_time_ms: Int32 = field("0+", default=0)
    groups: Array[DescribedGroup] = field("0+")


@message(ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class StreamsGroupDescribeRequest(Request[StreamsGroupDescribeResponse]):
    """Who is in these Streams groups, and who runs what?"""

    group_ids: Array[String] = field("0+")
    include_authorized_operations: Bool = field("0+")
    include_topology_description: Bool = field("1+", default=False)  # KIP-1331


@message(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateResponse(Response):
    """Whether the description was stored."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode:
    """A node of the processing graph."""

    name: String = field("0+")
    node_type: Int8 = field("0+")  # 1: source; 2: processor; 3: sink
    source_topics: Array[String] = field("0+")  # of sources only; empty if chosen by a pattern
    sink_topic: String | None = field("0+", nullable="0+", default=None)  # of sinks only; null: chosen for each record
    stores: Array[String] = field("0+")  # of processors only
    successors: Array[String] = field("0+")


@nested
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology:
    """The nodes of one subtopology."""

    subtopology_id: String = field("0+")
    nodes: Array[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode] = field("0+")


@nested
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore:
    """A global store: the source it is read from and the processor that fills it."""

    source: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode = field("0+")
    processor: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode = field("0+")


@nested
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription:
    """The whole processing graph."""

    subtopologies: Array[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology] = field("0+")
    global_stores: Array[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore] = field("0+")


@message(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateRequest(Request[StreamsGroupTopologyDescriptionUpdateResponse]):
    """A member describes its topology, as a heartbeat's answer asked it to, for a plugin of the broker (KIP-1331)."""

    group_id: String = field("0+")
    member_id: String = field("0+")
    topology_epoch: Int32 = field("0+")
    topology_description: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription = field("0+")
