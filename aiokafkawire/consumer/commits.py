"""A group's offsets as messages: what is asked of its coordinator, and what the answers mean."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, TypeAlias

from ..errors import BrokerError, ErrorCode, KafkaError, WireError, broker_error
from ..protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ..protocol.schema import Versions
from ..types import GroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = (
    "COMMIT_VERSIONS",
    "Found",
    "Question",
    "check_committed",
    "check_fetched",
    "commit_request",
    "fetch_questions",
    "fetched_offsets",
)

# Before v2 the client says how long offsets are kept; v10 has ids instead of topic names.
COMMIT_VERSIONS: Final = Versions.parse("2-9")
# v0 reads from ZooKeeper; v7 waits for transactions (KIP-447); v8 asks for many groups (KIP-709); v10 has topic ids.
_MANY_GROUPS: Final = Versions.parse("8-9")
_STABLE: Final = Versions.parse("7")
_ONE_GROUP: Final = Versions.parse("1-6")

Found: TypeAlias = dict[TopicPartition, OffsetAndMetadata | BrokerError | None]
"""What a group has committed for each partition; None for nothing, or the error that came instead."""


class Question(NamedTuple):
    """A request and the versions that can carry it."""

    request: OffsetFetchRequest
    wanted: Versions


# --- committing ----------------------------------------------------------------------------------------------------


def commit_request(group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> OffsetCommitRequest:
    """OffsetCommit. Without a membership it counts while the group has no members."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, index), offset in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name, partitions=[]))
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
        topics=list(topics.values()),
    )


def check_committed(group_id: str, offsets: Collection[TopicPartition], response: OffsetCommitResponse) -> None:
    """Refuse an answer in which one of these partitions is not committed.

    Raises:
        BrokerError: why not; first what no retry mends.
        WireError: one is not answered.
    """
    answers = {
        TopicPartition(topic.name, one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }
    errors = []
    for where in offsets:
        if where not in answers:
            raise WireError(f"an answer to OffsetCommit of group {group_id!r} lacks {where}, which was asked")
        if answers[where] != ErrorCode.NONE:
            errors.append(broker_error(answers[where], f"OffsetCommit of {where} for group {group_id!r}"))
    if errors:
        raise _gravest(errors)


# --- looking up ----------------------------------------------------------------------------------------------------


def fetch_questions(group_id: str, partitions: Collection[TopicPartition]) -> tuple[Question, ...]:
    """OffsetFetch for brokers from 3.0 on, for those from 2.5 on, and for older ones.

    The last may answer with an offset that an open transaction is about to change (KIP-447).
    """
    indexes: dict[str, list[int]] = {}
    for name, index in partitions:
        indexes.setdefault(name, []).append(index)
    group = OffsetFetchRequestGroup(
        group_id=group_id,
        topics=[OffsetFetchRequestTopics(name=name, partition_indexes=each) for name, each in indexes.items()],
    )
    topics = [OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in indexes.items()]
    return (
        Question(OffsetFetchRequest(groups=[group], require_stable=True), _MANY_GROUPS),
        Question(OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=True), _STABLE),
        Question(OffsetFetchRequest(group_id=group_id, topics=topics), _ONE_GROUP),
    )


def fetched_offsets(group_id: str, partitions: Collection[TopicPartition], response: OffsetFetchResponse) -> Found:
    """What the answer has of these partitions.

    Raises:
        BrokerError: the group as a whole was refused.
        WireError: the group or a partition is not answered.
    """
    # Without a list it is an answer of the old form, which is of one group.
    said = next((one for one in response.groups if one.group_id == group_id), None) if response.groups else response
    if said is None:
        raise WireError(f"an answer to OffsetFetch lacks group {group_id!r}, which was asked")
    if said.error_code != ErrorCode.NONE:
        raise broker_error(said.error_code, f"OffsetFetch of group {group_id!r}")
    answers = {
        TopicPartition(topic.name, one.partition_index): one for topic in said.topics for one in topic.partitions
    }
    found: Found = {}
    for where in partitions:
        if where not in answers:
            raise WireError(f"an answer to OffsetFetch of group {group_id!r} lacks {where}, which was asked")
        one = answers[where]
        if one.error_code != ErrorCode.NONE:
            found[where] = broker_error(one.error_code, f"OffsetFetch of {where} for group {group_id!r}")
        elif one.committed_offset < 0:
            found[where] = None
        else:
            epoch = one.committed_leader_epoch if one.committed_leader_epoch >= 0 else None
            found[where] = OffsetAndMetadata(one.committed_offset, one.metadata or "", epoch)
    return found


def check_fetched(found: Found, *, partly: bool = False) -> None:
    """Refuse what holds an error; with ``partly`` what holds nothing else.

    Raises:
        BrokerError: first what no retry mends.
    """
    errors = [one for one in found.values() if isinstance(one, BrokerError)]
    if errors and not (partly and len(errors) < len(found)):
        raise _gravest(errors)


def _gravest(errors: list[BrokerError]) -> KafkaError:
    return min(errors, key=lambda error: error.retriable)
