"""The admin's requests for the ends of leader epochs, to the leaders of partitions."""

from collections.abc import Mapping
from typing import Final

import anyio

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Deadline, retry_action
from ..errors import KafkaError, UnsupportedVersion, WireError
from ..protocol.messages.offsets import OffsetForLeaderEpochResponse
from ..types import TopicPartition
from .cluster_descriptions import EpochEndOffset
from .cluster_messages import epoch_ends, epochs_request
from .outcomes import Outcomes, results_of

__all__ = ("offset_for_leader_epoch",)

_LANE: Final = "admin"


async def offset_for_leader_epoch(
    cluster: Cluster, epochs: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, EpochEndOffset | None]:
    """Return the ends of epochs. Raise as :meth:`Admin.offset_for_leader_epoch`."""
    found: Outcomes[TopicPartition, EpochEndOffset | None] = {}
    left, backoff = dict(epochs), cluster.backoff()
    while left:
        by_leader: dict[Node, dict[TopicPartition, int]] = {}
        for partition, epoch in left.items():
            node = await cluster.leader(partition, deadline)
            by_leader.setdefault(node, {})[partition] = epoch
        snapshot = cluster.metadata.snapshot
        for node, asked in by_leader.items():
            found |= await _ask(cluster, node, asked, snapshot, deadline)
        left = {partition: epoch for partition, epoch in left.items() if _may_succeed(found[partition])}
        wait = backoff.next()
        if not left or wait >= deadline.left(cluster.runtime.now()):
            break
        cluster.metadata.mark_stale(snapshot)
        await anyio.sleep(wait)
    return results_of("looking up leader epochs", {partition: found[partition] for partition in epochs})


async def _ask(
    cluster: Cluster, node: Node, epochs: Mapping[TopicPartition, int], snapshot: Snapshot, deadline: Deadline
) -> Outcomes[TopicPartition, EpochEndOffset | None]:
    """Ask one leader; return its answers, or the error of the request for each partition."""
    response: OffsetForLeaderEpochResponse
    try:
        connection = await cluster.connection(node, _LANE, deadline)
        response = await connection.request(
            epochs_request(epochs, snapshot), timeout=deadline.left(cluster.runtime.now())
        )
    except UnsupportedVersion as refused:
        raise UnsupportedVersion(f"looking up leader epochs needs brokers since 0.11 (KIP-101): {refused}") from None
    except KafkaError as error:
        return dict.fromkeys(epochs, error)
    answers = epoch_ends(response)
    return {
        partition: answers.get(partition, WireError(f"{connection.broker} answered without the requested {partition}"))
        for partition in epochs
    }


def _may_succeed(outcome: object) -> bool:
    return isinstance(outcome, KafkaError) and retry_action(outcome).retry
