"""The admin's requests about the cluster's nodes."""

from collections.abc import Collection
from typing import Final, TypeVar

from ..cluster.cluster import Cluster
from ..cluster.coordinators import coordinator_in
from ..cluster.retry import Deadline
from ..errors import (
    BrokerIdNotRegistered,
    ControllerIdNotRegistered,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    UnsupportedEndpointType,
    UnsupportedVersion,
)
from ..protocol.api import ApiKey
from ..protocol.messages.controller import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from ..protocol.messages.group import FindCoordinatorRequest, FindCoordinatorResponse
from ..protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse, MetadataRequest
from ..protocol.schema import Request, Versions
from ..types import CoordinatorType
from .cluster_descriptions import ClusterDescription, ClusterNode, SupportedVersionRange
from .cluster_messages import described_by_metadata, described_cluster
from .concurrent_outcomes import ask_one_by_one, raise_if_unsupported
from .outcomes import Outcomes, ask_for_each, results_of
from .repeats import Repeats
from .response_errors import explain_unsupported, raise_for
from .routes import open_connection, to_broker

__all__ = (
    "api_versions",
    "describe_cluster",
    "find_coordinators",
    "unregister_broker",
    "unregister_controller",
)

R = TypeVar("R", UnregisterBrokerResponse, UnregisterControllerResponse)

_LANE: Final = "admin"
_BROKERS: Final = 1  # endpoint types (KIP-919)
_CONTROLLERS: Final = 2
_ANY: Final = Versions.parse("0+")
_FENCED_SINCE: Final = Versions.parse("2+")  # KIP-1073
_ENDPOINT_TYPE_SINCE: Final = Versions.parse("1+")  # KIP-919
_OPERATIONS_IN_METADATA: Final = Versions.parse("8-10")  # KIP-430
_MANY_KEYS: Final = Versions.parse("4+")  # KIP-699
_ONE_KEY: Final = {
    CoordinatorType.GROUP: Versions.parse("0-3"),
    CoordinatorType.TRANSACTION: Versions.parse("1-3"),
}
_SHARE_KEYS: Final = Versions.parse("6+")  # KIP-932


async def describe_cluster(
    cluster: Cluster, deadline: Deadline, *, operations: bool, fenced: bool
) -> ClusterDescription:
    """Return the cluster's nodes. Raise as :meth:`Admin.describe_cluster`."""
    of_controllers = cluster.config.bootstrap_controllers is not None
    if of_controllers and fenced:
        raise UnsupportedEndpointType(
            "controllers know no fenced brokers, and this client has bootstrap_controllers: "
            "use a client with bootstrap_servers for include_fenced_brokers"
        )

    def check(response: DescribeClusterResponse) -> None:
        described_cluster(response)

    request = DescribeClusterRequest(
        include_cluster_authorized_operations=operations,
        endpoint_type=_CONTROLLERS if of_controllers else _BROKERS,
        include_fenced_brokers=fenced,
    )
    wanted = _FENCED_SINCE if fenced else _ENDPOINT_TYPE_SINCE if of_controllers else _ANY
    try:
        response = await cluster.ask(cluster.least_loaded, request, deadline, lane=_LANE, wanted=wanted, check=check)
    except UnsupportedVersion as refused:
        if fenced:
            raise UnsupportedVersion(f"fenced brokers are listed by brokers since 4.0 (KIP-1073): {refused}") from None
        if of_controllers:
            raise
        return await _describe_by_metadata(cluster, deadline, operations=operations)
    return described_cluster(response)


async def _describe_by_metadata(cluster: Cluster, deadline: Deadline, *, operations: bool) -> ClusterDescription:
    """Return the cluster's nodes from a broker before 2.8, which does not know DescribeCluster."""
    if not operations:
        return described_by_metadata(await cluster.ask_metadata((), deadline, lane=_LANE))
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False, include_cluster_authorized_operations=True)
    with explain_unsupported("authorized operations need brokers since 2.3 (KIP-430)"):
        response = await cluster.ask(
            cluster.least_loaded, request, deadline, lane=_LANE, wanted=_OPERATIONS_IN_METADATA
        )
    return described_by_metadata(response)


async def api_versions(
    cluster: Cluster, node_ids: Collection[int] | None, deadline: Deadline
) -> dict[int, dict[int, SupportedVersionRange]]:
    """Return the API versions of brokers. Raise as :meth:`Admin.api_versions`."""
    if node_ids is None:
        description = await describe_cluster(cluster, deadline, operations=False, fenced=False)
        node_ids = list(description.nodes)

    async def ask(node_id: int) -> dict[int, SupportedVersionRange]:
        return await _versions_of(cluster, node_id, deadline)

    found = await ask_one_by_one(list(dict.fromkeys(node_ids)), ask)
    return results_of("asking brokers for their versions", raise_if_unsupported(found))


