"""TelemetryExchange decides when to request the subscription to this client's metrics, and when to push them."""

import math
from collections.abc import Sequence
from enum import Enum
from typing import Final
from uuid import UUID

import attrs

from ..error_codes import ErrorCode
from ..protocol.messages.telemetry import GetTelemetrySubscriptionsResponse
from ..protocol.primitives import ZERO_UUID

__all__ = ("DEFAULT_INTERVAL", "FIRST_PUSH", "TelemetrySubscription", "TelemetryExchange", "TelemetryState")

DEFAULT_INTERVAL: Final = 300.0
"""The seconds between requests where no broker has named another interval."""
_MIN_INTERVAL: Final = 0.1
"""The smallest number of seconds between pushes, which is also Kafka's own for ``interval.ms``."""
FIRST_PUSH: Final = (0.5, 1.5)
"""The limits of the random share of the interval after which a new subscription gets its first push."""
_ALL: Final = "*"
_AT_ONCE: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_NEXT_INTERVAL: Final = (ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)


class TelemetryState(Enum):
    """The states of an exchange, as in the Java client."""

    SUBSCRIPTION_NEEDED = "subscription needed"
    SUBSCRIPTION_IN_PROGRESS = "subscription in progress"
    PUSH_NEEDED = "push needed"
    PUSH_IN_PROGRESS = "push in progress"
    TERMINATING_PUSH_NEEDED = "terminating push needed"
    TERMINATING_PUSH_IN_PROGRESS = "terminating push in progress"
    TERMINATED = "terminated"


@attrs.frozen
class TelemetrySubscription:
    """A broker's request for metrics of this client: which metrics, how often, and in which form."""

    subscription_id: int
    interval: float
    """The seconds between pushes."""
    compression_types: Sequence[int]
    """The accepted codecs, in the broker's order of preference."""
    max_bytes: int
    """The largest size of a push's metrics, after compression; 0 for no limit."""
    is_delta: bool
    """Whether counters have the growth since the last push; otherwise they have the total."""
    requested: Sequence[str]
    """The prefixes of the names of the requested metrics; a single ``"*"`` means all metrics."""

    def selects(self, name: str) -> bool:
        """Return whether the broker requests the metric with this name."""
        return [*self.requested] == [_ALL] or name.startswith(tuple(self.requested))


class TelemetryExchange:
    """The exchange of one client with its brokers. Times are seconds of any monotonic clock.

    Callers wait until :attr:`due`, call :meth:`begin`, send the request that the state names, and report the result.
    """

    def __init__(self) -> None:
        self.state: TelemetryState = TelemetryState.SUBSCRIPTION_NEEDED
        self.due: float = -math.inf
        """When the next request is due; infinite if there is to be none."""
        self.instance_id: UUID = ZERO_UUID
        """The id by which brokers know this client; zero until a broker has chosen it."""
        self.subscription: TelemetrySubscription | None = None

    @property
    def interval(self) -> float:
        """The seconds between requests."""
        return DEFAULT_INTERVAL if self.subscription is None else self.subscription.interval

    @property
    def has_ended(self) -> bool:
        """Whether no request will follow."""
        return self.state is TelemetryState.TERMINATED

    @property
    def is_terminating(self) -> bool:
        """Whether no request will follow, except for the last push."""
        return self.state in _TERMINATING

    def begin(self) -> TelemetryState:
        """Return the new state, which names the request to send now."""
        self.state = {
            TelemetryState.SUBSCRIPTION_NEEDED: TelemetryState.SUBSCRIPTION_IN_PROGRESS,
            TelemetryState.PUSH_NEEDED: TelemetryState.PUSH_IN_PROGRESS,
            TelemetryState.TERMINATING_PUSH_NEEDED: TelemetryState.TERMINATING_PUSH_IN_PROGRESS,
        }.get(self.state, self.state)
        return self.state

    def subscribed(self, response: GetTelemetrySubscriptionsResponse, now: float, share: float) -> None:
        """Take the response to GetTelemetrySubscriptions.

        ``share`` is a random number between the limits :data:`FIRST_PUSH`.
        """
        if response.error_code:
            self._refused(response.error_code, now, at_once=self.interval)
            return
        if response.client_instance_id == ZERO_UUID:
            self.unanswered(now)
            return
        self.instance_id = response.client_instance_id
        self.subscription = TelemetrySubscription(
            subscription_id=response.subscription_id,
            interval=_interval(response.push_interval_ms / 1000),
            compression_types=tuple(response.accepted_compression_types),
            max_bytes=max(response.telemetry_max_bytes, 0),
            is_delta=response.delta_temporality,
            requested=tuple(response.requested_metrics),
        )
        if self.subscription.requested:
            self._next(TelemetryState.PUSH_NEEDED, now + share * self.subscription.interval)
        else:
            self._next(TelemetryState.SUBSCRIPTION_NEEDED, now + self.subscription.interval)

    def pushed(self, error_code: int, now: float) -> None:
        """Take the response to PushTelemetry."""
        if error_code:
            self._refused(error_code, now, at_once=0)
        else:
            self._next(TelemetryState.PUSH_NEEDED, now + self.interval)

    def unanswered(self, now: float) -> None:
        """Take notice that no broker has answered, or that none receives metrics; another one may do so later."""
        self._next(TelemetryState.SUBSCRIPTION_NEEDED, now + self.interval)

    def skipped(self, now: float) -> None:
        """Take notice that there was nothing to push."""
        self._next(TelemetryState.PUSH_NEEDED, now + self.interval)

    def terminate(self) -> bool:
        """End the exchange; return whether a last push is to be sent before."""
        is_subscribed = self.state in (TelemetryState.PUSH_NEEDED, TelemetryState.PUSH_IN_PROGRESS)
        self.state = TelemetryState.TERMINATING_PUSH_NEEDED if is_subscribed else TelemetryState.TERMINATED
        self.due = -math.inf if is_subscribed else math.inf
        return is_subscribed

    def ended(self) -> None:
        """End the exchange for good, without a last push."""
        self.state, self.due = TelemetryState.TERMINATED, math.inf

    def _refused(self, error_code: int, now: float, *, at_once: float) -> None:
        """Request the subscription again; ``at_once`` seconds from now where the error demands a new one."""
        if error_code in _AT_ONCE:
            self._next(TelemetryState.SUBSCRIPTION_NEEDED, now + at_once)
        elif error_code in _NEXT_INTERVAL:
            self._next(TelemetryState.SUBSCRIPTION_NEEDED, now + self.interval)
        elif not self.is_terminating:
            self.ended()

    def _next(self, state: TelemetryState, due: float) -> None:
        if not self.is_terminating:
            self.state, self.due = state, due


def _interval(seconds: float) -> float:
    return max(seconds, _MIN_INTERVAL) if seconds > 0 else DEFAULT_INTERVAL


_TERMINATING: Final = (
    TelemetryState.TERMINATING_PUSH_NEEDED,
    TelemetryState.TERMINATING_PUSH_IN_PROGRESS,
    TelemetryState.TERMINATED,
)
