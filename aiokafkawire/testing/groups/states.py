"""The states of a classic group, and which follows on which."""

from enum import StrEnum
from typing import Final

__all__ = ("BEFORE", "GroupState")


class GroupState(StrEnum):
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


BEFORE: Final[dict[GroupState, tuple[GroupState, ...]]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: tuple(GroupState),
}
"""For each state, those that it may follow on."""
