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
    """A replica in the directory."""

    partition_index: Int32 = field("0+")
    partition_size: Int64 = field("0+")  # bytes
    # offsets behind the high watermark, or of a future replica behind the end of the current one; -1: not known
    offset_lag: Int64 = field("0+")
    is_future_key: Bool = field("0+")  # being copied here by AlterReplicaLogDirs; it will replace the current one


@nested
class DescribeLogDirsTopic:
    """The replicas of one topic in the directory."""

    name: String = field("0+")
    partitions: Array[DescribeLogDirsPartition] = field("0+")


@nested
class DescribeLogDirsResult:
    """A directory, and what lies in it."""

    error_code: Int16 = field("0+")  # KAFKA_STORAGE_ERROR: it is offline
    log_dir: String = field("0+")  # an absolute path
    topics: Array[DescribeLogDirsTopic] = field("0+")
    # KIP-827: of the volume that the directory is on; -1: not known
    total_bytes: Int64 = field("4+", default=-1, ignorable=True)
    usable_bytes: Int64 = field("4+", default=-1, ignorable=True)
    is_cordoned: Bool = field("5+", default=False, ignorable=True)  # KIP-1066: takes no new replicas


@message(ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsResponse(Response):
    """What lies in each log directory of this broker."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("3+", default=0, ignorable=True)  # KIP-784; before v3 a refusal is an empty list
    results: Array[DescribeLogDirsResult] = field("0+")


@nested
class DescribableLogDirTopic:
    """The partitions of one topic."""

    topic: String = field("0+")
    partitions: Array[Int32] = field("0+")


@message(ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsRequest(Request[DescribeLogDirsResponse]):
    """What lies in the log directories of this broker (KIP-113)?

    Null topics are all; an empty list asks for the directories alone. v0 is gone in 4.0.
    """

    topics: Array[DescribableLogDirTopic] | None = field("0+", nullable="0+")


@nested
class AlterReplicaLogDirPartitionResult:
    """Whether the move has begun; REPLICA_NOT_AVAILABLE: the broker has no such replica yet."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class AlterReplicaLogDirTopicResult:
    """The answers for one topic."""

    topic_name: String = field("0+")
    partitions: Array[AlterReplicaLogDirPartitionResult] = field("0+")


@message(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse(Response):
    """Which moves have begun; DescribeLogDirs tells how far they are."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[AlterReplicaLogDirTopicResult] = field("0+")


@nested
class AlterReplicaLogDirTopic:
    """The partitions of one topic."""

    name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class AlterReplicaLogDir:
    """A directory, and what shall be moved there."""

    path: String = field("0+")  # absolute, and one of the broker's log.dirs
    topics: Array[AlterReplicaLogDirTopic] = field("0+")


@message(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest(Request[AlterReplicaLogDirsResponse]):
    """Replicas to move to other log directories of this broker (KIP-113).

    A replica that the broker does not have yet is refused, but will be created there if it comes. v0 is gone in 4.0.
    """

    dirs: Array[AlterReplicaLogDir] = field("0+")


@nested
class AssignReplicasToDirsResponsePartitionData:
    """Whether the controller took note."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class AssignReplicasToDirsResponseTopicData:
    """The answers for one topic."""

    topic_id: Uuid = field("0+")
    partitions: Array[AssignReplicasToDirsResponsePartitionData] = field("0+")


@nested
class AssignReplicasToDirsResponseDirectoryData:
    """The answers for one directory."""

    id: Uuid = field("0+")
    topics: Array[AssignReplicasToDirsResponseTopicData] = field("0+")


@message(ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions="0", flexible="0+")
class AssignReplicasToDirsResponse(Response):
    """Of which replicas the controller took note."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")  # of the request as a whole
    directories: Array[AssignReplicasToDirsResponseDirectoryData] = field("0+")


@nested
class AssignReplicasToDirsRequestPartitionData:
    """A partition, whose replica lies in the directory."""

    partition_index: Int32 = field("0+")


@nested
class AssignReplicasToDirsRequestTopicData:
    """The partitions of one topic."""

    topic_id: Uuid = field("0+")
    partitions: Array[AssignReplicasToDirsRequestPartitionData] = field("0+")


@nested
class AssignReplicasToDirsRequestDirectoryData:
    """A directory, by the id in its meta.properties, and what lies in it."""

    id: Uuid = field("0+")
    topics: Array[AssignReplicasToDirsRequestTopicData] = field("0+")


@message(ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions="0", flexible="0+")
class AssignReplicasToDirsRequest(Request[AssignReplicasToDirsResponse]):
    """A broker reports to the controller the directories of its replicas (KIP-858)."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)  # of the broker's registration
    directories: Array[AssignReplicasToDirsRequestDirectoryData] = field("0+")
