"""Partition reassignment (KIP-455): the new replicas are added; when they are in sync, the old ones are removed."""

from collections.abc import Sequence

from ...errors import ErrorCode
from .api_error import ApiError
from .replicas import HostedPartition

__all__ = ("cancel", "complete", "reassign")


def reassign(partition: HostedPartition, target: Sequence[int]) -> None:
    """Start to move a partition to the brokers ``target``, the preferred leader first; replace an ongoing reassignment.

    The reassignment completes at once if no new replica has to catch up.
    """
    held = [node for node in partition.replicas if node not in partition.adding]
    removing = sorted(node for node in partition.replicas if node not in target)
    partition.adding = sorted(node for node in target if node not in held)
    partition.removing = removing
    partition.place([*target, *removing])
    complete(partition)


def complete(partition: HostedPartition) -> bool:
    """Complete a partition's reassignment if all new replicas are in sync; return whether it was completed."""
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
    """Cancel a reassignment: return the partition to its previous brokers.

    Raises:
        ApiError: NO_REASSIGNMENT_IN_PROGRESS; INVALID_REPLICA_ASSIGNMENT, none of the previous brokers is in sync.
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
