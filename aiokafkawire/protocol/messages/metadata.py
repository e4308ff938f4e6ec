"""What a client asks first: which versions a broker speaks, and who leads which partition."""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Bool, Int8, Int16, Int32, Int64, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "ApiVersion",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "Cursor",
    "DescribeClusterBroker",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTopicPartitionsResponsePartition",
    "DescribeTopicPartitionsResponseTopic",
    "FinalizedFeatureKey",
    "MetadataRequest",
    "MetadataRequestTopic",
    "MetadataResponse",
    "MetadataResponseBroker",
    "MetadataResponsePartition",
    "MetadataResponseTopic",
    "SupportedFeatureKey",
    "TopicRequest",
)


@nested
class ApiVersion:
    """One API and the versions of it that the broker speaks."""

    api_key: Int16 = field("0+")
    min_version: Int16 = field("0+")
    max_version: Int16 = field("0+")


@nested
class SupportedFeatureKey:
    """A feature and the levels that the broker could run."""

    name: String = field("3+")
    min_version: Int16 = field("3+")
    max_version: Int16 = field("3+")


@nested
class FinalizedFeatureKey:
    """A feature and the level that the cluster runs."""

    name: String = field("3+")
    max_version_level: Int16 = field("3+")
    min_version_level: Int16 = field("3+")


@message(ApiKey.API_VERSIONS, versions="0-5", flexible="3+")
class ApiVersionsResponse(Response):
    """The broker's range of versions for each API, and the cluster's features (KIP-584)."""

    error_code: Int16 = field("0+")  # v5+: REBOOTSTRAP_REQUIRED if the client meant another cluster or node (KIP-1242)
    api_keys: Array[ApiVersion] = field("0+")
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    # before v4 without those that begin at level 0 (KIP-1022)
    supported_features: Array[SupportedFeatureKey] = field("3+", tag=0, default=list, ignorable=True)
    finalized_features_epoch: Int64 = field("3+", tag=1, default=-1, ignorable=True)  # -1: not known
    finalized_features: Array[FinalizedFeatureKey] = field("3+", tag=2, default=list, ignorable=True)
    zk_migration_ready: Bool = field("3+", tag=3, default=False, ignorable=True)  # KIP-866; controllers only


@message(ApiKey.API_VERSIONS, versions="0-5", flexible="3+")
class ApiVersionsRequest(Request[ApiVersionsResponse]):
    """Which versions of which requests does this broker speak? A broker that lacks ours answers with v0 (KIP-511)."""

    client_software_name: String = field("3+", default="", ignorable=True)  # KIP-511, as is the version
    client_software_version: String = field("3+", default="", ignorable=True)
    # KIP-1242: who the client believes it talks to
    cluster_id: String | None = field("5+", nullable="5+", default=None, ignorable=True)
    node_id: Int32 = field("5+", default=-1, ignorable=True)


@nested
class MetadataResponseBroker:
    """A broker and where it listens."""

    node_id: Int32 = field("0+")
    host: String = field("0+")
    port: Int32 = field("0+")
    rack: String | None = field("1+", nullable="1+", default=None, ignorable=True)  # KIP-36


@nested
class MetadataResponsePartition:
    """A partition: its leader (-1: none at the moment), replicas, and those in sync."""

    error_code: Int16 = field("0+")
    partition_index: Int32 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("7+", default=-1, ignorable=True)  # KIP-320
    replica_nodes: Array[Int32] = field("0+")
    isr_nodes: Array[Int32] = field("0+")
    offline_replicas: Array[Int32] = field("5+", default=list, ignorable=True)  # KIP-112


@nested
class MetadataResponseTopic:
    """A topic, or the error that it met."""

    error_code: Int16 = field("0+")
    name: String | None = field("0+", nullable="12+")  # v12+: null if asked for by an id that is not known
    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)  # KIP-516
    is_internal: Bool = field("1+", default=False, ignorable=True)
    partitions: Array[MetadataResponsePartition] = field("0+")
    # KIP-430: bit n stands for the ACL operation n; -2**31: not asked for
    topic_authorized_operations: Int32 = field("8+", default=-2147483648)


