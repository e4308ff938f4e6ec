"""The requests that create, delete and extend topics, and the outcomes in their responses."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from ..errors import KafkaError
from ..protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from .config_resources import ConfigEntry, ConfigSource
from .new_topics import NewPartitions, NewTopic
from .response_errors import error_of
from .topic_descriptions import CreatedTopic

__all__ = (
    "TopicKey",
    "create_partitions_request",
    "create_topics_request",
    "created_partitions",
    "created_topics",
    "delete_request_by_name",
    "delete_topics_request",
    "deleted_topics",
)

TopicKey: TypeAlias = str | UUID
"""A topic's name, or its id (KIP-516)."""


# --- creating ------------------------------------------------------------------------------------------------------


def create_topics_request(
    topics: Mapping[str, NewTopic], timeout_ms: int, *, validate_only: bool
) -> CreateTopicsRequest:
    """Return the request that creates topics, or only checks them."""
    return CreateTopicsRequest(
        topics=[_creatable(name, topic) for name, topic in topics.items()],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def _creatable(name: str, topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(topic.assignments or ())
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()],
    )


def created_topics(response: CreateTopicsResponse) -> dict[str, CreatedTopic | KafkaError]:
    """Return each topic of a response, or its error."""
    return {
        topic.name: error_of(topic.error_code, f"creating topic {topic.name!r}", topic.error_message) or _created(topic)
        for topic in response.topics
    }


def _created(topic: CreatableTopicResult) -> CreatedTopic:
    # Without the right to describe configs the counts are -1, too.
    known = topic.num_partitions >= 0 and topic.configs is not None
    return CreatedTopic(
        topic.name,
        topic.topic_id,
        topic.num_partitions if known else None,
        topic.replication_factor if known else None,
        {entry.name: _entry(entry) for entry in topic.configs or ()} if known else None,
    )


def _entry(config: CreatableTopicConfigs) -> ConfigEntry:
    known = config.config_source in tuple(ConfigSource)
    source = ConfigSource(config.config_source) if known else ConfigSource.UNKNOWN
    return ConfigEntry(config.name, config.value, source, config.is_sensitive, config.read_only)


def create_partitions_request(
    topics: Mapping[str, NewPartitions], timeout_ms: int, *, validate_only: bool
) -> CreatePartitionsRequest:
    """Return the request that adds partitions to topics, or only checks that."""
    return CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=name,
                count=topic.total_count,
                assignments=None
                if topic.assignments is None
                else [CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in topic.assignments],
            )
            for name, topic in topics.items()
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def created_partitions(response: CreatePartitionsResponse) -> dict[str, KafkaError | None]:
    """Return the error of each topic of a response; None for success."""
    return {
        topic.name: error_of(topic.error_code, f"creating partitions of topic {topic.name!r}", topic.error_message)
        for topic in response.results
    }


# --- deleting ------------------------------------------------------------------------------------------------------


def delete_topics_request(topics: Sequence[TopicKey], timeout_ms: int) -> DeleteTopicsRequest:
    """Return the request that deletes topics by name or by id (KIP-516)."""
    states = [
        DeleteTopicState(name=None, topic_id=topic) if isinstance(topic, UUID) else DeleteTopicState(name=topic)
        for topic in topics
    ]
    return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)


def delete_request_by_name(names: Sequence[str], timeout_ms: int) -> DeleteTopicsRequest:
    """Return the request that deletes topics by name, in the form for older brokers."""
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)


def deleted_topics(
    requested: Collection[TopicKey], response: DeleteTopicsResponse
) -> dict[TopicKey, KafkaError | None]:
    """Return the error of each requested topic, by name or id as it was requested; None for success."""
    found: dict[TopicKey, KafkaError | None] = {}
    wanted = set(requested)
    for topic in response.responses:
        # The response has the id of a topic that was requested by name, and mostly the name of one requested by id.
        for key in (topic.topic_id, topic.name):
            if key is not None and key in wanted:
                what = f"deleting topic {str(key)!r}"
                found.setdefault(key, error_of(topic.error_code, what, topic.error_message))
    return found
