"""Which broker a partition is read from: its leader, or a replica that is closer (KIP-392)."""

from ..cluster.metadata import Node, Snapshot
from .subscription_state import PartitionState

__all__ = ("select_read_replica",)


def select_read_replica(snapshot: Snapshot, state: PartitionState, now: float) -> Node | None:
    """The broker to fetch from, at ``now`` in seconds; None while nobody leads.

    The replica that the leader named, until its time is over, and only while the cluster has it.
    """
    leader = snapshot.leader(state.partition)
    if leader is None or state.replica is None or now >= state.replica_until:
        return leader
    said = snapshot.topics[state.partition.topic].answered[state.partition.partition]
    if state.replica not in said.replica_nodes or state.replica in said.offline_replicas:
        return leader
    return snapshot.nodes.get(state.replica, leader)
