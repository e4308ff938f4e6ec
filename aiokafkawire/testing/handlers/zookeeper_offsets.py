"""OffsetCommit v0 and OffsetFetch v0: offsets that any broker stores in ZooKeeper, for consumers before 0.8.2.

These offsets are separate from the offsets of later versions, and have no coordinator and no metadata. Emulated
releases since 3.3, which run with KRaft, reject the requests.
"""

from ...errors import ErrorCode
from ...protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from ...types import TopicPartition
from ..groups.committed import metadata_length
from ..serving.call import ServerCall

__all__ = ("commit_to_zookeeper", "fetch_from_zookeeper")

_KRAFT_SINCE = "3.3"


def commit_to_zookeeper(call: ServerCall, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Store the offset for each requested partition that exists."""
    topics = []
    for topic in request.topics:
        answers = [
            OffsetCommitResponsePartition(
                partition_index=asked.partition_index,
                error_code=_commit(call, request.group_id, TopicPartition(topic.name, asked.partition_index), asked),
            )
            for asked in topic.partitions
        ]
        topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=answers))
    return OffsetCommitResponse(topics=topics)


def fetch_from_zookeeper(call: ServerCall, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return the committed offset of each partition; a partition without one gets UNKNOWN_TOPIC_OR_PARTITION."""
    topics = []
    for topic in request.topics or ():
        answers = []
        for index in topic.partition_indexes:
            offset, error = -1, ErrorCode.UNSUPPORTED_VERSION
            if not call.node.release.since(_KRAFT_SINCE):
                partition = TopicPartition(topic.name, index)
                found = call.cluster.zookeeper_offsets.get((request.group_id, partition))
                offset = -1 if found is None or not call.cluster.topics.has(partition) else found
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if offset < 0 else ErrorCode.NONE
            answers.append(
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=offset, metadata="", error_code=error
                )
            )
        topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=answers))
    return OffsetFetchResponse(topics=topics)


def _commit(call: ServerCall, group: str, partition: TopicPartition, asked: OffsetCommitRequestPartition) -> ErrorCode:
    if not call.cluster.topics.has(partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if call.node.release.since(_KRAFT_SINCE):
        return ErrorCode.UNSUPPORTED_VERSION
    if metadata_length(asked.committed_metadata) > call.cluster.settings.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    call.cluster.zookeeper_offsets[group, partition] = asked.committed_offset
    return ErrorCode.NONE
