"""Decides when a heartbeat is due for a member whose event loop is blocked.

The rules:

1. While the member's event loop runs, the member sends heartbeats itself, and this schedule sends none. The loop counts
   as blocked if no heartbeat was answered for one and a half heartbeat intervals. Answers to heartbeats of this
   schedule count as well.
2. A rebalance does not end a membership, and the member may still join in time: heartbeats continue, as in Java.
3. A member that has not polled for ``max_poll_interval`` gets no heartbeats: a loop that is blocked for ever must not
   keep its partitions (KIP-62). Heartbeats begin again with the next poll.
4. An answer that shows the end of the membership ends the heartbeats, until there is another membership.
5. After a failure the next heartbeat waits for a backoff, which doubles. Only the first failure in a row is reported.
"""

from enum import Enum
from typing import Any, Final

import attrs

from ..errors import ErrorCode, KafkaError, broker_error
from ..protocol.schema import Request
from ..types import Address, GroupMetadata

__all__ = ("LINGER", "HeartbeatAction", "HeartbeatMember", "HeartbeatReport", "HeartbeatSchedule")

_BLOCKED_INTERVALS: Final = 1.5
LINGER: Final = 30.0
"""The seconds for which an unused connection stays open: loops that block once often block again."""
_MEMBER_LIVES: Final = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)


@attrs.frozen
class HeartbeatMember:
    """The member to send heartbeats for, its heartbeat ``request``, and its coordinator. Times are in seconds.

    ``request_timeout`` covers connecting and the request, and should be well below the session timeout. ``release`` is
    the coordinator's Kafka release, if it is too old to answer ApiVersions.
    """

    broker: Address
    request: Request[Any] = attrs.field(repr=False)
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    interval: float = 3.0
    request_timeout: float = 10.0
    release: str | None = None

    @property
    def group(self) -> GroupMetadata:
        """The membership of the member, without its coordinator and times."""
        return GroupMetadata(self.group_id, self.generation_id, self.member_id, self.group_instance_id)


@attrs.frozen
class HeartbeatReport:
    """The outcome of a heartbeat.

    ``code`` is the error code of the coordinator's response, None without a response or if the error is retriable;
    ``error`` is set if the heartbeat failed. ``at`` is in seconds of the schedule's clock. ``epoch`` is the response's
    member epoch, if the group protocol has one.
    """

    member: HeartbeatMember
    at: float
    code: int | None = None
    error: KafkaError | None = None
    epoch: int | None = None


class HeartbeatAction(Enum):
    """The action that the schedule requires now."""

    WAIT = "nothing"
    SEND = "send a heartbeat"
    DISCONNECT = "close the connection"


class HeartbeatSchedule:
    """The schedule of one member's heartbeats. All times are in seconds of one monotonic clock.

    Args:
        max_poll_interval: for how long heartbeats are sent without a poll.
        backoff: the wait after the first failure.
        backoff_max: the longest wait.
    """

    def __init__(self, *, max_poll_interval: float, backoff: float, backoff_max: float) -> None:
        self.member: HeartbeatMember | None = None
        """The member that gets heartbeats, if any."""
        self._max_poll_interval, self._backoff, self._backoff_max = max_poll_interval, backoff, backoff_max
        self._alive_at = 0.0
        self._polled_at: float | None = None
        self._ended = False
        self._failures = 0
        self._retry_at = 0.0
        self._connection_used_at: float | None = None

    def set_member(self, member: HeartbeatMember | None, now: float) -> bool:
        """Set the member to send heartbeats for, whose membership was just confirmed; return whether it has changed."""
        if member == self.member:
            return False
        self.member, self._ended, self._failures = member, False, 0
        self._alive_at = self._retry_at = now
        if self._polled_at is None:
            self._polled_at = now
        return True

    def record_heartbeat(self, now: float) -> None:
        """Record that the coordinator has answered a heartbeat of the member's own loop."""
        self._alive_at = now

    def record_poll(self, now: float) -> None:
        """Record that the user has polled."""
        self._polled_at = now

    def step(self, now: float) -> tuple[HeartbeatAction, float | None]:
        """Return the due action, and for WAIT the seconds to wait: None to wait until another method is called."""
        moments = []
        if self._connection_used_at is not None:
            if now >= self._connection_used_at + LINGER:
                self._connection_used_at = None
                return HeartbeatAction.DISCONNECT, 0.0
            moments.append(self._connection_used_at + LINGER)
        if self.member is not None and not self._ended:
            assert self._polled_at is not None
            due_at = max(self._alive_at + _BLOCKED_INTERVALS * self.member.interval, self._retry_at)
            if max(due_at, now) < self._polled_at + self._max_poll_interval:
                if now >= due_at:
                    return HeartbeatAction.SEND, 0.0
                moments.append(due_at)
        return HeartbeatAction.WAIT, min(moments) - now if moments else None

    def answered(self, member: HeartbeatMember, code: int, sent_at: float, now: float) -> HeartbeatReport | None:
        """Record the error code of a heartbeat's response; return the report to the member's loop, if one is due."""
        self._connection_used_at = now
        if code in _MEMBER_LIVES:
            if member == self.member:
                self._alive_at, self._failures = max(self._alive_at, sent_at), 0
            return HeartbeatReport(member, now, code)
        error = broker_error(code, f"Heartbeat of group {member.group_id!r}, sent while its loop is blocked")
        if error.retriable:
            return self._back_off(member, error, now)
        self._end(member)
        return HeartbeatReport(member, now, code, error)

    def failed(self, member: HeartbeatMember, error: KafkaError, now: float) -> HeartbeatReport | None:
        """Record that a heartbeat got no response and its connection is closed; return the report, if one is due."""
        self._connection_used_at = None
        return self._back_off(member, error, now)

    def refused(self, member: HeartbeatMember, error: KafkaError, now: float) -> HeartbeatReport:
        """Record that no heartbeat of this member can be sent to the coordinator at all; return the report."""
        self._connection_used_at = now
        self._end(member)
        return HeartbeatReport(member, now, error=error)

    def _back_off(self, member: HeartbeatMember, error: KafkaError, now: float) -> HeartbeatReport | None:
        if member != self.member:
            return None
        self._retry_at = now + min(self._backoff * 2**self._failures, self._backoff_max)
        self._failures = min(self._failures + 1, 30)
        return HeartbeatReport(member, now, error=error) if self._failures == 1 else None

    def _end(self, member: HeartbeatMember) -> None:
        if member == self.member:
            self._ended = True
