"""The transitions between the states of a classic group's member, and the actions that errors lead to."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ..errors import ErrorCode
from .membership import GroupState, RequestKind

__all__ = ("NEXT", "THEN", "ErrorAction")


_OUTSIDE, _PREPARING, _JOINING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.JOINING
_ASSIGNING, _SYNCING, _STABLE = GroupState.ASSIGNING, GroupState.SYNCING, GroupState.STABLE
_LEAVING, _FAILED = GroupState.LEAVING, GroupState.FAILED

NEXT: Final[Mapping[GroupState, tuple[GroupState, ...]]] = {
    _OUTSIDE: (_PREPARING,),
    _PREPARING: (_JOINING, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _JOINING: (_ASSIGNING, _SYNCING, _JOINING, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _ASSIGNING: (_SYNCING, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _SYNCING: (_STABLE, _PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _STABLE: (_PREPARING, _LEAVING, _OUTSIDE, _FAILED),
    _LEAVING: (_OUTSIDE,),
    _FAILED: (_PREPARING, _LEAVING, _OUTSIDE),
}
"""The allowed transitions."""


class ErrorAction(Enum):
    """The action that an error in a response leads to."""

    AGAIN = "retry after a backoff"
    JOIN_WITH_ID = "rejoin at once with the member id of the response"
    REJOIN = "rejoin under the current membership"
    LOSE_GENERATION = "lose all partitions and rejoin under the same member id"
    LOSE = "lose all partitions and rejoin as a new member"
    FAIL = "raise the error to the user"


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
"""The action for each request and error code. All other errors are raised to the user, retriable ones after retries."""
