"""DescribeLogDirs and AlterReplicaLogDirs: the size of each replica of a broker, and its log directory (KIP-113)."""

from collections.abc import Iterable, Mapping
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.replicas import HostedPartition
from ..serving.call import ServerCall

__all__ = ("alter_replica_log_dirs", "describe_log_dirs")

_VOLUME_BYTES: Final = 2**40
"""The size of the volume of each directory, which exists in name only."""


async def describe_log_dirs(call: ServerCall, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe this broker's replicas of the requested partitions, or of all partitions if ``topics`` is None."""
    asked = None if request.topics is None else {topic.topic: topic.partitions for topic in request.topics}
    return DescribeLogDirsResponse(
        error_code=ErrorCode.NONE,
        results=[
            _directory(call, path, here, asked)
            for path, here in call.node.log_dirs.placed(call.cluster.topics.partitions()).items()
        ],
    )


def _directory(
    call: ServerCall, path: str, here: Iterable[HostedPartition], asked: Mapping[str, list[int]] | None
) -> DescribeLogDirsResult:
    topics: dict[str, DescribeLogDirsTopic] = {}
    used = 0
    for partition in here:
        name = partition.log.topic
        used += partition.log.size
        if asked is None or partition.index in asked.get(name, ()):
            topic = topics.setdefault(name, DescribeLogDirsTopic(name=name, partitions=[]))
            topic.partitions.append(_described(partition, call.node.node_id))
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=path,
        topics=list(topics.values()),
        total_bytes=_VOLUME_BYTES,
        usable_bytes=max(0, _VOLUME_BYTES - used),
    )


def _described(partition: HostedPartition, node: int) -> DescribeLogDirsPartition:
    log = partition.log
    return DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=log.size,
        offset_lag=max(0, log.high_watermark - partition.end_offset(node)),
        is_future_key=False,
    )


async def alter_replica_log_dirs(call: ServerCall, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Move this broker's replicas to other log directories, at once; for a replica named twice, the last one counts."""
    paths = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    # Choose the directories of replicas that have none yet, as DescribeLogDirs does.
    call.node.log_dirs.placed(call.cluster.topics.partitions())
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for where, path in paths.items():
        topic = topics.setdefault(where.topic, AlterReplicaLogDirTopicResult(topic_name=where.topic, partitions=[]))
        topic.partitions.append(
            AlterReplicaLogDirPartitionResult(partition_index=where.partition, error_code=_move(call, where, path))
        )
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def _move(call: ServerCall, where: TopicPartition, path: str) -> ErrorCode:
    topics = call.cluster.topics
    try:
        call.node.log_dirs.move(where, topics.partition(*where) if topics.has(where) else None, path)
    except ApiError as refused:
        return refused.code
    return ErrorCode.NONE
