"""The admin's requests that create, delete, extend and describe topics."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

from ..cluster.cluster import Cluster, controller
from ..cluster.retry import Deadline
from ..errors import (
    InvalidPartitions,
    KafkaError,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    WireError,
)
from ..protocol.messages.metadata import DescribeTopicPartitionsResponse, MetadataRequest, MetadataResponse
from ..protocol.schema import Versions
from .new_topics import NewPartitions, NewTopic
from .outcomes import Outcomes, ask_for_each
from .response_errors import explain_unsupported
from .topic_descriptions import CreatedTopic, TopicDescription
from .topic_messages import (
    TopicKey,
    create_partitions_request,
    create_topics_request,
    created_partitions,
    created_topics,
    delete_request_by_name,
    delete_topics_request,
    deleted_topics,
)
from .topic_metadata import TopicPages, described_topics, ids_request, names_request, page_request

__all__ = ("create_partitions", "create_topics", "delete_topics", "describe_topics")

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
# CreateTopics v0 has no validate_only.
_FLAGGED: Final = Versions.parse("1+")
# Brokers have defaults for partitions and replicas since 2.4 (KIP-464).
_DEFAULTS: Final = Versions.parse("4+")
_DELETES_BY_STATE: Final = Versions.parse("6+")  # KIP-516
_DELETES_BY_NAME: Final = Versions.parse("0-5")
_DELETED_BEFORE: Final = (UnknownTopicOrPartition, UnknownTopicId)
_WITH_OPERATIONS: Final = Versions.parse("8+")  # KIP-430
_BY_ID: Final = Versions.parse("12+")  # KIP-516


# --- creating ------------------------------------------------------------------------------------------------------


async def create_topics(
    cluster: Cluster, topics: Mapping[str, NewTopic], deadline: Deadline, *, validate_only: bool
) -> Outcomes[str, CreatedTopic]:
    """Create topics by CreateTopics requests to the controller. Raise as :meth:`Admin.create_topics`."""
    by_default = any(
        topic.assignments is None and -1 in (topic.partitions, topic.replication_factor) for topic in topics.values()
    )
    needs = "creating topics needs brokers since 0.10.1"
    if by_default:
        needs += ", and defaults need 2.4 (KIP-464): give a NewTopic with partitions and replication_factor"
    elif validate_only:
        needs += ", and validate_only needs 0.10.2"
    with explain_unsupported(needs):
        return await ask_for_each(
            cluster,
            controller,
            topics,
            deadline,
            request=lambda names: create_topics_request(
                {name: topics[name] for name in names},
                cluster.broker_timeout_ms(deadline),
                validate_only=validate_only,
            ),
            outcomes=created_topics,
            versions=_DEFAULTS if by_default else _FLAGGED if validate_only else _ANY,
            refusals=() if validate_only else (TopicAlreadyExists,),
        )


async def create_partitions(
    cluster: Cluster, topics: Mapping[str, NewPartitions], deadline: Deadline, *, validate_only: bool
) -> Outcomes[str, None]:
    """Add partitions by CreatePartitions requests to the controller. Raise as :meth:`Admin.create_partitions`."""
    with explain_unsupported("creating partitions needs brokers since 1.0 (KIP-195)"):
        return await ask_for_each(
            cluster,
            controller,
            topics,
            deadline,
            request=lambda names: create_partitions_request(
                {name: topics[name] for name in names},
                cluster.broker_timeout_ms(deadline),
                validate_only=validate_only,
            ),
            outcomes=created_partitions,
            refusals=() if validate_only else (InvalidPartitions,),
        )


# --- deleting ------------------------------------------------------------------------------------------------------


async def delete_topics(cluster: Cluster, topics: Collection[TopicKey], deadline: Deadline) -> Outcomes[TopicKey, None]:
    """Delete topics by DeleteTopics requests to the controller. Raise as :meth:`Admin.delete_topics`."""
    timeout_ms = cluster.broker_timeout_ms(deadline)
    try:
        return await ask_for_each(
            cluster,
            controller,
            topics,
            deadline,
            request=lambda pending: delete_topics_request(pending, timeout_ms),
            outcomes=lambda response: deleted_topics(topics, response),
            versions=_DELETES_BY_STATE,
            refusals=_DELETED_BEFORE,
        )
    except UnsupportedVersion as refused:
        if any(isinstance(topic, UUID) for topic in topics):
            raise UnsupportedVersion(f"deleting topics by id needs brokers since 2.8 (KIP-516): {refused}") from None
    return await ask_for_each(
        cluster,
        controller,
        topics,
        deadline,
        request=lambda pending: delete_request_by_name([str(name) for name in pending], timeout_ms),
        outcomes=lambda response: deleted_topics(topics, response),
        versions=_DELETES_BY_NAME,
        refusals=_DELETED_BEFORE,
    )


# --- describing ----------------------------------------------------------------------------------------------------


async def describe_topics(
    cluster: Cluster, topics: Collection[TopicKey], deadline: Deadline, *, operations: bool
) -> Outcomes[TopicKey, TopicDescription]:
    """Describe topics by name, by id, or both. Raise as :meth:`Admin.describe_topics`."""
    names = [topic for topic in dict.fromkeys(topics) if isinstance(topic, str)]
    ids = [topic for topic in dict.fromkeys(topics) if isinstance(topic, UUID)]
    found: Outcomes[TopicKey, TopicDescription] = {}
    # An empty DescribeTopicPartitions request would mean all topics.
    if names:
        found |= await _by_name(cluster, names, deadline, operations=operations)
    if ids:
        found |= await _by_id(cluster, ids, deadline, operations=operations)
    return {topic: found.get(topic, _missing(topic)) for topic in dict.fromkeys(topics)}


def _missing(topic: TopicKey) -> WireError:
    return WireError(f"the Metadata response lacks the requested topic {str(topic)!r}")


async def _by_name(
    cluster: Cluster, names: Sequence[str], deadline: Deadline, *, operations: bool
) -> Outcomes[TopicKey, TopicDescription]:
    """Ask for the partitions in pages, or older brokers for all in one response."""
    pages = TopicPages(names, operations=operations)
    try:
        while True:
            page: DescribeTopicPartitionsResponse = await cluster.ask(
                cluster.least_loaded, page_request(names, pages.cursor), deadline, lane=_LANE
            )
            pages.add(page)
            if pages.cursor is None:
                return pages.outcomes()
    except UnsupportedVersion:
        pass
    if operations:
        return await _by_metadata(
            cluster,
            names,
            deadline,
            lambda pending: names_request([str(name) for name in pending], operations=True),
            _WITH_OPERATIONS,
            "authorized operations need brokers since 2.3 (KIP-430)",
        )
    response = await cluster.ask_metadata(names, deadline, lane=_LANE)
    return described_topics(names, response)


async def _by_id(
    cluster: Cluster, ids: Sequence[UUID], deadline: Deadline, *, operations: bool
) -> Outcomes[TopicKey, TopicDescription]:
    return await _by_metadata(
        cluster,
        ids,
        deadline,
        lambda pending: ids_request([topic for topic in pending if isinstance(topic, UUID)], operations=operations),
        _BY_ID,
        "describing topics by id needs brokers since 3.1 (KIP-516)",
    )


async def _by_metadata(
    cluster: Cluster,
    topics: Sequence[TopicKey],
    deadline: Deadline,
    request: Callable[[list[TopicKey]], MetadataRequest],
    versions: Versions,
    needs: str,
) -> Outcomes[TopicKey, TopicDescription]:
    def outcomes(response: MetadataResponse) -> Mapping[TopicKey, TopicDescription | KafkaError]:
        return described_topics(topics, response)

    with explain_unsupported(needs):
        return await ask_for_each(
            cluster,
            cluster.least_loaded,
            topics,
            deadline,
            request=request,
            outcomes=outcomes,
            versions=versions,
            retried=(),
        )
