"""The blocking admin's methods for the cluster: its nodes, features and quorum."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from ..admin.admin import Admin
from ..loop_thread import LoopThread
from ..types import TopicPartition

if TYPE_CHECKING:
    from ..admin.cluster_descriptions import (
        ClusterDescription,
        ClusterNode,
        EpochEndOffset,
        FeatureMetadata,
        FeatureUpdate,
        QuorumInfo,
        RaftVoterEndpoint,
        SupportedVersionRange,
    )

__all__ = ("ClusterAdmin",)


class ClusterAdmin:
    """The methods of :class:`~.admin.Admin` for the cluster."""

    _loop: LoopThread
    _admin: Admin

    def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout: float | None = None,
    ) -> "ClusterDescription":
        """Return the cluster's id, its brokers and the controller."""
        return self._loop.call(
            self._admin.describe_cluster,
            include_authorized_operations=include_authorized_operations,
            include_fenced_brokers=include_fenced_brokers,
            timeout=timeout,
        )

    def api_versions(
        self, brokers: Iterable[int] | None = None, *, timeout: float | None = None
    ) -> "dict[int, dict[int, SupportedVersionRange]]":
        """Return the API versions that brokers support, by broker id and API key."""
        return self._loop.call(self._admin.api_versions, brokers, timeout=timeout)

    def find_coordinators(
        self,
        *keys: str | Collection[str],
        key_type: Literal["group", "transaction", "share"] = "group",
        timeout: float | None = None,
    ) -> "dict[str, ClusterNode]":
        """Return the brokers that coordinate groups or transactional ids."""
        return self._loop.call(self._admin.find_coordinators, *keys, key_type=key_type, timeout=timeout)

    def offset_for_leader_epoch(
        self, epochs: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> "dict[TopicPartition, EpochEndOffset | None]":
        """Return where leader epochs ended in the logs of partitions; None if there is no such epoch."""
        return self._loop.call(self._admin.offset_for_leader_epoch, epochs, timeout=timeout)

    def unregister_broker(self, broker_id: int, *, timeout: float | None = None) -> None:
        """Make the cluster forget a broker that is gone for good."""
        self._loop.call(self._admin.unregister_broker, broker_id, timeout=timeout)

    def unregister_controller(self, controller_id: int, *, timeout: float | None = None) -> None:
        """Make the cluster forget a controller that is gone for good (Kafka 4.4)."""
        self._loop.call(self._admin.unregister_controller, controller_id, timeout=timeout)

    def describe_features(self, *, broker: int | None = None, timeout: float | None = None) -> "FeatureMetadata":
        """Return the features that are in effect in the cluster, and those that a broker supports."""
        return self._loop.call(self._admin.describe_features, broker=broker, timeout=timeout)

    def update_features(
        self,
        updates: "Mapping[str, int | FeatureUpdate]",
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change the levels of features in the whole cluster."""
        self._loop.call(self._admin.update_features, updates, validate_only=validate_only, timeout=timeout)

    def describe_metadata_quorum(self, *, timeout: float | None = None) -> "QuorumInfo":
        """Return the leader, the voters and the observers of the controllers' quorum."""
        return self._loop.call(self._admin.describe_metadata_quorum, timeout=timeout)

    def add_raft_voter(
        self,
        voter_id: int,
        directory_id: UUID,
        endpoints: "Iterable[RaftVoterEndpoint]",
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Add a controller to the voters of the quorum."""
        self._loop.call(
            self._admin.add_raft_voter, voter_id, directory_id, endpoints, cluster_id=cluster_id, timeout=timeout
        )

    def remove_raft_voter(
        self,
        voter_id: int,
        directory_id: UUID,
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove a controller from the voters of the quorum."""
        self._loop.call(self._admin.remove_raft_voter, voter_id, directory_id, cluster_id=cluster_id, timeout=timeout)
