"""DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets (KIP-932)."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from ...errors import ErrorCode
from ...protocol.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ...protocol.primitives import ZERO_UUID
from ..cluster.api_error import ApiError
from ..cluster.topics import HostedTopic
from ..serving.call import ServerCall
from .constants import UNSUPPORTED
from .share_group import check_share_coordinator

__all__ = ("alter_share_group_offsets", "delete_share_group_offsets", "describe_share_group_offsets")

_NONE: Final = -1
_NO_OFFSETS: Final = "There is no offset information to delete."
_NOT_HOSTED: Final = "This server does not host this topic-partition."


async def describe_share_group_offsets(
    call: ServerCall, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """Return the stored start offsets of groups, and the number of records that are not done."""
    groups = []
    for asked in request.groups:
        try:
            check_share_coordinator(call, asked.group_id)
            answer = DescribeShareGroupOffsetsResponseGroup(
                group_id=asked.group_id, topics=_topics(call, asked), error_code=ErrorCode.NONE
            )
        except ApiError as refused:
            answer = DescribeShareGroupOffsetsResponseGroup(
                group_id=asked.group_id, topics=[], error_code=refused.code, error_message=refused.message
            )
        groups.append(answer)
    return DescribeShareGroupOffsetsResponse(groups=groups)


def _topics(
    call: ServerCall, asked: DescribeShareGroupOffsetsRequestGroup
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    if asked.topics is not None:
        return [_topic(call, asked.group_id, topic.topic_name, topic.partitions) for topic in asked.topics]
    groups = call.cluster.share_groups
    begun: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(groups.get(asked.group_id).begun if asked.group_id in groups else ()):
        begun.setdefault(topic_id, []).append(index)
    return [
        _topic(call, asked.group_id, topic.name, begun[topic.topic_id])
        for topic in call.cluster.topics
        if topic.topic_id in begun
    ]


def _topic(
    call: ServerCall, group_id: str, name: str, indexes: Iterable[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    topic = call.cluster.topics.get(name)
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=ZERO_UUID if topic is None else topic.topic_id,
        partitions=[_described(call, group_id, topic, index) for index in indexes],
    )


def _described(
    call: ServerCall, group_id: str, topic: HostedTopic | None, index: int
) -> DescribeShareGroupOffsetsResponsePartition:
    answer = DescribeShareGroupOffsetsResponsePartition(
        partition_index=index, start_offset=_NONE, leader_epoch=0, error_code=ErrorCode.NONE
    )
    state = None if topic is None else call.cluster.shared.get(group_id, (topic.topic_id, index))
    if state is not None and state.partition.stored_start not in (None, _NONE):
        answer.start_offset = state.partition.stored_start
        # As in Apache Kafka, the lag of an offset after the end is negative.
        answer.lag = state.log.high_watermark - answer.start_offset - state.partition.stored_done
    return answer


async def alter_share_group_offsets(
    call: ServerCall, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Let a share group without members begin anew at these offsets; a missing group is made, if a topic exists."""
    groups = call.cluster.share_groups
    try:
        check_share_coordinator(call, request.group_id)
        groups.check_kind(request.group_id)
        if request.group_id in groups:
            groups.get_empty(request.group_id)
        elif any(call.cluster.topics.get(topic.topic_name) for topic in request.topics):
            groups.make(request.group_id)
    except ApiError as refused:
        message = _message(refused)
        return AlterShareGroupOffsetsResponse(error_code=refused.code, error_message=message, responses=[])
    return AlterShareGroupOffsetsResponse(
        error_code=ErrorCode.NONE, responses=[_altered(call, request.group_id, topic) for topic in request.topics]
    )


def _altered(
    call: ServerCall, group_id: str, asked: AlterShareGroupOffsetsRequestTopic
) -> AlterShareGroupOffsetsResponseTopic:
    topic = call.cluster.topics.get(asked.topic_name)
    hosted = [] if topic is None else topic.partitions
    answers = []
    for partition in asked.partitions:
        index, answer = (
            partition.partition_index,
            AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index, error_code=ErrorCode.NONE
            ),
        )
        if topic is None or not 0 <= index < len(hosted):
            answer.error_code, answer.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NOT_HOSTED
        else:
            call.cluster.share_groups.get(group_id).begun.add((topic.topic_id, index))
            call.cluster.shared.alter(group_id, (topic.topic_id, index), hosted[index], partition.start_offset)
        answers.append(answer)
    topic_id = ZERO_UUID if topic is None else topic.topic_id
    return AlterShareGroupOffsetsResponseTopic(topic_name=asked.topic_name, topic_id=topic_id, partitions=answers)


async def delete_share_group_offsets(
    call: ServerCall, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Let a share group without members forget topics."""
    try:
        check_share_coordinator(call, request.group_id)
        call.cluster.share_groups.get_empty(request.group_id)
    except ApiError as refused:
        message = _message(refused)
        return DeleteShareGroupOffsetsResponse(error_code=refused.code, error_message=message, responses=[])
    return DeleteShareGroupOffsetsResponse(
        error_code=ErrorCode.NONE,
        responses=[_deleted(call, request.group_id, topic.topic_name) for topic in request.topics],
    )


def _deleted(call: ServerCall, group_id: str, name: str) -> DeleteShareGroupOffsetsResponseTopic:
    group, topic = call.cluster.share_groups.get(group_id), call.cluster.topics.get(name)
    answer = DeleteShareGroupOffsetsResponseTopic(topic_name=name, topic_id=ZERO_UUID, error_code=ErrorCode.NONE)
    others = {partition for partition in group.begun if topic is None or partition[0] != topic.topic_id}
    if topic is None or others == group.begun:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.error_message = _NOT_HOSTED if topic is None else _NO_OFFSETS
    else:
        answer.topic_id = topic.topic_id
        group.begun = others
        call.cluster.shared.delete_offsets(group_id, topic.topic_id)
    return answer


def _message(refused: ApiError) -> str | None:
    return UNSUPPORTED if refused.code == ErrorCode.UNSUPPORTED_VERSION else refused.message
