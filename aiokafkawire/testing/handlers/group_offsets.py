"""OffsetCommit, OffsetFetch and OffsetDelete."""

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from ...errors import ErrorCode
from ...protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.state import OFFSETS_TOPIC, ClusterState
from ..groups.committed import Committed, metadata_length
from ..groups.consumer_member import TopicIdPartition
from ..serving.call import ServerCall
from .constants import RELAXED_EPOCHS_SINCE
from .zookeeper_offsets import commit_to_zookeeper, fetch_from_zookeeper

__all__ = ("offset_commit", "offset_delete", "offset_fetch", "topic_id_partitions")

_TOPIC_IDS_SINCE: Final = 10
_NOT_FOUND_SINCE: Final = 9
_EPOCHS_SINCE: Final = 9  # KIP-848
_SEVERAL_GROUPS_SINCE: Final = 8
_GROUP_ERROR_SINCE: Final = 2


# --- commits -------------------------------------------------------------------------------------------------------


async def offset_commit(call: ServerCall, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Store the offsets for partitions that exist, if the coordinator accepts the commit."""
    if call.version == 0:
        return commit_to_zookeeper(call, request)
    answers = _Answers()
    commits: list[tuple[OffsetCommitResponseTopic, str, OffsetCommitRequestPartition]] = []
    for topic in request.topics:
        name: str | None = topic.name
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if call.version >= _TOPIC_IDS_SINCE:
            found = call.cluster.topics.by_id(topic.topic_id)
            name, unknown = (found.name, unknown) if found else (None, ErrorCode.UNKNOWN_TOPIC_ID)
        key = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=[])
        for partition in topic.partitions:
            if name is not None and call.cluster.topics.has(TopicPartition(name, partition.partition_index)):
                commits.append((key, name, partition))
            else:
                answers.add(key, partition.partition_index, unknown)
    if commits:
        try:
            _check_commit(call, request, [TopicPartition(name, part.partition_index) for _, name, part in commits])
        except ApiError as refused:
            for key, _, partition in commits:
                answers.add(key, partition.partition_index, refused.code)
        else:
            for key, name, partition in commits:
                answers.add(key, partition.partition_index, _commit(call.cluster, request, name, partition))
    return OffsetCommitResponse(topics=list(answers.topics.values()))


class _Answers:
    """The results of an OffsetCommit, grouped by topic; a topic's first result determines its place in the order."""

    def __init__(self) -> None:
        self.topics: dict[object, OffsetCommitResponseTopic] = {}

    def add(self, topic: OffsetCommitResponseTopic, partition: int, error: ErrorCode) -> None:
        self.topics.setdefault((topic.name, topic.topic_id), topic).partitions.append(
            OffsetCommitResponsePartition(partition_index=partition, error_code=error)
        )


def _check_commit(call: ServerCall, request: OffsetCommitRequest, partitions: Sequence[TopicPartition]) -> None:
    call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, request.group_id)
    call.cluster.share_groups.check_free(request.group_id, "consumer")
    call.cluster.groups.check_member(
        request.group_id,
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        partitions=topic_id_partitions(call.cluster, partitions),
        relaxed=call.node.release.since(RELAXED_EPOCHS_SINCE),
        has_epochs=call.version >= _EPOCHS_SINCE,
        missing=(ErrorCode.GROUP_ID_NOT_FOUND if call.version >= _NOT_FOUND_SINCE else ErrorCode.ILLEGAL_GENERATION),
    )


def topic_id_partitions(cluster: ClusterState, partitions: Iterable[TopicPartition]) -> list[TopicIdPartition]:
    """Return the partitions that exist, by the ids of their topics."""
    found = ((cluster.topics.get(partition.topic), partition.partition) for partition in partitions)
    return [TopicIdPartition(topic.topic_id, index) for topic, index in found if topic is not None]


def _commit(
    cluster: ClusterState, request: OffsetCommitRequest, topic: str, asked: OffsetCommitRequestPartition
) -> ErrorCode:
    metadata = asked.committed_metadata or ""
    if metadata_length(metadata) > cluster.settings.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    now = cluster.clock()
    keeps = request.retention_time_ms
    committed = Committed(
        asked.committed_offset,
        asked.committed_leader_epoch,
        metadata,
        timestamp=now,
        expires=None if keeps == -1 else now + keeps,
    )
    cluster.committed.commit(request.group_id, TopicPartition(topic, asked.partition_index), committed)
    return ErrorCode.NONE


