"""The admin's requests about log directories, each to the broker that has them (KIP-113)."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, TypeVar

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import KafkaError, UnsupportedVersion
from ..protocol.messages.log_dirs import DescribeLogDirsResponse
from ..runtime import background_tasks
from ..types import TopicPartition, TopicPartitionReplica
from .log_dir_messages import alter_request, altered_log_dirs, describe_request, described_log_dirs, replica_log_dirs
from .outcomes import Outcomes, ask_for_each
from .routes import to_broker
from .topic_descriptions import LogDirDescription, ReplicaLogDirInfo

__all__ = ("alter_log_dirs", "describe_log_dirs", "describe_replicas")

K = TypeVar("K")
V = TypeVar("V")

_LANE: Final = "admin"


async def describe_log_dirs(
    cluster: Cluster,
    broker_ids: Collection[int] | None,
    partitions: Collection[TopicPartition] | None,
    deadline: Deadline,
) -> Outcomes[int, dict[str, LogDirDescription]]:
    """Return the log directories of brokers, or of all for None. Raise as :meth:`Admin.describe_log_dirs`."""
    if broker_ids is None:
        snapshot = await cluster.metadata.refresh(cluster.metadata.snapshot, deadline)
        broker_ids = sorted(snapshot.nodes)

    async def describe(broker_id: int) -> dict[int, dict[str, LogDirDescription] | KafkaError]:
        return {broker_id: await _describe(cluster, broker_id, partitions, deadline)}

    found = await _of_each(broker_ids, describe, lambda broker_id: [broker_id])
    return {broker_id: found[broker_id] for broker_id in dict.fromkeys(broker_ids)}


async def describe_replicas(
    cluster: Cluster, replicas: Collection[TopicPartitionReplica], deadline: Deadline
) -> Outcomes[TopicPartitionReplica, ReplicaLogDirInfo]:
    """Return the log directories of replicas. Raise as :meth:`Admin.describe_replica_log_dirs`."""
    by_broker = _by_broker(replicas)

    async def describe(broker_id: int) -> Mapping[TopicPartitionReplica, ReplicaLogDirInfo]:
        here = by_broker[broker_id]
        partitions = [TopicPartition(replica.topic, replica.partition) for replica in here]
        return replica_log_dirs(here, await _describe(cluster, broker_id, partitions, deadline))

    found = await _of_each(by_broker, describe, by_broker.__getitem__)
    return {replica: found[replica] for replica in replicas}


async def alter_log_dirs(
    cluster: Cluster, targets: Mapping[TopicPartitionReplica, str], deadline: Deadline
) -> Outcomes[TopicPartitionReplica, None]:
    """Move replicas to other log directories. Raise as :meth:`Admin.alter_replica_log_dirs`."""
    by_broker = _by_broker(targets)

    async def alter(broker_id: int) -> Mapping[TopicPartitionReplica, KafkaError | None]:
        return await ask_for_each(
            cluster,
            await to_broker(cluster, broker_id, deadline),
            by_broker[broker_id],
            deadline,
            request=lambda pending: alter_request({replica: targets[replica] for replica in pending}),
            outcomes=lambda response: altered_log_dirs(targets, response),
            retried=(),
        )

    found = await _of_each(by_broker, alter, by_broker.__getitem__)
    return {replica: found[replica] for replica in targets}


async def _describe(
    cluster: Cluster, broker_id: int, partitions: Collection[TopicPartition] | None, deadline: Deadline
) -> dict[str, LogDirDescription]:
    found: dict[str, LogDirDescription] = {}

    def check(response: DescribeLogDirsResponse) -> None:
        found.update(described_log_dirs(broker_id, response))

    route = await to_broker(cluster, broker_id, deadline)
    await cluster.ask(route, describe_request(partitions), deadline, lane=_LANE, check=check)
    return found


async def _of_each(
    broker_ids: Collection[int],
    ask: Callable[[int], Awaitable[Mapping[K, V | KafkaError]]],
    resources: Callable[[int], Collection[K]],
) -> Outcomes[K, V]:
    """Ask brokers concurrently; the error of a broker is that of all of its resources."""
    found: Outcomes[K, V] = {}
    failures: list[Exception] = []

    async def ask_one(broker_id: int) -> None:
        try:
            found.update(await ask(broker_id))
        except UnsupportedVersion as refused:
            needs = UnsupportedVersion(f"log directories need brokers since 1.0 (KIP-113): {refused}")
            found.update(dict.fromkeys(resources(broker_id), needs))
        except KafkaError as error:
            found.update(dict.fromkeys(resources(broker_id), error))
        except Exception as failure:  # raised below, without an exception group
            failures.append(failure)
            tasks.cancel_scope.cancel()

    async with background_tasks() as tasks:
        for broker_id in dict.fromkeys(broker_ids):
            tasks.start_soon(ask_one, broker_id)
    if failures:
        raise failures[0]
    return found


def _by_broker(replicas: Collection[TopicPartitionReplica]) -> dict[int, list[TopicPartitionReplica]]:
    found: dict[int, list[TopicPartitionReplica]] = {}
    for replica in replicas:
        found.setdefault(replica.broker_id, []).append(replica)
    return found
