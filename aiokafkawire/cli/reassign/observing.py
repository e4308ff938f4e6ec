"""Asks brokers how far a plan is: reassignments, replicas, and their sizes."""

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from ...admin.admin import Admin
from ...admin.topic_descriptions import PartitionReassignment, TopicDescription
from ...errors import KafkaError, UnknownTopicOrPartition
from ...types import TopicPartition, TopicPartitionReplica
from ..shell.outcomes import partial_results
from .plan_file import ReassignmentPlan
from .progress import COMPLETE, MOVING, ReplicaSizes, directory_rows, partition_rows

__all__ = ("PlanState", "after_move", "describe_existing", "look_at_plan", "replica_sizes")


@attrs.frozen
class PlanState:
    """The state of a plan: rows about its partitions and log directories, and all reassignments of the cluster."""

    partitions: list[dict[str, Any]]
    directories: list[dict[str, Any]]
    ongoing: Mapping[TopicPartition, PartitionReassignment]
    """All reassignments of the cluster that are not complete."""

    @property
    def is_moving(self) -> bool:
        """Whether a partition or a replica of the plan still moves."""
        return any(row["state"] == MOVING for row in (*self.partitions, *self.directories))

    @property
    def is_complete(self) -> bool:
        """Whether all partitions and replicas are as the plan says."""
        return all(row["state"] == COMPLETE for row in (*self.partitions, *self.directories))

    @property
    def moving(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The partitions of the plan that move, with the brokers that copy them."""
        partitions = (TopicPartition(row["topic"], row["partition"]) for row in self.partitions)
        return {one: self.ongoing[one].adding_replicas for one in partitions if one in self.ongoing}

    @property
    def directories_to_go_back_to(self) -> dict[TopicPartitionReplica, str]:
        """The log directories of the replicas that move to others, which cancel the moves."""
        return {
            TopicPartitionReplica(row["topic"], row["partition"], row["node_id"]): row["log_dir"]
            for row in self.directories
            if row["state"] == MOVING and row["log_dir"] is not None
        }


async def look_at_plan(admin: Admin, plan: ReassignmentPlan) -> PlanState:
    """Return the state of a plan. Raises KafkaError if brokers cannot be asked."""
    ongoing = await admin.list_partition_reassignments()
    topics = await describe_existing(admin, {partition.topic for partition in plan.targets})
    infos = await admin.describe_replica_log_dirs(plan.log_dirs) if plan.log_dirs else {}
    rows = partition_rows(plan.targets, ongoing, topics)
    return PlanState(rows, directory_rows(plan.log_dirs, infos), ongoing)


def after_move(replicas: tuple[int, ...], move: PartitionReassignment | None) -> tuple[int, ...]:
    """Return the brokers that hold a partition when its move, if there is one, has ended.

    While it moves, the brokers that will drop it hold it, too.
    """
    dropping = () if move is None else move.removing_replicas
    return tuple(broker for broker in replicas if broker not in dropping)


async def describe_existing(admin: Admin, names: Collection[str]) -> dict[str, TopicDescription]:
    """Return the descriptions of those topics that exist. Raises the error of a topic that exists."""
    found, errors = await partial_results(names, admin.describe_topics(sorted(names)))
    for error in errors.values():
        if not isinstance(error, UnknownTopicOrPartition):
            raise error
    return {topic.name: topic for topic in found.values()}


async def replica_sizes(admin: Admin, partitions: Collection[TopicPartition]) -> ReplicaSizes:
    """Return the size of each replica in bytes; nothing of brokers that do not answer."""
    if not partitions:
        return {}
    try:
        found, _ = await partial_results((), admin.describe_log_dirs(partitions=partitions))
    except KafkaError:
        return {}
    return {
        TopicPartitionReplica(*partition, broker): info.size
        for broker, log_dirs in found.items()
        for log_dir in log_dirs.values()
        for partition, info in log_dir.replica_infos.items()
        if not info.is_future
    }
