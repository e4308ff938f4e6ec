"""How far a member of a classic group can be, and what an error leads to: the tables of the machine."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ..errors import ErrorCode

__all__ = ("NEXT", "THEN", "GroupState", "RequestKind", "ErrorAction")


class RequestKind(Enum):
    """What is asked; commits are asked by others, and tell of the membership as well."""

    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    LEAVE = "LeaveGroup"
    COMMIT = "OffsetCommit"

    @property
    def is_slow(self) -> bool:
        """Whether the coordinator answers only when other members have asked as well."""
        return self in (RequestKind.JOIN, RequestKind.SYNC)


class GroupState(Enum):
    """How far it is."""

    OUTSIDE = "not in the group"
    PREPARING = "giving up what a rebalance may take"
    JOINING = "waiting for the other members to join"
    ASSIGNING = "deciding who gets what"
    SYNCING = "waiting for its part"
    STABLE = "a member"
    LEAVING = "leaving"
    FAILED = "refused"


_OUTSIDE, _PREPARING, _JOINING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.JOINING
_ASSIGNING, _SYNCING, _STABLE = GroupState.ASSIGNING, GroupState.SYNCING, GroupState.STABLE
_LEAVING, _FAILED = GroupState.LEAVING, GroupState.FAILED

NEXT: Final[Mapping[GroupState, tuple[GroupState, ...]]] = {
    _OUTSIDE: (_PREPARING,),
    _PREPARING: (_JOINING, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _JOINING: (_ASSIGNING, _SYNCING, _JOINING, _PREPARING, _STABLE, _LEAVING, _OUTSIDE, _FAILED),
    _ASSIGNING: (_SYNCING, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _SYNCING: (_STABLE, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _STABLE: (_PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _LEAVING: (_OUTSIDE,),
    _FAILED: (_PREPARING, _LEAVING, _OUTSIDE),
}
"""What may come after what."""


class ErrorAction(Enum):
    """What an error in an answer leads to."""

    AGAIN = "ask again after a rest"
    JOIN_WITH_ID = "join again, at once, with the id that was given"
    REJOIN = "join again as who it is"
    LOSE_GENERATION = "it has nothing any more; it joins again under its id"
    LOSE = "it is no member any more; it joins as a new one"
    FAIL = "the user has to hear of it"


THEN: Final[Mapping[tuple[RequestKind, int], ErrorAction]] = {
    (RequestKind.JOIN, ErrorCode.MEMBER_ID_REQUIRED): ErrorAction.JOIN_WITH_ID,
    (RequestKind.JOIN, ErrorCode.UNKNOWN_MEMBER_ID): ErrorAction.LOSE,
    (RequestKind.JOIN, ErrorCode.ILLEGAL_GENERATION): ErrorAction.LOSE_GENERATION,
    (RequestKind.JOIN, ErrorCode.REBALANCE_IN_PROGRESS): ErrorAction.AGAIN,
    (RequestKind.SYNC, ErrorCode.REBALANCE_IN_PROGRESS): ErrorAction.REJOIN,
    (RequestKind.SYNC, ErrorCode.UNKNOWN_MEMBER_ID): ErrorAction.LOSE,
    (RequestKind.SYNC, ErrorCode.ILLEGAL_GENERATION): ErrorAction.LOSE_GENERATION,
    (RequestKind.HEARTBEAT, ErrorCode.REBALANCE_IN_PROGRESS): ErrorAction.REJOIN,
    (RequestKind.HEARTBEAT, ErrorCode.UNKNOWN_MEMBER_ID): ErrorAction.LOSE,
    (RequestKind.HEARTBEAT, ErrorCode.ILLEGAL_GENERATION): ErrorAction.LOSE_GENERATION,
    (RequestKind.COMMIT, ErrorCode.UNKNOWN_MEMBER_ID): ErrorAction.LOSE,
    (RequestKind.COMMIT, ErrorCode.ILLEGAL_GENERATION): ErrorAction.LOSE_GENERATION,
    (RequestKind.COMMIT, ErrorCode.REBALANCE_IN_PROGRESS): ErrorAction.REJOIN,
}
"""Every other error is one that the user has to hear of; what a retry mends has been tried again before."""