@message(ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataResponse(Response):
    """The brokers, and for each topic who leads and who follows."""

    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    brokers: Array[MetadataResponseBroker] = field("0+")
    cluster_id: String | None = field("2+", nullable="2+", default=None, ignorable=True)  # KIP-78
    # with KRaft any live broker: it passes on what the controller has to do (KIP-590)
    controller_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Array[MetadataResponseTopic] = field("0+")
    # KIP-430; v11+ leaves it to DescribeCluster (KIP-700)
    cluster_authorized_operations: Int32 = field("8-10", default=-2147483648)
    error_code: Int16 = field("13+", default=0, ignorable=True)  # KIP-1102: REBOOTSTRAP_REQUIRED


@nested
class MetadataRequestTopic:
    """A topic by name, or by id with a null name (v12+)."""

    topic_id: Uuid = field("10+", default=ZERO_UUID, ignorable=True)  # KIP-516; brokers look at it since v12
    name: String | None = field("0+", nullable="10+")


@message(ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataRequest(Request[MetadataResponse]):
    """The brokers, and the partitions of the named topics.

    Null topics (v1+) are all topics and an empty list is none; in v0 an empty list is all.
    """

    topics: Array[MetadataRequestTopic] | None = field("0+", nullable="1+")
    allow_auto_topic_creation: Bool = field("4+", default=True)  # before v4 brokers create as they are configured to
    include_cluster_authorized_operations: Bool = field("8-10", default=False)  # KIP-430
    include_topic_authorized_operations: Bool = field("8+", default=False)  # KIP-430


@nested
class DescribeClusterBroker:
    """A broker, or a controller, and where it listens."""

    broker_id: Int32 = field("0+")
    host: String = field("0+")
    port: Int32 = field("0+")
    rack: String | None = field("0+", nullable="0+", default=None)
    is_fenced: Bool = field("2+", default=False)  # KIP-1073: registered, but not in service


@message(ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterResponse(Response):
    """The brokers of the cluster, or its controllers."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")  # v1+: MISMATCHED_ENDPOINT_TYPE if the other kind of node is to be asked (KIP-919)
    error_message: String | None = field("0+", nullable="0+", default=None)
    endpoint_type: Int8 = field("1+", default=1)  # KIP-919; 1: brokers; 2: controllers
    cluster_id: String = field("0+")
    # from controllers the active one; from KRaft brokers any live broker
    controller_id: Int32 = field("0+", default=-1)
    brokers: Array[DescribeClusterBroker] = field("0+")
    # KIP-430: bit n stands for the ACL operation n; -2**31: not asked for
    cluster_authorized_operations: Int32 = field("0+", default=-(2**31))


@message(ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterRequest(Request[DescribeClusterResponse]):
    """Which nodes are in the cluster (KIP-700)? Brokers list brokers, and with v1+ controllers list controllers
    (KIP-919).
    """

    include_cluster_authorized_operations: Bool = field("0+")
    endpoint_type: Int8 = field("1+", default=1)  # KIP-919; 1: brokers; 2: controllers
    include_fenced_brokers: Bool = field("2+", default=False)  # KIP-1073


@nested
class DescribeTopicPartitionsResponsePartition:
    """A partition: its leader (-1: none at the moment), replicas, those in sync, and those that may lead as well."""

    error_code: Int16 = field("0+")
    partition_index: Int32 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+", default=-1, ignorable=True)
    replica_nodes: Array[Int32] = field("0+")
    isr_nodes: Array[Int32] = field("0+")
    # out of sync by now, but with all that is committed
    eligible_leader_replicas: Array[Int32] | None = field("0+", nullable="0+", default=None)
    # whom to choose if nobody is in sync or eligible any more
    last_known_elr: Array[Int32] | None = field("0+", nullable="0+", default=None)
    offline_replicas: Array[Int32] = field("0+", ignorable=True)


@nested
class DescribeTopicPartitionsResponseTopic:
    """A topic, or the error that it met."""

    error_code: Int16 = field("0+")
    name: String | None = field("0+", nullable="0+")
    topic_id: Uuid = field("0+", ignorable=True)
    is_internal: Bool = field("0+", default=False, ignorable=True)
    partitions: Array[DescribeTopicPartitionsResponsePartition] = field("0+")
    # bit n stands for the ACL operation n; always filled in
    topic_authorized_operations: Int32 = field("0+", default=-(2**31))


@nested
class Cursor:
    """The topic and partition that the next answer begins with."""

    topic_name: String = field("0+")
    partition_index: Int32 = field("0+")


@message(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(Response):
    """The partitions of the topics, or as many as one answer may hold."""

    throttle_time_ms: Int32 = field("0+", default=0, ignorable=True)
    topics: Array[DescribeTopicPartitionsResponseTopic] = field("0+")
    next_cursor: Cursor | None = field("0+", nullable="0+", default=None)  # null: that was all


@nested
class TopicRequest:
    """A topic, by its name."""

    name: String = field("0+")


@message(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest(Request[DescribeTopicPartitionsResponse]):
    """The partitions of the named topics, or of all if the list is empty, in portions (KIP-966, since Kafka 3.8).

    Topics come in the order of their names. The next portion is asked for with the same topics and the answer's cursor.
    """

    topics: Array[TopicRequest] = field("0+")
    # the broker's max.request.partition.size.limit may be lower
    response_partition_limit: Int32 = field("0+", default=2000)
    cursor: Cursor | None = field("0+", nullable="0+", default=None)  # null: from the beginning
