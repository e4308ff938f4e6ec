"""Descriptions of the cluster that the admin returns: its nodes, features, controllers' quorum and API versions."""

from collections.abc import Mapping
from enum import IntEnum
from uuid import UUID

import attrs

from ..types import Address

__all__ = (
    "ClusterDescription",
    "ClusterNode",
    "EpochEndOffset",
    "FeatureMetadata",
    "FeatureUpdate",
    "FinalizedVersionRange",
    "QuorumInfo",
    "QuorumReplica",
    "RaftVoterEndpoint",
    "SupportedVersionRange",
    "UpgradeType",
)


@attrs.frozen
class ClusterNode:
    """A broker, or a controller of a client with ``bootstrap_controllers``.

    ``is_fenced`` is True for a broker that is registered but not in service (KIP-1073).
    """

    node_id: int
    address: Address
    rack: str | None = None
    is_fenced: bool = False


@attrs.frozen
class ClusterDescription:
    """The nodes of a cluster.

    ``nodes`` has the brokers by id. ``controller`` is the active controller of a cluster with ZooKeeper. Brokers of
    KRaft clusters name a broker instead, which forwards requests to the controller. ``cluster_id`` is None from brokers
    before 0.10.1. ``authorized_operations`` are the ACL operations that this client may perform on the cluster, such as
    "ALTER" (KIP-430); None if they were not requested.
    """

    cluster_id: str | None
    controller: ClusterNode | None
    nodes: Mapping[int, ClusterNode]
    authorized_operations: frozenset[str] | None = None


@attrs.frozen
class SupportedVersionRange:
    """The versions of an API, or the levels of a feature, that a node supports."""

    min_version: int
    max_version: int


@attrs.frozen
class FinalizedVersionRange:
    """The levels of a feature that are in effect in the whole cluster; ``max_version_level`` is the level in effect."""

    min_version_level: int
    max_version_level: int


@attrs.frozen
class FeatureMetadata:
    """The features of a cluster, by name (KIP-584).

    ``finalized_features`` are in effect in the whole cluster; a feature at level 0 is not listed.
    ``supported_features`` are those of the node that answered. ``finalized_features_epoch`` rises with each change;
    None if it is not known.
    """

    finalized_features: Mapping[str, FinalizedVersionRange]
    finalized_features_epoch: int | None
    supported_features: Mapping[str, SupportedVersionRange]


class UpgradeType(IntEnum):
    """The kind of a feature's update (KIP-778): an upgrade, or a downgrade without or with loss of metadata."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@attrs.frozen
class FeatureUpdate:
    """An update of a feature to a level; level 0 disables the feature."""

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@attrs.frozen
class RaftVoterEndpoint:
    """The address at which a controller listens, and the name of this listener, such as "CONTROLLER"."""

    listener: str
    host: str
    port: int


@attrs.frozen
class QuorumReplica:
    """A voter or an observer of the quorum.

    ``directory_id`` identifies the directory of the metadata log; it is all zeros unless ``kraft.version`` is at least
    1 (KIP-853). ``log_end_offset`` is -1 if it is not known. ``last_fetch_timestamp`` and ``last_caught_up_timestamp``
    are in ms since the epoch by the leader's clock (KIP-836); None if they are not known.
    """

    replica_id: int
    directory_id: UUID
    log_end_offset: int
    last_fetch_timestamp: int | None = None
    last_caught_up_timestamp: int | None = None


@attrs.frozen
class QuorumInfo:
    """The Raft quorum of the controllers, which replicates the cluster's metadata (KIP-595).

    ``voters`` are controllers, and ``observers`` replicate without a vote, such as brokers. ``leader_id`` is the active
    controller. ``nodes`` has the endpoints of each voter by id (KIP-853; empty from brokers before 3.9).
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    nodes: Mapping[int, tuple[RaftVoterEndpoint, ...]]


@attrs.frozen
class EpochEndOffset:
    """The end of a leader epoch in a partition: the offset after its last record (KIP-101).

    ``leader_epoch`` is the requested epoch, or the highest epoch before it that has records; -1 from brokers before
    2.0, which do not return it.
    """

    leader_epoch: int
    end_offset: int
