"""Fetch: record batches out of logs, and the long poll for those yet to come."""

from collections.abc import Iterator

import anyio
import attrs

from ...errors import ErrorCode
from ...protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ...types import IsolationLevel
from ..refused import Refused
from ..state import ClusterState, Node
from ..topics import Partition

__all__ = ("fetch",)

_TOPIC_IDS_SINCE = 13


async def fetch(node: Node, request: FetchRequest, version: int) -> FetchResponse:
    """Read every partition; with less than ``min_bytes`` in all, wait for more until ``max_wait_ms`` have passed."""
    # No session is ever made, which is what a broker does whose cache of sessions is full (KIP-227).
    if request.session_epoch > 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    read = _read(node.cluster, request, version)
    if request.max_wait_ms <= 0 or read.is_due(request):
        return read.response
    logs = [partition.log for partition in _known_partitions(node.cluster, request, version)]
    with node.cluster.arrivals.watch(logs) as watch, anyio.move_on_after(request.max_wait_ms / 1000):
        while not read.is_due(request):
            await watch.wait()
            read = _read(node.cluster, request, version)
    return read.response


@attrs.define
class _Read:
    """One pass over all partitions of a request."""

    response: FetchResponse
    size: int = 0
    partitions: int = 0
    failed: bool = False

    def is_due(self, request: FetchRequest) -> bool:
        """Whether it answers the request without waiting for more."""
        return self.failed or self.size >= request.min_bytes or not self.partitions


def _read(cluster: ClusterState, request: FetchRequest, version: int) -> _Read:
    result = _Read(FetchResponse(responses=[]))
    room = min(request.max_bytes, cluster.settings.fetch_max_bytes)
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            result.partitions += 1
            try:
                partition = _partition(cluster, topic, asked, version)
                # Only the first batch of the whole answer may be larger than what the request allows (KIP-74).
                data = partition.log.read(
                    asked.fetch_offset, min(asked.partition_max_bytes, room), at_least_one=not result.size
                )
            except Refused as refused:
                result.failed = True
                answers.append(_refusal(asked.partition, refused.code))
                continue
            room = max(0, room - len(data))
            result.size += len(data)
            answers.append(_answer(partition, data, request.isolation_level))
        result.response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=answers)
        )
    return result


def _partition(cluster: ClusterState, topic: FetchTopic, asked: FetchPartition, version: int) -> Partition:
    name = topic.topic
    if version >= _TOPIC_IDS_SINCE:
        found = cluster.topics.by_id(topic.topic_id)
        if found is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        name = found.name
    partition = cluster.topics.partition(name, asked.partition)
    partition.check_epoch(asked.current_leader_epoch)
    return partition


def _known_partitions(cluster: ClusterState, request: FetchRequest, version: int) -> Iterator[Partition]:
    for topic in request.topics:
        for asked in topic.partitions:
            try:
                yield _partition(cluster, topic, asked, version)
            except Refused:
                continue  # its error is in the answer already


def _answer(partition: Partition, data: bytes, isolation_level: int) -> PartitionData:
    log = partition.log
    committed_only = isolation_level == IsolationLevel.READ_COMMITTED
    return PartitionData(
        partition_index=partition.index,
        error_code=ErrorCode.NONE,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=[] if committed_only else None,
        records=data,
    )


def _refusal(index: int, error: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=index, error_code=error, high_watermark=-1, records=b"")
