"""The admin: topics made, deleted, listed and described, offsets looked up; groups are in :mod:`.groups`."""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from ..cluster.cluster import controller
from ..cluster.forms import Form, in_newest_form
from ..cluster.metadata import EMPTY, Topic, is_large, merge
from ..cluster.offsets import look_up_offsets
from ..cluster.retry import Deadline
from ..errors import ErrorCode, NotController, UnsupportedVersion, UsageError, WireError, broker_error
from ..protocol.messages.metadata import MetadataResponseTopic
from ..protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ..protocol.schema import Request, Versions
from ..types import OffsetAndTimestamp, OffsetSpec, TopicPartition, check_partition, check_topic_name
from .groups import AdministersGroups

__all__ = ("Admin", "NewTopic")

_LANE = "admin"


@attrs.frozen
class NewTopic:
    """A topic to create. -1 leaves the number to the brokers (``num.partitions``, ``default.replication.factor``)."""

    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = attrs.field(factory=dict)


class Admin(AdministersGroups):
    """Changes and describes the cluster; it is at :attr:`Client.admin`.

    Every ``timeout`` is in seconds, ``default_api_timeout_ms`` if not given; past it, RequestTimeout is raised.
    """

    async def create_topics(
        self, topics: Mapping[str, int | NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> None:
        """Create topics: by name, with a number of partitions or a :class:`NewTopic`.

        Raises:
            TopicAlreadyExists, InvalidPartitions, ...: the first that the broker refuses; the others may exist.
            UsageError: a name that no broker takes.
        """
        wanted = [_creatable(name, topic) for name, topic in topics.items()]
        deadline = self._deadline(timeout)
        request = CreateTopicsRequest(
            topics=wanted, timeout_ms=self._milliseconds(deadline), validate_only=validate_only
        )
        by_default = any(-1 in (topic.num_partitions, topic.replication_factor) for topic in wanted)
        wanted_versions = _DEFAULTS if by_default else _FLAGGED if validate_only else _ANY
        try:
            response = await self._cluster.ask(
                controller, request, deadline, lane=_LANE, wanted=wanted_versions, check=_by_the_controller
            )
        except UnsupportedVersion as refused:
            raise _explained(refused, by_default=by_default, validate_only=validate_only) from None
        for topic in response.topics:
            _raise_for(topic.error_code, f"creating topic {topic.name!r}", topic.error_message)

    async def delete_topics(self, topics: Iterable[str], *, timeout: float | None = None) -> None:
        """Delete topics with all their records.

        Raises:
            UnknownTopicOrPartition, ...: the first that the broker refuses; the others may be gone.
            UsageError: a name that no broker takes.
        """
        names = [topics] if isinstance(topics, str) else list(topics)
        for name in names:
            check_topic_name(name)
        deadline = self._deadline(timeout)
        milliseconds = self._milliseconds(deadline)
        newer = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=milliseconds)
        older = DeleteTopicsRequest(topic_names=names, timeout_ms=milliseconds)

        async def ask(request: Request[DeleteTopicsResponse], wanted: Versions) -> DeleteTopicsResponse:
            return await self._cluster.ask(
                controller, request, deadline, lane=_LANE, wanted=wanted, check=_by_the_controller
            )

        response = await in_newest_form((Form(newer, _DELETES_BY_STATE), Form(older, _DELETES_BY_NAME)), ask)
        for topic in response.responses:
            _raise_for(topic.error_code, f"deleting topic {topic.name!r}", topic.error_message)

    async def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> tuple[str, ...]:
        """The names of all topics that this client may see, sorted; with ``internal``, Kafka's own as well."""
        response = await self._cluster.ask_metadata(None, self._deadline(timeout), lane=_LANE)
        if is_large(response):
            return await self._cluster.runtime.offload(_names, response.topics, internal)
        return _names(response.topics, internal)

    async def describe_topic(self, name: str, *, timeout: float | None = None) -> Topic:
        """A topic's id, partitions, leaders and replicas, as a broker knows them now.

        Raises:
            UnknownTopicOrPartition, ...: what the broker answers.
        """
        check_topic_name(name)
        response = await self._cluster.ask_metadata([name], self._deadline(timeout), lane=_LANE)
        topic = merge(EMPTY, response).topics.get(name)
        if topic is None:
            raise WireError(f"the answer to Metadata lacks topic {name!r}, which was asked")
        _raise_for(topic.error, f"describing topic {name!r}", None)
        return topic

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look offsets up: the beginning, the end, or by time; None where no record is that late.

        Brokers before 0.10.1 know times of whole segments alone: an offset by time is then up to one segment
        (``log.segment.bytes``) too early, never too late, and has no timestamp (-1). Where no record is that late, it
        is the end.

        Raises:
            TopicNotReady: a partition has no leader in time.
            UsageError: a topic has no such partition.
        """
        asked = {check_partition(where): spec for where, spec in specs.items()}
        return await look_up_offsets(self._cluster, asked, self._deadline(timeout))

    def _milliseconds(self, deadline: Deadline) -> int:
        """How long the broker may take; beyond ``request_timeout_ms`` its answer would come too late."""
        return min(int(deadline.allowed * 1000), self._cluster.config.request_timeout_ms)


# v0 of CreateTopics cannot only validate.
_FLAGGED = Versions.parse("1+")
# Brokers have defaults for both numbers since 2.4 (KIP-464).
_DEFAULTS = Versions.parse("4+")
_ANY = Versions.parse("0+")
_DELETES_BY_STATE = Versions.parse("6+")  # KIP-516
_DELETES_BY_NAME = Versions.parse("0-5")
_UNMARKED: Final = ("__consumer_offsets",)
"""Topics of Kafka's own that brokers before 0.10 do not mark as such."""


def _creatable(name: str, topic: int | NewTopic) -> CreatableTopic:
    check_topic_name(name)
    new = NewTopic(topic) if isinstance(topic, int) else topic
    if isinstance(topic, bool) or not (new.partitions == -1 or new.partitions > 0):
        raise UsageError(f"topic {name!r} needs at least 1 partition, or -1 for the brokers' default; got {topic!r}")
    return CreatableTopic(
        name=name,
        num_partitions=new.partitions,
        replication_factor=new.replication_factor,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in new.configs.items()],
    )


def _explained(refused: UnsupportedVersion, *, by_default: bool, validate_only: bool) -> UnsupportedVersion:
    why = "topics are created by brokers since 0.10.1"
    if by_default:
        why += ", and with defaults since 2.4 (KIP-464): give a NewTopic with partitions and replication_factor"
    elif validate_only:
        why += ", and validated without that since 0.10.2"
    return UnsupportedVersion(f"{why}: {refused}")


def _names(topics: list[MetadataResponseTopic], internal: bool) -> tuple[str, ...]:
    """Their names, sorted. Takes the list apart: freeing 100,000 partitions at once would hold the event loop."""
    found = []
    while topics:
        topic = topics.pop()
        if topic.name and (internal or not (topic.is_internal or topic.name in _UNMARKED)):
            found.append(topic.name)
    return tuple(sorted(found))


def _by_the_controller(response: CreateTopicsResponse | DeleteTopicsResponse) -> None:
    """Only another controller is worth another try: what this one refuses, it refuses again."""
    topics = response.topics if isinstance(response, CreateTopicsResponse) else response.responses
    for topic in topics:
        if topic.error_code == ErrorCode.NOT_CONTROLLER:
            raise NotController(f"topic {topic.name!r}")


def _raise_for(code: int, what: str, said: str | None) -> None:
    if code != ErrorCode.NONE:
        raise broker_error(code, f"{what}: {said}" if said else what)
