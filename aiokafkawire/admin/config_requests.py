"""The admin's requests about configs, each to the brokers that know the resources."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, TypeAlias, TypeVar

import anyio

from ..cluster.cluster import Cluster, Route
from ..cluster.request_variants import RequestVariant, in_newest_form
from ..cluster.retry import Deadline
from ..errors import ErrorCode, InvalidRequest, KafkaError, UnsupportedVersion
from ..protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ..protocol.schema import Request, Versions
from .concurrent_outcomes import ask_by_batch, raise_if_unsupported
from .config_messages import alter_request, altered_configs, describe_request, described_configs, listed_resources
from .config_resources import ConfigEntry, ConfigOp, ConfigResource, ConfigResourceType
from .outcomes import Outcomes, ask_for_each
from .response_errors import explain_unsupported
from .routes import to_broker

__all__ = ("describe_configs", "incremental_alter_configs", "list_config_resources")

V = TypeVar("V")

_Ask: TypeAlias = Callable[[int | None, list[ConfigResource]], Awaitable[Mapping[ConfigResource, V | KafkaError]]]

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
_DESCRIBING_NEEDS: Final = (
    "describing configs needs brokers since 0.11 (KIP-133), synonyms 1.1 (KIP-226), documentation 2.6 (KIP-569)"
)
_LISTING_NEEDS: Final = (
    "listing resources with configs needs brokers since 4.1 (KIP-1142), only client metrics 3.7 (KIP-1000)"
)


async def describe_configs(
    cluster: Cluster,
    resources: Collection[ConfigResource],
    deadline: Deadline,
    *,
    synonyms: bool,
    documentation: bool,
) -> Outcomes[ConfigResource, dict[str, ConfigEntry]]:
    """Return the configs of each resource. Raise as :meth:`Admin.describe_configs`."""
    wanted = _DOCUMENTATION_SINCE if documentation else _SYNONYMS_SINCE if synonyms else _ANY

    async def ask(
        node_id: int | None, together: list[ConfigResource]
    ) -> Mapping[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        request = describe_request(together, synonyms=synonyms, documentation=documentation)
        route = await to_broker(cluster, node_id, deadline)
        with explain_unsupported(_DESCRIBING_NEEDS):
            response = await _ask_for_topics(cluster, route, request, deadline, wanted)
        return described_configs(together, response)

    return await _of_each(resources, ask)


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
) -> Outcomes[ConfigResource, None]:
    """Change configs of each resource. Raise as :meth:`Admin.incremental_alter_configs`."""

    def request(pending: list[ConfigResource]) -> IncrementalAlterConfigsRequest:
        return alter_request({resource: changes[resource] for resource in pending}, validate_only=validate_only)

    async def ask(node_id: int | None, together: list[ConfigResource]) -> Mapping[ConfigResource, KafkaError | None]:
        route = await to_broker(cluster, node_id, deadline)
        with explain_unsupported("changing configs needs brokers since 2.3 (KIP-339)"):
            return await ask_for_each(cluster, route, together, deadline, request=request, outcomes=altered_configs)

    return await _of_each(changes, ask)


async def _of_each(resources: Collection[ConfigResource], ask: "_Ask[V]") -> Outcomes[ConfigResource, V]:
    """Ask the brokers concurrently, and return the outcome of each resource.

    Raises:
        KafkaError: the only request failed as a whole. Of several requests, it is the error of the resources.
    """
    requests = _requests(resources)
    is_single = sum(map(len, requests.values())) == 1

    async def ask_broker(node_id: int | None) -> Outcomes[ConfigResource, V]:
        answered: Outcomes[ConfigResource, V] = {}
        for together in requests[node_id]:
            try:
                answered |= await ask(node_id, together)
            except KafkaError as error:
                if is_single:
                    raise
                answered |= dict.fromkeys(together, error)
        return answered

    if is_single:
        found = await ask_broker(next(iter(requests)))
    else:
        of_brokers = {node_id: [each for some in parts for each in some] for node_id, parts in requests.items()}
        found = await ask_by_batch(of_brokers, ask_broker)
    outcomes = {resource: _explained(resource, found[resource]) for resource in dict.fromkeys(resources)}
    return raise_if_unsupported(outcomes)


def _explained(resource: ConfigResource, outcome: V | KafkaError) -> V | KafkaError:
    """Return UnsupportedVersion for InvalidRequest, the answer of brokers without configs of groups."""
    if resource.type is ConfigResourceType.GROUP and isinstance(outcome, InvalidRequest):
        return UnsupportedVersion(f"configs of groups need brokers since 4.0 (KIP-848): {outcome}")
    return outcome


def _requests(resources: Collection[ConfigResource]) -> dict[int | None, list[list[ConfigResource]]]:
    """Return the resources of each request, by the broker's id; None stands for any broker.

    Groups have requests of their own: brokers without configs of groups reject the whole request.
    """
    found: dict[tuple[int | None, bool], list[ConfigResource]] = {}
    for resource in dict.fromkeys(resources):
        found.setdefault((resource.node_id, resource.type is ConfigResourceType.GROUP), []).append(resource)
    requests: dict[int | None, list[list[ConfigResource]]] = {}
    for (node_id, _), together in found.items():
        parts = [together[start : start + _AT_ONCE] for start in range(0, len(together), _AT_ONCE)]
        requests.setdefault(node_id, []).extend(parts)
    return requests


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
    with explain_unsupported(_LISTING_NEEDS):
        return listed_resources(await in_newest_form(forms, ask))
