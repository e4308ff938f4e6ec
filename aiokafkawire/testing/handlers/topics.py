"""CreateTopics and DeleteTopics."""

from collections import Counter
from uuid import UUID

from ...errors import ErrorCode
from ...protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ...protocol.primitives import ZERO_UUID
from ..cluster.api_error import ApiError
from ..cluster.state import ClusterState
from ..cluster.topics import MOST_PARTITIONS, HostedTopic
from ..serving.call import ServerCall
from .configs import topic_entries
from .mutations import Mutations

__all__ = ("create_topics", "delete_topics")


async def create_topics(call: ServerCall, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create each requested topic; an error of one topic does not affect other topics."""
    times, mutations = Counter(topic.name for topic in request.topics), Mutations(call, strict_since=6)
    partitions = sum(_partitions(call.cluster, topic) for topic in request.topics)
    results = {}
    for asked in request.topics:
        try:
            if partitions > MOST_PARTITIONS:
                raise ApiError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
            if times[asked.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if mutations.limited:
                mutations.record(len(_create(call.cluster, asked, validate_only=True).partitions))
            topic = _create(call.cluster, asked, request.validate_only)
            results[asked.name] = _created(topic, call.node.node_id)
        except ApiError as refused:
            results[asked.name] = CreatableTopicResult(
                name=asked.name, error_code=refused.code, error_message=refused.message
            )
    return CreateTopicsResponse(topics=list(results.values()), throttle_time_ms=mutations.throttle_time_ms)


async def delete_topics(call: ServerCall, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete each requested topic, which is given by name or by id."""
    topics = request.topics if call.version >= 6 else [DeleteTopicState(name=name) for name in request.topic_names]
    times = Counter((topic.name, topic.topic_id) for topic in topics)
    mutations = Mutations(call, strict_since=5)
    responses = []
    requested: dict[UUID, list[HostedTopic]] = {}
    for asked in {(topic.name, topic.topic_id): topic for topic in topics}.values():
        try:
            if times[asked.name, asked.topic_id] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            found = _find(call.cluster, asked)
            requested.setdefault(found.topic_id, []).append(found)
        except ApiError as refused:
            responses.append(_refused(asked.name, asked.topic_id, refused))
    responses += [_deleted(call, mutations, *found) for found in requested.values()]
    return DeleteTopicsResponse(responses=responses, throttle_time_ms=mutations.throttle_time_ms)


def _deleted(call: ServerCall, mutations: Mutations, topic: HostedTopic, *again: HostedTopic) -> DeletableTopicResult:
    """Delete a topic, unless it is requested both by name and by id."""
    try:
        if again:
            fault = "The provided topic name maps to an ID that was already supplied."
            raise ApiError(ErrorCode.INVALID_REQUEST, fault)
        mutations.record(len(topic.partitions))
    except ApiError as refused:
        return _refused(topic.name, topic.topic_id, refused)
    call.cluster.delete_topic(topic)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=ErrorCode.NONE)


def _refused(name: str | None, topic_id: UUID, error: ApiError) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=error.message)


def _partitions(cluster: ClusterState, asked: CreatableTopic) -> int:
    if asked.assignments:
        return len(asked.assignments)
    return cluster.settings.num_partitions if asked.num_partitions == -1 else max(0, asked.num_partitions)


def _create(cluster: ClusterState, asked: CreatableTopic, validate_only: bool) -> HostedTopic:
    assignments: dict[int, list[int]] = {}
    for assignment in asked.assignments:
        if assignment.partition_index in assignments:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        assignments[assignment.partition_index] = assignment.broker_ids
    configs: dict[str, str] = {}
    for config in asked.configs:
        if config.value is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {config.name}")
        configs[config.name] = config.value
    return cluster.topics.create(
        asked.name,
        num_partitions=asked.num_partitions,
        replication_factor=asked.replication_factor,
        assignments=assignments,
        configs=configs,
        validate_only=validate_only,
    )


def _created(topic: HostedTopic, node: int) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.config_source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in sorted(topic_entries(topic, node), key=lambda entry: entry.name)
        ],
    )


def _find(cluster: ClusterState, asked: DeleteTopicState) -> HostedTopic:
    if asked.topic_id != ZERO_UUID:
        if asked.name is not None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        topic = cluster.topics.by_id(asked.topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return topic
    if asked.name is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    topic = cluster.topics.get(asked.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return topic
