"""The admin's methods for topics and their records.

The first call imports the message classes of topics.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, overload
from uuid import UUID

from ..argument_checks import INT64, check_flag, check_mapping, is_integer, items_of, shown
from ..cluster.metadata import EMPTY, Topic, is_large, merge
from ..errors import UsageError, WireError
from ..protocol.messages.metadata import MetadataResponseTopic
from ..protocol.primitives import ZERO_UUID
from ..types import TopicPartition, check_partition, check_topic_name
from .admin_base import AdminBase
from .new_topics import NewPartitions, NewTopic, NewTopics, checked_partitions, named_topics
from .outcomes import results_of
from .response_errors import raise_for

if TYPE_CHECKING:
    from .topic_descriptions import CreatedTopic, TopicDescription

__all__ = ("TopicAdmin",)

_LANE: Final = "admin"
_UNMARKED: Final = ("__consumer_offsets",)
"""Internal topics that brokers before 0.10 do not mark as internal."""
_ALL_RECORDS: Final = -1


class TopicAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for topics and their records."""

    # Two signatures: where an iterable is possible too, mypy takes {"a": 1, "b": NewTopic(2)} for a dict[str, object].
    @overload
    async def create_topics(
        self, topics: Mapping[str, int | NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> "dict[str, CreatedTopic]": ...
    @overload
    async def create_topics(
        self, topics: Iterable[NewTopic] | NewTopic, *, validate_only: bool = False, timeout: float | None = None
    ) -> "dict[str, CreatedTopic]": ...
    async def create_topics(
        self, topics: NewTopics, *, validate_only: bool = False, timeout: float | None = None
    ) -> "dict[str, CreatedTopic]":
        """Create topics, given as a mapping of names to partition counts or NewTopic, or as NewTopics with names.

        With ``validate_only`` the broker checks the request without creating topics (brokers since 0.10.2). Topics
        beyond the client's quota of changes are created when the quota permits (KIP-599).

        Returns:
            The topics as created, with their ids, partitions and configs.

        Raises:
            TopicAlreadyExists, InvalidPartitions, ...: the controller rejected the only topic.
            ThrottlingQuotaExceeded: the quota of changes does not permit the topic within the timeout.
            AdminError: the controller rejected some of several topics; others are created.
            UnsupportedVersion: the brokers are too old.
            UsageError: a topic's name or an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .topic_requests import create_topics

        check_flag("validate_only", validate_only)
        named = named_topics(topics)
        outcomes = await create_topics(self._cluster, named, self._deadline(timeout), validate_only=validate_only)
        return results_of("creating topics", outcomes)

    async def delete_topics(self, topics: str | UUID | Iterable[str | UUID], *, timeout: float | None = None) -> None:
        """Delete a topic or several topics, with all their records.

        Topics beyond the client's quota of changes are deleted when the quota permits (KIP-599).

        Args:
            topics: the names of the topics, or their ids (KIP-516, brokers since 2.8).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            UnknownTopicOrPartition, UnknownTopicId, ...: the controller rejected the only topic.
            ThrottlingQuotaExceeded: the quota of changes does not permit the deletion within the timeout.
            AdminError: the controller rejected some of several topics; others are deleted.
            UnsupportedVersion: the brokers are too old.
            UsageError: a topic's name or id is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .topic_requests import delete_topics

        outcomes = await delete_topics(self._cluster, _names_or_ids(topics), self._deadline(timeout))
        results_of("deleting topics", outcomes)

    async def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> tuple[str, ...]:
        """Return the sorted names of all topics that this client may see; with ``internal`` also internal topics."""
        check_flag("internal", internal)
        response = await self._cluster.ask_metadata(None, self._deadline(timeout), lane=_LANE)
        if is_large(response):
            return await self._cluster.runtime.offload(_names, response.topics, internal)
        return _names(response.topics, internal)

    async def describe_topic(self, name: str, *, timeout: float | None = None) -> Topic:
        """Return a topic's id, partitions, leaders and replicas from a broker's current metadata.

        Raises:
            UnknownTopicOrPartition, ...: the broker answered with an error.
        """
        check_topic_name(name)
        response = await self._cluster.ask_metadata([name], self._deadline(timeout), lane=_LANE)
        topic = merge(EMPTY, response).topics.get(name)
        if topic is None:
            raise WireError(f"the Metadata response lacks the requested topic {name!r}")
        raise_for(topic.error, f"describing topic {name!r}")
        return topic

    async def describe_topics(
        self,
        topics: str | UUID | Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> "dict[str | UUID, TopicDescription]":
        """Return the ids, partitions, leaders and replicas of topics, by name or id as requested.

        Brokers since 3.8 return the partitions of topics by name in pages, with the eligible leader replicas (KIP-966).

        Args:
            topics: the names of the topics, or their ids (KIP-516, brokers since 3.1).
            include_authorized_operations: whether to include the ACL operations that this client may perform on each
                topic (KIP-430, brokers since 2.3).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            UnknownTopicOrPartition, UnknownTopicId, TopicAuthorizationFailed, ...: a broker answered with an error for
                the only topic.
            AdminError: some of several topics have errors; ``results`` has the others.
            UnsupportedVersion: the brokers are too old.
            UsageError: a topic's name or id is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .topic_requests import describe_topics

        check_flag("include_authorized_operations", include_authorized_operations)
        requested = _names_or_ids(topics)
        deadline = self._deadline(timeout)
        outcomes = await describe_topics(self._cluster, requested, deadline, operations=include_authorized_operations)
        return results_of("describing topics", outcomes)

    async def create_partitions(
        self,
        topics: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Add partitions to topics (KIP-195, brokers since 1.0).

        Keys go to other partitions from then on; records stay where they are. Topics beyond the client's quota of
        changes get their partitions when the quota permits (KIP-599).

        Args:
            topics: the number of partitions that each topic shall have, with those that exist: ``{"orders": 12}``; or
                NewPartitions, which names the brokers of the new ones.
            validate_only: whether the controller only checks the request.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            InvalidPartitions, InvalidReplicaAssignment, UnknownTopicOrPartition, ...: the controller rejected the only
                topic.
            ThrottlingQuotaExceeded: the quota of changes does not permit the partitions within the timeout.
            AdminError: the controller rejected some of several topics; others have their partitions.
            UnsupportedVersion: the brokers are too old.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .topic_requests import create_partitions

        check_flag("validate_only", validate_only)
        checked = checked_partitions(topics)
        outcomes = await create_partitions(self._cluster, checked, self._deadline(timeout), validate_only=validate_only)
        results_of("creating partitions", outcomes)

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset of each partition (KIP-107, brokers since 0.11).

        Args:
            offsets: the offset of the first record to keep, by partition; -1 deletes all records up to the high
                watermark: ``{TopicPartition("orders", 0): 100}``.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Returns:
            The low watermark of each partition: its first offset now.

        Raises:
            OffsetOutOfRange: the offset is beyond the high watermark of the only partition.
            PolicyViolation: the topic is compacted without ``delete`` in its ``cleanup.policy``.
            UnknownTopicOrPartition, TopicAuthorizationFailed, ...: a broker rejected the only partition.
            LeaderNotAvailable: the only partition has no leader within the timeout.
            AdminError: brokers rejected some of several partitions; ``results`` has the others.
            UnsupportedVersion: the brokers are too old.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .record_deletion import delete_records

        check_mapping("offsets", offsets, "{TopicPartition('orders', 0): 100}")
        checked = {}
        for given, offset in offsets.items():
            partition = check_partition(given)
            if not is_integer(offset, _ALL_RECORDS, INT64):
                expected = "an offset, or -1 for all records"
                raise UsageError(f"the records of {partition} can be deleted before {expected}; got {shown(offset)}")
            checked[partition] = offset
        outcomes = await delete_records(self._cluster, checked, self._deadline(timeout))
        return results_of("deleting records", outcomes)


def _names_or_ids(topics: object) -> list[str | UUID]:
    """Return a user's topics, given by name or id, as a list.

    Raises:
        UsageError: the argument is neither a topic nor a collection of topics.
    """
    given = [topics] if isinstance(topics, str | UUID) else items_of("topics", topics, "['orders']")
    for topic in given:
        if isinstance(topic, UUID):
            if topic == ZERO_UUID:
                raise UsageError("a topic's id cannot be all zeros, which stands for no id")
        else:
            check_topic_name(topic)
    return given


def _names(topics: list[MetadataResponseTopic], internal: bool) -> tuple[str, ...]:
    """Return the sorted names, without those of internal topics unless ``internal``; empty the list ``topics``.

    Freeing the partitions of all topics, perhaps 100,000, at once would block the event loop.
    """
    found = []
    while topics:
        topic = topics.pop()
        if topic.name and (internal or not (topic.is_internal or topic.name in _UNMARKED)):
            found.append(topic.name)
    return tuple(sorted(found))
