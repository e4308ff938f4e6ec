"""What a consumer wants to read of what the group shares: topics by name, or all that match a pattern."""

import re
from collections.abc import Awaitable, Callable, Iterable

import attrs

from ..argument_checks import shown
from ..cluster.metadata import Snapshot
from ..errors import UsageError
from ..types import TopicPartition, check_topic_name

__all__ = ("Listener", "RebalanceListeners", "TopicSubscription", "subscription_to")

Listener = Callable[[tuple[TopicPartition, ...]], Awaitable[None] | None]
"""Hears of partitions; a function, or a coroutine function, which is awaited."""


@attrs.frozen
class RebalanceListeners:
    """Who hears of partitions that come and go."""

    on_assigned: Listener | None = None
    on_revoked: Listener | None = None
    on_lost: Listener | None = None


@attrs.frozen
class TopicSubscription:
    """Topics by name, or those whose whole name a pattern matches; internal ones are never matched."""

    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    listeners: RebalanceListeners

    def topics_in(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The topics it means, in order."""
        if self.pattern is None:
            return self.topics
        matching = [name for name in snapshot.topics if self.pattern.fullmatch(name)]
        return tuple(sorted(name for name in matching if not snapshot.topics[name].is_internal))

    def unmatched_in(self, snapshot: Snapshot) -> str | None:
        """Return the pattern if no topic matches it."""
        return self.pattern.pattern if self.pattern is not None and not self.topics_in(snapshot) else None

    def __str__(self) -> str:
        return f"pattern {self.pattern.pattern!r}" if self.pattern is not None else ", ".join(self.topics)


def subscription_to(
    topics: Iterable[str], pattern: "str | re.Pattern[str] | None", listeners: RebalanceListeners
) -> TopicSubscription:
    """Read what a user gave.

    Raises:
        UsageError: it is neither topics nor a pattern, or both, or a name that no broker takes.
    """
    given = tuple(topics)
    for name in given:
        check_topic_name(name)
    names = tuple(dict.fromkeys(given))
    if (pattern is None) == (not names):
        raise UsageError("subscribe to topics or to a pattern, one of the two")
    try:
        compiled = re.compile(pattern) if pattern is not None else None
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{pattern!r:.200} is no regular expression: {error}") from error
    if compiled is not None and not isinstance(compiled.pattern, str):
        raise UsageError(f"pattern must be a regular expression of text, got {shown(pattern)}")
    for name, listener in attrs.asdict(listeners).items():
        if listener is not None and not callable(listener):
            raise UsageError(f"{name} must be a function, got {listener!r}")
    return TopicSubscription(names, compiled, listeners)
