"""The requests about the cluster's nodes, features and quorum, and the descriptions in their responses."""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from ..cluster.metadata import Snapshot
from ..errors import KafkaError, WireError
from ..protocol.messages.controller import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from ..protocol.messages.metadata import ApiVersionsResponse, DescribeClusterResponse, MetadataResponse
from ..protocol.messages.offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ..protocol.messages.quorum_voters import (
    AddRaftVoterRequest,
    AddRaftVoterRequestListener,
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    ReplicaState,
)
from ..types import Address, TopicPartition
from .cluster_descriptions import (
    ClusterDescription,
    ClusterNode,
    EpochEndOffset,
    FeatureMetadata,
    FeatureUpdate,
    FinalizedVersionRange,
    QuorumInfo,
    QuorumReplica,
    RaftVoterEndpoint,
    SupportedVersionRange,
    UpgradeType,
)
from .group_descriptions import authorized_operations
from .response_errors import error_of, raise_for

__all__ = (
    "add_voter_request",
    "described_by_metadata",
    "described_cluster",
    "described_features",
    "described_quorum",
    "epoch_ends",
    "epochs_request",
    "quorum_request",
    "update_features_request",
    "updated_features",
)

_METADATA_TOPIC: Final = "__cluster_metadata"
_CONSUMER: Final = -1
_UNKNOWN: Final = -1


# --- the cluster -------------------------------------------------------------------------------------------------


def described_cluster(response: DescribeClusterResponse) -> ClusterDescription:
    """Return the description in a response to DescribeCluster. Raise BrokerError for its error."""
    raise_for(response.error_code, "DescribeCluster", response.error_message)
    nodes = {
        node.broker_id: ClusterNode(node.broker_id, Address(node.host, node.port), node.rack, node.is_fenced)
        for node in sorted(response.brokers, key=lambda node: node.broker_id)
    }
    return ClusterDescription(
        response.cluster_id,
        nodes.get(response.controller_id),
        nodes,
        authorized_operations(response.cluster_authorized_operations),
    )


def described_by_metadata(response: MetadataResponse) -> ClusterDescription:
    """Return the description in a response to Metadata, from brokers before 2.8. Raise BrokerError for its error."""
    raise_for(response.error_code, "Metadata")
    nodes = {
        node.node_id: ClusterNode(node.node_id, Address(node.host, node.port), node.rack)
        for node in sorted(response.brokers, key=lambda node: node.node_id)
    }
    return ClusterDescription(
        response.cluster_id,
        nodes.get(response.controller_id),
        nodes,
        authorized_operations(response.cluster_authorized_operations),
    )


# --- leader epochs -----------------------------------------------------------------------------------------------


