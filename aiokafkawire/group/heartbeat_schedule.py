"""When a heartbeat has to be sent for a member whose event loop is silent, and until when.

The rules:

1. As long as the loop is heard of, nothing is sent: it sends heartbeats itself. It is silent once its last sign of life
   is older than one and a half heartbeat intervals; an answer to a heartbeat sent here counts as one.
2. A rebalance does not end a membership, and the member may still be back in time: heartbeats go on, as Java's do.
3. Who has not asked for records for ``max_poll_interval`` gets no heartbeats: a loop that is blocked for ever must not
   hold partitions for ever (KIP-62). They begin again when it asks.
4. What ends the membership ends the heartbeats, until another one begins.
5. After a failure there is a rest, which doubles. Of failures in a row only the first is worth telling.
"""

from enum import Enum
from typing import Final

import attrs

from ..errors import BrokerError, ErrorCode, KafkaError, broker_error
from ..types import Address, GroupMetadata

__all__ = ("LINGER", "HeartbeatAction", "HeartbeatResult", "HeartbeatMember", "HeartbeatSchedule", "HeartbeatReport")

_SILENT: Final = 1.5
"""After how many intervals without a sign of life the loop counts as silent."""
LINGER: Final = 30.0
"""How long a connection stays open that is not needed, in seconds: loops that block once often do it again."""
_ALIVE: Final = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)


@attrs.frozen
class HeartbeatMember:
    """Whom to keep, and where its coordinator is. Times are in seconds.

    ``request_timeout`` is for connecting and asking together, and should be well below the session timeout. ``release``
    is the coordinator's, if it is one of those that do not tell their versions.
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
        """The membership alone."""
        return GroupMetadata(self.group_id, self.generation_id, self.member_id, self.group_instance_id)


class HeartbeatResult(Enum):
    """What a report is about."""

    ANSWER = "the coordinator has answered"
    NOT_THERE = "the broker is not the coordinator, or not yet"
    NO_ANSWER = "the broker could not be asked"
    POLL_INTERVAL_OVER = "nobody has asked for records for too long"


@attrs.frozen
class HeartbeatReport:
    """What was heard about a member.

    ``code`` is what the broker has answered, if it has; ``error`` says it in words, or why there was no answer. ``at``
    is in seconds of the thread's clock.
    """

    member: HeartbeatMember
    heard: HeartbeatResult
    at: float
    code: int = ErrorCode.NONE
    error: KafkaError | None = None


class HeartbeatAction(Enum):
    """What is to be done."""

    WAIT = "nothing"
    BEAT = "send a heartbeat, and tell of its end"
    HANG_UP = "close the connection"
    TELL_OVER = "report that the poll interval is over"


class HeartbeatSchedule:
    """Decides. All times are in seconds of one monotonic clock.

    Args:
        max_poll_interval: how long heartbeats are sent for who asks for no records.
        backoff: the first rest after a failure.
        backoff_max: the longest.
    """

    def __init__(self, *, max_poll_interval: float, backoff: float, backoff_max: float) -> None:
        self.member: HeartbeatMember | None = None
        """Who is kept; None if nobody is."""
        self._max_poll_interval, self._backoff, self._backoff_max = max_poll_interval, backoff, backoff_max
        self._alive_at = 0.0
        self._polled_at: float | None = None
        self._over_told = False
        self._ended = False
        self._failures = 0
        self._rest_until = 0.0
        self._used_at: float | None = None

    def keep(self, member: HeartbeatMember | None, now: float) -> bool:
        """Keep this one from now on, whose membership was just confirmed; whether that changes anything."""
        if member == self.member:
            return False
        self.member, self._ended, self._failures = member, False, 0
        self._alive_at = self._rest_until = now
        if self._polled_at is None:
            self._polled_at = now
        return True

    def beat(self, now: float) -> None:
        """The loop has had a heartbeat answered."""
        self._alive_at = now

    def polled(self, now: float) -> bool:
        """The user has asked for records; whether the poll interval was over, and something may be due."""
        was_over, self._over_told = self._over_told, False
        self._polled_at = now
        return was_over

    def step(self, now: float) -> tuple[HeartbeatAction, float | None]:
        """What to do now, and if that is nothing, for how long; None until something happens."""
        moments = []
        if self._used_at is not None:
            if now >= self._used_at + LINGER:
                self._used_at = None
                return HeartbeatAction.HANG_UP, 0.0
            moments.append(self._used_at + LINGER)
        if self.member is not None and not self._ended:
            assert self._polled_at is not None
            over_at = self._polled_at + self._max_poll_interval
            due_at = max(self._alive_at + _SILENT * self.member.interval, self._rest_until)
            if now >= over_at:
                if not self._over_told:
                    self._over_told = True
                    return HeartbeatAction.TELL_OVER, 0.0
            elif now >= due_at:
                return HeartbeatAction.BEAT, 0.0
            else:
                moments.append(min(due_at, over_at))
        return HeartbeatAction.WAIT, min(moments) - now if moments else None

    def answered(self, member: HeartbeatMember, code: int, asked_at: float, now: float) -> HeartbeatReport | None:
        """The broker has answered a heartbeat that was sent at ``asked_at``; what to tell of it."""
        self._used_at = now
        if code in _ALIVE:
            if member == self.member:
                self._alive_at, self._failures = max(self._alive_at, asked_at), 0
            return HeartbeatReport(member, HeartbeatResult.ANSWER, now, code)
        error = broker_error(code, f"Heartbeat of group {member.group_id!r}, sent by its thread")
        if error.retriable:
            return self._failed(member, HeartbeatResult.NOT_THERE, now, error)
        self._end(member)
        return HeartbeatReport(member, HeartbeatResult.ANSWER, now, code, error)

    def failed(self, member: HeartbeatMember, error: KafkaError, now: float) -> HeartbeatReport | None:
        """There was no answer, and the connection is closed; what to tell of it."""
        self._used_at = None
        return self._failed(member, HeartbeatResult.NO_ANSWER, now, error)

    def refused(self, member: HeartbeatMember, error: KafkaError, now: float) -> HeartbeatReport:
        """No heartbeat can be sent to this broker at all, however often it is tried."""
        self._used_at = now
        self._end(member)
        return HeartbeatReport(member, HeartbeatResult.NO_ANSWER, now, error=error)

    def _failed(
        self, member: HeartbeatMember, heard: HeartbeatResult, now: float, error: KafkaError
    ) -> HeartbeatReport | None:
        if member != self.member:
            return None
        self._rest_until = now + min(self._backoff * 2**self._failures, self._backoff_max)
        self._failures = min(self._failures + 1, 30)
        if self._failures > 1:
            return None
        return HeartbeatReport(
            member, heard, now, error.code if isinstance(error, BrokerError) else ErrorCode.NONE, error
        )

    def _end(self, member: HeartbeatMember) -> None:
        if member == self.member:
            self._ended = True
