"""Fetch: record batches out of logs, and the long poll for those yet to come."""

from typing import Final, Self

import anyio

from ...errors import ErrorCode
from ...protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ...types import IsolationLevel
from ..call import Call
from ..log import PartitionLog
from ..refused import Refused
from ..replicas import Partition

__all__ = ("fetch",)

_TOPIC_IDS_SINCE: Final = 13
_NO_SESSION: Final = -1
_NEW_SESSION: Final = 0


async def fetch(call: Call, request: FetchRequest) -> FetchResponse:
    """Read every partition; with less than ``min_bytes`` in all, wait for more until ``max_wait_ms`` have passed."""
    # No session is ever made, which is what a broker does whose cache of sessions is full (KIP-227).
    if request.session_epoch not in (_NEW_SESSION, _NO_SESSION):
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    cluster = call.cluster
    read = _Read.of(call, request)
    if request.max_wait_ms <= 0 or read.is_due(request.min_bytes):
        return read.response
    watched = read.logs
    with cluster.arrivals.watch(watched) as watch, anyio.move_on_after(request.max_wait_ms / 1000):
        # Where a topic was deleted, perhaps made anew, the logs are others, and the answer tells.
        while not read.is_due(request.min_bytes) and read.logs == watched:
            await watch.wait()
            read = _Read.of(call, request)
    return read.response


class _Read:
    """One pass over all partitions of a request."""

    def __init__(self, room: int) -> None:
        self.response = FetchResponse(responses=[])
        self.logs: list[PartitionLog] = []
        self._room = room
        self._size = 0
        self._failed = False

    @classmethod
    def of(cls, call: Call, request: FetchRequest) -> Self:
        """Read what is there."""
        cluster = call.cluster
        read = cls(min(request.max_bytes, cluster.settings.fetch_max_bytes))
        for topic in request.topics:
            name: str | None = topic.topic
            if call.version >= _TOPIC_IDS_SINCE:
                found = cluster.topics.by_id(topic.topic_id)
                name = found.name if found else None
            partitions = [read._partition(call, name, asked, request.isolation_level) for asked in topic.partitions]
            read.response.responses.append(
                FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)
            )
        return read

    def is_due(self, min_bytes: int) -> bool:
        """Whether to answer without waiting: enough was read, an offset or epoch is wrong, or no partition is known.

        A partition that is unknown beside known ones does not hurry the answer, nor does it in Apache Kafka.
        """
        return self._failed or self._size >= min_bytes or not self.logs

    def _partition(self, call: Call, name: str | None, asked: FetchPartition, isolation_level: int) -> PartitionData:
        try:
            if name is None:
                raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
            partition = call.node.led(name, asked.partition)
        except Refused as refused:
            return PartitionData(
                partition_index=asked.partition, error_code=refused.code, high_watermark=-1, records=b""
            )
        self.logs.append(partition.log)
        committed_only = isolation_level == IsolationLevel.READ_COMMITTED
        answer = PartitionData(
            partition_index=asked.partition,
            error_code=ErrorCode.NONE,
            high_watermark=-1,
            aborted_transactions=[] if committed_only else None,
            records=b"",
        )
        try:
            self._records(partition, asked, answer)
        except Refused as refused:
            self._failed = True
            answer.error_code = refused.code
        return answer

    def _records(self, partition: Partition, asked: FetchPartition, answer: PartitionData) -> None:
        partition.check_epoch(asked.current_leader_epoch)
        log = partition.log
        # Only the first batch of the whole answer may be larger than what the request allows (KIP-74).
        records = log.read(asked.fetch_offset, min(asked.partition_max_bytes, self._room), at_least_one=not self._size)
        self._room = max(0, self._room - len(records))
        self._size += len(records)
        answer.records = records
        answer.high_watermark = log.high_watermark
        answer.last_stable_offset = log.last_stable_offset
        answer.log_start_offset = log.log_start_offset
