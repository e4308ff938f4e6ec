"""The messages that fetch committed offsets: their requests, and the meaning of their responses.

The versions of OffsetFetch:

- v0 reads from ZooKeeper through any broker (0.8.1); v1 from the coordinator.
- v2 can request all committed offsets of a group, and has an error code for the group (KIP-88).
- v5 has leader epochs (KIP-320), v7 can wait for transactions (KIP-447), v8 has several groups (KIP-709).
- v9 has the member id and epoch, which the coordinator of a consumer group checks; v10 has topic ids instead of names
  (KIP-848).
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias
from uuid import UUID

from ..cluster.request_variants import RequestVariant
from ..errors import BrokerError, ErrorCode, UnknownTopicOrPartition, WireError, broker_error
from ..protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..types import GroupMetadata, OffsetAndMetadata, TopicPartition
from .consumer_protocol import by_topic
from .offset_commit_messages import TopicIdsOutdated, gravest

__all__ = (
    "Found",
    "all_fetched",
    "check_fetched",
    "fetch_forms",
    "fetched_offsets",
    "groups_fetched",
    "groups_question",
    "only_committed",
    "zookeeper_offsets",
    "zookeeper_question",
)

_MANY_GROUPS: Final = Versions.parse("8-9")
_BY_ID: Final = Versions.parse("8-10")
_STABLE: Final = Versions.parse("7")
_BEFORE_STABLE: Final = Versions.parse("1-6")
_ONE_GROUP: Final = Versions.parse("1-7")
_ALL_SINCE: Final = 2

Found: TypeAlias = dict[TopicPartition, OffsetAndMetadata | BrokerError | None]
"""A group's committed offset for each partition, or the partition's error; None if no offset is committed."""


# --- questions -----------------------------------------------------------------------------------------------------


def fetch_forms(
    group_id: str,
    partitions: Collection[TopicPartition] | None,
    ids: Mapping[str, UUID] | None = None,
    *,
    stable: bool = True,
    member: GroupMetadata | None = None,
) -> tuple[RequestVariant[OffsetFetchResponse], ...]:
    """Build the variants of OffsetFetch, for brokers from 3.0 on and for older ones.

    Args:
        group_id: the group's id.
        partitions: None for all committed offsets of the group, which brokers support since 0.10.2.
        ids: the ids of all topics; without them the request has only names.
        stable: wait for transactions that are about to change an offset (KIP-447); brokers before 2.5 cannot.
        member: the membership of a consumer group (KIP-848), which brokers check; None without one.
    """
    old = None
    if partitions is not None:
        old = [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in _indexes(partitions)]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=_topics(partitions, ids))
    if member is not None:
        group.member_id, group.member_epoch = member.member_id, member.generation_id
    newer = RequestVariant(OffsetFetchRequest(groups=[group], require_stable=stable), _BY_ID if ids else _MANY_GROUPS)
    older = OffsetFetchRequest(group_id=group_id, topics=old)
    if not stable:
        return newer, RequestVariant(older, _since(_ONE_GROUP, partitions))
    waiting = OffsetFetchRequest(group_id=group_id, topics=old, require_stable=True)
    return newer, RequestVariant(waiting, _STABLE), RequestVariant(older, _since(_BEFORE_STABLE, partitions))


def groups_question(group_ids: Iterable[str], *, stable: bool) -> RequestVariant[OffsetFetchResponse]:
    """Build an OffsetFetch for all committed offsets of several groups (KIP-709) with the same coordinator."""
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
    return RequestVariant(OffsetFetchRequest(groups=groups, require_stable=stable), _MANY_GROUPS)


def zookeeper_question(group_id: str, partitions: Collection[TopicPartition]) -> OffsetFetchRequest:
    """Build an OffsetFetch v0, which any broker answers."""
    topics = [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in _indexes(partitions)]
    return OffsetFetchRequest(group_id=group_id, topics=topics)


def _indexes(partitions: Iterable[TopicPartition]) -> Iterable[tuple[str, list[int]]]:
    return by_topic(partitions).items()


def _topics(
    partitions: Collection[TopicPartition] | None, ids: Mapping[str, UUID] | None
) -> list[OffsetFetchRequestTopics] | None:
    if partitions is None:
        return None
    return [
        OffsetFetchRequestTopics(name=name, topic_id=ids[name] if ids else ZERO_UUID, partition_indexes=indexes)
        for name, indexes in _indexes(partitions)
    ]


def _since(versions: Versions, partitions: Collection[TopicPartition] | None) -> Versions:
    return Versions(_ALL_SINCE, versions.last) if partitions is None else versions


# --- answers -------------------------------------------------------------------------------------------------------


def all_fetched(group_id: str, response: OffsetFetchResponse, ids: Mapping[str, UUID] | None = None) -> Found:
    """Return all offsets of the group in the response.

    Raises:
        TopicIdsOutdated: the coordinator does not know one of the ``ids``.
        BrokerError: the response has an error for the group.
        WireError: the response lacks the group.
    """
    # Responses before v8 have one group, without a list.
    answer = (
        next((group for group in response.groups if group.group_id == group_id), None) if response.groups else response
    )
    if answer is None:
        raise WireError(f"the OffsetFetch response lacks group {group_id!r}")
    return _read(group_id, answer, ids or {})


def fetched_offsets(
    group_id: str,
    partitions: Collection[TopicPartition],
    response: OffsetFetchResponse,
    ids: Mapping[str, UUID] | None = None,
) -> Found:
    """Return the offsets of these partitions. Raises as :func:`all_fetched`, and WireError if one is missing."""
    answers = all_fetched(group_id, response, ids)
    for partition in partitions:
        if partition not in answers:
            raise WireError(f"the OffsetFetch response for group {group_id!r} lacks {partition}")
    return {partition: answers[partition] for partition in partitions}


def groups_fetched(response: OffsetFetchResponse) -> dict[str, Found]:
    """Return the offsets of each group whose result has no error; the caller retries all other groups one by one."""
    found: dict[str, Found] = {}
    for group in response.groups:
        if group.error_code == ErrorCode.NONE:
            offsets = _read(group.group_id, group, {})
            if not any(isinstance(offset, BrokerError) for offset in offsets.values()):
                found[group.group_id] = offsets
    return found


def _read(group_id: str, answer: OffsetFetchResponse | OffsetFetchResponseGroup, ids: Mapping[str, UUID]) -> Found:
    if answer.error_code != ErrorCode.NONE:
        raise broker_error(answer.error_code, f"OffsetFetch of group {group_id!r}")
    names = {topic_id: name for name, topic_id in ids.items()}
    found: Found = {}
    for topic in answer.topics:
        # Responses before v8 have only names.
        name = names.get(getattr(topic, "topic_id", ZERO_UUID), topic.name)
        for result in topic.partitions:
            partition = TopicPartition(name, result.partition_index)
            if result.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                raise TopicIdsOutdated(
                    f"OffsetFetch of {partition} for group {group_id!r}: the coordinator does not know its topic id"
                )
            if result.error_code != ErrorCode.NONE:
                found[partition] = broker_error(result.error_code, f"OffsetFetch of {partition} for group {group_id!r}")
            elif result.committed_offset < 0:
                found[partition] = None
            else:
                epoch = result.committed_leader_epoch if result.committed_leader_epoch >= 0 else None
                found[partition] = OffsetAndMetadata(result.committed_offset, result.metadata or "", epoch)
    return found


def zookeeper_offsets(group_id: str, partitions: Collection[TopicPartition], response: OffsetFetchResponse) -> Found:
    """Return the offsets of a v0 response, where UNKNOWN_TOPIC_OR_PARTITION means that nothing is committed."""
    found = fetched_offsets(group_id, partitions, response)
    return {
        partition: None if isinstance(offset, UnknownTopicOrPartition) else offset
        for partition, offset in found.items()
    }


def check_fetched(found: Found, *, partly: bool = False) -> None:
    """Raise if a partition has an error; with ``partly``, only if all partitions have one.

    Raises:
        BrokerError: an error that is not retriable, if any, comes first.
    """
    errors = [offset for offset in found.values() if isinstance(offset, BrokerError)]
    if errors and not (partly and len(errors) < len(found)):
        raise gravest(errors)


def only_committed(found: Found) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the committed offsets; leave out partitions that have an error, or have no committed offset."""
    return {partition: offset for partition, offset in found.items() if isinstance(offset, OffsetAndMetadata)}
