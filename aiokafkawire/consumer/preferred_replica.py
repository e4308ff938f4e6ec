"""Which broker a partition is read from: its leader, or a replica that is closer (KIP-392)."""

from ..cluster.metadata import Node, Snapshot
from .subscription_state import PartitionState

__all__ = ("source",)


def source(snapshot: Snapshot, place: PartitionState, now: float) -> Node | None:
    """The broker to fetch from, at ``now`` in seconds; None while nobody leads.

    The replica that the leader named, until its time is over, and only while the cluster has it.
    """
    leader = snapshot.leader(place.where)
    if leader is None or place.replica is None or now >= place.replica_until:
        return leader
    said = snapshot.topics[place.where.topic].answered[place.where.partition]
    if place.replica not in said.replica_nodes or place.replica in said.offline_replicas:
        return leader
    return snapshot.nodes.get(place.replica, leader)