def epochs_request(epochs: Mapping[TopicPartition, int], snapshot: Snapshot) -> OffsetForLeaderEpochRequest:
    """Return the request for the ends of epochs; ``snapshot`` has the leader epochs that the leaders check."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for partition, epoch in epochs.items():
        known = snapshot.partition(partition)
        topic = topics.setdefault(partition.topic, OffsetForLeaderTopic(topic=partition.topic, partitions=[]))
        topic.partitions.append(
            OffsetForLeaderPartition(
                partition=partition.partition,
                current_leader_epoch=known.leader_epoch if known is not None else _UNKNOWN,
                leader_epoch=epoch,
            )
        )
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))


def epoch_ends(response: OffsetForLeaderEpochResponse) -> dict[TopicPartition, EpochEndOffset | KafkaError | None]:
    """Return the end of each partition's epoch, None if there is none, or the partition's error."""
    found: dict[TopicPartition, EpochEndOffset | KafkaError | None] = {}
    for topic in response.topics:
        for end in topic.partitions:
            partition = TopicPartition(topic.topic, end.partition)
            end_offset = None if end.end_offset == _UNKNOWN else EpochEndOffset(end.leader_epoch, end.end_offset)
            found[partition] = error_of(end.error_code, f"OffsetForLeaderEpoch of {partition}") or end_offset
    return found


# --- features ----------------------------------------------------------------------------------------------------


def described_features(response: ApiVersionsResponse) -> FeatureMetadata:
    """Return the features in a response to ApiVersions. Raise BrokerError for its error."""
    raise_for(response.error_code, "ApiVersions")
    finalized = {
        feature.name: FinalizedVersionRange(feature.min_version_level, feature.max_version_level)
        for feature in sorted(response.finalized_features, key=lambda feature: feature.name)
    }
    supported = {
        feature.name: SupportedVersionRange(feature.min_version, feature.max_version)
        for feature in sorted(response.supported_features, key=lambda feature: feature.name)
    }
    epoch = response.finalized_features_epoch
    return FeatureMetadata(finalized, epoch if epoch != _UNKNOWN else None, supported)


def update_features_request(
    updates: Mapping[str, FeatureUpdate], *, validate_only: bool, timeout_ms: int, by_upgrade_type: bool = True
) -> UpdateFeaturesRequest:
    """Return the request for updates of features; without ``by_upgrade_type``, for brokers that lack that field."""
    keys = [
        FeatureUpdateKey(feature=name, max_version_level=update.max_version_level) for name, update in updates.items()
    ]
    for key in keys:
        update = updates[key.feature]
        if by_upgrade_type:
            key.upgrade_type = update.upgrade_type
        else:
            key.allow_downgrade = update.upgrade_type is not UpgradeType.UPGRADE
    return UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=keys, validate_only=validate_only)


def updated_features(updates: Iterable[str], response: UpdateFeaturesResponse) -> dict[str, KafkaError | None]:
    """Return the error of each feature, None if it was updated. Raise BrokerError for an error of all together.

    Brokers since 4.0 return no errors of single features.
    """
    names = list(updates)
    raise_for(response.error_code, f"updating {', '.join(names)}", response.error_message)
    found: dict[str, KafkaError | None] = dict.fromkeys(names)
    for result in response.results:
        found[result.feature] = error_of(result.error_code, f"updating {result.feature}", result.error_message)
    return found


# --- the quorum --------------------------------------------------------------------------------------------------


def quorum_request() -> DescribeQuorumRequest:
    """Return the request for the state of the controllers' quorum."""
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=_METADATA_TOPIC, partitions=[partition])
    return DescribeQuorumRequest(topics=[topic])


def described_quorum(response: DescribeQuorumResponse) -> QuorumInfo:
    """Return the state of the controllers' quorum.

    Raises:
        BrokerError: the response has an error.
        WireError: the response lacks the partition of the metadata log, or has it several times.
    """
    raise_for(response.error_code, "DescribeQuorum", response.error_message)
    found = [
        partition
        for topic in response.topics
        for partition in topic.partitions
        if topic.topic_name == _METADATA_TOPIC and partition.partition_index == 0
    ]
    if not found:
        raise WireError(f"the DescribeQuorum response lacks the requested {_METADATA_TOPIC}-0")
    if len(found) > 1:
        raise WireError(f"the DescribeQuorum response has {_METADATA_TOPIC}-0 {len(found)} times")
    (partition,) = found
    raise_for(partition.error_code, "DescribeQuorum", partition.error_message)
    return QuorumInfo(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        _replicas(partition.current_voters),
        _replicas(partition.observers),
        {
            node.node_id: tuple(RaftVoterEndpoint(each.name, each.host, each.port) for each in node.listeners)
            for node in response.nodes
        },
    )


def add_voter_request(
    voter_id: int, directory_id: UUID, endpoints: Iterable[RaftVoterEndpoint], cluster_id: str | None, timeout_ms: int
) -> AddRaftVoterRequest:
    """Return the request to add a voter."""
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[
            AddRaftVoterRequestListener(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
            for endpoint in endpoints
        ],
    )


def _replicas(states: Iterable[ReplicaState]) -> tuple[QuorumReplica, ...]:
    """Return the replicas sorted by id; brokers send them in any order."""
    return tuple(_replica(state) for state in sorted(states, key=lambda state: state.replica_id))


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        state.last_fetch_timestamp if state.last_fetch_timestamp != _UNKNOWN else None,
        state.last_caught_up_timestamp if state.last_caught_up_timestamp != _UNKNOWN else None,
    )
