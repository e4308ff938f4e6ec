"""Which addresses of brokers are in responses, and how they are replaced."""

from __future__ import annotations

from typing import Any

import pytest
from support.rows import every_row

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.message_registry import request_of
from aiokafkawire.protocol.messages import fetch, group, metadata, produce, share_fetch
from aiokafkawire.protocol.schema import Response
from aiokafkawire.testing.tap.advertised_addresses import (
    REWRITTEN,
    AdvertisedBroker,
    advertised_brokers,
    limit_versions,
    replace_addresses,
)
from aiokafkawire.types import Address

OLD, NEW = Address("kafka-2.example", 9092), Address("localhost", 19093)


def responses() -> list[tuple[str, int, Response]]:
    """Every response with an address, in every version that has it."""
    endpoint: dict[str, Any] = {"node_id": 2, "host": OLD.host, "port": OLD.port}
    coordinator = group.Coordinator(key="g", error_code=0, error_message=None, **endpoint)
    found: list[tuple[str, int, Response]] = []
    for version in range(14):
        brokers = [metadata.MetadataResponseBroker(**endpoint)]
        found.append(("Metadata", version, metadata.MetadataResponse(brokers=brokers, topics=[])))
    for version in range(7):
        new: dict[str, Any] = {"coordinators": [coordinator]} if version >= 4 else {}
        old = {} if new else endpoint
        found.append(("FindCoordinator", version, group.FindCoordinatorResponse(**new, **old)))
    for version in range(3):
        described = metadata.DescribeClusterBroker(broker_id=2, host=OLD.host, port=OLD.port)
        response = metadata.DescribeClusterResponse(error_code=0, cluster_id="c", brokers=[described])
        found.append(("DescribeCluster", version, response))
        shared = share_fetch.NodeEndpoint(**endpoint)
        share = share_fetch.ShareFetchResponse(error_code=0, responses=[], node_endpoints=[shared])
        acknowledged = share_fetch.ShareAcknowledgeResponse(error_code=0, responses=[], node_endpoints=[shared])
        found += [("ShareFetch", version, share), ("ShareAcknowledge", version, acknowledged)]
    for version in range(10, 14):
        written = produce.ProduceResponse(responses=[], node_endpoints=[produce.NodeEndpoint(**endpoint)])
        found.append(("Produce", version, written))
    for version in range(16, 19):
        read = fetch.FetchResponse(responses=[], node_endpoints=[fetch.NodeEndpoint(**endpoint)])
        found.append(("Fetch", version, read))
    return found


@every_row(("api", "version", "response"), responses())
def test_every_response_gets_the_taps_address_instead(api: str, version: int, response: Response) -> None:
    received = decode(type(response), version, encode(response, version))
    assert advertised_brokers(received) == [AdvertisedBroker(2, OLD)]
    assert replace_addresses(received, {OLD: NEW})
    again = decode(type(response), version, encode(received, version))
    assert advertised_brokers(again) == [AdvertisedBroker(2, NEW)]


def test_the_responses_above_are_of_all_apis_that_are_rewritten() -> None:
    assert {response.api_key for _, _, response in responses()} == set(REWRITTEN)


@pytest.mark.parametrize("version", [3, 4])
def test_a_coordinator_that_is_not_available_has_no_address(version: int) -> None:
    nowhere: dict[str, Any] = {"node_id": -1, "host": "", "port": -1, "error_code": 15, "error_message": "none"}
    response = group.FindCoordinatorResponse(**nowhere)
    if version == 4:
        response = group.FindCoordinatorResponse(coordinators=[group.Coordinator(key="g", **nowhere)])
    assert advertised_brokers(response) == []
    assert not replace_addresses(response, {OLD: NEW})


def test_each_broker_is_named_once() -> None:
    endpoint: dict[str, Any] = {"node_id": 2, "host": OLD.host, "port": OLD.port, "error_code": 0}
    coordinators = [group.Coordinator(key=key, error_message=None, **endpoint) for key in ("g", "h")]
    assert advertised_brokers(group.FindCoordinatorResponse(coordinators=coordinators)) == [AdvertisedBroker(2, OLD)]


def test_the_address_that_a_broker_has_already_is_no_change() -> None:
    response = metadata.MetadataResponse(
        brokers=[metadata.MetadataResponseBroker(node_id=2, host=OLD.host, port=OLD.port)], topics=[]
    )
    assert not replace_addresses(response, {OLD: OLD})


def test_versions_that_nobody_here_can_rewrite_are_not_offered() -> None:
    newest = request_of(ApiKey.METADATA).versions.last
    keys = [
        metadata.ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=newest + 2),
        metadata.ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=99),
        metadata.ApiVersion(api_key=ApiKey.FIND_COORDINATOR, min_version=0, max_version=3),
    ]
    response = metadata.ApiVersionsResponse(error_code=0, api_keys=keys)
    assert limit_versions(response)
    assert [key.max_version for key in response.api_keys] == [newest, 99, 3]
    assert not limit_versions(response)
