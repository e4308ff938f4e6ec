"""Routes of the admin's requests to a broker that the user names."""

from ..cluster.cluster import Cluster, Route
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Deadline
from ..errors import BrokerNotAvailable

__all__ = ("to_broker",)


async def to_broker(cluster: Cluster, node_id: int | None, deadline: Deadline) -> Route:
    """Return the route to a broker, or to any broker for None; refresh the metadata if it lacks the broker.

    The route raises BrokerNotAvailable if the metadata lacks the broker.
    """
    if node_id is None:
        return cluster.least_loaded

    def route(snapshot: Snapshot) -> Node:
        node = snapshot.nodes.get(node_id)
        if node is None:
            known = ", ".join(map(str, sorted(snapshot.nodes)))
            raise BrokerNotAvailable(f"broker {node_id} is not in the cluster, or is down; the brokers are {known}")
        return node

    snapshot = cluster.metadata.snapshot
    if node_id not in snapshot.nodes:
        await cluster.metadata.refresh(snapshot, deadline)
    return route
