"""The requests of a classic group's member to its coordinator, and the actions that the errors of responses lead to."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from ..cluster.request_variants import RequestVariant
from ..errors import ErrorCode, KafkaError, UnsupportedVersion
from ..protocol.messages.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ..protocol.schema import Versions
from ..types import GroupMetadata
from .membership import CoordinatorRequest, MemberSettings, RequestKind

__all__ = ("THEN", "ErrorAction", "explained", "heartbeat", "join", "leave", "sync")

_ANY: Final = Versions.parse("0+")
# KIP-345: older versions have no group_instance_id.
_STATIC_JOIN: Final = Versions.parse("5+")
_WITH_REBALANCE_TIMEOUT: Final = Versions.parse("1+")  # KIP-62
_WITHOUT: Final = Versions.parse("0")
_MAX_SESSION_TIMEOUT_V0: Final = 30_000
_STATIC: Final = Versions.parse("3+")
_MANY_LEAVE: Final = Versions.parse("3+")
_ONE_LEAVES: Final = Versions.parse("0-2")


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


def join(
    settings: MemberSettings, member_id: str, protocols: Sequence[tuple[str, bytes]], reason: str
) -> CoordinatorRequest:
    """Build a JoinGroup; its response comes once all members have joined, or after ``rebalance_timeout_ms``.

    Brokers that support only v0 (0.9 and 0.10.0) respond after the session timeout instead. By default they accept at
    most 30 s (``group.max.session.timeout.ms``), so a v0 request has a session timeout of at most 30 s.
    """
    newest = _join(settings, settings.session_timeout_ms, member_id, protocols, reason)
    if settings.group_instance_id is not None:
        return CoordinatorRequest(RequestKind.JOIN, (RequestVariant(newest, _STATIC_JOIN),))
    oldest = _join(settings, min(settings.session_timeout_ms, _MAX_SESSION_TIMEOUT_V0), member_id, protocols, "")
    return CoordinatorRequest(
        RequestKind.JOIN, (RequestVariant(newest, _WITH_REBALANCE_TIMEOUT), RequestVariant(oldest, _WITHOUT))
    )


def _join(
    settings: MemberSettings,
    session_timeout_ms: int,
    member_id: str,
    protocols: Sequence[tuple[str, bytes]],
    reason: str,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=settings.protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
        reason=reason[:255],
    )


def sync(
    settings: MemberSettings, group: GroupMetadata, protocol: str, assignments: Mapping[str, bytes]
) -> CoordinatorRequest:
    """Build a SyncGroup; its response comes once the leader has sent the assignments."""
    request = SyncGroupRequest(
        group_id=group.group_id,
        generation_id=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        protocol_type=settings.protocol_type,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=data) for member_id, data in assignments.items()
        ],
    )
    return CoordinatorRequest(RequestKind.SYNC, (RequestVariant(request, _of_any(group)),))


def heartbeat(group: GroupMetadata) -> CoordinatorRequest:
    """Build a Heartbeat of the membership ``group``."""
    request = HeartbeatRequest(
        group_id=group.group_id,
        generation_id=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
    )
    return CoordinatorRequest(RequestKind.HEARTBEAT, (RequestVariant(request, _of_any(group)),))


def leave(settings: MemberSettings, member_id: str, reason: str) -> CoordinatorRequest:
    """Build a LeaveGroup."""
    member = MemberIdentity(member_id=member_id, group_instance_id=settings.group_instance_id, reason=reason[:255])
    newer = LeaveGroupRequest(group_id=settings.group_id, members=[member])
    if settings.group_instance_id is not None:
        return CoordinatorRequest(RequestKind.LEAVE, (RequestVariant(newer, _MANY_LEAVE),))
    older = LeaveGroupRequest(group_id=settings.group_id, member_id=member_id)
    return CoordinatorRequest(
        RequestKind.LEAVE, (RequestVariant(newer, _MANY_LEAVE), RequestVariant(older, _ONE_LEAVES))
    )


def explained(request: CoordinatorRequest, settings: MemberSettings, error: KafkaError) -> KafkaError:
    """Return the error, with advice if the broker is too old for the request."""
    if not isinstance(error, UnsupportedVersion):
        return error
    if settings.group_instance_id is not None:
        message = f"static members (group_instance_id) came with Kafka 2.3 (KIP-345): {error}"
    elif request.kind is RequestKind.JOIN:
        message = (
            f"cannot join {settings.named}, groups came with Kafka 0.9: assign() partitions instead of "
            f"subscribing; commit() works on Kafka 0.8.1 and later: {error}"
        )
    else:
        return error
    return UnsupportedVersion(message)


def _of_any(group: GroupMetadata) -> Versions:
    return _ANY if group.group_instance_id is None else _STATIC
