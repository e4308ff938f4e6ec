"""Where replicas lie on a broker's disks."""

from ..api import ApiKey
from ..primitives import Array, Bool, Int16, Int32, Int64, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AlterReplicaLogDir",
    "AlterReplicaLogDirPartitionResult",
    "AlterReplicaLogDirTopic",
    "AlterReplicaLogDirTopicResult",
    "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse",
    "AssignReplicasToDirsRequest",
    "AssignReplicasToDirsRequestDirectoryData",
    "AssignReplicasToDirsRequestPartitionData",
    "AssignReplicasToDirsRequestTopicData",
    "AssignReplicasToDirsResponse",
    "AssignReplicasToDirsResponseDirectoryData",
    "AssignReplicasToDirsResponsePartitionData",
    "AssignReplicasToDirsResponseTopicData",
    "DescribableLogDirTopic",
    "DescribeLogDirsPartition",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeLogDirsResult",
    "DescribeLogDirsTopic",
)


@nested
class DescribeLogDirsPartition:
    """DOC(DescribeLogDirsResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    partition_size: Int64 = field("0+")
    offset_lag: Int64 = field("0+")
    is_future_key: Bool = field("0+")


@nested
class DescribeLogDirsTopic:
    """DOC(DescribeLogDirsResponse.Topics)."""

    name: String = field("0+")
    partitions: Array[DescribeLogDirsPartition] = field("0+")


@nested
class DescribeLogDirsResult:
    """DOC(DescribeLogDirsResponse.Results)."""

    error_code: Int16 = field("0+")
    log_dir: String = field("0+")
    topics: Array[DescribeLogDirsTopic] = field("0+")
    total_bytes: Int64 = field("4+", default=-1, ignorable=True)
    usable_bytes: Int64 = field("4+", default=-1, ignorable=True)
    is_cordoned: Bool = field("5+", default=False, ignorable=True)


@message(ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("3+", default=0, ignorable=True)
    results: Array[DescribeLogDirsResult] = field("0+")


@nested
class DescribableLogDirTopic:
    """DOC(DescribeLogDirsRequest.Topics)."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@message(ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsRequest(Request[DescribeLogDirsResponse]):
    """DOC."""

    topics: Array[DescribableLogDirTopic] | None = field("0+", nullable="0+")


@nested
class AlterReplicaLogDirPartitionResult:
    """DOC(AlterReplicaLogDirsResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class AlterReplicaLogDirTopicResult:
    """DOC(AlterReplicaLogDirsResponse.Results)."""

    topic_name: String = field("0+")
    partitions: Array[AlterReplicaLogDirPartitionResult] = field("0+")


@message(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[AlterReplicaLogDirTopicResult] = field("0+")


@nested
class AlterReplicaLogDirTopic:
    """DOC(AlterReplicaLogDirsRequest.Topics)."""

    name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class AlterReplicaLogDir:
    """DOC(AlterReplicaLogDirsRequest.Dirs)."""

    path: String = field("0+")
    topics: Array[AlterReplicaLogDirTopic] = field("0+")


@message(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest(Request[AlterReplicaLogDirsResponse]):
    """DOC."""

    dirs: Array[AlterReplicaLogDir] = field("0+")


@nested
class AssignReplicasToDirsResponsePartitionData:
    """DOC(AssignReplicasToDirsResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class AssignReplicasToDirsResponseTopicData:
    """DOC(AssignReplicasToDirsResponse.Topics)."""

    topic_id: Uuid = field("0+")
    partitions: Array[AssignReplicasToDirsResponsePartitionData] = field("0+")


@nested
class AssignReplicasToDirsResponseDirectoryData:
    """DOC(AssignReplicasToDirsResponse.Directories)."""

    id: Uuid = field("0+")
    topics: Array[AssignReplicasToDirsResponseTopicData] = field("0+")


@message(ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions="0", flexible="0+")
class AssignReplicasToDirsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    directories: Array[AssignReplicasToDirsResponseDirectoryData] = field("0+")


@nested
class AssignReplicasToDirsRequestPartitionData:
    """DOC(AssignReplicasToDirsRequest.Partitions)."""

    partition_index: Int32 = field("0+")


@nested
class AssignReplicasToDirsRequestTopicData:
    """DOC(AssignReplicasToDirsRequest.Topics)."""

    topic_id: Uuid = field("0+")
    partitions: Array[AssignReplicasToDirsRequestPartitionData] = field("0+")


@nested
class AssignReplicasToDirsRequestDirectoryData:
    """DOC(AssignReplicasToDirsRequest.Directories)."""

    id: Uuid = field("0+")
    topics: Array[AssignReplicasToDirsRequestTopicData] = field("0+")


@message(ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions="0", flexible="0+")
class AssignReplicasToDirsRequest(Request[AssignReplicasToDirsResponse]):
    """DOC."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)
    directories: Array[AssignReplicasToDirsRequestDirectoryData] = field("0+")
