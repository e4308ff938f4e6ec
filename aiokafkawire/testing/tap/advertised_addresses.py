"""The addresses of brokers in responses, and their replacement by those of a proxy.

Brokers advertise addresses in Metadata, FindCoordinator and DescribeCluster, and those of new leaders in Produce,
Fetch, ShareFetch and ShareAcknowledge (KIP-951). A version of these APIs that is unknown here would let clients bypass
the proxy, so ApiVersions responses lose such versions.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ...protocol.api import ApiKey
from ...protocol.message_registry import request_of
from ...protocol.messages.fetch import FetchResponse
from ...protocol.messages.group import FindCoordinatorResponse
from ...protocol.messages.metadata import ApiVersionsResponse, DescribeClusterResponse, MetadataResponse
from ...protocol.messages.produce import ProduceResponse
from ...protocol.messages.share_fetch import ShareAcknowledgeResponse, ShareFetchResponse
from ...protocol.schema import Response
from ...types import Address

__all__ = ("REWRITTEN", "AdvertisedBroker", "advertised_brokers", "limit_versions", "replace_addresses")

REWRITTEN: Final = (
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
)
"""The APIs whose responses have addresses of brokers."""


class AdvertisedBroker(NamedTuple):
    """A broker's id and the address at which clients connect to it."""

    node_id: int
    address: Address


def advertised_brokers(response: Response) -> list[AdvertisedBroker]:
    """Return the brokers whose addresses are in a response, each once."""
    found = (AdvertisedBroker(_node_id(place), Address(place.host, place.port)) for place in _places(response))
    return list(dict.fromkeys(found))


def replace_addresses(response: Response, addresses: Mapping[Address, Address]) -> bool:
    """Replace addresses in a response in place; return whether there was any to replace."""
    changed = False
    for place in _places(response):
        new = addresses.get(Address(place.host, place.port))
        if new is not None and new != (place.host, place.port):
            place.host, place.port = new
            changed = True
    return changed


def limit_versions(response: ApiVersionsResponse) -> bool:
    """Remove versions that are newer than the known ones of the rewritten APIs; return whether there were any."""
    changed = False
    for api in response.api_keys:
        if api.api_key in REWRITTEN:
            newest = request_of(api.api_key).versions.last
            if api.min_version <= newest < api.max_version:
                api.max_version = newest
                changed = True
    return changed


def _places(response: Response) -> list[Any]:
    """Return the structs of a response that have an address; a coordinator that is not available has none."""
    found: list[Any] = []
    if isinstance(response, MetadataResponse | DescribeClusterResponse):
        found = list(response.brokers)
    elif isinstance(response, FindCoordinatorResponse):
        found = [response, *response.coordinators]
    elif isinstance(response, ProduceResponse | FetchResponse | ShareFetchResponse | ShareAcknowledgeResponse):
        found = list(response.node_endpoints)
    return [place for place in found if place.host and place.port > 0]


def _node_id(place: Any) -> int:
    node_id: int = place.broker_id if hasattr(place, "broker_id") else place.node_id
    return node_id
