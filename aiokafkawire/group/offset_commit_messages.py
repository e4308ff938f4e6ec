"""Commits of a group's offsets as messages: what the coordinator is told, and what its answers mean.

What each version of OffsetCommit is:

- v0 goes to ZooKeeper, by way of any broker (0.8.1); there are no memberships.
- v1 has a time for each partition, here always the broker's own; v2-4 say how long offsets are kept, and since then
  the broker's settings do (KIP-211).
- v6 has leader epochs (KIP-320), v7 static members (KIP-345), v10 ids instead of topic names (KIP-848).
"""

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from ..errors import BrokerError, ErrorCode, KafkaError, UsageError, WireError, broker_error
from ..protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..types import GroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = (
    "IN_ZOOKEEPER",
    "TopicIdsOutdated",
    "check_committed",
    "commit_request",
    "commit_versions",
    "goes_to_zookeeper",
    "gravest",
)

IN_ZOOKEEPER: Final = Versions.parse("0")
"""The versions, of commits and lookups alike, of offsets that are kept in ZooKeeper: any broker is asked."""

_BY_NAME: Final = Versions.parse("1-9")
_BY_ID: Final = Versions.parse("1-10")
_KEPT_FOR: Final = Versions.parse("2-4")
_STATIC_SINCE: Final = 7
_FOR_EVER: Final = -1


class TopicIdsOutdated(KafkaError):
    """A coordinator does not know the ids that topics had when they were last looked up: name them instead."""


def commit_request(
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ids: Mapping[str, UUID] | None = None,
    retention_ms: int | None = None,
) -> OffsetCommitRequest:
    """OffsetCommit, for :func:`commit_versions`. Without a membership it counts while the group has no members.

    Args:
        group: who commits.
        offsets: of the next records to read.
        ids: of all topics; without them they go by their names alone.
        retention_ms: for how long the broker keeps them.
    """
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, index), offset in offsets.items():
        topic = topics.get(name)
        if topic is None:
            topic_id = ids[name] if ids else ZERO_UUID
            topic = topics[name] = OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=[])
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset.offset,
                committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group.group_id,
        generation_id_or_member_epoch=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        retention_time_ms=_FOR_EVER if retention_ms is None else retention_ms,
        topics=list(topics.values()),
    )


def commit_versions(group: GroupMetadata, *, by_id: bool = False, retention_ms: int | None = None) -> Versions:
    """The versions that can carry a commit.

    Raises:
        UsageError: none can, or there is no such retention.
    """
    if retention_ms is None:
        first, last = _BY_ID if by_id else _BY_NAME
        return Versions(_STATIC_SINCE if group.group_instance_id is not None else first, last)
    if isinstance(retention_ms, bool) or not isinstance(retention_ms, int) or retention_ms < 0:
        raise UsageError(f"retention_ms is a number of ms from 0 on, got {retention_ms!r}")
    if group.group_instance_id is not None:
        raise UsageError(
            f"a static member cannot give a retention_ms: OffsetCommit v{_KEPT_FOR} carry one, and the members' "
            f"group_instance_id only v{_STATIC_SINCE} and later"
        )
    return _KEPT_FOR


def goes_to_zookeeper(group: GroupMetadata, retention_ms: int | None) -> bool:
    """Whether a broker that knows OffsetCommit v0 alone can take the commit: it knows no members and no retention."""
    return group == GroupMetadata(group.group_id) and retention_ms is None


def check_committed(
    group_id: str,
    offsets: Collection[TopicPartition],
    response: OffsetCommitResponse,
    ids: Mapping[str, UUID] | None = None,
) -> None:
    """Refuse an answer in which one of these partitions is not committed.

    Raises:
        TopicIdsOutdated: it does not know one of the ``ids``.
        BrokerError: why not; first what no retry mends.
        WireError: one is not answered.
    """
    names = {topic_id: name for name, topic_id in (ids or {}).items()}
    answers = {
        TopicPartition(names.get(topic.topic_id, topic.name), one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }
    errors = []
    for where in offsets:
        if where not in answers:
            raise WireError(f"an answer to OffsetCommit of group {group_id!r} lacks {where}, which was asked")
        if answers[where] == ErrorCode.UNKNOWN_TOPIC_ID:
            raise TopicIdsOutdated(f"OffsetCommit of {where} for group {group_id!r}: its id is not known")
        if answers[where] != ErrorCode.NONE:
            errors.append(broker_error(answers[where], f"OffsetCommit of {where} for group {group_id!r}"))
    if errors:
        raise gravest(errors)


def gravest(errors: Collection[BrokerError]) -> BrokerError:
    """The error to raise: first what no retry mends."""
    return min(errors, key=lambda error: error.retriable)