# --- fetches -------------------------------------------------------------------------------------------------------


async def offset_fetch(call: ServerCall, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return each requested group's committed offsets for the requested partitions, or for all partitions."""
    if call.version == 0:
        return fetch_from_zookeeper(call, request)
    if call.version >= _SEVERAL_GROUPS_SINCE:
        return OffsetFetchResponse(groups=[_fetch(call, group, request.require_stable) for group in request.groups])
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    group = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    answer = _fetch(call, group, request.require_stable)
    if answer.error_code and call.version < _GROUP_ERROR_SINCE:
        # Older versions have no error code for the group, only one for each partition.
        answer.topics = [_none(topic, ErrorCode(answer.error_code)) for topic in topics or ()]
    return OffsetFetchResponse(
        error_code=answer.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in answer.topics
        ],
    )


@attrs.frozen
class _Wanted:
    group_id: str
    require_stable: bool


def _fetch(call: ServerCall, group: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
    try:
        call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, group.group_id)
        call.cluster.groups.check_fetch(group.group_id, group.member_id, group.member_epoch)
    except ApiError as refused:
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=refused.code)
    wanted = _Wanted(group.group_id, require_stable)
    topics = _all(call, wanted) if group.topics is None else [_asked(call, wanted, topic) for topic in group.topics]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _all(call: ServerCall, wanted: _Wanted) -> list[OffsetFetchResponseTopics]:
    by_topic: dict[str, list[int]] = {}
    for partition in call.cluster.committed.of(wanted.group_id):
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    topics = []
    for name, indexes in by_topic.items():
        found = call.cluster.topics.get(name)
        if found is not None:
            topics.append(
                _topic(
                    call.cluster,
                    wanted,
                    name,
                    OffsetFetchResponseTopics(name=name, topic_id=found.topic_id, partitions=[]),
                    indexes,
                )
            )
    return topics


def _asked(call: ServerCall, wanted: _Wanted, topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    name = topic.name
    if call.version >= _TOPIC_IDS_SINCE:
        found = call.cluster.topics.by_id(topic.topic_id)
        if found is None:
            return _none(topic, ErrorCode.UNKNOWN_TOPIC_ID)
        name = found.name
    answer = OffsetFetchResponseTopics(name=name, topic_id=topic.topic_id, partitions=[])
    return _topic(call.cluster, wanted, name, answer, topic.partition_indexes)


def _topic(
    cluster: ClusterState, wanted: _Wanted, name: str, answer: OffsetFetchResponseTopics, indexes: Sequence[int]
) -> OffsetFetchResponseTopics:
    for index in indexes:
        topic_partition = TopicPartition(name, index)
        if wanted.require_stable and cluster.committed.is_pending(wanted.group_id, topic_partition):
            partition = _partition(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        else:
            partition = _partition(index, cluster.committed.get(wanted.group_id, topic_partition))
        answer.partitions.append(partition)
    return answer


def _none(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [_partition(index, None, error) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _partition(
    index: int, committed: Committed | None, error: ErrorCode = ErrorCode.NONE
) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset if committed else -1,
        committed_leader_epoch=committed.leader_epoch if committed else -1,
        metadata=committed.metadata if committed else "",
        error_code=error,
    )


# --- deletions -----------------------------------------------------------------------------------------------------


async def offset_delete(call: ServerCall, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete a group's offsets for the requested partitions, except in topics to which the group subscribes."""
    try:
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        call.cluster.check_coordinator(call.node, OFFSETS_TOPIC, request.group_id)
        group = call.cluster.groups.check_offset_delete(request.group_id)
    except ApiError as refused:
        return OffsetDeleteResponse(error_code=refused.code, topics=[])
    topics = []
    for topic in request.topics:
        indexes = [partition.partition_index for partition in topic.partitions]
        missing = [index for index in indexes if not call.cluster.topics.has(TopicPartition(topic.name, index))]
        there = [index for index in indexes if call.cluster.topics.has(TopicPartition(topic.name, index))]
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.reads(topic.name) else ErrorCode.NONE
        if error == ErrorCode.NONE:
            for index in there:
                call.cluster.committed.delete(request.group_id, TopicPartition(topic.name, index))
        partitions = [*_results(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), *_results(there, error)]
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=topics)


def _results(indexes: Iterable[int], error: ErrorCode) -> list[OffsetDeleteResponsePartition]:
    return [OffsetDeleteResponsePartition(partition_index=index, error_code=error) for index in indexes]
