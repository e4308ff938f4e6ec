"""The admin's methods for the Raft quorum of the controllers (KIP-595, KIP-853).

The first call imports the message classes.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ..argument_checks import INT32, check_integer, check_text, items_of, shown
from ..errors import UsageError
from .admin_base import AdminBase

if TYPE_CHECKING:
    from .cluster_descriptions import QuorumInfo, RaftVoterEndpoint

__all__ = ("QuorumAdmin",)

_ENDPOINT: Final = "RaftVoterEndpoint('CONTROLLER', 'localhost', 9093)"


class QuorumAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for the quorum of the controllers."""

    async def describe_metadata_quorum(self, *, timeout: float | None = None) -> "QuorumInfo":
        """Return the leader, the voters and the observers of the controllers' quorum (KIP-595, KIP-836, KIP-853).

        Raises:
            UnsupportedVersion: the brokers are older than 3.3, or use ZooKeeper.
            ClusterAuthorizationFailed, ...: the broker answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .quorum_requests import describe_metadata_quorum

        return await describe_metadata_quorum(self._cluster, self._deadline(timeout))

    async def add_raft_voter(
        self,
        voter_id: int,
        directory_id: UUID,
        endpoints: "Iterable[RaftVoterEndpoint]",
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Add a controller to the voters of the quorum (KIP-853, brokers since 3.9).

        The controller must run, and must have replicated the metadata log as an observer. The call returns once the
        voters have committed the change. The request is sent again if the leader has changed or the connection was
        lost. The voter may have been added despite an error: :meth:`describe_metadata_quorum` returns the voters.

        Args:
            voter_id: the controller's ``node.id``.
            directory_id: the ``directory.id`` in the ``meta.properties`` file of its metadata log.
            endpoints: the controller's listeners; one must be the first of ``controller.listener.names``.
            cluster_id: the cluster's id, which the controller then checks; None to check nothing.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            DuplicateVoter: a voter has this id already; perhaps since an earlier attempt of this call.
            InconsistentClusterId: the cluster has another id.
            RequestTimedOut: the controller is not ready, or lags behind.
            InvalidRequest: an endpoint is missing.
            UnsupportedVersionAnswered: the cluster's feature ``kraft.version`` is 0, so its voters are fixed.
            UnsupportedVersion: the brokers are older than 3.9, or use ZooKeeper.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .quorum_requests import add_raft_voter

        _check_voter(voter_id, directory_id, cluster_id)
        listeners = [_checked(endpoint) for endpoint in items_of("endpoints", endpoints, f"[{_ENDPOINT}]")]
        if not listeners:
            raise UsageError(f"endpoints must have the controller's listener, such as [{_ENDPOINT}]")
        deadline = self._deadline(timeout)
        await add_raft_voter(self._cluster, voter_id, directory_id, listeners, cluster_id, deadline)

    async def remove_raft_voter(
        self,
        voter_id: int,
        directory_id: UUID,
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove a controller from the voters of the quorum (KIP-853, brokers since 3.9).

        The call returns once the other voters have committed the change. A leader that is removed resigns. The
        controller goes on as an observer until it is stopped. The request is sent again as that of
        :meth:`add_raft_voter`, and the voter may have been removed despite an error.

        Args:
            voter_id: the controller's ``node.id``.
            directory_id: its :attr:`.QuorumReplica.directory_id` in :meth:`describe_metadata_quorum`.
            cluster_id: the cluster's id, which the controller then checks; None to check nothing.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            VoterNotFound: no voter has this id and directory; perhaps since an earlier attempt of this call.
            InconsistentClusterId: the cluster has another id.
            UnsupportedVersionAnswered: the cluster's feature ``kraft.version`` is 0, so its voters are fixed.
            UnsupportedVersion: the brokers are older than 3.9, or use ZooKeeper.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .quorum_requests import remove_raft_voter

        _check_voter(voter_id, directory_id, cluster_id)
        await remove_raft_voter(self._cluster, voter_id, directory_id, cluster_id, self._deadline(timeout))


def _check_voter(voter_id: object, directory_id: object, cluster_id: object) -> None:
    check_integer("voter_id", voter_id, 0, INT32)
    if not isinstance(directory_id, UUID):
        raise UsageError(f"directory_id must be a uuid.UUID, got {shown(directory_id)}")
    if cluster_id is not None:
        check_text("cluster_id", cluster_id)


def _checked(endpoint: object) -> "RaftVoterEndpoint":
    """Return a user's endpoint.

    Raises:
        UsageError: the endpoint is not valid.
    """
    from .cluster_descriptions import RaftVoterEndpoint

    if not isinstance(endpoint, RaftVoterEndpoint):
        raise UsageError(f"an endpoint must be like {_ENDPOINT}, got {shown(endpoint)}")
    check_text("a listener's name", endpoint.listener)
    check_text("a listener's host", endpoint.host)
    check_integer("a listener's port", endpoint.port, 1, 65535)
    return endpoint
