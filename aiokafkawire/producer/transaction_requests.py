"""A transaction's requests to coordinators, and the errors in their responses.

With Produce up to v11, TxnOffsetCommit up to v4 and EndTxn up to v4 (``transaction.version`` 1), a client adds
partitions and groups to its transaction itself; with later versions (``transaction.version`` 2) the brokers do that,
and EndTxn also bumps the epoch (KIP-890). A transaction must use only one way, so the versions of requests are limited.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import partial
from types import MappingProxyType
from typing import Any, Final, cast
from uuid import UUID

import attrs

from ..errors import BrokerError, CommitFailed, ErrorCode, OperationNotAttempted, WireError, broker_error
from ..protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Request, Versions
from ..types import CoordinatorType, GroupMetadata, OffsetAndMetadata, ProducerIdentity, TopicPartition

__all__ = (
    "PRODUCE_V1",
    "PRODUCE_V2",
    "TransactionRequest",
    "add_offsets",
    "add_partitions",
    "check_topic_ids",
    "commit_offsets",
    "end_transaction",
    "init_producer_id",
    "with_topic_ids",
)

PRODUCE_V1: Final = Versions.parse("3-11")
"""The versions of Produce in a transaction of version 1; record batches need v3."""
PRODUCE_V2: Final = Versions.parse("12+")
"""The versions of Produce in a transaction of version 2, to which the leader adds the partition."""

_INIT: Final = Versions.parse("0-5")  # v6 is for two-phase commits (KIP-939), and not stable
_BUMP: Final = Versions.parse("3-5")  # KIP-360: the request has the epoch to bump
_ADD_PARTITIONS: Final = Versions.parse("0-3")  # later versions are for brokers
_ADD_OFFSETS: Final = Versions.parse("0-4")
_COMMIT_OFFSETS_V1: Final = Versions.parse("0-4")
_COMMIT_OF_MEMBER_V1: Final = Versions.parse("3-4")  # KIP-447: older versions do not name the member
_COMMIT_OFFSETS_V2: Final = Versions.parse("5")
_COMMIT_BY_ID: Final = Versions.parse("5-6")  # v6 has topic ids instead of names (KIP-1319)
_END_V1: Final = Versions.parse("0-4")
_END_V2: Final = Versions.parse("5+")


@attrs.frozen
class TransactionRequest:
    """A request to the coordinator of ``key``, to be sent in one of ``versions``.

    ``check`` raises the error in a response, if it has one; if it has several, a retriable one is preferred.
    """

    request: Request[Any]
    coordinator_type: CoordinatorType
    key: str
    versions: Versions
    check: Callable[[Any], None]


# --- requests ------------------------------------------------------------------------------------------------------


def init_producer_id(identity: ProducerIdentity, timeout_ms: int) -> TransactionRequest:
    """Return the request for a new producer id; if ``identity`` has an id, the request for its next epoch (KIP-360)."""
    request = InitProducerIdRequest(
        transactional_id=identity.transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
    )
    versions = _INIT if identity.producer_id < 0 else _BUMP
    return TransactionRequest(request, CoordinatorType.TRANSACTION, identity.transactional_id, versions, _check)


def add_partitions(identity: ProducerIdentity, partitions: Sequence[TopicPartition]) -> TransactionRequest:
    """Return the request that adds partitions to the transaction; the first such request starts the transaction."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=identity.transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
        ],
    )
    check = partial(_check_added, tuple(partitions))
    return TransactionRequest(request, CoordinatorType.TRANSACTION, identity.transactional_id, _ADD_PARTITIONS, check)


def add_offsets(identity: ProducerIdentity, group_id: str) -> TransactionRequest:
    """Return the request that adds a group to the transaction; the request of :func:`commit_offsets` must follow it."""
    request = AddOffsetsToTxnRequest(
        transactional_id=identity.transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        group_id=group_id,
    )
    return TransactionRequest(request, CoordinatorType.TRANSACTION, identity.transactional_id, _ADD_OFFSETS, _check)


