"""What the controller told brokers while clusters lived on ZooKeeper; gone in 4.0.

ControlledShutdown goes the other way. ``broker_epoch`` is of the broker's registration (KIP-380): what was meant for an
earlier run of it is refused; -1 is not checked. ``is_k_raft_controller`` is set while a cluster migrates (KIP-866).
"""

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
    """How one partition's change went."""

    topic_name: String = field("0-4", default="", ignorable=True)
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class LeaderAndIsrTopicError:
    """How the changes of one topic's partitions went (KIP-516)."""

    topic_id: Uuid = field("5+")
    partition_errors: Array[LeaderAndIsrPartitionError] = field("5+")


@message(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrResponse(Response):
    """How the broker took each change; v5 groups them by topic id (KIP-516)."""

    error_code: Int16 = field("0+")
    partition_errors: Array[LeaderAndIsrPartitionError] = field("0-4", default=list)
    topics: Array[LeaderAndIsrTopicError] = field("5+", default=list)


@nested
class LeaderAndIsrPartitionState:
    """A partition's leader, replicas, and those in sync."""

    topic_name: String = field("0-1", default="", ignorable=True)
    partition_index: Int32 = field("0+")
    controller_epoch: Int32 = field("0+")
    leader: Int32 = field("0+")  # -1: none
    leader_epoch: Int32 = field("0+")
    isr: Array[Int32] = field("0+")
    partition_epoch: Int32 = field("0+")  # ZooKeeper's version of the state: one up with every change
    replicas: Array[Int32] = field("0+")
    adding_replicas: Array[Int32] = field("3+", default=list, ignorable=True)  # KIP-455
    removing_replicas: Array[Int32] = field("3+", default=list, ignorable=True)  # KIP-455
    is_new: Bool = field("1+", default=False, ignorable=True)  # KIP-112: the broker does not have the replica yet
    # KIP-704: 0: recovered; 1: recovering from an unclean election
    leader_recovery_state: Int8 = field("6+", default=0)


@nested
class LeaderAndIsrTopicState:
    """The partitions of one topic."""

    topic_name: String = field("2+")
    topic_id: Uuid = field("5+", default=ZERO_UUID, ignorable=True)  # KIP-516
    partition_states: Array[LeaderAndIsrPartitionState] = field("2+")


@nested
class LeaderAndIsrLiveLeader:
    """Where a leader of these partitions listens."""

    broker_id: Int32 = field("0+")
    host_name: String = field("0+")
    port: Int32 = field("0+")


@message(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrRequest(Request[LeaderAndIsrResponse]):
    """The controller sends a broker the partitions that it leads and those that it follows."""

    controller_id: Int32 = field("0+")
    is_k_raft_controller: Bool = field("7+", default=False)  # KIP-866
    controller_epoch: Int32 = field("0+")
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)  # KIP-380
    type: Int8 = field("5+", default=0)  # KIP-516: 0: not known; 1: some of the broker's partitions; 2: all of them
    ungrouped_partition_states: Array[LeaderAndIsrPartitionState] = field("0-1", default=list)
    topic_states: Array[LeaderAndIsrTopicState] = field("2+", default=list)
    live_leaders: Array[LeaderAndIsrLiveLeader] = field("0+")


@nested
class StopReplicaPartitionError:
    """How one partition's stop went."""

    topic_name: String = field("0+")
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@message(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaResponse(Response):
    """How each stop went; v3+ has FENCED_LEADER_EPOCH for a stale request (KIP-570)."""

    error_code: Int16 = field("0+")
    partition_errors: Array[StopReplicaPartitionError] = field("0+")


@nested
class StopReplicaPartitionV0:
    """A partition to stop, as v0 names it."""

    topic_name: String = field("0")
    partition_index: Int32 = field("0")


@nested
class StopReplicaTopicV1:
    """Partitions of one topic to stop, as v1 and v2 name them."""

    name: String = field("1-2")
    partition_indexes: Array[Int32] = field("1-2")


@nested
class StopReplicaPartitionState:
    """A partition to stop, and whether to delete its log (KIP-570)."""

    partition_index: Int32 = field("3+")
    leader_epoch: Int32 = field("3+", default=-1)  # -1: not checked; -2: the topic is being deleted
    delete_partition: Bool = field("3+")


@nested
class StopReplicaTopicState:
    """Partitions of one topic to stop."""

    topic_name: String = field("3+")
    partition_states: Array[StopReplicaPartitionState] = field("3+")


@message(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaRequest(Request[StopReplicaResponse]):
    """The controller makes a broker stop following partitions, and perhaps delete them."""

    controller_id: Int32 = field("0+")
    is_k_raft_controller: Bool = field("4+", default=False)  # KIP-866
    controller_epoch: Int32 = field("0+")
    broker_epoch: Int64 = field("1+", default=-1, ignorable=True)  # KIP-380
    delete_partitions: Bool = field("0-2", default=False)  # all of them; v3+ says so for each
    ungrouped_partitions: Array[StopReplicaPartitionV0] = field("0", default=list)
    topics: Array[StopReplicaTopicV1] = field("1-2", default=list)
    topic_states: Array[StopReplicaTopicState] = field("3+", default=list)


@message(ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataResponse(Response):
    """Whether the broker took the update."""

    error_code: Int16 = field("0+")


@nested
class UpdateMetadataPartitionState:
    """What a broker answers about the partition when clients ask for metadata."""

    topic_name: String = field("0-4", default="", ignorable=True)
    partition_index: Int32 = field("0+")
    controller_epoch: Int32 = field("0+")
    leader: Int32 = field("0+")  # -1: none; -2: the topic is being deleted
    leader_epoch: Int32 = field("0+")
    isr: Array[Int32] = field("0+")
    zk_version: Int32 = field("0+")  # goes up with every change
    replicas: Array[Int32] = field("0+")
    offline_replicas: Array[Int32] = field("4+", default=list, ignorable=True)  # KIP-112


@nested
class UpdateMetadataTopicState:
    """The partitions of one topic."""

    topic_name: String = field("5+")
    topic_id: Uuid = field("7+", default=ZERO_UUID, ignorable=True)  # KIP-516
    partition_states: Array[UpdateMetadataPartitionState] = field("5+")


@nested
class UpdateMetadataEndpoint:
    """Where a broker listens."""

    port: Int32 = field("1+")
    host: String = field("1+")
    listener: String = field("3+", default="", ignorable=True)  # KIP-103
    security_protocol: Int16 = field("1+")  # 0: PLAINTEXT; 1: SSL; 2: SASL_PLAINTEXT; 3: SASL_SSL


@nested
class UpdateMetadataBroker:
    """A live broker and where it listens."""

    id: Int32 = field("0+")
    v0_host: String = field("0", default="", ignorable=True)
    v0_port: Int32 = field("0", default=0, ignorable=True)
    endpoints: Array[UpdateMetadataEndpoint] = field("1+", default=list, ignorable=True)
    rack: String | None = field("2+", nullable="0+", default="", ignorable=True)  # KIP-36


@message(ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataRequest(Request[UpdateMetadataResponse]):
    """The controller sends a broker the metadata for its answers to clients."""

    controller_id: Int32 = field("0+")
    is_k_raft_controller: Bool = field("8+", default=False)  # KIP-866
    type: Int8 = field("8+", tag=0, default=0)  # KIP-866: 0: not known; 1: what has changed; 2: everything
    controller_epoch: Int32 = field("0+")
    broker_epoch: Int64 = field("5+", default=-1, ignorable=True)  # KIP-380
    ungrouped_partition_states: Array[UpdateMetadataPartitionState] = field("0-4", default=list)
    topic_states: Array[UpdateMetadataTopicState] = field("5+", default=list)
    live_brokers: Array[UpdateMetadataBroker] = field("0+")


@nested
class RemainingPartition:
    """A partition that the broker still leads."""

    topic_name: String = field("0+")
    partition_index: Int32 = field("0+")


@message(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownResponse(Response):
    """What the broker still leads; if nothing is left, it may stop."""

    error_code: Int16 = field("0+")
    remaining_partitions: Array[RemainingPartition] = field("0+")


@message(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownRequest(Request[ControlledShutdownResponse]):
    """A broker that will stop asks the controller to let others lead. The header of v0 has no client id."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)  # KIP-380
