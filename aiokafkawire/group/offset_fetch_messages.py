"""Lookups of what groups have committed, as messages: what a coordinator is asked, and what its answers mean.

What each version of OffsetFetch is:

- v0 reads from ZooKeeper, by way of any broker (0.8.1); v1 from the coordinator.
- v2 can ask for all that a group has committed, and tells errors of the group as a whole (KIP-88).
- v5 has leader epochs (KIP-320), v7 can wait for transactions (KIP-447), v8 asks for many groups (KIP-709), v10 has ids
  instead of topic names (KIP-848).
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
from ..types import OffsetAndMetadata, TopicPartition
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
"""What a group has committed for each partition; None for nothing, or the error that came instead."""


# --- questions -----------------------------------------------------------------------------------------------------


def fetch_forms(
    group_id: str,
    partitions: Collection[TopicPartition] | None,
    ids: Mapping[str, UUID] | None = None,
    *,
    stable: bool = True,
) -> tuple[RequestVariant[OffsetFetchResponse], ...]:
    """OffsetFetch for brokers from 3.0 on, and for older ones.

    Args:
        group_id: whose offsets.
        partitions: None for all that the group has committed; brokers before 0.10.2 cannot be asked so.
        ids: of all their topics; without them they go by their names alone.
        stable: wait for transactions that are about to change an offset (KIP-447); brokers before 2.5 cannot.
    """
    old = None
    if partitions is not None:
        old = [OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in _indexes(partitions)]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=_topics(partitions, ids))
    newer = RequestVariant(OffsetFetchRequest(groups=[group], require_stable=stable), _BY_ID if ids else _MANY_GROUPS)
    older = OffsetFetchRequest(group_id=group_id, topics=old)
    if not stable:
        return newer, RequestVariant(older, _since(_ONE_GROUP, partitions))
    waiting = OffsetFetchRequest(group_id=group_id, topics=old, require_stable=True)
    return newer, RequestVariant(waiting, _STABLE), RequestVariant(older, _since(_BEFORE_STABLE, partitions))


def groups_question(group_ids: Iterable[str], *, stable: bool) -> RequestVariant[OffsetFetchResponse]:
    """One OffsetFetch for all that several groups have committed (KIP-709), for the coordinator of all of them."""
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
    return RequestVariant(OffsetFetchRequest(groups=groups, require_stable=stable), _MANY_GROUPS)


def zookeeper_question(group_id: str, partitions: Collection[TopicPartition]) -> OffsetFetchRequest:
    """OffsetFetch v0, which any broker answers."""
    topics = [OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in _indexes(partitions)]
    return OffsetFetchRequest(group_id=group_id, topics=topics)


def _indexes(partitions: Iterable[TopicPartition]) -> Iterable[tuple[str, list[int]]]:
    return by_topic(partitions).items()


def _topics(
    partitions: Collection[TopicPartition] | None, ids: Mapping[str, UUID] | None
) -> list[OffsetFetchRequestTopics] | None:
    if partitions is None:
        return None
    return [
        OffsetFetchRequestTopics(name=name, topic_id=ids[name] if ids else ZERO_UUID, partition_indexes=each)
        for name, each in _indexes(partitions)
    ]


def _since(versions: Versions, partitions: Collection[TopicPartition] | None) -> Versions:
    return Versions(_ALL_SINCE, versions.last) if partitions is None else versions


# --- answers -------------------------------------------------------------------------------------------------------


def all_fetched(group_id: str, response: OffsetFetchResponse, ids: Mapping[str, UUID] | None = None) -> Found:
    """All that the answer has of the group.

    Raises:
        TopicIdsOutdated: it does not know one of the ``ids``.
        BrokerError: the group as a whole was refused.
        WireError: the group is not answered.
    """
    # Without a list it is an answer of the old form, which is of one group.
    said = next((one for one in response.groups if one.group_id == group_id), None) if response.groups else response
    if said is None:
        raise WireError(f"an answer to OffsetFetch lacks group {group_id!r}, which was asked")
    return _read(group_id, said, ids or {})


def fetched_offsets(
    group_id: str,
    partitions: Collection[TopicPartition],
    response: OffsetFetchResponse,
    ids: Mapping[str, UUID] | None = None,
) -> Found:
    """What the answer has of these partitions. Raises as :func:`all_fetched`, and WireError if it lacks one."""
    answers = all_fetched(group_id, response, ids)
    for where in partitions:
        if where not in answers:
            raise WireError(f"an answer to OffsetFetch of group {group_id!r} lacks {where}, which was asked")
    return {where: answers[where] for where in partitions}


def groups_fetched(response: OffsetFetchResponse) -> dict[str, Found]:
    """Of several groups, those that the answer has without any error; the others are to be asked for by themselves."""
    found: dict[str, Found] = {}
    for group in response.groups:
        if group.error_code == ErrorCode.NONE:
            offsets = _read(group.group_id, group, {})
            if not any(isinstance(one, BrokerError) for one in offsets.values()):
                found[group.group_id] = offsets
    return found


def _read(group_id: str, said: OffsetFetchResponse | OffsetFetchResponseGroup, ids: Mapping[str, UUID]) -> Found:
    if said.error_code != ErrorCode.NONE:
        raise broker_error(said.error_code, f"OffsetFetch of group {group_id!r}")
    names = {topic_id: name for name, topic_id in ids.items()}
    found: Found = {}
    for topic in said.topics:
        # The answers of the old form have names alone.
        name = names.get(getattr(topic, "topic_id", ZERO_UUID), topic.name)
        for one in topic.partitions:
            where = TopicPartition(name, one.partition_index)
            if one.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                raise TopicIdsOutdated(f"OffsetFetch of {where} for group {group_id!r}: its id is not known")
            if one.error_code != ErrorCode.NONE:
                found[where] = broker_error(one.error_code, f"OffsetFetch of {where} for group {group_id!r}")
            elif one.committed_offset < 0:
                found[where] = None
            else:
                epoch = one.committed_leader_epoch if one.committed_leader_epoch >= 0 else None
                found[where] = OffsetAndMetadata(one.committed_offset, one.metadata or "", epoch)
    return found


def zookeeper_offsets(group_id: str, partitions: Collection[TopicPartition], response: OffsetFetchResponse) -> Found:
    """As :func:`fetched_offsets`, of an answer in v0, in which nothing committed is an unknown partition."""
    found = fetched_offsets(group_id, partitions, response)
    return {where: None if isinstance(one, UnknownTopicOrPartition) else one for where, one in found.items()}


def check_fetched(found: Found, *, partly: bool = False) -> None:
    """Refuse what holds an error; with ``partly`` what holds nothing else.

    Raises:
        BrokerError: first what no retry mends.
    """
    errors = [one for one in found.values() if isinstance(one, BrokerError)]
    if errors and not (partly and len(errors) < len(found)):
        raise gravest(errors)


def only_committed(found: Found) -> dict[TopicPartition, OffsetAndMetadata]:
    """The partitions for which there is an offset."""
    return {where: one for where, one in found.items() if isinstance(one, OffsetAndMetadata)}
