"""Looks up offsets of partitions: of the beginning, of the end, or of the first record at or after a time."""

from collections.abc import Iterable, Mapping

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
from .retry import Deadline, is_better_cause, retry_action

__all__ = ("look_up_ends", "look_up_offsets", "look_up_starts")

_CONSUMER = -1
# v7 is the first version that looks up the highest timestamp (KIP-734).
_MAX_TIMESTAMP = Versions.parse("7+")
_OF_SEGMENTS = 0
_ISOLATION_SINCE = 2  # earlier versions have no transactions (KIP-98)
_READS_ALL = IsolationLevel.READ_UNCOMMITTED


async def look_up_ends(
    cluster: Cluster, partitions: Iterable[TopicPartition], deadline: Deadline, isolation: IsolationLevel
) -> dict[TopicPartition, int]:
    """Return the ends of the partitions' logs. Raises as :func:`look_up_offsets`.

    Raises:
        WireError: the brokers say that a partition has no end.
    """
    ends: dict[TopicPartition, int] = {}
    specs = dict.fromkeys(partitions, OffsetSpec.LATEST)
    for partition, end in (await look_up_offsets(cluster, specs, deadline, isolation)).items():
        if end is None:
            raise WireError(f"the answer to ListOffsets says that {partition} has no end")
        ends[partition] = end.offset
    return ends


