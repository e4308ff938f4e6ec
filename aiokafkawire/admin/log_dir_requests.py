"""The admin's requests about log directories, each to the broker that has them (KIP-113)."""

from collections.abc import Collection, Mapping
from typing import Final

from ..cluster.cluster import Cluster
from ..cluster.retry import Deadline
from ..errors import KafkaError
from ..protocol.messages.log_dirs import DescribeLogDirsResponse
from ..types import TopicPartition, TopicPartitionReplica
from .concurrent_outcomes import ask_by_batch, ask_one_by_one, raise_if_unsupported
from .log_dir_messages import alter_request, altered_log_dirs, describe_request, described_log_dirs, replica_log_dirs
from .outcomes import Outcomes, ask_for_each
from .response_errors import explain_unsupported
from .routes import to_broker
from .topic_descriptions import LogDirDescription, ReplicaLogDirInfo

__all__ = ("alter_log_dirs", "describe_log_dirs", "describe_replicas")

_LANE: Final = "admin"
_NEEDS: Final = "log directories need brokers since 1.0 (KIP-113)"


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

    async def describe(broker_id: int) -> dict[str, LogDirDescription]:
        return await _describe(cluster, broker_id, partitions, deadline)

    return raise_if_unsupported(await ask_one_by_one(list(dict.fromkeys(broker_ids)), describe))


async def describe_replicas(
    cluster: Cluster, replicas: Collection[TopicPartitionReplica], deadline: Deadline
) -> Outcomes[TopicPartitionReplica, ReplicaLogDirInfo]:
    """Return the log directories of replicas. Raise as :meth:`Admin.describe_replica_log_dirs`."""
    by_broker = _by_broker(replicas)

    async def describe(broker_id: int) -> Mapping[TopicPartitionReplica, ReplicaLogDirInfo]:
        here = by_broker[broker_id]
        partitions = [TopicPartition(replica.topic, replica.partition) for replica in here]
        return replica_log_dirs(here, await _describe(cluster, broker_id, partitions, deadline))

    found = await ask_by_batch(by_broker, describe)
    return raise_if_unsupported({replica: found[replica] for replica in replicas})


async def alter_log_dirs(
    cluster: Cluster, targets: Mapping[TopicPartitionReplica, str], deadline: Deadline
) -> Outcomes[TopicPartitionReplica, None]:
    """Move replicas to other log directories. Raise as :meth:`Admin.alter_replica_log_dirs`."""
    by_broker = _by_broker(targets)

    async def alter(broker_id: int) -> Mapping[TopicPartitionReplica, KafkaError | None]:
        route = await to_broker(cluster, broker_id, deadline)
        with explain_unsupported(_NEEDS):
            return await ask_for_each(
                cluster,
                route,
                by_broker[broker_id],
                deadline,
                request=lambda pending: alter_request({replica: targets[replica] for replica in pending}),
                outcomes=lambda response: altered_log_dirs(targets, response),
                retried=(),
            )

    found = await ask_by_batch(by_broker, alter)
    return raise_if_unsupported({replica: found[replica] for replica in targets})


async def _describe(
    cluster: Cluster, broker_id: int, partitions: Collection[TopicPartition] | None, deadline: Deadline
) -> dict[str, LogDirDescription]:
    found: dict[str, LogDirDescription] = {}

    def check(response: DescribeLogDirsResponse) -> None:
        found.update(described_log_dirs(broker_id, response))

    route = await to_broker(cluster, broker_id, deadline)
    with explain_unsupported(_NEEDS):
        await cluster.ask(route, describe_request(partitions), deadline, lane=_LANE, check=check)
    return found


def _by_broker(replicas: Collection[TopicPartitionReplica]) -> dict[int, list[TopicPartitionReplica]]:
    found: dict[int, list[TopicPartitionReplica]] = {}
    for replica in replicas:
        found.setdefault(replica.broker_id, []).append(replica)
    return found
