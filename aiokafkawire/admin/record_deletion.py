"""The admin's DeleteRecords requests, each to the leader of the partitions (KIP-107)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ..cluster.cluster import Cluster
from ..cluster.metadata import EMPTY, Node, Snapshot, merge
from ..cluster.retry import Deadline, retry_action
from ..errors import (
    ErrorCode,
    KafkaError,
    UnknownTopicOrPartition,
    WireError,
    broker_error,
)
from ..protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ..types import TopicPartition
from .concurrent_outcomes import ask_again, ask_by_batch, raise_if_unsupported
from .outcomes import Outcomes
from .response_errors import error_of, explain_unsupported

__all__ = ("delete_records",)

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
    patience = cluster.deadline(min(_NEW_TOPIC_PATIENCE, deadline.left(cluster.runtime.now()) / 2))

    async def ask(partitions: list[TopicPartition]) -> Outcomes[TopicPartition, int]:
        topics = list(dict.fromkeys(partition.topic for partition in partitions))
        response = await cluster.ask_metadata(topics, deadline, lane=_LANE)
        by_leader, failed = _partitions_by_leader(partitions, merge(EMPTY, response))
        return {**failed, **await _ask_leaders(cluster, by_leader, offsets, deadline)}

    def may_pass(error: KafkaError) -> bool:
        if isinstance(error, UnknownTopicOrPartition) and patience.passed(cluster.runtime.now()):
            return False
        return retry_action(error).retry

    return raise_if_unsupported(await ask_again(cluster, offsets, deadline, ask, may_pass))


def _partitions_by_leader(
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
) -> Outcomes[TopicPartition, int]:
    """Send requests to all leaders concurrently; return the low watermark or the error of each partition."""

    async def ask(node: Node) -> Outcomes[TopicPartition, int]:
        partitions = by_leader[node]
        request = _request(
            {partition: offsets[partition] for partition in partitions}, cluster.broker_timeout_ms(deadline)
        )
        with explain_unsupported("deleting records needs brokers since 0.11 (KIP-107)"):
            connection = await cluster.connection(node, _LANE, deadline)
            response = await connection.request(request, timeout=deadline.left(cluster.runtime.now()))
        return _low_watermarks(partitions, response)

    return await ask_by_batch(by_leader, ask)


def _request(offsets: Mapping[TopicPartition, int], timeout_ms: int) -> DeleteRecordsRequest:
    """Return the request that deletes the records before each offset."""
    topics: dict[str, DeleteRecordsTopic] = {}
    for partition, offset in offsets.items():
        topic = topics.setdefault(partition.topic, DeleteRecordsTopic(name=partition.topic, partitions=[]))
        topic.partitions.append(DeleteRecordsPartition(partition_index=partition.partition, offset=offset))
    return DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=timeout_ms)


def _low_watermarks(
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
        else:
            error = error_of(answer.error_code, f"deleting records of {partition}")
            found[partition] = answer.low_watermark if error is None else error
    return found
