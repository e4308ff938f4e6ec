"""The messages of offset commits: their requests, and the meaning of their responses.

The versions of OffsetCommit:

- v0 commits to ZooKeeper through any broker (0.8.1), without memberships.
- v1 has a timestamp per partition, which this client leaves to the broker; v2-4 have a retention time, which later
  versions leave to the brokers' settings (KIP-211).
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
    "commit_errors",
    "commit_request",
    "commit_versions",
    "goes_to_zookeeper",
    "gravest",
    "raise_gravest",
)

IN_ZOOKEEPER: Final = Versions.parse("0")
"""The versions of OffsetCommit and OffsetFetch for offsets in ZooKeeper; any broker accepts them."""

_BY_NAME: Final = Versions.parse("1-9")
_BY_ID: Final = Versions.parse("1-10")
_WITH_RETENTION: Final = Versions.parse("2-4")
_STATIC_SINCE: Final = 7
_FOR_EVER: Final = -1
_UNKNOWN_TOPIC: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class TopicIdsOutdated(KafkaError):
    """The error of a coordinator that does not know a cached topic id; the request is retried with topic names."""


def commit_request(
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ids: Mapping[str, UUID] | None = None,
    retention_ms: int | None = None,
) -> OffsetCommitRequest:
    """Build an OffsetCommit for one of :func:`commit_versions`.

    Coordinators accept a request without a membership only for a group without members.

    Args:
        group: the membership that commits.
        offsets: the offsets of the next records to read.
        ids: the ids of all topics; without them the request has only names.
        retention_ms: for how long the broker keeps the offsets.
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
    """Return the versions of OffsetCommit that have all fields of this commit.

    Raises:
        UsageError: no version has all of them, or ``retention_ms`` is invalid.
    """
    if retention_ms is None:
        first, last = _BY_ID if by_id else _BY_NAME
        return Versions(_STATIC_SINCE if group.group_instance_id is not None else first, last)
    if isinstance(retention_ms, bool) or not isinstance(retention_ms, int) or retention_ms < 0:
        raise UsageError(f"retention_ms must be a non-negative integer, got {retention_ms!r}")
    if group.group_instance_id is not None:
        raise UsageError(
            f"a static member cannot set retention_ms: only OffsetCommit v{_WITH_RETENTION} have it, and "
            f"group_instance_id needs v{_STATIC_SINCE} or later"
        )
    return _WITH_RETENTION


def goes_to_zookeeper(group: GroupMetadata, retention_ms: int | None) -> bool:
    """Return whether the commit can use OffsetCommit v0, which has neither memberships nor a retention time."""
    return group == GroupMetadata(group.group_id) and retention_ms is None


def check_committed(
    group_id: str,
    offsets: Collection[TopicPartition],
    response: OffsetCommitResponse,
    ids: Mapping[str, UUID] | None = None,
) -> None:
    """Raise unless the response confirms the commit of all these partitions.

    Raises:
        BrokerError: the error of a partition; errors that are not retriable come first.
        TopicIdsOutdated, WireError: as :func:`commit_errors`.
    """
    raise_gravest(commit_errors(group_id, offsets, response, ids))


def commit_errors(
    group_id: str,
    offsets: Collection[TopicPartition],
    response: OffsetCommitResponse,
    ids: Mapping[str, UUID] | None = None,
    deleted: Collection[TopicPartition] = (),
) -> dict[TopicPartition, BrokerError | None]:
    """Return the error of each partition; None if the response confirms its commit.

    Of the partitions that are ``deleted`` according to metadata, leave out those whose topic the coordinator does not
    know either.

    Raises:
        TopicIdsOutdated: the coordinator does not know one of the ``ids``.
        WireError: the response lacks a partition.
    """
    names = {topic_id: name for name, topic_id in (ids or {}).items()}
    answers = {
        TopicPartition(names.get(topic.topic_id, topic.name), result.partition_index): result.error_code
        for topic in response.topics
        for result in topic.partitions
    }
    errors: dict[TopicPartition, BrokerError | None] = {}
    for partition in offsets:
        if partition not in answers:
            raise WireError(f"the OffsetCommit response for group {group_id!r} lacks {partition}")
        if partition in deleted and answers[partition] in _UNKNOWN_TOPIC:
            continue
        if answers[partition] == ErrorCode.UNKNOWN_TOPIC_ID:
            raise TopicIdsOutdated(
                f"OffsetCommit of {partition} for group {group_id!r}: the coordinator does not know its topic id"
            )
        errors[partition] = None
        if answers[partition] != ErrorCode.NONE:
            what = f"OffsetCommit of {partition} for group {group_id!r}"
            errors[partition] = broker_error(answers[partition], what)
    return errors


def raise_gravest(errors: Mapping[TopicPartition, KafkaError | None]) -> None:
    """Raise the first error that is not retriable, if any, else the first error, if any."""
    found = [error for error in errors.values() if isinstance(error, BrokerError)]
    if found:
        raise gravest(found)


def gravest(errors: Collection[BrokerError]) -> BrokerError:
    """Return the first error that is not retriable, if any, else the first error."""
    return min(errors, key=lambda error: error.retriable)
