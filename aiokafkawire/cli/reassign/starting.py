"""Starts a plan: checks it, sets the throttles, and moves partitions and replicas."""

from collections.abc import Mapping
from typing import Any, Final

import anyio
import attrs

from ...admin.admin import Admin
from ...errors import AdminError, BrokerError, KafkaError, ReplicaNotAvailable, UnknownTopicOrPartition
from ...types import TopicPartition, TopicPartitionReplica
from ..exit_status import FAILED, CommandFailed
from ..shell.outcomes import note_errors, partial_results, print_outcomes, saying_what_is_unknown
from ..shell.output import note
from ..shell.partition_names import partition_text
from ..shell.session import Session
from .observing import after_move, describe_existing, look_at_plan, replica_sizes
from .plan_file import ReassignmentPlan
from .throttles import ThrottleChanges, log_dir_throttle, throttle

__all__ = ("MOVED", "STARTED", "PreparedPlan", "change_throttles", "log_dir_rows", "move_log_dirs", "prepare", "start")

STARTED: Final = (
    *("topic", "partition", "replicas", "target_replicas", "adding_replicas", "removing_replicas", "bytes_to_copy"),
)
MOVED: Final = ("topic", "partition", "node_id", "target_log_dir")
_RETRY_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 10.0
"""As long as kafka-reassign-partitions waits for brokers to have the replicas that go to other log directories."""


@attrs.frozen
class PreparedPlan:
    """The changes of a plan."""

    plan: ReassignmentPlan
    rows: Mapping[TopicPartition, dict[str, Any]]
    """A row about each partition that the plan changes."""
    before: Mapping[TopicPartition, tuple[int, ...]]
    """The brokers of each of these partitions; of one that moves already, those that it moves to."""
    log_dirs: Mapping[TopicPartitionReplica, str]
    """The log directories of the plan's replicas that are elsewhere."""
    throttles: ThrottleChanges

    @property
    def moves(self) -> int:
        """The number of replicas that are copied to other brokers."""
        return sum(len(row["adding_replicas"]) for row in self.rows.values())

    @property
    def bytes(self) -> int:
        """The bytes that are copied to other brokers, as far as they are known."""
        return sum(row["bytes_to_copy"] or 0 for row in self.rows.values())


async def prepare(
    session: Session, plan: ReassignmentPlan, *, additional: bool, rate: int | None, log_dir_rate: int | None
) -> PreparedPlan:
    """Compare a plan with the cluster.

    Raises:
        CommandFailed: a broker or a partition does not exist, or other partitions move already.
    """
    admin = session.kafka.admin
    ongoing = await admin.list_partition_reassignments()
    if ongoing and not additional:
        some = ", ".join(map(partition_text, list(ongoing)[:3])) + (", ..." if len(ongoing) > 3 else "")
        raise CommandFailed(f"partitions move already ({some}): wait for them, or add --additional", FAILED)
    known = (await admin.describe_cluster()).nodes
    for partition, brokers in plan.targets.items():
        for broker in brokers:
            if broker not in known:
                raise CommandFailed(
                    f"the plan moves {partition_text(partition)} to broker {broker}, which is not in service", FAILED
                )
    topics = await describe_existing(admin, {partition.topic for partition in plan.targets})
    current = {
        TopicPartition(topic.name, partition.index): partition.replicas
        for topic in topics.values()
        for partition in topic.partitions
    }
    for partition in plan.targets:
        if partition not in current:
            raise CommandFailed(f"the plan moves {partition_text(partition)}, which does not exist", FAILED)
    changed = {partition: target for partition, target in plan.targets.items() if current[partition] != target}
    sizes = await replica_sizes(admin, list(changed))
    rows = {
        partition: _row(partition, current[partition], target, sizes) for partition, target in sorted(changed.items())
    }
    before = {partition: after_move(current[partition], ongoing.get(partition)) for partition in rows}
    throttles = throttle(plan.targets, current, ongoing, rate, brokers=known) if rate is not None else {}
    log_dirs = await _log_dirs_of_others(admin, plan.log_dirs)
    if log_dir_rate is not None:
        for resource, limits in log_dir_throttle(log_dirs, log_dir_rate).items():
            throttles[resource] = {**throttles.get(resource, {}), **limits}
    return PreparedPlan(plan, rows, before, log_dirs, throttles)


async def _log_dirs_of_others(
    admin: Admin, targets: Mapping[TopicPartitionReplica, str]
) -> dict[TopicPartitionReplica, str]:
    """Return the log directories of replicas, without those that are there; of brokers that do not answer, all."""
    try:
        found, _ = await partial_results((), admin.describe_replica_log_dirs(targets))
    except KafkaError:
        return dict(targets)
    there = {one: info.current_log_dir for one, info in found.items() if info.future_log_dir is None}
    return {replica: path for replica, path in targets.items() if there.get(replica) != path}