async def look_up_starts(
    cluster: Cluster,
    specs: Mapping[TopicPartition, OffsetSpec],
    deadline: Deadline,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    """Return the offset for each spec; the end of the log if no record has the spec's time, or a later one.

    Raises as :func:`look_up_ends`.
    """
    found = await look_up_offsets(cluster, specs, deadline, isolation)
    late = {partition: specs[partition] for partition, offset in found.items() if offset is None}
    ends = await look_up_ends(cluster, late, deadline, isolation)
    # The end is after all records that were appended since the first lookup, and one of them may have the time.
    found |= await look_up_offsets(cluster, late, deadline, isolation)
    return {partition: ends[partition] if offset is None else offset.offset for partition, offset in found.items()}


async def look_up_offsets(
    cluster: Cluster,
    specs: Mapping[TopicPartition, OffsetSpec],
    deadline: Deadline,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Return the offset for the spec of each partition; None if the spec is a time after all records.

    Brokers before 0.10.1 (ListOffsets v0) only know when each segment's file was last written. For a time they return
    the start of the newest segment written before that time. Up to one segment (``log.segment.bytes``) of older records
    may precede the first record at or after the time. Such a result has no timestamp (-1), and is never None.

    Raises:
        RequestTimeout, TopicNotReady: an offset was not found by the deadline; the message has the last error.
        UsageError: a topic has no such partition.
        KafkaError: an error that is not retriable.
    """
    # One metadata request is enough for all topics, instead of one for each that is not known yet.
    cluster.metadata.track_topics({partition.topic for partition in specs})
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    left, backoff = dict(specs), cluster.backoff()
    errors: dict[TopicPartition, KafkaError] = {}
    while left:
        by_leader: dict[Node, dict[TopicPartition, OffsetSpec]] = {}
        for partition, spec in left.items():
            node = await cluster.leader(partition, deadline)
            by_leader.setdefault(node, {})[partition] = spec
        snapshot = cluster.metadata.snapshot
        for partition, error in (await _ask_all(cluster, by_leader, deadline, isolation, found)).items():
            if is_better_cause(error, errors.get(partition)):
                errors[partition] = error
        left = {partition: spec for partition, spec in left.items() if partition not in found}
        if left:
            cluster.metadata.mark_stale(snapshot)
            if deadline.passed(cluster.runtime.now()):
                raise _timeout(next(iter(left)), errors, deadline)
            await anyio.sleep(min(backoff.next(), deadline.left(cluster.runtime.now())))
    return {partition: found[partition] for partition in specs}


async def _ask_all(
    cluster: Cluster,
    by_leader: Mapping[Node, Mapping[TopicPartition, OffsetSpec]],
    deadline: Deadline,
    isolation: IsolationLevel,
    found: dict[TopicPartition, OffsetAndTimestamp | None],
) -> dict[TopicPartition, KafkaError]:
    """Send requests as :func:`_ask` to all leaders concurrently, so that a slow leader does not delay other leaders."""
    errors: dict[TopicPartition, KafkaError] = {}
    failures: list[Exception] = []

    async def ask(node: Node, asked: Mapping[TopicPartition, OffsetSpec]) -> None:
        try:
            errors.update(await _ask(cluster, node, asked, deadline, isolation, found))
        except Exception as failure:  # raised below, without an exception group
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
    """Send a request to one leader; add the offsets to ``found``, and return the retriable errors by partition."""
    errors: dict[TopicPartition, KafkaError] = {}
    try:
        connection = await cluster.connection(node, deadline=deadline)
        version = _version(connection, asked)
        response = await connection.request(
            _request(
                cluster.metadata.snapshot,
                asked,
                isolation if version >= _ISOLATION_SINCE else _READS_ALL,
                cluster.broker_timeout_ms(deadline),
            ),
            timeout=deadline.left(cluster.runtime.now()),
            wanted=Versions(version, version),
        )
    except KafkaError as error:
        if not retry_action(error).retry:
            raise
        return dict.fromkeys(asked, error)
    answers = {
        TopicPartition(topic.name, answer.partition_index): answer
        for topic in response.topics
        for answer in topic.partitions
    }
    for partition in asked:
        if partition not in answers:
            raise WireError(f"{connection.broker} answered ListOffsets without the requested {partition}")
        try:
            found[partition] = _offset(partition, answers[partition])
        except BrokerError as error:
            # Brokers before 0.10.1 fail if the first record is appended while they list the segments.
            if not (error.retriable or (version == _OF_SEGMENTS and isinstance(error, UnknownServerError))):
                raise
            errors[partition] = error
    if version == _OF_SEGMENTS:
        # All segments were written after the requested time, so the first record may be the one to find.
        empty = [partition for partition in asked if partition in found and found[partition] is None]
        newer = {partition: OffsetSpec.EARLIEST for partition in empty if asked[partition] != OffsetSpec.EARLIEST}
        if newer:
            for partition in newer:
                del found[partition]
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
    snapshot: Snapshot, asked: Mapping[TopicPartition, OffsetSpec], isolation: IsolationLevel, timeout_ms: int
) -> ListOffsetsRequest:
    """Return the request; the broker waits for ``timeout_ms`` for what it has in remote storage (KIP-1075)."""
    topics: dict[str, ListOffsetsTopic] = {}
    for partition, spec in asked.items():
        known = snapshot.partition(partition)
        topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic, partitions=[]))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=known.leader_epoch if known is not None else -1,
                timestamp=spec.timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=_CONSUMER, isolation_level=isolation, topics=list(topics.values()), timeout_ms=timeout_ms
    )


def _offset(partition: TopicPartition, answer: ListOffsetsPartitionResponse) -> OffsetAndTimestamp | None:
    if answer.error_code != ErrorCode.NONE:
        raise broker_error(answer.error_code, f"ListOffsets of {partition}")
    if answer.offset < 0:
        # v0 returns the start offsets of segments, newest first, after the log's end for LATEST or a future time.
        return OffsetAndTimestamp(answer.old_style_offsets[0], -1) if answer.old_style_offsets else None
    epoch = answer.leader_epoch if answer.leader_epoch >= 0 else None
    return OffsetAndTimestamp(answer.offset, answer.timestamp, epoch)


def _timeout(partition: TopicPartition, errors: Mapping[TopicPartition, KafkaError], deadline: Deadline) -> KafkaError:
    error = errors.get(partition)
    error_type = TopicNotReady if isinstance(error, BrokerError) else RequestTimeout
    timeout = error_type(f"no offset of {partition} within {deadline.allowed:g} s: {error}")
    timeout.__cause__ = error
    return timeout
