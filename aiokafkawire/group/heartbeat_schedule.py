"""The schedule of the heartbeat thread: when it sends heartbeats for a member whose event loop is blocked.

The rules:

1. While the event loop runs, it sends the heartbeats itself. It counts as blocked once its last sign of life is older
   than one and a half heartbeat intervals; a successful heartbeat of the thread counts as one, too.
2. A rebalance does not end a membership, and the member may still rejoin in time: heartbeats go on, as Java's do.
3. A member that has not called poll() for ``max_poll_interval`` gets no heartbeats: a loop that is blocked for ever
   must not keep its partitions (KIP-62). They resume with the next poll().
4. An error that ends the membership ends the heartbeats, until another membership begins.
5. After a failure the thread backs off, twice as long each time. It reports only the first of consecutive failures.
"""

from enum import Enum
from typing import Final

import attrs

from ..errors import BrokerError, ErrorCode, KafkaError, broker_error
from ..types import Address, GroupMetadata

__all__ = ("LINGER", "HeartbeatAction", "HeartbeatResult", "HeartbeatMember", "HeartbeatSchedule", "HeartbeatReport")

_SILENT: Final = 1.5
"""The number of heartbeat intervals without a sign of life after which the loop counts as blocked."""
LINGER: Final = 30.0
"""For how many seconds an idle connection stays open: loops that block once often do so again."""
_ALIVE: Final = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)


@attrs.frozen
class HeartbeatMember:
    """A membership to send heartbeats for, and its coordinator. Times are in seconds.

    ``request_timeout`` covers connecting and the request together, and should be well below the session timeout.
    ``release`` is the coordinator's Kafka release, if it is too old for ApiVersions.
    """

    broker: Address
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    interval: float = 3.0
    request_timeout: float = 10.0
    client_id: str = "aiokafkawire"
    release: str | None = None

    @property
    def group(self) -> GroupMetadata:
        """The membership without the coordinator."""
        return GroupMetadata(self.group_id, self.generation_id, self.member_id, self.group_instance_id)


class HeartbeatResult(Enum):
    """The kind of a heartbeat's result."""

    ANSWER = "the coordinator has responded"
    NOT_COORDINATOR = "the broker is not the coordinator, or not yet"
    NO_ANSWER = "the broker did not respond"
    POLL_TIMEOUT = "poll() was not called for max_poll_interval"


@attrs.frozen
class HeartbeatReport:
    """The result of a heartbeat.

    ``code`` is the error code of the response, if there was one; ``error`` is the exception for it, or why there was no
    response. ``at`` is in seconds of the thread's clock.
    """

    member: HeartbeatMember
    result: HeartbeatResult
    at: float
    code: int = ErrorCode.NONE
    error: KafkaError | None = None


class HeartbeatAction(Enum):
    """The next action of the heartbeat thread."""

    WAIT = "nothing"
    BEAT = "send a heartbeat and report its result"
    CLOSE = "close the connection"
    REPORT_TIMEOUT = "report that the poll interval is over"


class HeartbeatSchedule:
    """Decides when to send heartbeats. All times are in seconds of one monotonic clock.

    Args:
        max_poll_interval: for how long heartbeats are sent after the last poll().
        backoff: the backoff after the first failure.
        backoff_max: the longest backoff.
    """

    def __init__(self, *, max_poll_interval: float, backoff: float, backoff_max: float) -> None:
        self.member: HeartbeatMember | None = None
        """The membership to send heartbeats for, if any."""
        self._max_poll_interval, self._backoff, self._backoff_max = max_poll_interval, backoff, backoff_max
        self._alive_at = 0.0
        self._polled_at: float | None = None
        self._timeout_reported = False
        self._ended = False
        self._failures = 0
        self._back_off_until = 0.0
        self._used_at: float | None = None

    def keep(self, member: HeartbeatMember | None, now: float) -> bool:
        """Send heartbeats for this membership, which was just confirmed; return whether it is another one."""
        if member == self.member:
            return False
        self.member, self._ended, self._failures = member, False, 0
        self._alive_at = self._back_off_until = now
        if self._polled_at is None:
            self._polled_at = now
        return True

    def beat(self, now: float) -> None:
        """Note that the event loop has received a heartbeat response."""
        self._alive_at = now

    def polled(self, now: float) -> bool:
        """Note that user code has called poll(); return whether the poll interval had passed."""
        was_over, self._timeout_reported = self._timeout_reported, False
        self._polled_at = now
        return was_over

    def step(self, now: float) -> tuple[HeartbeatAction, float | None]:
        """Return the next action, and for how long to wait if that is WAIT; None until something happens."""
        moments = []
        if self._used_at is not None:
            if now >= self._used_at + LINGER:
                self._used_at = None
                return HeartbeatAction.CLOSE, 0.0
            moments.append(self._used_at + LINGER)
        if self.member is not None and not self._ended:
            assert self._polled_at is not None
            over_at = self._polled_at + self._max_poll_interval
            due_at = max(self._alive_at + _SILENT * self.member.interval, self._back_off_until)
            if now >= over_at:
                if not self._timeout_reported:
                    self._timeout_reported = True
                    return HeartbeatAction.REPORT_TIMEOUT, 0.0
            elif now >= due_at:
                return HeartbeatAction.BEAT, 0.0
            else:
                moments.append(min(due_at, over_at))
        return HeartbeatAction.WAIT, min(moments) - now if moments else None

    def answered(self, member: HeartbeatMember, code: int, asked_at: float, now: float) -> HeartbeatReport | None:
        """Handle the response to a heartbeat sent at ``asked_at``; return what to report."""
        self._used_at = now
        if code in _ALIVE:
            if member == self.member:
                self._alive_at, self._failures = max(self._alive_at, asked_at), 0
            return HeartbeatReport(member, HeartbeatResult.ANSWER, now, code)
        error = broker_error(code, f"Heartbeat of group {member.group_id!r}, sent by its thread")
        if error.retriable:
            return self._failed(member, HeartbeatResult.NOT_COORDINATOR, now, error)
        self._end(member)
        return HeartbeatReport(member, HeartbeatResult.ANSWER, now, code, error)

    def failed(self, member: HeartbeatMember, error: KafkaError, now: float) -> HeartbeatReport | None:
        """Handle a failed request, whose connection is closed; return what to report."""
        self._used_at = None
        return self._failed(member, HeartbeatResult.NO_ANSWER, now, error)

    def refused(self, member: HeartbeatMember, error: KafkaError, now: float) -> HeartbeatReport:
        """Handle a broker that no heartbeat can be sent to, and stop; return what to report."""
        self._used_at = now
        self._end(member)
        return HeartbeatReport(member, HeartbeatResult.NO_ANSWER, now, error=error)

    def _failed(
        self, member: HeartbeatMember, result: HeartbeatResult, now: float, error: KafkaError
    ) -> HeartbeatReport | None:
        if member != self.member:
            return None
        self._back_off_until = now + min(self._backoff * 2**self._failures, self._backoff_max)
        self._failures = min(self._failures + 1, 30)
        if self._failures > 1:
            return None
        return HeartbeatReport(
            member, result, now, error.code if isinstance(error, BrokerError) else ErrorCode.NONE, error
        )

    def _end(self, member: HeartbeatMember) -> None:
        if member == self.member:
            self._ended = True
