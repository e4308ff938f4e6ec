"""DescribeLogDirs: the size of each replica of a broker (KIP-113), in one log directory that exists in name only."""

from ...errors import ErrorCode
from ...protocol.messages.log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ..cluster.replicas import HostedPartition
from ..serving.call import ServerCall

__all__ = ("describe_log_dirs", "log_dir")


def log_dir(node: int) -> str:
    """Return the name of a broker's only log directory."""
    return f"/memory/{node}"


async def describe_log_dirs(call: ServerCall, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe this broker's replicas of the requested partitions, or of all partitions if ``topics`` is None."""
    asked = None if request.topics is None else {topic.topic: topic.partitions for topic in request.topics}
    topics = []
    for topic in call.cluster.topics:
        here = [partition for partition in topic.partitions if call.node.node_id in partition.replicas]
        if asked is not None:
            here = [partition for partition in here if partition.index in asked.get(topic.name, ())]
        if here:
            partitions = [_described(partition, call.node.node_id) for partition in here]
            topics.append(DescribeLogDirsTopic(name=topic.name, partitions=partitions))
    result = DescribeLogDirsResult(error_code=ErrorCode.NONE, log_dir=log_dir(call.node.node_id), topics=topics)
    return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=[result])


def _described(partition: HostedPartition, node: int) -> DescribeLogDirsPartition:
    log = partition.log
    return DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=log.size,
        offset_lag=max(0, log.high_watermark - partition.end_offset(node)),
        is_future_key=False,
    )
