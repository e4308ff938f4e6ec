"""The admin's requests about configs, each to the brokers that know the resources."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import anyio

from ..cluster.cluster import Cluster, Route
from ..cluster.request_variants import RequestVariant, in_newest_form
from ..cluster.retry import Deadline
from ..errors import (
    ErrorCode,
    InvalidRequest,
    NotController,
    UnsupportedVersion,
)
from ..protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ..protocol.schema import Request, Versions
from .config_messages import alter_request, check_altered, describe_request, described_configs, listed_resources
from .config_resources import ConfigEntry, ConfigOp, ConfigResource, ConfigResourceType
from .routes import to_broker

__all__ = ("describe_configs", "incremental_alter_configs", "list_config_resources")

_LANE: Final = "admin"
_AT_ONCE: Final = 200
"""The most resources of one request; reading the configs of thousands at once would block the event loop."""
_NEW_TOPIC_PATIENCE: Final = 0.5
"""The seconds in which brokers learn about a topic that was created by a request to another broker."""
_ANY: Final = Versions.parse("0+")
_SYNONYMS_SINCE: Final = Versions.parse("1+")  # KIP-226
_DOCUMENTATION_SINCE: Final = Versions.parse("3+")  # KIP-569
_RESOURCE_TYPES_SINCE: Final = Versions.parse("1+")  # KIP-1142
_METRICS_ONLY: Final = Versions.parse("0")  # KIP-1000


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
    for node_id, together in _requests(resources):
        request = describe_request(together, synonyms=synonyms, documentation=documentation)
        route = await to_broker(cluster, node_id, deadline)
        try:
            response = await _ask_for_topics(cluster, route, request, deadline, wanted)
        except UnsupportedVersion as refused:
            needs = "describing configs needs brokers since 0.11 (KIP-133), synonyms 1.1 (KIP-226), documentation 2.6"
            raise UnsupportedVersion(f"{needs} (KIP-569): {refused}") from None
        for resource in together:
            # Brokers without configs of groups reject the whole request.
            with _explained(together):
                found[resource] = described_configs(resource, response)
    return {resource: found[resource] for resource in resources}


async def _ask_for_topics(
    cluster: Cluster, route: Route, request: DescribeConfigsRequest, deadline: Deadline, wanted: Versions
) -> DescribeConfigsResponse:
    """Return the response to a request; repeat the request for a moment while the broker does not know a topic."""
    patience = cluster.deadline(min(_NEW_TOPIC_PATIENCE, deadline.left(cluster.runtime.now()) / 2))
    backoff = cluster.backoff()
    while True:
        response = await cluster.ask(route, request, deadline, lane=_LANE, wanted=wanted)
        is_unknown = any(result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for result in response.results)
        wait = backoff.next()
        if not is_unknown or wait >= patience.left(cluster.runtime.now()):
            return response
        await anyio.sleep(wait)


async def incremental_alter_configs(
    cluster: Cluster,
    changes: Mapping[ConfigResource, Mapping[str, ConfigOp]],
    deadline: Deadline,
    *,
    validate_only: bool,
) -> None:
    """Change configs of each resource. Raise as :meth:`Admin.incremental_alter_configs`."""
    for node_id, together in _requests(changes):
        request = alter_request({resource: changes[resource] for resource in together}, validate_only=validate_only)
        route = await to_broker(cluster, node_id, deadline)
        try:
            response = await cluster.ask(route, request, deadline, lane=_LANE, check=_raise_if_not_controller)
        except UnsupportedVersion as refused:
            raise UnsupportedVersion(f"changing configs needs brokers since 2.3 (KIP-339): {refused}") from None
        for resource in together:
            with _explained([resource]):
                check_altered(resource, response)


@contextmanager
def _explained(resources: Collection[ConfigResource]) -> Iterator[None]:
    """Raise UnsupportedVersion for InvalidRequest, the answer of brokers without configs of groups."""
    try:
        yield
    except InvalidRequest as refused:
        if not any(resource.type is ConfigResourceType.GROUP for resource in resources):
            raise
        raise UnsupportedVersion(f"configs of groups need brokers since 4.0 (KIP-848): {refused}") from None


def _requests(resources: Collection[ConfigResource]) -> Iterator[tuple[int | None, list[ConfigResource]]]:
    """Yield the resources of each request, with the broker's id; None stands for any broker."""
    found: dict[int | None, list[ConfigResource]] = {}
    for resource in dict.fromkeys(resources):
        found.setdefault(resource.node_id, []).append(resource)
    for node_id, together in found.items():
        for start in range(0, len(together), _AT_ONCE):
            yield node_id, together[start : start + _AT_ONCE]


def _raise_if_not_controller(response: IncrementalAlterConfigsResponse) -> None:
    """Raise NotController if a resource has this error, the only error that a retry can solve."""
    for result in response.responses:
        if result.error_code == ErrorCode.NOT_CONTROLLER:
            raise NotController(f"changing configs of {result.resource_name!r}")


async def list_config_resources(
    cluster: Cluster, types: Collection[ConfigResourceType] | None, deadline: Deadline
) -> list[ConfigResource]:
    """Return the resources that have configs. Raise as :meth:`Admin.list_config_resources`."""
    if types is not None and not types:
        return []  # in requests, no types mean all types
    of_metrics = types is not None and set(types) == {ConfigResourceType.CLIENT_METRICS}

    def check(response: ListConfigResourcesResponse) -> None:
        listed_resources(response)

    async def ask(request: Request[ListConfigResourcesResponse], wanted: Versions) -> ListConfigResourcesResponse:
        return await cluster.ask(cluster.least_loaded, request, deadline, lane=_LANE, wanted=wanted, check=check)

    newer = ListConfigResourcesRequest(resource_types=list(dict.fromkeys(types or ())))
    forms = [RequestVariant(newer, _RESOURCE_TYPES_SINCE)]
    if of_metrics:
        forms.append(RequestVariant(ListConfigResourcesRequest(), _METRICS_ONLY))
    try:
        return listed_resources(await in_newest_form(forms, ask))
    except UnsupportedVersion as refused:
        needs = "listing resources with configs needs brokers since 4.1 (KIP-1142), only client metrics 3.7 (KIP-1000)"
        raise UnsupportedVersion(f"{needs}: {refused}") from None
