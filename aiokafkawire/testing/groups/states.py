"""The states of a classic group, and which follows on which."""

from enum import StrEnum
from typing import Final

__all__ = ("BEFORE", "CoordinatorState")


class CoordinatorState(StrEnum):
    """Where a classic group is in its life, in the words that DescribeGroups and ListGroups show."""

    EMPTY = "Empty"
    """No members; it may keep offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for all members to join."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Waiting for the leader to assign."""
    STABLE = "Stable"
    """Every member has its part."""
    DEAD = "Dead"
    """Gone: deleted, or another broker coordinates it now."""


BEFORE: Final[dict[CoordinatorState, tuple[CoordinatorState, ...]]] = {
    CoordinatorState.EMPTY: (CoordinatorState.PREPARING_REBALANCE,),
    CoordinatorState.PREPARING_REBALANCE: (
        CoordinatorState.EMPTY,
        CoordinatorState.COMPLETING_REBALANCE,
        CoordinatorState.STABLE,
    ),
    CoordinatorState.COMPLETING_REBALANCE: (CoordinatorState.PREPARING_REBALANCE,),
    CoordinatorState.STABLE: (CoordinatorState.COMPLETING_REBALANCE,),
    CoordinatorState.DEAD: tuple(CoordinatorState),
}
"""For each state, those that it may follow on."""