def _row(
    partition: TopicPartition,
    replicas: tuple[int, ...],
    target: tuple[int, ...],
    sizes: Mapping[TopicPartitionReplica, int],
) -> dict[str, Any]:
    adding = [broker for broker in target if broker not in replicas]
    size = max((sizes.get(TopicPartitionReplica(*partition, broker), 0) for broker in replicas), default=0)
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "replicas": list(replicas),
        "target_replicas": list(target),
        "adding_replicas": adding,
        "removing_replicas": [broker for broker in replicas if broker not in target],
        "bytes_to_copy": size * len(adding),
    }


async def start(session: Session, prepared: PreparedPlan) -> int:
    """Set the throttles, start the reassignments and the moves between log directories; return the exit status.

    Throttles are removed again if nothing moves. Otherwise a line says that they stay, also after Ctrl-C.
    """
    admin, throttles = session.kafka.admin, dict(prepared.throttles)
    try:
        await _set_throttles(admin, throttles)
        status = await _start_moves(session, prepared)
    except KafkaError:
        await _forget_throttles(admin, prepared.plan, throttles)
        raise
    except BaseException:  # Ctrl-C, or an output without a reader
        _note_throttles(throttles)
        raise
    if status:
        await _forget_throttles(admin, prepared.plan, throttles)
    else:
        _note_throttles(throttles)
    return status


async def _set_throttles(admin: Admin, throttles: ThrottleChanges) -> None:
    """Set throttles. If that fails, take those out of the mapping that are not set."""
    try:
        await change_throttles(admin, throttles)
    except AdminError as some:
        for resource, error in some.errors.items():
            if isinstance(error, BrokerError):
                del throttles[resource]
        raise
    except BrokerError:  # of the only resource
        throttles.clear()
        raise


async def _start_moves(session: Session, prepared: PreparedPlan) -> int:
    status = 0
    if prepared.rows:
        targets = {partition: prepared.plan.targets[partition] for partition in prepared.rows}
        change = session.kafka.admin.alter_partition_reassignments(targets)
        status = await print_outcomes(session, STARTED, prepared.rows, change, done="started")
    if prepared.log_dirs:
        status = max(status, await move_log_dirs(session, prepared.log_dirs))
    return status


async def _forget_throttles(admin: Admin, plan: ReassignmentPlan, throttles: ThrottleChanges) -> None:
    """Remove the throttles of a plan if nothing moves, neither between brokers nor between log directories."""
    if not throttles:
        return
    try:
        state = await look_at_plan(admin, plan)
        if not state.ongoing and not state.is_moving:
            await change_throttles(admin, {resource: dict.fromkeys(limits) for resource, limits in throttles.items()})
            return
    except KafkaError as error:
        note_errors([error])
    _note_throttles(throttles)


def _note_throttles(throttles: ThrottleChanges) -> None:
    if throttles:
        note("the throttle stays until 'reassign watch' or 'reassign cancel' with this plan removes it")


async def change_throttles(admin: Admin, changes: ThrottleChanges) -> None:
    """Set or remove throttles. Raises KafkaError if a broker refuses."""
    if changes:
        await admin.incremental_alter_configs(changes)


async def move_log_dirs(session: Session, targets: Mapping[TopicPartitionReplica, str]) -> int:
    """Move replicas to log directories, and wait for those that their brokers do not have yet; return the status."""
    admin, pending = session.kafka.admin, dict(targets)
    with saying_what_is_unknown(), anyio.move_on_after(_PATIENCE_SECONDS):
        while pending := await _not_there_yet(admin, pending):  # noqa: ASYNC110  # replicas arrive without notice
            await anyio.sleep(_RETRY_SECONDS)
    change = admin.alter_replica_log_dirs(targets)
    return await print_outcomes(session, MOVED, log_dir_rows(targets), change, done="started")


def log_dir_rows(targets: Mapping[TopicPartitionReplica, str]) -> dict[TopicPartitionReplica, dict[str, Any]]:
    """Return a row about each replica that goes to a log directory."""
    return {
        replica: {
            "topic": replica.topic,
            "partition": replica.partition,
            "node_id": replica.broker_id,
            "target_log_dir": path,
        }
        for replica, path in targets.items()
    }


async def _not_there_yet(
    admin: Admin, targets: Mapping[TopicPartitionReplica, str]
) -> dict[TopicPartitionReplica, str]:
    """Move replicas, and return those that their brokers do not have yet."""
    waited_for = (ReplicaNotAvailable, UnknownTopicOrPartition)
    try:
        await admin.alter_replica_log_dirs(targets)
    except AdminError as some:
        return {replica: targets[replica] for replica, error in some.errors.items() if isinstance(error, waited_for)}
    except waited_for:
        return dict(targets)
    except KafkaError:
        return {}
    return {}
