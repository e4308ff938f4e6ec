"""ApiVersions, Metadata and DescribeCluster: API versions, brokers, topics and leaders."""

import re
from collections.abc import Iterable
from typing import Final

from ...errors import ErrorCode
from ...protocol.api import ApiKey
from ...protocol.messages.metadata import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ...protocol.primitives import ZERO_UUID
from ...protocol.schema import Versions
from ..cluster.api_error import ApiError
from ..cluster.state import BrokerNode, ClusterState
from ..cluster.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, HostedTopic, invalid_name
from ..serving.call import ServerCall
from .constants import NO_OPERATIONS, TOPIC_OPERATIONS

__all__ = ("api_versions", "describe_cluster", "metadata", "unsupported_api_versions")

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")  # KIP-511
_BROKERS: Final = 1  # endpoint types (KIP-919)
_CONTROLLERS: Final = 2
_ENDPOINTS: Final = {_BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}
_CLUSTER_OPERATIONS: Final = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))


async def api_versions(call: ServerCall, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Return the versions of every API that this broker advertises."""
    software = (request.client_software_name, request.client_software_version)
    halved = (request.cluster_id is None) != (request.node_id == -1)
    if halved or (call.version >= 3 and not all(_SOFTWARE.fullmatch(text) for text in software)):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    identity = (call.cluster.cluster_id, call.node.node_id)
    if request.cluster_id is not None and (request.cluster_id, request.node_id) != identity:  # KIP-1242
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED, api_keys=[])
    if call.version >= 3:
        call.peer.software_name, call.peer.software_version = software
    if call.peer.login is not None:
        call.peer.login.versions_sent()
    keys = [_api_version(key, versions) for key, versions in sorted(call.node.advertised.items())]
    answer = ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=keys)
    call.cluster.features.add_to(answer, call.version)
    return answer


def unsupported_api_versions(node: BrokerNode) -> ApiVersionsResponse:
    """Return the v0 response to ApiVersions in an unknown version; releases since 2.4 name the known versions."""
    key = ApiKey.API_VERSIONS
    versions = [_api_version(key, node.advertised[key])] if node.release.since("2.4") else []
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=versions)


async def metadata(call: ServerCall, request: MetadataRequest) -> MetadataResponse:
    """Describe the brokers and the requested topics. A missing topic gets an error, even if it is created now."""
    cluster = call.cluster
    error = _bad_request(request, call.version)
    if error is not None:
        return MetadataResponse(brokers=[], topics=[_missing(asked, error) for asked in request.topics or ()])
    topics = list(_topics(cluster, request, call.version))
    if call.version == 0:
        _leave_out_dead_replicas(topics)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in _listed(call)
        ],
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=(
            _CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def _listed(call: ServerCall) -> Iterable[BrokerNode]:
    """Return the brokers to list: those that run. Brokers of 0.8 list no brokers before there is a topic."""
    started = call.node.release.since("0.9.0") or any(True for _ in call.cluster.topics)
    return call.cluster.alive if started else ()


async def describe_cluster(call: ServerCall, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the running brokers (KIP-700); ``include_fenced_brokers`` adds stopped and fenced ones (KIP-1073).

    Controllers describe the controllers (KIP-919).
    """
    cluster = call.cluster
    error = _wrong_endpoint(call, request.endpoint_type)
    if error is not None:
        return DescribeClusterResponse(error_code=error.code, error_message=error.message, cluster_id="", brokers=[])
    if call.node.is_controller:
        nodes, active = list(cluster.controllers.values()), cluster.quorum.leader
    elif request.include_fenced_brokers:
        nodes, active = [node for node in cluster.nodes if node.registered], cluster.controller_id
    else:
        nodes, active = cluster.alive, cluster.controller_id
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        endpoint_type=request.endpoint_type,
        cluster_id=cluster.cluster_id,
        controller_id=active,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack, is_fenced=not node.alive
            )
            for node in nodes
        ],
        cluster_authorized_operations=(
            _CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def _wrong_endpoint(call: ServerCall, kind: int) -> ApiError | None:
    if kind not in _ENDPOINTS:
        return ApiError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}")
    here = _CONTROLLERS if call.node.is_controller else _BROKERS
    if kind == here:
        return None
    sent, wanted = _ENDPOINTS[here], _ENDPOINTS[kind]
    message = f"The request was sent to an endpoint of type {sent}, but we wanted an endpoint of type {wanted}"
    return ApiError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message)


