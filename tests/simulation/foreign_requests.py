"""The requests to a coordinator that another client's member sends, in the form of each version."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from aiokafkawire import TopicPartition
from aiokafkawire.group.consumer_protocol import by_topic
from aiokafkawire.protocol.messages.group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from aiokafkawire.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

from .foreign_clients import ForeignClient, Held
from .members import GROUP, Group

__all__ = (
    "committed_offsets",
    "join_request",
    "leave_request",
    "offset_commit_request",
    "offset_fetch_request",
    "sync_request",
)

_CONSUMER: Final = "consumer"
_SEVERAL_GROUPS_SINCE: Final = 8  # of OffsetFetch
_SEVERAL_LEAVE_SINCE: Final = 3  # of LeaveGroup
_PROTOCOL_SINCE: Final = 5  # of SyncGroup


def join_request(
    client: ForeignClient, group: Group, strategies: Sequence[str], member_id: str, held: Held
) -> JoinGroupRequest:
    """Return the request of a member with these assignors."""
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=group.session_timeout_ms,
        rebalance_timeout_ms=client.rebalance_timeout_ms(group.session_timeout_ms, group.max_poll_interval_ms),
        member_id=member_id,
        protocol_type=_CONSUMER,
        protocols=[
            JoinGroupRequestProtocol(name=strategy, metadata=client.subscription(strategy, group.topics, held))
            for strategy in strategies
        ],
    )


def sync_request(joined: JoinGroupResponse, parts: list[SyncGroupRequestAssignment], version: int) -> SyncGroupRequest:
    """Return the request of a member that has joined; ``parts`` is what it assigns if it leads."""
    names_protocol = version >= _PROTOCOL_SINCE
    return SyncGroupRequest(
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type=_CONSUMER if names_protocol else None,
        protocol_name=joined.protocol_name if names_protocol else None,
        assignments=parts,
    )


def leave_request(client: ForeignClient, member_id: str, version: int) -> LeaveGroupRequest:
    """Return the request of a member that leaves; Java says why (KIP-800)."""
    if version < _SEVERAL_LEAVE_SINCE:
        return LeaveGroupRequest(group_id=GROUP, member_id=member_id)
    reason = "the consumer is being closed" if client.name == "java" else None
    return LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=member_id, reason=reason)])


def offset_fetch_request(partitions: Mapping[str, Sequence[int]], version: int) -> OffsetFetchRequest:
    """Return the request for the committed offsets of partitions, by topic."""
    if version < _SEVERAL_GROUPS_SINCE:
        old = [
            OffsetFetchRequestTopic(name=topic, partition_indexes=list(numbers))
            for topic, numbers in partitions.items()
        ]
        return OffsetFetchRequest(group_id=GROUP, topics=old)
    topics = [
        OffsetFetchRequestTopics(name=topic, partition_indexes=list(numbers)) for topic, numbers in partitions.items()
    ]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)])


def committed_offsets(answer: OffsetFetchResponse) -> Iterator[tuple[TopicPartition, int]]:
    """Yield the offsets that the coordinator has told; -1 for a partition without one."""
    topics: list[OffsetFetchResponseTopic | OffsetFetchResponseTopics] = []
    topics += () if answer.error_code else answer.topics
    for group in answer.groups:
        topics += () if group.error_code else group.topics
    for topic in topics:
        for one in topic.partitions:
            if not one.error_code:
                yield TopicPartition(topic.name, one.partition_index), one.committed_offset


def offset_commit_request(
    client: ForeignClient, member_id: str, generation: int, offsets: Mapping[TopicPartition, int]
) -> OffsetCommitRequest:
    """Return the request to commit offsets, without leader epochs, and with metadata that is empty."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offsets[TopicPartition(topic, number)],
                    committed_metadata="",
                )
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(offsets).items()
    ]
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        retention_time_ms=client.retention_time_ms,
        topics=topics,
    )
