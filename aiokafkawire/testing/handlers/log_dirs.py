"""DescribeLogDirs: how large each replica of a broker is (KIP-113). There is one directory, and it is no directory."""

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
    """The name of a broker's one log directory."""
    return f"/memory/{node}"


async def describe_log_dirs(call: ServerCall, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """The replicas that this broker holds, of all topics (null) or of those asked for; what is not here is left out."""
    asked = None if request.topics is None else {topic.topic: topic.partitions for topic in request.topics}
    topics = []
    for topic in call.cluster.topics:
        here = [one for one in topic.partitions if call.node.node_id in one.replicas]
        if asked is not None:
            here = [one for one in here if one.index in asked.get(topic.name, ())]
        if here:
            partitions = [_described(one, call.node.node_id) for one in here]
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
