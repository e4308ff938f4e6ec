"""The append of a record batch to the leader's log, for clients and for the broker itself."""

from ...errors import ErrorCode
from ...records.batch import RecordBatch
from ...types import TimestampType
from ..cluster.api_error import ApiError
from ..cluster.replicas import HostedPartition
from ..cluster.topics import HostedTopic
from .batch_rules import rules_for
from .validation import validated

__all__ = ("append_batch",)


def append_batch(
    topic: HostedTopic, partition: HostedPartition, batch: RecordBatch, now_ms: int, *, all_replicas: bool
) -> tuple[int, int]:
    """Append a batch that the topic accepts; return its base offset and append time, which may be -1.

    With ``all_replicas``, as for acks=all, there must be enough in-sync replicas.

    Raises:
        ApiError: NOT_ENOUGH_REPLICAS, or an error of the batch.
    """
    if all_replicas and partition.lacks_replicas:
        raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS)
    batch = validated(batch, rules_for(topic, partition.index, partition.leader, now_ms))
    base_offset, timestamp = partition.log.append(batch, partition.leader_epoch)
    if timestamp < 0 and batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        timestamp = batch.header.max_timestamp
    partition.replicate()
    return base_offset, timestamp
