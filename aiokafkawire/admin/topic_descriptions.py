"""Descriptions of topics, partitions and log directories that the admin returns."""

from collections.abc import Mapping
from uuid import UUID

import attrs

from ..errors import KafkaError
from ..types import TopicPartition
from .config_resources import ConfigEntry

__all__ = (
    "CreatedTopic",
    "LogDirDescription",
    "PartitionDescription",
    "PartitionReassignment",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "TopicDescription",
)


@attrs.frozen
class CreatedTopic:
    """A topic that was created, or that would be created, with ``validate_only``.

    ``topic_id`` is all zeros from brokers before 2.8, and with ``validate_only`` the id of no topic. ``partitions`` is
    the number of partitions, ``replication_factor`` that of replicas, and ``configs`` are the topic's configs by name
    (KIP-525). The last three are None from brokers before 2.4, and if this client may not describe the topic's configs.
    """

    name: str
    topic_id: UUID
    partitions: int | None
    replication_factor: int | None
    configs: Mapping[str, ConfigEntry] | None = attrs.field(hash=False)


@attrs.frozen
class PartitionDescription:
    """A partition, with the ids of its brokers.

    ``leader`` is None while there is no leader, and ``leader_epoch`` is -1 from brokers before 2.1. ``replicas`` are
    the brokers that hold the partition, the preferred leader first; ``in_sync`` those that have all records, and
    ``offline`` those that are down. ``eligible_leader_replicas`` are not in sync but have all committed records, and
    ``last_known_elr`` are the last ones before none was left (KIP-966; both None if the brokers do not return them).
    """

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@attrs.frozen
class TopicDescription:
    """A topic with its partitions, in order of their index.

    ``topic_id`` is all zeros from brokers before 2.8. ``authorized_operations`` are the ACL operations that this client
    may perform on the topic, such as "READ" (KIP-430); None if they were not requested.
    """

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: frozenset[str] | None = None


@attrs.frozen
class PartitionReassignment:
    """A partition that is moving to other brokers (KIP-455).

    ``replicas`` are all brokers that hold it now; of these ``adding_replicas`` are still copying it, and
    ``removing_replicas`` will drop it when the copies are complete.
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


@attrs.frozen
class ReplicaInfo:
    """A replica in a log directory.

    ``size`` is in bytes. ``offset_lag`` is the number of offsets behind the high watermark, or those that a future
    replica has still to copy; -1 if it is not known. A replica that ``is_future`` is being copied here by
    ``alter_replica_log_dirs``, and will replace the current one.
    """

    size: int
    offset_lag: int
    is_future: bool = False


@attrs.frozen
class LogDirDescription:
    """A log directory of a broker, and the replicas in it.

    ``error`` is KafkaStorageError if the directory is offline. ``total_bytes`` and ``usable_bytes`` are those of its
    volume (KIP-827; None from brokers before 3.3). A directory that ``is_cordoned`` takes no new replicas (KIP-1066).
    """

    error: KafkaError | None
    replica_infos: Mapping[TopicPartition, ReplicaInfo] = attrs.field(hash=False)
    total_bytes: int | None = None
    usable_bytes: int | None = None
    is_cordoned: bool = False


@attrs.frozen
class ReplicaLogDirInfo:
    """The log directory of a replica, and the one to which it moves.

    ``current_offset_lag`` is the number of offsets behind the high watermark, and ``future_offset_lag`` the number that
    the move has still to copy; -1 if it is not known. The directories are None if the broker has no such replica, or
    if the replica does not move.
    """

    current_log_dir: str | None = None
    current_offset_lag: int = -1
    future_log_dir: str | None = None
    future_offset_lag: int = -1
