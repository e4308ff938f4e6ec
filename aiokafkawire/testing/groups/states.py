"""The states of a classic group and their transitions."""

from enum import StrEnum
from typing import Final

__all__ = ("BEFORE", "CoordinatorState")


class CoordinatorState(StrEnum):
    """The state of a classic group, as DescribeGroups and ListGroups spell it."""

    EMPTY = "Empty"
    """The group has no members; it may have offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """The coordinator waits for all members to join."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The coordinator waits for the leader's assignment."""
    STABLE = "Stable"
    """All members have an assignment."""
    DEAD = "Dead"
    """The group is deleted, or another broker coordinates it now."""


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
"""The states that may precede each state."""
