"""Creating and deleting topics."""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Bool, Int8, Int16, Int32, Int64, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "CreatableReplicaAssignment",
    "CreatableTopic",
    "CreatableTopicConfig",
    "CreatableTopicConfigs",
    "CreatableTopicResult",
    "CreatePartitionsAssignment",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreatePartitionsTopic",
    "CreatePartitionsTopicResult",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DeletableTopicResult",
    "DeleteRecordsPartition",
    "DeleteRecordsPartitionResult",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteRecordsTopic",
    "DeleteRecordsTopicResult",
    "DeleteTopicState",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
)


@nested
class CreatableTopicConfigs:
    """A setting of the new topic, and where its value comes from (KIP-525)."""

    name: String = field("5+")
    value: String | None = field("5+", nullable="5+")
    read_only: Bool = field("5+")
    # 1: topic; 2: broker, dynamic; 3: all brokers, dynamic; 4: broker, static; 5: default; -1, 0: unknown
    config_source: Int8 = field("5+", default=-1, ignorable=True)
    is_sensitive: Bool = field("5+")


@nested
class CreatableTopicResult:
    """The topic as created, or why it was not."""

    name: String = field("0+")
    topic_id: Uuid = field("7+", default=ZERO_UUID, ignorable=True)  # KIP-516
    error_code: Int16 = field("0+")  # v6+: THROTTLING_QUOTA_EXCEEDED (KIP-599)
    error_message: String | None = field("1+", nullable="1+", default="", ignorable=True)
    # KIP-525: why the next three are not told
    topic_config_error_code: Int16 = field("5+", tag=0, default=0, ignorable=True)
    num_partitions: Int32 = field("5+", default=-1, ignorable=True)
    replication_factor: Int16 = field("5+", default=-1, ignorable=True)
    configs: Array[CreatableTopicConfigs] | None = field("5+", nullable="5+", default=list, ignorable=True)


@message(ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsResponse(Response):
    """How each creation went."""

    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    topics: Array[CreatableTopicResult] = field("0+")


@nested
class CreatableReplicaAssignment:
    """The brokers that hold one partition; the first leads."""

    partition_index: Int32 = field("0+")
    broker_ids: Array[Int32] = field("0+")


@nested
class CreatableTopicConfig:
    """A topic setting, by its property name."""

    name: String = field("0+")
    value: String | None = field("0+", nullable="0+")


@nested
class CreatableTopic:
    """One topic to create; with assignments, the partition count and replication factor are -1."""

    name: String = field("0+")
    num_partitions: Int32 = field("0+")  # v4+: -1 without assignments is the broker's default, here and below (KIP-464)
    replication_factor: Int16 = field("0+")
    assignments: Array[CreatableReplicaAssignment] = field("0+")
    configs: Array[CreatableTopicConfig] = field("0+")


@message(ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsRequest(Request[CreateTopicsResponse]):
    """Topics to create (KIP-4), by partition count or by explicit replica assignment."""

    topics: Array[CreatableTopic] = field("0+")
    timeout_ms: Int32 = field("0+", default=60000)
    validate_only: Bool = field("1+", default=False)


@nested
class DeletableTopicResult:
    """The topic that was deleted, or why it was not."""

    name: String | None = field("0+", nullable="6+")  # null if the topic was named by an id that is not known (KIP-516)
    topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)
    error_code: Int16 = field("0+")  # v5+: THROTTLING_QUOTA_EXCEEDED (KIP-599)
    error_message: String | None = field("5+", nullable="5+", default=None, ignorable=True)


@message(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsResponse(Response):
    """How each deletion went."""

    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    responses: Array[DeletableTopicResult] = field("0+")


@nested
class DeleteTopicState:
    """A topic by name, or by id with a null name."""

    name: String | None = field("6+", nullable="6+", default=None)
    topic_id: Uuid = field("6+", default=ZERO_UUID)


@message(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsRequest(Request[DeleteTopicsResponse]):
    """Topics to delete (KIP-4), by name, or with v6+ by id (KIP-516)."""

    topics: Array[DeleteTopicState] = field("6+", default=list)
    topic_names: Array[String] = field("0-5", default=list, ignorable=True)
    timeout_ms: Int32 = field("0+")


@nested
class CreatePartitionsTopicResult:
    """Whether the topic got its new partitions."""

    name: String = field("0+")
    error_code: Int16 = field("0+")  # v3+: THROTTLING_QUOTA_EXCEEDED (KIP-599)
    error_message: String | None = field("0+", nullable="0+", default=None)


@message(ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsResponse(Response):
    """How each addition went."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[CreatePartitionsTopicResult] = field("0+")


@nested
class CreatePartitionsAssignment:
    """The brokers that hold one new partition; the first leads."""

    broker_ids: Array[Int32] = field("0+")


@nested
class CreatePartitionsTopic:
    """A topic, and how many partitions it shall have; there is no way to have fewer."""

    name: String = field("0+")
    count: Int32 = field("0+")  # with those that are there already
    # one for each partition that is new; null: the controller chooses
    assignments: Array[CreatePartitionsAssignment] | None = field("0+", nullable="0+")


@message(ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsRequest(Request[CreatePartitionsResponse]):
    """More partitions for topics (KIP-195). The controller adds them; KRaft brokers pass the request on to it."""

    topics: Array[CreatePartitionsTopic] = field("0+")
    timeout_ms: Int32 = field("0+")
    validate_only: Bool = field("0+")


@nested
class DeleteRecordsPartitionResult:
    """Where the partition begins now, or why it does not."""

    partition_index: Int32 = field("0+")
    low_watermark: Int64 = field("0+")  # the lowest beginning of all live replicas; -1 with an error
    error_code: Int16 = field("0+")


@nested
class DeleteRecordsTopicResult:
    """The answers for one topic."""

    name: String = field("0+")
    partitions: Array[DeleteRecordsPartitionResult] = field("0+")


@message(ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsResponse(Response):
    """How each deletion went."""

    throttle_time_ms: Int32 = field("0+", default=0)
    topics: Array[DeleteRecordsTopicResult] = field("0+")


@nested
class DeleteRecordsPartition:
    """Where one partition shall begin."""

    partition_index: Int32 = field("0+")
    offset: Int64 = field("0+")  # all before it is deleted; -1: all up to the high watermark


@nested
class DeleteRecordsTopic:
    """The partitions of one topic."""

    name: String = field("0+")
    partitions: Array[DeleteRecordsPartition] = field("0+")


@message(ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsRequest(Request[DeleteRecordsResponse]):
    """Records to delete from the beginning of partitions (KIP-107); their leaders are to be asked."""

    topics: Array[DeleteRecordsTopic] = field("0+")
    timeout_ms: Int32 = field("0+")  # for the followers to delete them, too
