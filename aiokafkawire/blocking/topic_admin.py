"""The blocking admin's methods for topics, partitions and log directories."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, overload
from uuid import UUID

from ..admin.admin import Admin
from ..admin.new_topics import NewPartitions, NewTopic, NewTopics
from ..loop_thread import LoopThread
from ..types import ElectionType, TopicPartition, TopicPartitionReplica

if TYPE_CHECKING:
    from ..admin.topic_descriptions import (
        CreatedTopic,
        LogDirDescription,
        PartitionReassignment,
        ReplicaLogDirInfo,
        TopicDescription,
    )
    from ..cluster.metadata import Topic

__all__ = ("TopicAdmin",)


class TopicAdmin:
    """The methods of :class:`~.admin.Admin` for topics, partitions and log directories."""

    _loop: LoopThread
    _admin: Admin

    @overload
    def create_topics(
        self, topics: Mapping[str, int | NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> "dict[str, CreatedTopic]": ...
    @overload
    def create_topics(
        self, topics: Iterable[NewTopic] | NewTopic, *, validate_only: bool = False, timeout: float | None = None
    ) -> "dict[str, CreatedTopic]": ...
    def create_topics(
        self, topics: NewTopics, *, validate_only: bool = False, timeout: float | None = None
    ) -> "dict[str, CreatedTopic]":
        """Create topics, given as a mapping of each name to the number of partitions or a NewTopic."""
        return self._loop.call(self._admin.create_topics, topics, validate_only=validate_only, timeout=timeout)

    def delete_topics(self, topics: str | UUID | Iterable[str | UUID], *, timeout: float | None = None) -> None:
        """Delete topics, given by name or by id, with all their records."""
        self._loop.call(self._admin.delete_topics, topics, timeout=timeout)

    def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> tuple[str, ...]:
        """Return the names of all topics that this client may see, sorted."""
        return self._loop.call(self._admin.list_topics, internal=internal, timeout=timeout)

    def describe_topic(self, name: str, *, timeout: float | None = None) -> "Topic":
        """Return a topic's id, partitions, leaders and replicas from a broker's current metadata."""
        return self._loop.call(self._admin.describe_topic, name, timeout=timeout)

    def describe_topics(
        self,
        topics: str | UUID | Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> "dict[str | UUID, TopicDescription]":
        """Describe topics, given by name or by id: partitions, leaders and replicas."""
        return self._loop.call(
            self._admin.describe_topics,
            topics,
            include_authorized_operations=include_authorized_operations,
            timeout=timeout,
        )

    def partitions_of(self, topic: str, *, timeout: float | None = None) -> tuple[int, ...]:
        """Return the indexes of the topic's partitions. Raises UnknownTopicOrPartition."""
        found = self._loop.call(self._admin.describe_topic, topic, timeout=timeout)
        return tuple(partition.index for partition in found.partitions)

    def create_partitions(
        self,
        topics: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Add partitions to topics: a number for each topic counts those that exist, too."""
        self._loop.call(self._admin.create_partitions, topics, validate_only=validate_only, timeout=timeout)

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset of each partition, -1 for all; return the low watermarks."""
        return self._loop.call(self._admin.delete_records, offsets, timeout=timeout)

    # --- partitions ----------------------------------------------------------------------------------------------

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elect leaders of partitions, or of all; return False for partitions that need no election."""
        return self._loop.call(self._admin.elect_leaders, election_type, partitions, timeout=timeout)

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Start to move partitions to other brokers, or cancel that with None."""
        self._loop.call(
            self._admin.alter_partition_reassignments,
            reassignments,
            allow_replication_factor_change=allow_replication_factor_change,
            timeout=timeout,
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> "dict[TopicPartition, PartitionReassignment]":
        """Return the partitions that are moving to other brokers."""
        return self._loop.call(self._admin.list_partition_reassignments, partitions, timeout=timeout)

    # --- log directories -----------------------------------------------------------------------------------------

    def describe_log_dirs(
        self,
        brokers: Iterable[int] | int | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> "dict[int, dict[str, LogDirDescription]]":
        """Return the log directories of brokers, with the size of each replica in bytes."""
        return self._loop.call(self._admin.describe_log_dirs, brokers, partitions=partitions, timeout=timeout)

    def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], *, timeout: float | None = None
    ) -> "dict[TopicPartitionReplica, ReplicaLogDirInfo]":
        """Return the log directory of each replica, and the one to which it moves."""
        return self._loop.call(self._admin.describe_replica_log_dirs, replicas, timeout=timeout)

    def alter_replica_log_dirs(
        self, log_dirs: Mapping[TopicPartitionReplica, str], *, timeout: float | None = None
    ) -> None:
        """Start to move replicas to other log directories of their brokers."""
        self._loop.call(self._admin.alter_replica_log_dirs, log_dirs, timeout=timeout)
