"""Proposes a plan for topics, from the brokers and racks of a cluster."""

from collections.abc import Collection

import attrs

from ...admin.admin import Admin
from ...errors import KafkaError
from ...types import TopicPartition, TopicPartitionReplica
from ..exit_status import FAILED, CommandFailed
from ..shell.outcomes import partial_results
from ..topics.asking import moving_partitions
from .observing import after_move, replica_sizes
from .planner import Assignment, plan_assignment

__all__ = ("Proposal", "present_assignment", "present_log_dirs", "propose")


@attrs.frozen
class Proposal:
    """A plan, and what it would move."""

    before: Assignment
    after: Assignment
    copied: int
    """The bytes to copy, as far as they are known."""

    @property
    def moves(self) -> int:
        """The number of replicas that would be copied to other brokers."""
        return sum(len(set(brokers) - set(self.before[partition])) for partition, brokers in self.after.items())

    def __str__(self) -> str:
        replicas = sum(map(len, self.after.values()))
        leaders = sum(brokers[0] != self.before[partition][0] for partition, brokers in self.after.items())
        return (
            f"{len(self.after)} partitions: {self.moves} of {replicas} replicas move ({self.copied:,} bytes), "
            f"{leaders} preferred leaders change"
        )


async def present_assignment(admin: Admin, topics: Collection[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the brokers that hold the partitions of topics; of partitions that move, those that they move to.

    Raises KafkaError if a topic does not exist.
    """
    moving = await moving_partitions(admin)
    found = (await admin.describe_topics(topics)).values()
    replicas = {TopicPartition(topic.name, one.index): one.replicas for topic in found for one in topic.partitions}
    return {partition: after_move(brokers, moving.get(partition)) for partition, brokers in replicas.items()}


async def present_log_dirs(admin: Admin, partitions: Collection[TopicPartition]) -> dict[TopicPartitionReplica, str]:
    """Return the log directory of each replica, of the brokers that answer."""
    try:
        found, _ = await partial_results((), admin.describe_log_dirs(partitions=partitions))
    except KafkaError:
        return {}
    return {
        TopicPartitionReplica(*partition, broker): path
        for broker, log_dirs in found.items()
        for path, log_dir in log_dirs.items()
        for partition, info in log_dir.replica_infos.items()
        if not info.is_future
    }


async def propose(
    admin: Admin,
    topics: Collection[str],
    *,
    brokers: Collection[int] | None,
    replication_factor: int | None,
    ignore_racks: bool,
) -> Proposal:
    """Return a plan that moves few replicas of topics.

    Args:
        admin: asks the brokers.
        topics: the names of the topics.
        brokers: the ids of the brokers that may hold replicas; None for all in service.
        replication_factor: the number of replicas of each partition; None to keep it.
        ignore_racks: whether replicas need not be spread over racks.

    Raises:
        CommandFailed: a broker is not in service, or has no rack although others have one.
        UsageError: there are fewer brokers than replicas.
        KafkaError: a topic does not exist, or the brokers refuse.
    """
    before = await present_assignment(admin, topics)
    nodes = (await admin.describe_cluster()).nodes
    for broker in brokers or ():
        if broker not in nodes:
            raise CommandFailed(f"broker {broker} is not in service; these are: {', '.join(map(str, nodes))}", FAILED)
    racks = {broker: None if ignore_racks else nodes[broker].rack for broker in (brokers or nodes)}
    without = [str(broker) for broker, rack in racks.items() if rack is None]
    if not ignore_racks and 0 < len(without) < len(racks):
        raise CommandFailed(f"some brokers have no rack ({', '.join(without)}): add --ignore-racks", FAILED)
    after = plan_assignment(before, racks, replication_factor=replication_factor)
    return Proposal(before, after, await _bytes_to_copy(admin, before, after))


async def _bytes_to_copy(admin: Admin, before: Assignment, after: Assignment) -> int:
    added = {one: len(set(brokers) - set(before[one])) for one, brokers in after.items()}
    sizes = await replica_sizes(admin, [one for one, count in added.items() if count])
    largest: dict[TopicPartition, int] = {}
    for replica, size in sizes.items():
        partition = TopicPartition(replica.topic, replica.partition)
        largest[partition] = max(size, largest.get(partition, 0))
    return sum(count * largest.get(partition, 0) for partition, count in added.items())
