"""The rows of tables about topics and partitions."""

from collections.abc import Iterable, Mapping
from typing import Any

from ...admin.config_resources import ConfigEntry, ConfigSource
from ...admin.topic_descriptions import PartitionDescription, PartitionReassignment, TopicDescription
from ...types import TopicPartition
from ..shell.kafka_uuids import uuid_text

__all__ = (
    "is_at_min_isr",
    "is_below_min_isr",
    "is_unavailable",
    "is_under_replicated",
    "own_configs",
    "partition_row",
    "topic_row",
)

OwnConfigs = Mapping[str, str | None]
"""The configs that are set on a topic itself; None hides the value of a sensitive one."""


def own_configs(configs: Mapping[str, ConfigEntry]) -> dict[str, str | None]:
    """Return the configs that are set on the topic itself."""
    return {name: entry.value for name, entry in configs.items() if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG}


def topic_row(topic: TopicDescription, configs: OwnConfigs | None) -> dict[str, Any]:
    """Return the row of a topic; ``configs`` is None if they are not known."""
    shown = None if configs is None else [f"{name}={value}" for name, value in configs.items()]
    return {
        "topic": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "partitions": len(topic.partitions),
        "replication_factor": min((len(one.replicas) for one in topic.partitions), default=0),
        "configs": shown,
    }


def partition_row(
    topic: TopicDescription, partition: PartitionDescription, configs: OwnConfigs | None
) -> dict[str, Any]:
    """Return the row of a partition, with what JSON has of its topic."""
    return {
        "topic": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "partition": partition.index,
        "leader_id": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": partition.replicas,
        "isr": partition.in_sync,
        "offline_replicas": partition.offline,
        "elr": partition.eligible_leader_replicas,
        "last_known_elr": partition.last_known_elr,
        "configs": None if configs is None else dict(configs),
    }


def is_unavailable(partition: PartitionDescription, brokers: Iterable[int]) -> bool:
    """Return whether none of the brokers in service leads the partition."""
    return partition.leader is None or partition.leader not in brokers


def is_below_min_isr(partition: PartitionDescription, min_isr: int) -> bool:
    """Return whether fewer replicas are in sync than acks=all needs."""
    return len(partition.in_sync) < min_isr


def is_at_min_isr(partition: PartitionDescription, min_isr: int) -> bool:
    """Return whether as many replicas are in sync as acks=all needs, so that none may fail."""
    return len(partition.in_sync) == min_isr


def is_under_replicated(
    where: TopicPartition, partition: PartitionDescription, moving: Mapping[TopicPartition, PartitionReassignment]
) -> bool:
    """Return whether a replica is not in sync; new replicas of a reassignment do not count."""
    adding = moving[where].adding_replicas if where in moving else ()
    return len(partition.in_sync) < len(partition.replicas) - len(adding)
