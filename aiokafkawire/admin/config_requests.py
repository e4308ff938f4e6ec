"""The admin's requests about configs, each to the brokers that know the resources."""

from collections.abc import Collection, Mapping
from typing import Final

from ..cluster.cluster import Cluster, Route
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Deadline
from ..errors import BrokerNotAvailable, ErrorCode, NotController, UnsupportedVersion
from ..protocol.messages.configs import IncrementalAlterConfigsResponse
from ..protocol.schema import Versions
from .config_messages import alter_request, check_altered, describe_request, described_configs
from .config_resources import ConfigEntry, ConfigOp, ConfigResource

__all__ = ("describe_configs", "incremental_alter_configs")

_LANE: Final = "admin"
_ANY: Final = Versions.parse("0+")
_SYNONYMS_SINCE: Final = Versions.parse("1+")  # KIP-226
_DOCUMENTATION_SINCE: Final = Versions.parse("3+")  # KIP-569


async def describe_configs(
    cluster: Cluster,
    resources: Collection[ConfigResource],
    deadline: Deadline,
    *,
    synonyms: bool,
    documentation: bool,
) -> dict[ConfigResource, dict[str, ConfigEntry]]:
    """Return the configs of each resource. Raise as :meth:`Admin.describe_configs`."""
    wanted = _DOCUMENTATION_SINCE if documentation else _SYNONYMS_SINCE if synonyms else _ANY
    found: dict[ConfigResource, dict[str, ConfigEntry]] = {}
    for node_id, together in _by_node(resources).items():
        request = describe_request(together, synonyms=synonyms, documentation=documentation)
        route = await _route(cluster, node_id, deadline)
        try:
            response = await cluster.ask(route, request, deadline, lane=_LANE, wanted=wanted)
        except UnsupportedVersion as refused:
            needs = "describing configs needs brokers since 0.11 (KIP-133), synonyms 1.1 (KIP-226), documentation 2.6"
            raise UnsupportedVersion(f"{needs} (KIP-569): {refused}") from None
        found |= {resource: described_configs(resource, response) for resource in together}
    return {resource: found[resource] for resource in resources}


async def incremental_alter_configs(
    cluster: Cluster,
    changes: Mapping[ConfigResource, Mapping[str, ConfigOp]],
    deadline: Deadline,
    *,
    validate_only: bool,
) -> None:
    """Change configs of each resource. Raise as :meth:`Admin.incremental_alter_configs`."""
    for node_id, together in _by_node(changes).items():
        request = alter_request({resource: changes[resource] for resource in together}, validate_only=validate_only)
        route = await _route(cluster, node_id, deadline)
        try:
            response = await cluster.ask(route, request, deadline, lane=_LANE, check=_raise_if_not_controller)
        except UnsupportedVersion as refused:
            raise UnsupportedVersion(f"changing configs needs brokers since 2.3 (KIP-339): {refused}") from None
        for resource in together:
            check_altered(resource, response)


def _by_node(resources: Collection[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """Return the resources of each broker; None has those that any broker knows."""
    found: dict[int | None, list[ConfigResource]] = {}
    for resource in dict.fromkeys(resources):
        found.setdefault(resource.node_id, []).append(resource)
    return found


async def _route(cluster: Cluster, node_id: int | None, deadline: Deadline) -> Route:
    """Return the route to a broker, or to any broker for None.

    Raises:
        BrokerNotAvailable: the cluster has no such broker, even after a metadata refresh.
    """
    if node_id is None:
        return cluster.least_loaded

    def route(snapshot: Snapshot) -> Node | None:
        return snapshot.nodes.get(node_id)

    snapshot = cluster.metadata.snapshot
    if route(snapshot) is None:
        snapshot = await cluster.metadata.refresh(snapshot, deadline)
    if route(snapshot) is None:
        known = ", ".join(map(str, sorted(snapshot.nodes)))
        raise BrokerNotAvailable(f"broker {node_id} is not in the cluster, or is down; the brokers are {known}")
    return route


def _raise_if_not_controller(response: IncrementalAlterConfigsResponse) -> None:
    """Raise NotController if a resource has this error, the only error that a retry can solve."""
    for result in response.responses:
        if result.error_code == ErrorCode.NOT_CONTROLLER:
            raise NotController(f"changing configs of {result.resource_name!r}")
