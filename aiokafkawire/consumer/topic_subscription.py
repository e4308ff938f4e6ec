"""A consumer's subscription: topics by name, or a pattern."""

import re
from collections.abc import Awaitable, Callable, Iterable

import attrs

from ..argument_checks import shown
from ..cluster.metadata import Snapshot
from ..errors import UsageError
from ..types import SubscriptionPattern, TopicPartition, check_topic_name

__all__ = ("Listener", "RebalanceListeners", "RebalancePatience", "TopicSubscription", "subscription_to")

Listener = Callable[[tuple[TopicPartition, ...]], Awaitable[None] | None]
"""A function or a coroutine function that is called with partitions."""


@attrs.frozen
class RebalanceListeners:
    """The user's functions that a rebalance calls; :meth:`.Consumer.subscribe` describes them."""

    on_assigned: Listener | None = None
    on_revoked: Listener | None = None
    on_lost: Listener | None = None
    called_if_empty: bool = False
    """Whether ``on_revoked`` and ``on_assigned`` are called at every rebalance, also without partitions."""


@attrs.frozen
class RebalancePatience:
    """For how long a classic group waits for a member, if that is not ``max_poll_interval_ms``."""

    timeout_ms: int
    """How long the coordinator waits for the member to rejoin in a rebalance."""
    for_user: float
    """How many seconds of that the member waits until the user has finished the records of revoked partitions."""


@attrs.frozen
class TopicSubscription:
    """A subscription to topics by name, or to the topics whose whole name matches a pattern, except internal ones."""

    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    listeners: RebalanceListeners
    server_pattern: SubscriptionPattern | None = None
    """The pattern that the brokers match, instead of topics."""
    with_internal: bool = False
    """Whether the pattern may match internal topics, too."""

    @property
    def needs_all_topics(self) -> bool:
        """Whether the subscribed topics are found among all topics of the cluster."""
        return self.pattern is not None

    def topics_in(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Return the subscribed topics: in the order given, or sorted if they match a pattern."""
        if self.pattern is None:
            return self.topics
        matching = [name for name in snapshot.topics if self.pattern.fullmatch(name)]
        return tuple(sorted(name for name in matching if self.with_internal or not snapshot.topics[name].is_internal))

    def unmatched_in(self, snapshot: Snapshot) -> str | None:
        """Return the pattern if no topic matches it, otherwise None."""
        return self.pattern.pattern if self.pattern is not None and not self.topics_in(snapshot) else None

    def __str__(self) -> str:
        pattern = self.pattern or self.server_pattern
        return f"pattern {pattern.pattern!r}" if pattern is not None else ", ".join(self.topics)


def subscription_to(
    topics: Iterable[str | SubscriptionPattern],
    pattern: "str | re.Pattern[str] | None",
    listeners: RebalanceListeners,
) -> TopicSubscription:
    """Build a subscription from a user's arguments.

    Raises:
        UsageError: there are neither topics nor a pattern, or both, or one of the arguments is invalid.
    """
    given = tuple(topics)
    server_pattern = next((topic for topic in given if isinstance(topic, SubscriptionPattern)), None)
    if server_pattern is not None and (len(given) > 1 or pattern is not None):
        raise UsageError("subscribe() takes one SubscriptionPattern, and nothing else to subscribe to")
    names: tuple[str, ...] = ()
    if server_pattern is None:
        for name in given:
            check_topic_name(name)
        names = tuple(dict.fromkeys(str(name) for name in given))
    if server_pattern is None and (pattern is None) == (not names):
        raise UsageError("subscribe() needs either topics or a pattern")
    try:
        compiled = re.compile(pattern) if pattern is not None else None
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{pattern!r:.200} is not a regular expression: {error}") from error
    if compiled is not None and not isinstance(compiled.pattern, str):
        raise UsageError(f"pattern must be a regular expression of text, got {shown(pattern)}")
    named = {"on_assigned": listeners.on_assigned, "on_revoked": listeners.on_revoked, "on_lost": listeners.on_lost}
    for name, listener in named.items():
        if listener is not None and not callable(listener):
            raise UsageError(f"{name} must be a function, got {listener!r}")
    return TopicSubscription(names, compiled, listeners, server_pattern)
