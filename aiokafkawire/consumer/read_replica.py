"""Selects the broker to fetch a partition from: its leader, or a closer replica (KIP-392)."""

from ..cluster.metadata import Node, Snapshot
from .subscription_state import PartitionState

__all__ = ("select_read_replica",)


def select_read_replica(snapshot: Snapshot, state: PartitionState, now: float) -> Node | None:
    """Return the broker to fetch a partition from, at ``now`` in seconds; None if the partition has no leader.

    A replica that the leader has named is used until ``state.replica_until``, while the replica is online.
    """
    leader = snapshot.leader(state.partition)
    if leader is None or state.replica is None or now >= state.replica_until:
        return leader
    metadata = snapshot.topics[state.partition.topic].answered[state.partition.partition]
    if state.replica not in metadata.replica_nodes or state.replica in metadata.offline_replicas:
        return leader
    return snapshot.nodes.get(state.replica, leader)
