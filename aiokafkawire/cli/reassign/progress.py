"""The progress of a plan: the state of each partition, and the bytes that are copied."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from ...admin.topic_descriptions import PartitionReassignment, ReplicaLogDirInfo, TopicDescription
from ...types import TopicPartition, TopicPartitionReplica

__all__ = (
    "COMPLETE",
    "MOVING",
    "Copied",
    "CopyTracker",
    "ReplicaSizes",
    "directory_rows",
    "partition_rows",
)

COMPLETE: Final = "complete"
MOVING: Final = "moving"
_ELSEWHERE: Final = "not moving"
_MISSING: Final = "missing"

ReplicaSizes: TypeAlias = Mapping[TopicPartitionReplica, int]
"""The size of each replica in bytes."""


def partition_rows(
    targets: Mapping[TopicPartition, tuple[int, ...]],
    ongoing: Mapping[TopicPartition, PartitionReassignment],
    topics: Mapping[str, TopicDescription],
) -> list[dict[str, Any]]:
    """Return a row about each partition of a plan.

    The state is "moving", "complete", "not moving" if it has other replicas than the plan says, or "missing" if there
    is no such partition.
    """
    rows = []
    for partition, target in targets.items():
        topic, move = topics.get(partition.topic), ongoing.get(partition)
        held = topic.partitions[partition.partition].replicas if topic and _has(topic, partition) else ()
        if move is not None:
            state = MOVING
        elif not held:
            state = _MISSING
        else:
            state = COMPLETE if tuple(held) == target else _ELSEWHERE
        rows.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "replicas": list(held if move is None else move.replicas),
                "target_replicas": list(target),
                "adding_replicas": [] if move is None else list(move.adding_replicas),
                "removing_replicas": [] if move is None else list(move.removing_replicas),
                "state": state,
            }
        )
    return rows


def _has(topic: TopicDescription, partition: TopicPartition) -> bool:
    return partition.partition < len(topic.partitions)


def directory_rows(
    targets: Mapping[TopicPartitionReplica, str], infos: Mapping[TopicPartitionReplica, ReplicaLogDirInfo]
) -> list[dict[str, Any]]:
    """Return a row about each replica for which a plan names a log directory; the states are those of partitions."""
    rows = []
    for replica, target in targets.items():
        info = infos.get(replica, ReplicaLogDirInfo())
        if info.future_log_dir is not None:
            state = MOVING
        elif info.current_log_dir is None:
            state = _MISSING
        else:
            state = COMPLETE if info.current_log_dir == target else _ELSEWHERE
        rows.append(
            {
                "topic": replica.topic,
                "partition": replica.partition,
                "node_id": replica.broker_id,
                "log_dir": info.current_log_dir,
                "target_log_dir": target,
                "future_log_dir": info.future_log_dir,
                "state": state,
            }
        )
    return rows


@attrs.frozen
class Copied:
    """How much of the replicas that move is copied; the sizes are in bytes."""

    partitions: int
    """The number of partitions that still move."""
    copied: int
    total: int


class CopyTracker:
    """Adds up what is copied, also of moves that have ended since the first look."""

    def __init__(self) -> None:
        self._whole: dict[TopicPartitionReplica, int] = {}

    def look(self, moving: Mapping[TopicPartition, Iterable[int]], sizes: ReplicaSizes) -> Copied:
        """Return how much is copied.

        Args:
            moving: the partitions that move, with the brokers that copy them.
            sizes: the size of each replica of these partitions, as far as it is known.
        """
        held: dict[tuple[str, int], dict[int, int]] = {}
        for replica, size in sizes.items():
            held.setdefault((replica.topic, replica.partition), {})[replica.broker_id] = size
        copied: dict[TopicPartitionReplica, int] = {}
        for partition, adding in moving.items():
            of_brokers, new = held.get(partition, {}), set(adding)
            whole = max((size for broker, size in of_brokers.items() if broker not in new), default=0)
            for broker in new:
                replica = TopicPartitionReplica(*partition, broker)
                self._whole[replica] = max(self._whole.get(replica, 0), whole)
                copied[replica] = min(of_brokers.get(broker, 0), self._whole[replica])
        done = sum(copied.get(replica, whole) for replica, whole in self._whole.items())
        return Copied(len(moving), done, sum(self._whole.values()))
