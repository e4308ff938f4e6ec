"""Routes of the admin's requests to a broker that the user names."""

from ..cluster.cluster import Cluster, Route
from ..cluster.metadata import Node, Snapshot
from ..cluster.request_attempts import Attempts
from ..cluster.retry import Deadline
from ..errors import BrokerNotAvailable, KafkaError
from ..network.connection import Connection

__all__ = ("open_connection", "to_broker")


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
    for _ in range(2):  # a refresh that had begun before this call may not know a broker that has just started
        if node_id not in snapshot.nodes:
            snapshot = await cluster.metadata.refresh(snapshot, deadline)
    return route


async def open_connection(cluster: Cluster, route: Route, what: str, deadline: Deadline, *, lane: str) -> Connection:
    """Return a connection to the broker that ``route`` returns; retry, with refreshed metadata, until the deadline.

    ``what`` names the request in errors. Raise as :meth:`Cluster.ask`.
    """
    attempts = Attempts(what, deadline, cluster.backoff(), cluster.runtime.now)
    while not attempts.over:
        cluster.owner.require_open()
        snapshot = cluster.metadata.snapshot
        node = route(snapshot)
        if node is None:
            attempts.no_broker()
        else:
            try:
                return await cluster.connection(node, lane, deadline)
            except KafkaError as error:
                attempts.failed(error)
        cluster.metadata.mark_stale(snapshot)
        await attempts.wait()
    raise attempts.timeout()
