"""What the controller told brokers while clusters lived on ZooKeeper; gone in 4.0."""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Bool, Int8, Int16, Int32, Int64, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "ControlledShutdownRequest",
    "ControlledShutdownResponse",
    "LeaderAndIsrLiveLeader",
    "LeaderAndIsrPartitionError",
    "LeaderAndIsrPartitionState",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "LeaderAndIsrTopicError",
    "LeaderAndIsrTopicState",
    "RemainingPartition",
    "StopReplicaPartitionError",
    "StopReplicaPartitionState",
    "StopReplicaPartitionV0",
    "StopReplicaRequest",
    "StopReplicaResponse",
    "StopReplicaTopicState",
    "StopReplicaTopicV1",
    "UpdateMetadataBroker",
    "UpdateMetadataEndpoint",
    "UpdateMetadataPartitionState",
    "UpdateMetadataRequest",
    "UpdateMetadataResponse",
    "UpdateMetadataTopicState",
)


@nested
class LeaderAndIsrPartitionError:
    """DOC(LeaderAndIsrResponse.PartitionErrors)."""

    topic_name: String = field("0-4", default="", ignorable=True)
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class LeaderAndIsrTopicError:
    """DOC(LeaderAndIsrResponse.Topics)."""

    topic_id: Uuid = field("5+")
    partition_errors: Array[LeaderAndIsrPartitionError] = field("5+")


