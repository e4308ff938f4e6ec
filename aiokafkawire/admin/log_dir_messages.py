"""The requests about log directories, and the descriptions and outcomes in their responses (KIP-113)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ..errors import ErrorCode, KafkaError, broker_error
from ..group.consumer_protocol import by_topic
from ..protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from ..types import TopicPartition, TopicPartitionReplica
from .response_errors import error_of, raise_for
from .topic_descriptions import LogDirDescription, ReplicaInfo, ReplicaLogDirInfo

__all__ = ("altered_log_dirs", "alter_request", "describe_request", "described_log_dirs", "replica_log_dirs")

_UNKNOWN: Final = -1


def describe_request(partitions: Collection[TopicPartition] | None) -> DescribeLogDirsRequest:
    """Return the request for a broker's log directories with the replicas of these partitions, or all for None."""
    if partitions is None:
        return DescribeLogDirsRequest(topics=None)
    topics = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in by_topic(partitions).items()]
    return DescribeLogDirsRequest(topics=topics)


def described_log_dirs(broker_id: int, response: DescribeLogDirsResponse) -> dict[str, LogDirDescription]:
    """Return the log directories of a broker, by path, sorted.

    Raises:
        BrokerError: the broker refused the request.
    """
    what = f"describing the log directories of broker {broker_id}"
    raise_for(response.error_code, what)
    if not response.results:
        # Versions before 3 have no error code: a broker that refuses the request returns no directory.
        raise broker_error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, what)
    return {result.log_dir: _described(broker_id, result) for result in sorted(response.results, key=_path)}


def _path(result: DescribeLogDirsResult) -> str:
    return result.log_dir


def _described(broker_id: int, result: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        error_of(result.error_code, f"the log directory {result.log_dir} of broker {broker_id}"),
        {
            TopicPartition(topic.name, one.partition_index): ReplicaInfo(
                one.partition_size, one.offset_lag, one.is_future_key
            )
            for topic in sorted(result.topics, key=lambda topic: topic.name)
            for one in sorted(topic.partitions, key=lambda one: one.partition_index)
        },
        result.total_bytes if result.total_bytes != _UNKNOWN else None,
        result.usable_bytes if result.usable_bytes != _UNKNOWN else None,
        result.is_cordoned,
    )


def replica_log_dirs(
    replicas: Iterable[TopicPartitionReplica], log_dirs: Mapping[str, LogDirDescription]
) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
    """Return the directory of each replica on one broker, and that to which it moves, from the broker's directories."""
    current: dict[TopicPartition, tuple[str, int]] = {}
    future: dict[TopicPartition, tuple[str, int]] = {}
    for path, log_dir in log_dirs.items():
        for partition, info in log_dir.replica_infos.items():
            (future if info.is_future else current)[partition] = path, info.offset_lag
    found = {}
    for replica in replicas:
        partition = TopicPartition(replica.topic, replica.partition)
        now, later = current.get(partition, (None, _UNKNOWN)), future.get(partition, (None, _UNKNOWN))
        found[replica] = ReplicaLogDirInfo(*now, *later)
    return found


def alter_request(targets: Mapping[TopicPartitionReplica, str]) -> AlterReplicaLogDirsRequest:
    """Return the request that moves replicas on one broker to other log directories."""
    by_path: dict[str, list[TopicPartition]] = {}
    for replica, path in targets.items():
        by_path.setdefault(path, []).append(TopicPartition(replica.topic, replica.partition))
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=name, partitions=indexes)
                    for name, indexes in by_topic(partitions).items()
                ],
            )
            for path, partitions in by_path.items()
        ]
    )


def altered_log_dirs(
    targets: Mapping[TopicPartitionReplica, str], response: AlterReplicaLogDirsResponse
) -> dict[TopicPartitionReplica, KafkaError | None]:
    """Return the error of each replica in a broker's response; None for success."""
    codes = {
        TopicPartition(topic.topic_name, answer.partition_index): answer.error_code
        for topic in response.results
        for answer in topic.partitions
    }
    found: dict[TopicPartitionReplica, KafkaError | None] = {}
    for replica, path in targets.items():
        code = codes.get(TopicPartition(replica.topic, replica.partition))
        if code is not None:
            found[replica] = error_of(code, f"moving {replica} to log directory {path!r}")
    return found
