"""Moving partitions to other brokers (KIP-455): the new replicas join, and when all are in sync the old ones go."""

from collections.abc import Sequence

from ...errors import ErrorCode
from .api_error import ApiError
from .replicas import HostedPartition

__all__ = ("cancel", "complete", "reassign")


def reassign(partition: HostedPartition, target: Sequence[int]) -> None:
    """Begin to move a partition to these brokers, the preferred leader first; a move under way changes its aim.

    Without replicas to wait for, it is done at once.
    """
    held = [node for node in partition.replicas if node not in partition.adding]
    removing = [node for node in partition.replicas if node not in target]
    partition.adding = [node for node in target if node not in held]
    partition.removing = removing
    partition.place([*target, *removing])
    complete(partition)


def complete(partition: HostedPartition) -> bool:
    """End the move if the new replicas are in sync; whether it ended."""
    if not partition.adding and not partition.removing:
        return False
    staying = [node for node in partition.replicas if node not in partition.removing]
    if any(node not in partition.in_sync_replicas for node in partition.adding):
        return False
    if not any(node in partition.in_sync_replicas for node in staying):
        return False
    partition.adding, partition.removing = [], []
    partition.place(staying)
    return True


def cancel(partition: HostedPartition) -> None:
    """Go back to the brokers that held the partition before.

    Raises:
        Refused: NO_REASSIGNMENT_IN_PROGRESS; INVALID_REPLICA_ASSIGNMENT, none of those brokers is in sync any longer.
    """
    if not partition.adding and not partition.removing:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    before = [node for node in partition.replicas if node not in partition.adding]
    if not any(node in partition.in_sync_replicas for node in before):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {partition.log.topic}:{partition.index} because it would "
            "require an unclean leader election.",
        )
    partition.adding, partition.removing = [], []
    partition.place(before)