@message(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    partition_errors: Array[LeaderAndIsrPartitionError] = field("0-4", default=list)
    topics: Array[LeaderAndIsrTopicError] = field("5+", default=list)


@nested
class LeaderAndIsrPartitionState:
    """DOC(LeaderAndIsrRequest.UngroupedPartitionStates)."""

    topic_name: String = field("0-1", default="", ignorable=True)
    partition_index: Int32 = field("0+")
    controller_epoch: Int32 = field("0+")
    leader: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    isr: Array[Int32] = field("0+")
    partition_epoch: Int32 = field("0+")
    replicas: Array[Int32] = field("0+")
    adding_replicas: Array[Int32] = field("3+", default=list, ignorable=True)
    removing_replicas: Array[Int32] = field("3+", default=list, ignorable=True)
    is_new: Bool = field("1+", default=False, ignorable=True)
    leader_recovery_state: Int8 = field("6+", default=0)


@nested
class LeaderAndIsrTopicState:
    """DOC(LeaderAndIsrRequest.TopicStates)."""

    topic_name: String = field("2+")
    topic_id: Uuid = field("5+", default=ZERO_UUID, ignorable=True)
    partition_states: Array[LeaderAndIsrPartitionState] = field("2+")


@nested
class LeaderAndIsrLiveLeader:
    """DOC(LeaderAndIsrRequest.LiveLeaders)."""

    broker_id: Int32 = field("0+")
    host_name: String = field("0+")
    port: Int32 = field("0+")


@message(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrRequest(Request[LeaderAndIsrResponse]):
    """DOC."""

    controller_id: Int32 = field("0+")
    is_k_raft_controller: Bool = field("7+", default=False)
    controller_epoch: Int32 = field("0+")
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)
    type: Int8 = field("5+", default=0)
    ungrouped_partition_states: Array[LeaderAndIsrPartitionState] = field("0-1", default=list)
    topic_states: Array[LeaderAndIsrTopicState] = field("2+", default=list)
    live_leaders: Array[LeaderAndIsrLiveLeader] = field("0+")


@nested
class StopReplicaPartitionError:
    """DOC(StopReplicaResponse.PartitionErrors)."""

    topic_name: String = field("0+")
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@message(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    partition_errors: Array[StopReplicaPartitionError] = field("0+")


@nested
class StopReplicaPartitionV0:
    """DOC(StopReplicaRequest.UngroupedPartitions)."""

    topic_name: String = field("0")
    partition_index: Int32 = field("0")


@nested
class StopReplicaTopicV1:
    """DOC(StopReplicaRequest.Topics)."""

    name: String = field("1-2")
    partition_indexes: Array[Int32] = field("1-2")


@nested
class StopReplicaPartitionState:
    """DOC(StopReplicaRequest.PartitionStates)."""

    partition_index: Int32 = field("3+")
    leader_epoch: Int32 = field("3+", default=-1)
    delete_partition: Bool = field("3+")


@nested
class StopReplicaTopicState:
    """DOC(StopReplicaRequest.TopicStates)."""

    topic_name: String = field("3+")
    partition_states: Array[StopReplicaPartitionState] = field("3+")


@message(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaRequest(Request[StopReplicaResponse]):
    """DOC."""

    controller_id: Int32 = field("0+")
    is_k_raft_controller: Bool = field("4+", default=False)
    controller_epoch: Int32 = field("0+")
    broker_epoch: Int64 = field("1+", default=-1, ignorable=True)
    delete_partitions: Bool = field("0-2", default=False)
    ungrouped_partitions: Array[StopReplicaPartitionV0] = field("0", default=list)
    topics: Array[StopReplicaTopicV1] = field("1-2", default=list)
    topic_states: Array[StopReplicaTopicState] = field("3+", default=list)


@message(ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")


@nested
class UpdateMetadataPartitionState:
    """DOC(UpdateMetadataRequest.UngroupedPartitionStates)."""

    topic_name: String = field("0-4", default="", ignorable=True)
    partition_index: Int32 = field("0+")
    controller_epoch: Int32 = field("0+")
    leader: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    isr: Array[Int32] = field("0+")
    zk_version: Int32 = field("0+")
    replicas: Array[Int32] = field("0+")
    offline_replicas: Array[Int32] = field("4+", default=list, ignorable=True)


@nested
class UpdateMetadataTopicState:
    """DOC(UpdateMetadataRequest.TopicStates)."""

    topic_name: String = field("5+")
    topic_id: Uuid = field("7+", default=ZERO_UUID, ignorable=True)
    partition_states: Array[UpdateMetadataPartitionState] = field("5+")


@nested
class UpdateMetadataEndpoint:
    """DOC(UpdateMetadataRequest.Endpoints)."""

    port: Int32 = field("1+")
    host: String = field("1+")
    listener: String = field("3+", default="", ignorable=True)
    security_protocol: Int16 = field("1+")


@nested
class UpdateMetadataBroker:
    """DOC(UpdateMetadataRequest.LiveBrokers)."""

    id: Int32 = field("0+")
    v0_host: String = field("0", default="", ignorable=True)
    v0_port: Int32 = field("0", default=0, ignorable=True)
    endpoints: Array[UpdateMetadataEndpoint] = field("1+", default=list, ignorable=True)
    rack: String | None = field("2+", nullable="0+", default="", ignorable=True)


@message(ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataRequest(Request[UpdateMetadataResponse]):
    """DOC."""

    controller_id: Int32 = field("0+")
    is_k_raft_controller: Bool = field("8+", default=False)
    type: Int8 = field("8+", tag=0, default=0)
    controller_epoch: Int32 = field("0+")
    broker_epoch: Int64 = field("5+", default=-1, ignorable=True)
    ungrouped_partition_states: Array[UpdateMetadataPartitionState] = field("0-4", default=list)
    topic_states: Array[UpdateMetadataTopicState] = field("5+", default=list)
    live_brokers: Array[UpdateMetadataBroker] = field("0+")


@nested
class RemainingPartition:
    """DOC(ControlledShutdownResponse.RemainingPartitions)."""

    topic_name: String = field("0+")
    partition_index: Int32 = field("0+")


@message(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownResponse(Response):
    """DOC."""

    error_code: Int16 = field("0+")
    remaining_partitions: Array[RemainingPartition] = field("0+")


@message(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownRequest(Request[ControlledShutdownResponse]):
    """DOC."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)