async def _versions_of(cluster: Cluster, node_id: int, deadline: Deadline) -> dict[int, SupportedVersionRange]:
    """Return the versions that the connection to a broker has negotiated; a restarted broker has another connection."""
    route = await to_broker(cluster, node_id, deadline)
    connection = await open_connection(cluster, route, "ApiVersions", deadline, lane=_LANE)
    keys = {int(key): key for key in ApiKey}
    return {
        keys.get(key, key): SupportedVersionRange(versions.first, versions.last)
        for key, versions in sorted(connection.versions.items())
    }


async def find_coordinators(
    cluster: Cluster, key_type: CoordinatorType, keys: Collection[str], deadline: Deadline
) -> dict[str, ClusterNode]:
    """Return the coordinators of keys. Raise as :meth:`Admin.find_coordinators`."""
    keys = list(dict.fromkeys(keys))
    retried = (CoordinatorNotAvailable, CoordinatorLoadInProgress)

    async def ask(together: Collection[str], wanted: Versions, *, one: bool) -> Outcomes[str, ClusterNode]:
        def request(pending: list[str]) -> FindCoordinatorRequest:
            if one:
                return FindCoordinatorRequest(key_type=key_type, key=pending[0])
            return FindCoordinatorRequest(key_type=key_type, coordinator_keys=pending)

        def outcomes(response: FindCoordinatorResponse) -> Outcomes[str, ClusterNode]:
            named_keys = {found.key for found in response.coordinators}  # none in versions with a single key
            return {key: _coordinator(response, key_type, key) for key in together if one or key in named_keys}

        return await ask_for_each(
            cluster,
            cluster.least_loaded,
            together,
            deadline,
            request=request,
            outcomes=outcomes,
            versions=wanted,
            retried=retried,
        )

    if not keys:
        return {}
    what = "finding coordinators"
    try:
        return results_of(what, await ask(keys, _MANY_KEYS if key_type in _ONE_KEY else _SHARE_KEYS, one=False))
    except UnsupportedVersion as refused:
        if key_type not in _ONE_KEY:
            needs = "coordinators of share groups' partitions need brokers since 4.1 (KIP-932)"
            raise UnsupportedVersion(f"{needs}: {refused}") from None
    found: Outcomes[str, ClusterNode] = {}
    for key in keys:
        try:
            found |= await ask([key], _ONE_KEY[key_type], one=True)
        except UnsupportedVersion as refused:
            since = "0.11 (KIP-98)" if key_type is CoordinatorType.TRANSACTION else "0.8.2"
            raise UnsupportedVersion(f"finding coordinators needs brokers since {since}: {refused}") from None
    return results_of(what, found)


def _coordinator(response: FindCoordinatorResponse, key_type: CoordinatorType, key: str) -> ClusterNode | KafkaError:
    try:
        node = coordinator_in(response, key_type, key)
    except KafkaError as error:
        return error
    return ClusterNode(node.node_id, node.address)


async def unregister_broker(cluster: Cluster, broker_id: int, deadline: Deadline) -> None:
    """Make the cluster forget a broker. Raise as :meth:`Admin.unregister_broker`."""
    request = UnregisterBrokerRequest(broker_id=broker_id)
    await _unregister(
        cluster, request, f"unregistering broker {broker_id}", "KRaft brokers since 3.3 (KIP-631)", deadline
    )


async def unregister_controller(cluster: Cluster, controller_id: int, deadline: Deadline) -> None:
    """Make the cluster forget a controller. Raise as :meth:`Admin.unregister_controller`."""
    request = UnregisterControllerRequest(controller_id=controller_id)
    what = f"unregistering controller {controller_id}"
    await _unregister(cluster, request, what, "brokers since 4.4 (KIP-1312)", deadline)


async def _unregister(cluster: Cluster, request: Request[R], what: str, brokers: str, deadline: Deadline) -> None:
    """Unregister a node. Errors begin with ``what``; UnsupportedVersion says that it needs these ``brokers``."""

    repeats = Repeats(BrokerIdNotRegistered, ControllerIdNotRegistered)

    def check(response: R) -> None:
        with repeats.noting():
            raise_for(response.error_code, what, response.error_message)

    with explain_unsupported(f"{what} needs {brokers}"), repeats.explaining():
        await cluster.ask(
            cluster.least_loaded, request, deadline, lane=_LANE, check=check, unanswered=repeats.unanswered
        )
