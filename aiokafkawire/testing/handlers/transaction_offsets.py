"""TxnOffsetCommit: the commit of a group's offsets as a part of a transaction (KIP-98, KIP-447)."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ...errors import ErrorCode
from ...protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ...protocol.primitives import ZERO_UUID
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.state import OFFSETS_TOPIC, ClusterState
from ..groups.committed import Committed, metadata_length
from ..serving.call import ServerCall
from ..transactions.verification import verify_offsets
from .constants import RELAXED_EPOCHS_SINCE
from .group_offsets import topic_id_partitions

__all__ = ("txn_offset_commit",)

_EPOCHS_SINCE: Final = 6  # KIP-1319
_TOPIC_IDS_SINCE: Final = 6
_EPOCH_ERRORS: Final = (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
_LOADING_SINCE: Final = 2  # clients that send v0 or v1 do not retry COORDINATOR_LOAD_IN_PROGRESS


async def txn_offset_commit(call: ServerCall, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Store offsets until the transaction ends, if the transaction's coordinator and the group accept the request."""
    unknown, asked = _resolved(call, request)
    errors = dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    known = {partition: offset for partition, offset in asked.items() if partition not in unknown}
    if known:
        errors |= _committed(call, request, known)
    # As in Apache Kafka, the results of unknown partitions come first.
    answers = [] if call.version < _TOPIC_IDS_SINCE else _of_unknown_ids(call.cluster, request)
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    for partition, error in errors.items():
        topic = topics.setdefault(partition.topic, _answer(call.cluster, partition.topic))
        topic.partitions.append(TxnOffsetCommitResponsePartition(partition_index=partition.partition, error_code=error))
    return TxnOffsetCommitResponse(topics=[*answers, *topics.values()])


_Asked: TypeAlias = Mapping[TopicPartition, TxnOffsetCommitRequestPartition]


def _resolved(call: ServerCall, request: TxnOffsetCommitRequest) -> tuple[set[TopicPartition], _Asked]:
    """Return the partitions that do not exist, and the offset for each partition whose topic has a name."""
    asked = dict[TopicPartition, TxnOffsetCommitRequestPartition]()
    for topic in request.topics:
        name: str | None = topic.name
        if call.version >= _TOPIC_IDS_SINCE:
            name = call.cluster.topic_name(topic.topic_id)
        if name is not None:
            asked |= {TopicPartition(name, partition.partition_index): partition for partition in topic.partitions}
    return {partition for partition in asked if not call.cluster.topics.has(partition)}, asked


def _of_unknown_ids(cluster: ClusterState, request: TxnOffsetCommitRequest) -> list[TxnOffsetCommitResponseTopic]:
    """Return the results for topics that a request names by ids which no topic has (KIP-1319)."""
    return [
        TxnOffsetCommitResponseTopic(
            topic_id=topic.topic_id,
            partitions=[
                TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
        if cluster.topic_name(topic.topic_id) is None
    ]


def _answer(cluster: ClusterState, name: str) -> TxnOffsetCommitResponseTopic:
    topic = cluster.topics.get(name)
    return TxnOffsetCommitResponseTopic(
        name=name, topic_id=ZERO_UUID if topic is None else topic.topic_id, partitions=[]
    )


def _committed(call: ServerCall, request: TxnOffsetCommitRequest, asked: _Asked) -> dict[TopicPartition, ErrorCode]:
    cluster = call.cluster
    try:
        _check(call, request, asked)
    except ApiError as refused:
        code = refused.code
        if code in _EPOCH_ERRORS and call.version < _EPOCHS_SINCE:  # clients know no such error of this API
            code = ErrorCode.ILLEGAL_GENERATION
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and call.version < _LOADING_SINCE:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return dict.fromkeys(asked, code)
    errors, offsets = {}, {}
    for partition, offset in asked.items():
        metadata = offset.committed_metadata or ""
        if metadata_length(metadata) > cluster.settings.offset_metadata_max_bytes:
            errors[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        errors[partition] = ErrorCode.NONE
        offsets[partition] = Committed(
            offset.committed_offset,
            max(offset.committed_leader_epoch, -1),
            metadata,
            timestamp=cluster.clock(),
        )
    if offsets:
        cluster.committed.pend(request.group_id, request.producer_id, offsets)
    return errors


def _check(call: ServerCall, request: TxnOffsetCommitRequest, partitions: Iterable[TopicPartition]) -> None:
    cluster = call.cluster
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    cluster.check_coordinator(call.node, OFFSETS_TOPIC, request.group_id)
    index = cluster.coordinator_partition(OFFSETS_TOPIC, request.group_id).index
    verify_offsets(
        cluster.transactions,
        request.transactional_id,
        (request.producer_id, request.producer_epoch),
        TopicPartition(OFFSETS_TOPIC, index),
        call.version,
    )
    cluster.groups.check_member(
        request.group_id,
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        partitions=topic_id_partitions(cluster, partitions),
        relaxed=call.node.release.since(RELAXED_EPOCHS_SINCE),
        transactional=True,
        missing=ErrorCode.GROUP_ID_NOT_FOUND,
    )
