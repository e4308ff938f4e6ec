"""The health of a call of ``Client.process``: whether its handlers come to an end."""

from typing import Any

import attrs

from ..plain_values import as_plain

__all__ = ("ProcessingHealth", "processing_health")


@attrs.frozen
class ProcessingHealth:
    """The handlers of a call of :meth:`Client.process` at one moment."""

    group: str
    """The group that handles the records."""
    running: int
    """The number of calls of the handler that are running."""
    in_hand: int
    """The number of records that were read and are not committed, or not acknowledged."""
    waiting: int
    """The number of records that were read from retry topics, and are not due yet; more may be in the topics."""
    longest: float
    """The seconds that the longest call has been running."""
    abandoned: int
    """The number of threads that go on with a call that was cancelled."""
    stalled: bool
    """Whether a call runs for longer than ``handler_timeout``, or without one for longer than
    ``max_poll_interval_ms``, after which a rebalance would cancel it; or whether a thread is abandoned, or records wait
    since what their deserializer needs is away."""
    why: str | None
    """What is stalled; None if nothing is."""

    def to_dict(self) -> dict[str, Any]:
        """Return the health as a dict that JSON can encode."""
        plain: dict[str, Any] = as_plain(self)
        return plain


def processing_health(
    group: str,
    *,
    running: int,
    in_hand: int,
    waiting: int = 0,
    longest: float,
    abandoned: int,
    limit: float,
    why_waiting: str | None = None,
) -> ProcessingHealth:
    """Return the health of handlers of which none should run for longer than ``limit`` seconds.

    ``why_waiting`` says why records wait to be deserialized, if some do.
    """
    reasons = [] if why_waiting is None else [why_waiting]
    if longest > limit:
        reasons.append(f"a call of the handler has been running for {longest:.0f} s")
    if abandoned:
        threads = "1 thread goes" if abandoned == 1 else f"{abandoned} threads go"
        reasons.append(f"{threads} on with a call of the handler that was cancelled")
    why = ", and ".join(reasons) or None
    return ProcessingHealth(group, running, in_hand, waiting, longest, abandoned, why is not None, why)
