"""The configs that limit the rate at which moving replicas are copied (KIP-73, KIP-113)."""

from collections.abc import Container, Iterable, Mapping
from typing import Final

from ...admin.config_resources import ConfigResource
from ...admin.topic_descriptions import PartitionReassignment
from ...types import TopicPartition, TopicPartitionReplica
from .planner import Assignment

__all__ = ("ThrottleChanges", "log_dir_throttle", "removed_throttles", "throttle")

_LEADERS: Final = "leader.replication.throttled.replicas"
_FOLLOWERS: Final = "follower.replication.throttled.replicas"
_LEADER_RATE: Final = "leader.replication.throttled.rate"
_FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
_LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"

ThrottleChanges = dict[ConfigResource, dict[str, str | None]]
"""New values of configs, by resource and name; None removes a value."""


def throttle(
    targets: Assignment,
    current: Assignment,
    ongoing: Mapping[TopicPartition, PartitionReassignment],
    rate: int,
    *,
    brokers: Container[int],
) -> ThrottleChanges:
    """Return the changes that limit copying between brokers, also that of reassignments that are ongoing already.

    The brokers that hold a partition send at most ``rate`` bytes in a second to new replicas, all together, and each
    broker with new replicas receives at most as many.

    Args:
        targets: the brokers that shall hold each partition.
        current: the brokers that hold it now.
        ongoing: all reassignments that are not complete.
        rate: the limit of each broker, in bytes per second.
        brokers: the brokers that are in service; others copy nothing, and take no config.
    """
    moves = {
        partition: (set(move.replicas) - set(move.adding_replicas), set(move.adding_replicas))
        for partition, move in ongoing.items()
    }
    for partition, replicas in targets.items():
        sources = moves[partition][0] if partition in moves else set(current[partition])
        moves[partition] = sources, set(replicas) - sources
    leaders: dict[str, set[str]] = {}
    followers: dict[str, set[str]] = {}
    for partition, (sources, destinations) in moves.items():
        leaders.setdefault(partition.topic, set()).update(f"{partition.partition}:{broker}" for broker in sources)
        followers.setdefault(partition.topic, set()).update(
            f"{partition.partition}:{broker}" for broker in destinations
        )
    changes: ThrottleChanges = {
        ConfigResource.topic(topic): {_LEADERS: _joined(leaders[topic]), _FOLLOWERS: _joined(followers[topic])}
        for topic in sorted(leaders)
    }
    involved = {broker for sources, destinations in moves.values() for broker in sources | destinations}
    for broker in sorted(broker for broker in involved if broker in brokers):
        changes[ConfigResource.broker(broker)] = {_LEADER_RATE: str(rate), _FOLLOWER_RATE: str(rate)}
    return changes


def _joined(replicas: Iterable[str]) -> str:
    return ",".join(sorted(replicas))


def log_dir_throttle(replicas: Iterable[TopicPartitionReplica], rate: int) -> ThrottleChanges:
    """Return the changes that limit copying between the log directories of these replicas' brokers."""
    brokers = sorted({replica.broker_id for replica in replicas})
    return {ConfigResource.broker(broker): {_LOG_DIR_RATE: str(rate)} for broker in brokers}


def removed_throttles(topics: Iterable[str], brokers: Iterable[int]) -> ThrottleChanges:
    """Return the changes that remove all of these limits from topics and brokers."""
    changes: ThrottleChanges = {
        ConfigResource.topic(topic): dict.fromkeys((_LEADERS, _FOLLOWERS)) for topic in sorted(set(topics))
    }
    for broker in sorted(set(brokers)):
        changes[ConfigResource.broker(broker)] = dict.fromkeys((_LEADER_RATE, _FOLLOWER_RATE, _LOG_DIR_RATE))
    return changes
