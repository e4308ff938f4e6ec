"""The admin's methods that place partitions: leader elections and reassignments.

The first call imports the message classes of reassignments.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..argument_checks import check_flag, check_mapping, shown
from ..errors import UsageError
from ..types import ElectionType, TopicPartition, check_partition, normalize_partitions
from .admin_base import AdminBase
from .new_topics import checked_replicas
from .outcomes import results_of

if TYPE_CHECKING:
    from .topic_descriptions import PartitionReassignment

__all__ = ("PartitionAdmin",)

_TARGETS: Final = "{TopicPartition('orders', 0): [2, 3]}"


class PartitionAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` that place partitions."""

    async def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elect leaders of partitions, or of all partitions (KIP-183, brokers since 2.2).

        Args:
            election_type: ``ElectionType.PREFERRED`` elects the first replica of each partition; ``UNCLEAN`` elects
                any live replica of a partition without a leader, which may lose records (KIP-460, brokers since 2.4).
            partitions: the partitions; by default all partitions of the cluster that need an election.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Returns:
            For each partition True if a leader was elected, and False if the partition needed no election, perhaps
            since an earlier attempt of this call, whose answer was lost. By default only the partitions that needed
            one.

        Raises:
            PreferredLeaderNotAvailable, EligibleLeadersNotAvailable, UnknownTopicOrPartition, ...: the controller
                rejected the only partition.
            AdminError: the controller rejected some of several partitions; other leaders are elected.
            UnsupportedVersion: the brokers are too old.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .partition_requests import elect_leaders

        if not isinstance(election_type, ElectionType):
            expected = "ElectionType.PREFERRED or ElectionType.UNCLEAN"
            raise UsageError(f"election_type must be {expected}, got {shown(election_type)}")
        requested = None if partitions is None else normalize_partitions(partitions)
        outcomes = await elect_leaders(self._cluster, election_type, requested, self._deadline(timeout))
        return results_of("electing leaders", outcomes)

    async def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Start to move partitions to other brokers, or cancel that (KIP-455, brokers since 2.4).

        The call returns when the controller has accepted the moves; :meth:`list_partition_reassignments` shows those
        that are not complete. A new target replaces that of an ongoing move.

        Args:
            reassignments: the ids of the brokers that shall hold each partition, the preferred leader first; None to
                cancel the move of the partition: ``{TopicPartition("orders", 0): [2, 3]}``.
            allow_replication_factor_change: False to reject brokers of another number than the partition has now
                (KIP-860, brokers since 4.1).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            InvalidReplicaAssignment, NoReassignmentInProgress, UnknownTopicOrPartition, ...: the controller rejected
                the only partition.
            AdminError: the controller rejected some of several partitions; others move.
            UnsupportedVersion: the brokers are too old.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .partition_requests import reassign_partitions

        check_flag("allow_replication_factor_change", allow_replication_factor_change)
        check_mapping("reassignments", reassignments, _TARGETS)
        targets: dict[TopicPartition, Sequence[int] | None] = {}
        for given, replicas in reassignments.items():
            partition = check_partition(given)
            targets[partition] = None
            if replicas is not None:
                targets[partition] = checked_replicas(f"the brokers of {partition}", replicas)
        deadline = self._deadline(timeout)
        outcomes = await reassign_partitions(
            self._cluster, targets, deadline, change_replication_factor=allow_replication_factor_change
        )
        results_of("reassigning partitions", outcomes)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> "dict[TopicPartition, PartitionReassignment]":
        """Return the partitions that are moving to other brokers, sorted (KIP-455, brokers since 2.4).

        Args:
            partitions: the partitions; by default all partitions of the cluster. Partitions that do not move, or do
                not exist, are left out.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            ClusterAuthorizationFailed, ...: the controller answered with an error.
            UnsupportedVersion: the brokers are too old.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .partition_requests import list_reassignments

        requested = None if partitions is None else normalize_partitions(partitions)
        return await list_reassignments(self._cluster, requested, self._deadline(timeout))
