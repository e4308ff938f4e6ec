"""The metadata of a client that speaks to controllers instead of brokers (KIP-919): the controllers themselves."""

from typing import Final

from ..errors import ErrorCode, UnsupportedEndpointType, UnsupportedVersion, WireError, broker_error
from ..network.connection import Connection
from ..protocol.api import ApiKey
from ..protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataResponse,
    MetadataResponseBroker,
)
from ..protocol.schema import Versions

__all__ = ("ask_controllers", "check_is_broker", "need_brokers", "not_served")

_CONTROLLERS: Final = 2
"""The endpoint type of controllers."""
_CONTROLLERS_SINCE: Final = Versions.parse("1+")
"""The versions of DescribeCluster in which controllers list controllers."""


def _controllers_request() -> DescribeClusterRequest:
    """Return the request for the controllers of the cluster."""
    return DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS)


def _controllers_in(response: DescribeClusterResponse, server: str) -> MetadataResponse:
    """Return the controllers in a response, as metadata without topics; ``server`` has answered.

    Raises:
        WireError: the server is a broker.
        BrokerError: the response has another error.
    """
    if response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
        raise WireError(f"{server} is a broker, and bootstrap_controllers names controllers: use bootstrap_servers")
    if response.error_code != ErrorCode.NONE:
        message = f": {response.error_message}" if response.error_message else ""
        raise broker_error(response.error_code, f"{server} to DescribeCluster{message}")
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack)
            for node in response.brokers
        ],
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        topics=[],
    )


def not_served(request: str, refused: UnsupportedVersion) -> UnsupportedEndpointType:
    """Return the error for a request that controllers do not serve."""
    return UnsupportedEndpointType(
        f"controllers do not serve {request}, and this client speaks to controllers (bootstrap_controllers): "
        f"use a client with bootstrap_servers ({refused})"
    )


def need_brokers(what: str) -> UnsupportedEndpointType:
    """Return the error for a call that needs brokers; ``what`` needs them."""
    return UnsupportedEndpointType(
        f"{what} needs brokers, and this client speaks to controllers (bootstrap_controllers): "
        "use a client with bootstrap_servers"
    )


async def ask_controllers(connection: Connection, timeout: float | None) -> MetadataResponse:
    """Ask a controller for all controllers, and return them as metadata without topics.

    Raises:
        WireError: the server is a broker, or is older than Kafka 3.7.
        BrokerError: the response has another error.
        KafkaError: as :meth:`.Connection.request`.
    """
    try:
        response = await connection.request(_controllers_request(), timeout=timeout, wanted=_CONTROLLERS_SINCE)
    except UnsupportedVersion as refused:
        raise WireError(f"bootstrap_controllers needs Kafka 3.7 or later (KIP-919): {refused}") from None
    return _controllers_in(response, connection.broker)


def check_is_broker(connection: Connection) -> None:
    """Raise WireError if the connection leads to a controller, which does not serve Metadata."""
    if ApiKey.METADATA not in connection.versions and ApiKey.DESCRIBE_QUORUM in connection.versions:
        raise WireError(
            f"{connection.broker} is a controller, and bootstrap servers are brokers: use bootstrap_controllers"
        )
