"""The log directories of a broker, which exist in name only, and the directory of each of its replicas (KIP-113)."""

from collections.abc import Iterable

from ...errors import ErrorCode
from ...types import TopicPartition
from .api_error import ApiError
from .replicas import HostedPartition

__all__ = ("LogDirs",)


class LogDirs:
    """The log directories of one broker. A new replica goes to the directory with the fewest replicas.

    Args:
        node_id: the broker.
        count: the number of its directories.
    """

    def __init__(self, node_id: int, count: int = 1) -> None:
        self._node_id = node_id
        self.paths: list[str] = [f"/memory/{node_id}", *(f"/memory/{node_id}-{n}" for n in range(2, count + 1))]
        self._chosen: dict[TopicPartition, str] = {}

    def placed(self, partitions: Iterable[HostedPartition]) -> dict[str, list[HostedPartition]]:
        """Return the partitions of which this broker has a replica, by directory; choose directories of new replicas.

        Args:
            partitions: all partitions of the cluster, the oldest first.
        """
        here = [partition for partition in partitions if self._node_id in partition.replicas]
        found: dict[str, list[HostedPartition]] = {path: [] for path in self.paths}
        for partition in here:
            path = partition.log_dirs.get(self._node_id)
            if path is not None:
                found[path].append(partition)
        for partition in here:
            if self._node_id not in partition.log_dirs:
                path = self._chosen.pop(_name(partition), None) or min(self.paths, key=lambda one: len(found[one]))
                partition.log_dirs[self._node_id] = path
                found[path].append(partition)
        return found

    def move(self, where: TopicPartition, partition: HostedPartition | None, path: str) -> None:
        """Move this broker's replica of a partition to another directory, at once.

        Args:
            where: the partition's name.
            partition: the partition; None if there is none.
            path: the directory. A replica that the broker does not have yet is created there when it comes.

        Raises:
            ApiError: LOG_DIR_NOT_FOUND; REPLICA_NOT_AVAILABLE, the broker does not have the replica;
                UNKNOWN_TOPIC_OR_PARTITION, there is no such partition.
        """
        if path not in self.paths:
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND)
        if partition is None or self._node_id not in partition.replicas:
            self._chosen[where] = path
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else ErrorCode.REPLICA_NOT_AVAILABLE
            raise ApiError(missing)
        partition.log_dirs[self._node_id] = path


def _name(partition: HostedPartition) -> TopicPartition:
    return TopicPartition(partition.log.topic, partition.index)