def _api_version(key: int, versions: Versions) -> ApiVersion:
    return ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)


def _bad_request(request: MetadataRequest, version: int) -> ErrorCode | None:
    """Return the error for all topics of an invalid request; None if the request is valid."""
    topics = request.topics or ()
    # v10 introduced null names and ids, but brokers support them only since v12.
    if version < 12 and any(topic.name is None or topic.topic_id != ZERO_UUID for topic in topics):
        return ErrorCode.INVALID_REQUEST
    if any(topic.name is None and topic.topic_id == ZERO_UUID for topic in topics):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def _topics(cluster: ClusterState, request: MetadataRequest, version: int) -> Iterable[MetadataResponseTopic]:
    with_operations = request.include_topic_authorized_operations
    wanted = request.topics
    if wanted is None or (version == 0 and not wanted):
        return [_found(topic, with_operations) for topic in cluster.topics]
    if any(topic.topic_id != ZERO_UUID for topic in wanted):
        return [_by_id(cluster, asked, with_operations) for asked in wanted if asked.topic_id != ZERO_UUID]
    may_create = request.allow_auto_topic_creation and cluster.settings.auto_create_topics_enable
    asked_once = {topic.name: topic for topic in wanted if topic.name is not None}
    return [_by_name(cluster, name, asked, with_operations, may_create) for name, asked in asked_once.items()]


def _by_id(cluster: ClusterState, asked: MetadataRequestTopic, with_operations: bool) -> MetadataResponseTopic:
    topic = cluster.topics.by_id(asked.topic_id)
    if topic is None:
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id, partitions=[]
        )
    return _found(topic, with_operations)


def _by_name(
    cluster: ClusterState, name: str, asked: MetadataRequestTopic, with_operations: bool, may_create: bool
) -> MetadataResponseTopic:
    topic = cluster.topics.get(name)
    if topic is not None:
        return _found(topic, with_operations)
    if invalid_name(name) is not None:
        missing = _missing(asked, ErrorCode.INVALID_TOPIC_EXCEPTION)
    else:
        if may_create:
            _create(cluster, name)
        # A topic created just now is still reported as missing: Kafka's brokers do not wait for the controller.
        missing = _missing(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    missing.topic_authorized_operations = TOPIC_OPERATIONS if with_operations else NO_OPERATIONS
    return missing


def _create(cluster: ClusterState, name: str) -> None:
    try:
        if name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            cluster.make_internal(name)
        else:
            cluster.topics.create(name)
    except ApiError:
        return  # such as a name too similar to another topic's: the topic stays missing, and no field has the reason


def _missing(asked: MetadataRequestTopic, error: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=asked.name or "", topic_id=asked.topic_id, partitions=[])


def _found(topic: HostedTopic, with_operations: bool) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=partition.index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.in_sync_replicas),
                offline_replicas=partition.offline_replicas,
            )
            for partition in topic.partitions
        ],
        topic_authorized_operations=TOPIC_OPERATIONS if with_operations else NO_OPERATIONS,
    )


def _leave_out_dead_replicas(topics: Iterable[MetadataResponseTopic]) -> None:
    """Remove offline replicas, for which v0 has no field, and set REPLICA_NOT_AVAILABLE in their partitions."""
    for partition in (partition for topic in topics for partition in topic.partitions):
        offline = partition.offline_replicas
        if offline and not partition.error_code:
            partition.error_code = ErrorCode.REPLICA_NOT_AVAILABLE
        partition.replica_nodes = [node for node in partition.replica_nodes if node not in offline]
        partition.isr_nodes = [node for node in partition.isr_nodes if node not in offline]
