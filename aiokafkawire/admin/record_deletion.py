"""The admin's DeleteRecords requests, each to the leader of the partitions (KIP-107)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import anyio

from ..cluster.cluster import Cluster
from ..cluster.metadata import EMPTY, Node, Snapshot, merge
from ..cluster.retry import Deadline, is_better_cause, retry_action
from ..errors import (
    ErrorCode,
    KafkaError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    WireError,
    broker_error,
)
from ..protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ..runtime import background_tasks
from ..types import TopicPartition
from .outcomes import Outcomes
from .topic_requests import broker_timeout_ms

__all__ = ("delete_records", "delete_records_request", "low_watermarks", "partitions_by_leader")

_LANE: Final = "admin"
_NEW_TOPIC_PATIENCE: Final = 0.5
"""The seconds in which brokers learn about a topic that was created by a request to another broker."""


async def delete_records(
    cluster: Cluster, offsets: Mapping[TopicPartition, int], deadline: Deadline
) -> Outcomes[TopicPartition, int]:
    """Delete the records before an offset of each partition. Raise as :meth:`Admin.delete_records`.

    Partitions with retriable errors are tried again with new metadata until the deadline; those that do not exist for
    half a second, in which brokers learn about new topics.
    """
    found: Outcomes[TopicPartition, int] = {}
    errors: dict[TopicPartition, KafkaError] = {}
    left, backoff = dict(offsets), cluster.backoff()
    patience = cluster.deadline(min(_NEW_TOPIC_PATIENCE, deadline.left(cluster.runtime.now()) / 2))
    while left:
        topics = list(dict.fromkeys(partition.topic for partition in left))
        try:
            response = await cluster.ask_metadata(topics, deadline, lane=_LANE)
        except KafkaError:
            if not errors and not found:
                raise
            break  # the partitions keep their errors
        by_leader, failed = partitions_by_leader(left, merge(EMPTY, response))
        outcomes: dict[TopicPartition, int | KafkaError] = {**failed}
        await _ask_leaders(cluster, by_leader, offsets, deadline, outcomes)
        now = cluster.runtime.now()
        for partition, outcome in outcomes.items():
            is_missing = isinstance(outcome, UnknownTopicOrPartition)
            if (
                not isinstance(outcome, KafkaError)
                or not retry_action(outcome).retry
                or (is_missing and patience.passed(now))
            ):
                found[partition] = outcome
            elif is_better_cause(outcome, errors.get(partition)):
                errors[partition] = outcome
        left = {partition: offset for partition, offset in left.items() if partition not in found}
        wait = backoff.next()
        if left and wait >= deadline.left(now):
            break
        if left:
            await anyio.sleep(wait)
    return {partition: found[partition] if partition in found else errors[partition] for partition in offsets}


def partitions_by_leader(
    partitions: Iterable[TopicPartition], snapshot: Snapshot
) -> tuple[dict[Node, list[TopicPartition]], dict[TopicPartition, KafkaError]]:
    """Return the partitions that each broker leads, and the errors of partitions without a known leader."""
    led: dict[Node, list[TopicPartition]] = {}
    errors: dict[TopicPartition, KafkaError] = {}
    for partition in partitions:
        topic, leader = snapshot.topics.get(partition.topic), snapshot.leader(partition)
        if leader is not None:
            led.setdefault(leader, []).append(partition)
            continue
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error
        if code == ErrorCode.NONE:
            exists = snapshot.partition(partition) is not None
            code = ErrorCode.LEADER_NOT_AVAILABLE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        errors[partition] = broker_error(code, f"deleting records of {partition}")
    return led, errors


async def _ask_leaders(
    cluster: Cluster,
    by_leader: Mapping[Node, Collection[TopicPartition]],
    offsets: Mapping[TopicPartition, int],
    deadline: Deadline,
    outcomes: dict[TopicPartition, int | KafkaError],
) -> None:
    """Send requests to all leaders concurrently, and add the outcome of each partition to ``outcomes``."""
    failures: list[Exception] = []

    async def ask(node: Node, partitions: Collection[TopicPartition]) -> None:
        request = delete_records_request(
            {partition: offsets[partition] for partition in partitions}, broker_timeout_ms(cluster, deadline)
        )
        try:
            connection = await cluster.connection(node, _LANE, deadline)
            response = await connection.request(request, timeout=deadline.left(cluster.runtime.now()))
        except UnsupportedVersion as refused:
            needs = UnsupportedVersion(f"deleting records needs brokers since 0.11 (KIP-107): {refused}")
            outcomes.update(dict.fromkeys(partitions, needs))
        except KafkaError as error:
            outcomes.update(dict.fromkeys(partitions, error))
        except Exception as failure:  # raised below, without an exception group
            failures.append(failure)
            tasks.cancel_scope.cancel()
        else:
            outcomes.update(low_watermarks(partitions, response))

    async with background_tasks() as tasks:
        for node, partitions in by_leader.items():
            tasks.start_soon(ask, node, partitions)
    if failures:
        raise failures[0]


def delete_records_request(offsets: Mapping[TopicPartition, int], timeout_ms: int) -> DeleteRecordsRequest:
    """Return the request that deletes the records before each offset."""
    topics: dict[str, DeleteRecordsTopic] = {}
    for partition, offset in offsets.items():
        topic = topics.setdefault(partition.topic, DeleteRecordsTopic(name=partition.topic, partitions=[]))
        topic.partitions.append(DeleteRecordsPartition(partition_index=partition.partition, offset=offset))
    return DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=timeout_ms)


def low_watermarks(
    partitions: Iterable[TopicPartition], response: DeleteRecordsResponse
) -> dict[TopicPartition, int | KafkaError]:
    """Return the low watermark of each partition, which is its first offset now, or its error."""
    answers = {
        TopicPartition(topic.name, answer.partition_index): answer
        for topic in response.topics
        for answer in topic.partitions
    }
    found: dict[TopicPartition, int | KafkaError] = {}
    for partition in partitions:
        answer = answers.get(partition)
        if answer is None:
            found[partition] = WireError(f"the DeleteRecords response lacks the requested {partition}")
        elif answer.error_code != ErrorCode.NONE:
            found[partition] = broker_error(answer.error_code, f"deleting records of {partition}")
        else:
            found[partition] = answer.low_watermark
    return found
