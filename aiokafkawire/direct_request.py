"""Sends any message of the protocol to a broker that the user chooses, once, and returns the response as it is."""

from typing import Any, Final, TypeVar

from .admin.routes import open_connection, to_broker
from .argument_checks import INT16, INT32, check_integer, check_seconds, is_integer, shown
from .cluster.cluster import Cluster, Route, controller
from .cluster.controller_metadata import not_served
from .cluster.metadata import Node, Snapshot
from .cluster.retry import Deadline
from .errors import UnsupportedVersion, UsageError
from .network.connection import ANY_VERSION
from .protocol.api import ApiKey
from .protocol.schema import Request, Response, Versions
from .types import TopicPartition, check_partition

__all__ = ("send_request",)

R = TypeVar("R", bound=Response)

_LANE: Final = "request"
"""The lane of these requests: a broker answers in order, so a slow request must not delay those of the client."""
_CONTROLLER: Final = "controller"


async def send_request(
    cluster: Cluster,
    message: Request[R],
    *,
    broker: object = None,
    version: int | None = None,
    timeout: float | None = None,
) -> R:
    """Send a request and return its response. Raise as :meth:`.Client.request`."""
    check_seconds("timeout", timeout)
    _check_message(message)
    if version is not None:
        check_integer("version", version, 0, INT16)
    allowed = cluster.config.default_api_timeout_ms / 1000 if timeout is None else timeout
    deadline = cluster.deadline(allowed)
    route = await _route(cluster, broker, deadline)
    connection = await open_connection(cluster, route, _name(message), deadline, lane=_LANE)
    try:
        return await connection.request(
            message,
            timeout=deadline.left(cluster.runtime.now()),
            wanted=ANY_VERSION if version is None else Versions(version, version),
            slow=timeout is not None,
        )
    except UnsupportedVersion as refused:
        if cluster.config.bootstrap_controllers is not None and message.api_key not in connection.versions:
            raise not_served(_name(message), refused) from None
        raise


def _name(message: Request[Any]) -> str:
    return type(message).__name__.removesuffix("Request")


def _check_message(message: Any) -> None:
    """Raise UsageError unless the message is a request that brokers answer."""
    if not isinstance(message, Request):
        raise UsageError(
            "message must be a request of aiokafkawire.protocol.messages, such as MetadataRequest(topics=[]); "
            f"got {shown(message)}"
        )
    if message.api_key == ApiKey.PRODUCE and getattr(message, "acks", None) == 0:
        raise UsageError("brokers do not answer a ProduceRequest with acks=0: use a producer, or other acks")


async def _route(cluster: Cluster, broker: object, deadline: Deadline) -> Route:
    """Return the route to the broker that the user chose.

    Raises:
        UsageError: the argument is not valid.
        TopicNotReady: the partition has no leader by the deadline.
    """
    if broker is None:
        return cluster.least_loaded
    if isinstance(broker, str) and broker == _CONTROLLER:
        return controller
    if isinstance(broker, TopicPartition):
        node = await cluster.leader(check_partition(broker), deadline)
        return _to(node)
    if not is_integer(broker, 0, INT32):
        raise UsageError(
            "broker must be a broker's id, 'controller', a TopicPartition for its leader, or None for any broker; "
            f"got {shown(broker)}"
        )
    assert isinstance(broker, int)
    return await to_broker(cluster, broker, deadline)


def _to(node: Node) -> Route:
    def route(snapshot: Snapshot) -> Node:
        return snapshot.nodes.get(node.node_id, node)

    return route
