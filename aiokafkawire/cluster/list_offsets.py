"""Looks offsets up: the beginning, the end, or the first record at or after a time, of many partitions at once."""

from collections.abc import Mapping

import anyio

from ..errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    RequestTimeout,
    TopicNotReady,
    UnknownServerError,
    UnsupportedVersion,
    WireError,
    broker_error,
)
from ..network.connection import Connection
from ..protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ..protocol.schema import Versions
from ..runtime import background_tasks
from ..types import IsolationLevel, OffsetAndTimestamp, OffsetSpec, TopicPartition
from .cluster import Cluster
from .metadata import Node, Snapshot
from .retry import Deadline, remedy, tells_more

__all__ = ("look_up_offsets",)

_CONSUMER = -1
# v7 is the first to know the highest timestamp (KIP-734).
_MAX_TIMESTAMP = Versions.parse("7+")
_OF_SEGMENTS = 0
_ISOLATION_SINCE = 2  # before it there are no transactions (KIP-98)
_READS_ALL = IsolationLevel.READ_UNCOMMITTED


async def look_up_offsets(
    cluster: Cluster,
    specs: Mapping[TopicPartition, OffsetSpec],
    deadline: Deadline,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """The offset for each spec; None where no record is that late. Leaders that move are followed.

    Brokers before 0.10.1 (ListOffsets v0) know times of whole segments alone, by when their files were last written.
    Of a time they tell where the newest segment begins that was written before it: there, or behind, is the first
    record that is as late, and before it may be a whole segment (``log.segment.bytes``) of older ones. Such an offset
    has no timestamp (-1), and is never None: where no record is that late, it is the end.

    Raises:
        RequestTimeout, TopicNotReady: some were not found by the deadline; the message names one and its last error.
        UsageError: a topic has no such partition.
        KafkaError: an error that no retry mends.
    """
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    left, backoff = dict(specs), cluster.backoff()
    errors: dict[TopicPartition, KafkaError] = {}
    while left:
        by_leader: dict[Node, dict[TopicPartition, OffsetSpec]] = {}
        for where, spec in left.items():
            node = await cluster.leader(where, deadline)
            by_leader.setdefault(node, {})[where] = spec
        snapshot = cluster.snapshot
        for where, error in (await _ask_all(cluster, by_leader, deadline, isolation, found)).items():
            if tells_more(error, errors.get(where)):
                errors[where] = error
        left = {where: spec for where, spec in left.items() if where not in found}
        if left:
            cluster.outdated(snapshot)
            if deadline.passed(cluster.runtime.now()):
                raise _late(next(iter(left)), errors, deadline)
            await anyio.sleep(min(backoff.next(), deadline.left(cluster.runtime.now())))
    return found


async def _ask_all(
    cluster: Cluster,
    by_leader: Mapping[Node, Mapping[TopicPartition, OffsetSpec]],
    deadline: Deadline,
    isolation: IsolationLevel,
    found: dict[TopicPartition, OffsetAndTimestamp | None],
) -> dict[TopicPartition, KafkaError]:
    """Ask the leaders side by side, so that a slow one holds up no other. As :func:`_ask`."""
    errors: dict[TopicPartition, KafkaError] = {}
    failures: list[Exception] = []

    async def ask(node: Node, asked: Mapping[TopicPartition, OffsetSpec]) -> None:
        try:
            errors.update(await _ask(cluster, node, asked, deadline, isolation, found))
        except Exception as failure:  # raised as it is, and not in a group
            failures.append(failure)
            tasks.cancel_scope.cancel()

    async with background_tasks() as tasks:
        for node, asked in by_leader.items():
            tasks.start_soon(ask, node, asked)
    if failures:
        raise failures[0]
    return errors


async def _ask(
    cluster: Cluster,
    node: Node,
    asked: Mapping[TopicPartition, OffsetSpec],
    deadline: Deadline,
    isolation: IsolationLevel,
    found: dict[TopicPartition, OffsetAndTimestamp | None],
) -> dict[TopicPartition, KafkaError]:
    """Ask one leader. What it answers goes into ``found``; the errors that a retry may mend come back."""
    errors: dict[TopicPartition, KafkaError] = {}
    try:
        connection = await cluster.connection(node, deadline=deadline)
        version = _version(connection, asked)
        response = await connection.request(
            _request(cluster.snapshot, asked, isolation if version >= _ISOLATION_SINCE else _READS_ALL),
            timeout=deadline.left(cluster.runtime.now()),
            wanted=Versions(version, version),
        )
    except KafkaError as error:
        if not remedy(error).retry:
            raise
        return dict.fromkeys(asked, error)
    answers = {
        TopicPartition(topic.name, one.partition_index): one for topic in response.topics for one in topic.partitions
    }
    for where in asked:
        if where not in answers:
            raise WireError(f"{connection.where} answered ListOffsets without {where}, which was asked")
        try:
            found[where] = _offset(where, answers[where])
        except BrokerError as error:
            # A broker before 0.10.1 fails if the first record is appended while it lists the segments.
            if not (error.retriable or (version == _OF_SEGMENTS and isinstance(error, UnknownServerError))):
                raise
            errors[where] = error
    if version == _OF_SEGMENTS:
        # None of its segments is as old: the first record that late may be the first of all.
        empty = [where for where in asked if where in found and found[where] is None]
        newer = {where: OffsetSpec.EARLIEST for where in empty if asked[where] != OffsetSpec.EARLIEST}
        if newer:
            errors |= await _ask(cluster, node, newer, deadline, isolation, found)
    return errors


def _version(connection: Connection, asked: Mapping[TopicPartition, OffsetSpec]) -> int:
    if OffsetSpec.MAX_TIMESTAMP not in asked.values():
        return connection.choose(ListOffsetsRequest)
    try:
        return connection.choose(ListOffsetsRequest, _MAX_TIMESTAMP)
    except UnsupportedVersion as refused:
        raise UnsupportedVersion(f"brokers look up the highest timestamp since 3.0 (KIP-734): {refused}") from None


def _request(
    snapshot: Snapshot, asked: Mapping[TopicPartition, OffsetSpec], isolation: IsolationLevel
) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for where, spec in asked.items():
        known = snapshot.partition(where)
        topic = topics.setdefault(where.topic, ListOffsetsTopic(name=where.topic, partitions=[]))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=where.partition,
                current_leader_epoch=known.leader_epoch if known is not None else -1,
                timestamp=spec.timestamp,
            )
        )
    return ListOffsetsRequest(replica_id=_CONSUMER, isolation_level=isolation, topics=list(topics.values()))


def _offset(where: TopicPartition, answer: ListOffsetsPartitionResponse) -> OffsetAndTimestamp | None:
    if answer.error_code != ErrorCode.NONE:
        raise broker_error(answer.error_code, f"ListOffsets of {where}")
    if answer.offset < 0:
        # v0 lists where segments begin, the newest first, and before them the end where that is as old as was asked.
        return OffsetAndTimestamp(answer.old_style_offsets[0], -1) if answer.old_style_offsets else None
    epoch = answer.leader_epoch if answer.leader_epoch >= 0 else None
    return OffsetAndTimestamp(answer.offset, answer.timestamp, epoch)


def _late(where: TopicPartition, errors: Mapping[TopicPartition, KafkaError], deadline: Deadline) -> KafkaError:
    error = errors.get(where)
    kind = TopicNotReady if isinstance(error, BrokerError) else RequestTimeout
    late = kind(f"no offset of {where} within {deadline.allowed:g} s: {error}")
    late.__cause__ = error
    return late