def commit_offsets(
    identity: ProducerIdentity,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    topic_ids: Mapping[str, UUID] = MappingProxyType({}),
) -> TransactionRequest:
    """Return the request that commits a group's offsets with the transaction (KIP-447).

    ``topic_ids`` are the ids of the topics that the offsets belong to, as far as they are known.
    """
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for (name, index), offset in offsets.items():
        topic = topics.get(name)
        if topic is None:
            topic_id = topic_ids.get(name, ZERO_UUID)
            topic = topics[name] = TxnOffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=[])
        topic.partitions.append(
            TxnOffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset.offset,
                committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    request = TxnOffsetCommitRequest(
        transactional_id=identity.transactional_id,
        group_id=group.group_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        generation_id_or_member_epoch=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=list(topics.values()),
    )
    is_member = group != GroupMetadata(group.group_id)
    v1 = _COMMIT_OF_MEMBER_V1 if is_member else _COMMIT_OFFSETS_V1
    versions = v1 if identity.transaction_version < 2 else _COMMIT_OFFSETS_V2
    check = partial(_check_committed, group.group_id, tuple(offsets))
    return TransactionRequest(request, CoordinatorType.GROUP, group.group_id, versions, check)


def with_topic_ids(request: TransactionRequest, topic_id: Callable[[str], UUID]) -> TransactionRequest:
    """Return the request of :func:`commit_offsets` with the topics' ids, if all are known; else ``request`` itself.

    A coordinator since 4.4 refuses the ids of topics that were deleted, also if there are new topics of these names.
    """
    if request.versions is not _COMMIT_OFFSETS_V2:
        return request
    asked = cast("TxnOffsetCommitRequest", request.request)  # only this one has these versions
    ids = {
        topic.name: topic.topic_id if topic.topic_id != ZERO_UUID else topic_id(topic.name) for topic in asked.topics
    }
    if ZERO_UUID in ids.values():
        return request
    asked = copy(asked)
    asked.topics = [copy(topic) for topic in asked.topics]
    for topic in asked.topics:
        topic.topic_id = ids[topic.name]
    names = {found: name for name, found in ids.items()}
    partitions = [
        TopicPartition(topic.name, partition.partition_index)
        for topic in asked.topics
        for partition in topic.partitions
    ]
    check = partial(_check_committed, asked.group_id, partitions, names=names)
    return attrs.evolve(request, request=asked, versions=_COMMIT_BY_ID, check=check)


def check_topic_ids(
    request: TransactionRequest, topic_id: Callable[[str], UUID], topic_error: Callable[[str], int | None]
) -> None:
    """Raise an error if a topic of a request for offsets has another id than it had, or is missing.

    Args:
        request: the request.
        topic_id: returns a topic's id in the metadata; all zeros if that is not known, as by brokers before 2.8.
        topic_error: returns a topic's error in the metadata; None if the metadata lacks the topic.

    Raises:
        CommitFailed: the topic was created again.
        UnknownTopicOrPartition: there is no such topic now. A coordinator before 4.4 would take the name for that of a
            new topic, so that the request has to wait.
    """
    if not isinstance(request.request, TxnOffsetCommitRequest):
        return
    for topic in request.request.topics:
        current = topic_id(topic.name)
        if topic.topic_id == ZERO_UUID or current == topic.topic_id:
            continue
        if current != ZERO_UUID:
            raise CommitFailed(
                f"topic {topic.name!r} was deleted and created again, so the offsets of its records mean nothing now; "
                "the transaction can only be aborted"
            )
        if topic_error(topic.name) in (None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"TxnOffsetCommit of {topic.name!r}")


def end_transaction(identity: ProducerIdentity, *, commit: bool) -> TransactionRequest:
    """Return the request that commits or aborts the transaction."""
    request = EndTxnRequest(
        transactional_id=identity.transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        committed=commit,
    )
    versions = _END_V1 if identity.transaction_version < 2 else _END_V2
    return TransactionRequest(request, CoordinatorType.TRANSACTION, identity.transactional_id, versions, _check)


# --- errors in answers ---------------------------------------------------------------------------------------------


def _check(response: InitProducerIdResponse | AddOffsetsToTxnResponse | EndTxnResponse) -> None:
    if response.error_code:
        raise broker_error(response.error_code, type(response).__name__.removesuffix("Response"))


def _check_added(partitions: Collection[TopicPartition], response: AddPartitionsToTxnResponse) -> None:
    answers = {
        TopicPartition(topic.name, partition.partition_index): partition.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    }
    _raise_first("AddPartitionsToTxn", "", partitions, answers)


def _check_committed(
    group_id: str,
    partitions: Collection[TopicPartition],
    response: TxnOffsetCommitResponse,
    names: Mapping[UUID, str] | None = None,
) -> None:
    names = names or {}
    answers = {
        TopicPartition(names.get(topic.topic_id, topic.name), partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    _raise_first("TxnOffsetCommit", f" for group {group_id!r}", partitions, answers)


def _raise_first(
    api: str, of: str, partitions: Collection[TopicPartition], answers: Mapping[TopicPartition, int]
) -> None:
    """Raise the response's error, if it has one; WireError if the response lacks one of the ``partitions``.

    Without an answer a partition is not part of the transaction, however the coordinator answered for the others.
    """
    errors = [broker_error(code, f"{api} of {partition}{of}") for partition, code in answers.items() if code]
    if errors:
        raise min(errors, key=_order)
    for partition in partitions:
        if partition not in answers:
            raise WireError(f"the {api} response{of} lacks {partition}")


def _order(error: BrokerError) -> tuple[bool, bool, bool]:
    """Return the sort key of an error: retriable ones first, then fatal ones, OperationNotAttempted last."""
    return not error.retriable, not error.fatal, isinstance(error, OperationNotAttempted)
