"""The admin's methods for the cluster's nodes: descriptions, coordinators, versions, and removal of dead nodes.

The first call imports the message classes.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from ..argument_checks import INT32, check_flag, check_integer, check_mapping, check_text, flattened, items_of, shown
from ..errors import UsageError
from ..types import CoordinatorType, TopicPartition, check_partition
from .admin_base import AdminBase

if TYPE_CHECKING:
    from .cluster_descriptions import ClusterDescription, ClusterNode, EpochEndOffset, SupportedVersionRange

__all__ = ("ClusterAdmin",)

_COORDINATORS: Final = {
    "group": CoordinatorType.GROUP,
    "transaction": CoordinatorType.TRANSACTION,
    "share": CoordinatorType.SHARE,
}


class ClusterAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for the cluster's nodes."""

    async def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout: float | None = None,
    ) -> "ClusterDescription":
        """Return the cluster's id, its brokers and the controller (KIP-700).

        A client with ``bootstrap_controllers`` gets the controllers instead of the brokers (KIP-919).

        Args:
            include_authorized_operations: whether to return what this client may do (KIP-430, brokers since 2.3).
            include_fenced_brokers: whether to return brokers that are registered but not in service, too (KIP-1073,
                brokers since 4.0).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            UnsupportedVersion: the broker is too old for an argument.
            UnsupportedEndpointType: controllers know no fenced brokers.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .cluster_requests import describe_cluster

        check_flag("include_authorized_operations", include_authorized_operations)
        check_flag("include_fenced_brokers", include_fenced_brokers)
        return await describe_cluster(
            self._cluster,
            self._deadline(timeout),
            operations=include_authorized_operations,
            fenced=include_fenced_brokers,
        )

    async def api_versions(
        self, brokers: Iterable[int] | None = None, *, timeout: float | None = None
    ) -> "dict[int, dict[int, SupportedVersionRange]]":
        """Return the API versions that brokers support, by broker id and API key (:class:`~.protocol.api.ApiKey`).

        Args:
            brokers: the brokers' ids; None for all brokers in service.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            BrokerNotAvailable: a broker is not in the cluster.
            AdminError: some of several brokers failed; the error has the results of the others.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .cluster_requests import api_versions

        node_ids = None if brokers is None else items_of("brokers", brokers, "[1, 2]")
        for node_id in node_ids or ():
            check_integer("a broker's id", node_id)
        return await api_versions(self._cluster, node_ids, self._deadline(timeout))

    async def find_coordinators(
        self,
        *keys: str | Collection[str],
        key_type: Literal["group", "transaction", "share"] = "group",
        timeout: float | None = None,
    ) -> "dict[str, ClusterNode]":
        """Return the brokers that coordinate groups or transactional ids, by what was asked for.

        Args:
            keys: the ids of groups, or transactional ids. The keys of type "share" are a share group's parts
                (KIP-932): ``"group:topic id:partition"``, with the id in URL-safe base64.
            key_type: "group", "transaction" (brokers since 0.11) or "share" (brokers since 4.1).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            GroupAuthorizationFailed, InvalidRequest, ...: the broker rejected a key.
            CoordinatorNotAvailable, CoordinatorLoadInProgress: the broker has named no coordinator within the timeout.
            AdminError: the broker rejected some of several keys; the error has the results of the others.
            UnsupportedVersion: the brokers are too old for the type of key.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .cluster_requests import find_coordinators

        if not isinstance(key_type, str) or key_type not in _COORDINATORS:
            raise UsageError(f"key_type must be one of {', '.join(map(repr, _COORDINATORS))}; got {shown(key_type)}")
        names = flattened(keys)
        for name in names:
            check_text("a group's or transactional id", name)
        return await find_coordinators(self._cluster, _COORDINATORS[key_type], names, self._deadline(timeout))

    async def offset_for_leader_epoch(
        self, epochs: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> "dict[TopicPartition, EpochEndOffset | None]":
        """Return where leader epochs ended in the logs of partitions (KIP-101, KIP-320).

        A record of the epoch at this offset or later was truncated. The result is None if no record has the epoch or an
        earlier one.

        Args:
            epochs: the leader epoch of each partition.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            TopicNotReady: a partition has no leader within the timeout.
            TopicAuthorizationFailed, ...: the broker rejected a partition.
            AdminError: some of several partitions failed; the error has the results of the others.
            UnsupportedVersion: the brokers are older than 0.11.
            UsageError: a partition does not exist, or an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .leader_epoch_requests import offset_for_leader_epoch

        check_mapping("epochs", epochs, "{TopicPartition('orders', 0): 5}")
        checked = {check_partition(partition): epoch for partition, epoch in epochs.items()}
        for partition, epoch in checked.items():
            check_integer(f"the leader epoch of {partition}", epoch)
        return await offset_for_leader_epoch(self._cluster, checked, self._deadline(timeout))

    async def unregister_broker(self, broker_id: int, *, timeout: float | None = None) -> None:
        """Make the cluster forget a broker that is gone for good (KIP-631, KRaft clusters since 3.3).

        Stop the broker first: a running one may register again.

        Raises:
            BrokerIdNotRegistered: the cluster does not know this broker.
            UnsupportedVersion: the brokers are too old, or use ZooKeeper.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .cluster_requests import unregister_broker

        check_integer("broker_id", broker_id, 0, INT32)
        await unregister_broker(self._cluster, broker_id, self._deadline(timeout))

    async def unregister_controller(self, controller_id: int, *, timeout: float | None = None) -> None:
        """Make the cluster forget a controller that is gone for good (KIP-1312, clusters since 4.4).

        Remove it from the quorum's voters first (:meth:`remove_raft_voter`), and stop it.

        Raises:
            ControllerIdNotRegistered, ...: the cluster does not know this controller, or refuses.
            UnsupportedVersion: the brokers are too old.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .cluster_requests import unregister_controller

        check_integer("controller_id", controller_id, 0, INT32)
        await unregister_controller(self._cluster, controller_id, self._deadline(timeout))
