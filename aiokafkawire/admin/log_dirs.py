"""The admin's methods for the log directories of brokers.

The first call imports the message classes of log directories.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ..argument_checks import check_integer, check_mapping, check_text, items_of
from ..types import TopicPartition, TopicPartitionReplica, check_replica, normalize_partitions
from .admin_base import AdminBase
from .outcomes import results_of

if TYPE_CHECKING:
    from .topic_descriptions import LogDirDescription, ReplicaLogDirInfo

__all__ = ("LogDirAdmin",)

_REPLICA: Final = "TopicPartitionReplica('orders', 0, 1)"


class LogDirAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for log directories (KIP-113, brokers since 1.0)."""

    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | int | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> "dict[int, dict[str, LogDirDescription]]":
        """Return the log directories of brokers, by broker id and path, with the size of each replica in bytes.

        Args:
            brokers: the ids of the brokers; by default all brokers that run.
            partitions: the partitions whose replicas to include; by default all partitions.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            BrokerNotAvailable, ClusterAuthorizationFailed, ...: the only broker is not in the cluster, or answered with
                an error. An offline directory is no error of the call, but of its description.
            AdminError: some of several brokers failed; ``results`` has the others.
            UnsupportedVersion: the brokers are older than 1.0.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .log_dir_requests import describe_log_dirs

        requested = None
        if brokers is not None:
            requested = [brokers] if isinstance(brokers, int) else items_of("brokers", brokers, "[1, 2]")
            for broker_id in requested:
                check_integer("a broker's id", broker_id)
        wanted = None if partitions is None else normalize_partitions(partitions)
        outcomes = await describe_log_dirs(self._cluster, requested, wanted, self._deadline(timeout))
        return results_of("describing log directories", outcomes)

    async def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], *, timeout: float | None = None
    ) -> "dict[TopicPartitionReplica, ReplicaLogDirInfo]":
        """Return the log directory of each replica, and the one to which it moves.

        A replica that the broker does not have has no directory.

        Args:
            replicas: the replicas, such as ``[TopicPartitionReplica("orders", 0, 1)]``.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            BrokerNotAvailable, ClusterAuthorizationFailed, ...: the broker of the only replica is not in the cluster,
                or answered with an error.
            AdminError: the brokers of some of several replicas failed; ``results`` has the others.
            UnsupportedVersion: the brokers are older than 1.0.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .log_dir_requests import describe_replicas

        requested = [check_replica(replica) for replica in items_of("replicas", replicas, f"[{_REPLICA}]")]
        outcomes = await describe_replicas(self._cluster, dict.fromkeys(requested), self._deadline(timeout))
        return results_of("describing the log directories of replicas", outcomes)

    async def alter_replica_log_dirs(
        self, log_dirs: Mapping[TopicPartitionReplica, str], *, timeout: float | None = None
    ) -> None:
        """Start to move replicas to other log directories of their brokers.

        The call returns when the brokers have accepted the moves; :meth:`describe_replica_log_dirs` shows those that
        are not complete. A replica that a broker does not have yet raises ReplicaNotAvailable, but is created in this
        directory if it comes to the broker.

        Args:
            log_dirs: the absolute path of a directory in the broker's ``log.dirs``, for each replica:
                ``{TopicPartitionReplica("orders", 0, 1): "/data/2"}``.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            LogDirNotFound, ReplicaNotAvailable, KafkaStorageError, BrokerNotAvailable, ...: the only replica cannot
                move.
            AdminError: some of several replicas cannot move; others do.
            UnsupportedVersion: the brokers are older than 1.0.
            UsageError: an argument is not valid.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        from .log_dir_requests import alter_log_dirs

        check_mapping("log_dirs", log_dirs, f"{{{_REPLICA}: '/data/2'}}")
        targets = {}
        for given, path in log_dirs.items():
            replica = check_replica(given)
            check_text(f"the log directory of {replica}", path)
            targets[replica] = path
        outcomes = await alter_log_dirs(self._cluster, targets, self._deadline(timeout))
        results_of("moving replicas to other log directories", outcomes)
