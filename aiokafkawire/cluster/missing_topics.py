"""Tracks the topics that a client uses although they do not exist, and decides when to log them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from .._lazy_classes import frozen
from ..errors import ErrorCode, TopicNotReady, UnknownTopicOrPartition

__all__ = ("MissingTopics", "News", "advice", "does_not_exist", "listed", "say_missing")

_WARN_AFTER: Final = 1.0
"""Seconds until a missing topic is logged as a warning: some brokers do not know a new topic at once."""
_WARN_AGAIN: Final = 3600.0
_ASK_AGAIN: Final = 10.0
"""Seconds between two Metadata requests while a topic is missing."""
_MAX_NAMED: Final = 10


@frozen
class News:
    """The names of the topics to log after a Metadata response."""

    new: Sequence[str]
    """Topics that are missing for the first time."""
    overdue: Sequence[str]
    """Topics to warn about: missing for a second, and without a warning in the last hour."""
    created: Sequence[str]
    """Topics that exist now, after a warning."""


class MissingTopics:
    """The topics in use that do not exist, according to the last Metadata response. Times are in seconds."""

    def __init__(self) -> None:
        self.answers: int = 0
        """The number of Metadata responses that were applied."""
        self._since: dict[str, float] = {}
        self._warned_at: dict[str, float] = {}

    def __contains__(self, topic: object) -> bool:
        return topic in self._since

    def update(
        self, asked: Iterable[str], error_of: Callable[[str], int | None], followed: Collection[str], now: float
    ) -> News:
        """Apply a Metadata response, and return the topics to log.

        Args:
            asked: the topics in use when the request was sent.
            error_of: returns a topic's error code in the response, or None if the response lacks the topic. A requested
                topic that the response lacks counts as missing.
            followed: the topics that a call waits for or a consumer subscribes to; only these are logged.
            now: the time of the response.
        """
        self.answers += 1
        missing = {name for name in asked if error_of(name) in (None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
        new = [name for name in missing if name not in self._since and name in followed]
        created = [name for name in self._warned_at if name not in missing and error_of(name) == ErrorCode.NONE]
        self._since = {name: self._since.get(name, now) for name in missing}
        self._warned_at = {name: at for name, at in self._warned_at.items() if name in missing}
        overdue = [name for name in missing if name in followed and self._is_overdue(name, now)]
        self._warned_at.update(dict.fromkeys(overdue, now))
        return News(sorted(new), sorted(overdue), sorted(created))

    def _is_overdue(self, name: str, now: float) -> bool:
        warned_at = self._warned_at.get(name)
        return now - self._since[name] >= _WARN_AFTER if warned_at is None else now - warned_at >= _WARN_AGAIN

    def ask_again_within(self, followed: Iterable[str], max_age: float) -> float:
        """Return the seconds until the next Metadata request for the ``followed`` topics, at most ``max_age``."""
        missing = [name for name in followed if name in self._since]
        if not missing:
            return max_age
        return min(max_age, _ASK_AGAIN if all(name in self._warned_at for name in missing) else _WARN_AFTER)


def say_missing(names: Sequence[str]) -> str:
    """Return "topic 'a' does not exist" or "topics 'a', 'b' do not exist" for errors and log lines."""
    return f"topics {listed(names)} do not exist" if len(names) > 1 else f"topic {listed(names)} does not exist"


def listed(names: Sequence[str]) -> str:
    """Return "'a', 'b'", the first ten names and the number of the others."""
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(repr(name) for name in names[:_MAX_NAMED]) + more


def advice(*, allow_creation: bool) -> str:
    """Return what to do about a topic that does not exist; ``allow_creation`` is ``allow_auto_create_topics``."""
    if allow_creation:
        may = "the brokers do not create it although allow_auto_create_topics is set (auto.create.topics.enable)"
        return f"check the spelling, or create the topic; {may}"
    return "check the spelling, create the topic, or set allow_auto_create_topics=True"


def does_not_exist(name: str, seconds: float, *, allow_creation: bool) -> TopicNotReady:
    """Return the error of a topic that was missing for ``seconds``."""
    cause = UnknownTopicOrPartition(f"Metadata of topic {name!r}")
    answered = f"the cluster answered UNKNOWN_TOPIC_OR_PARTITION for {seconds:g} s (topic_metadata_propagation_max_ms)"
    error = TopicNotReady(f"{say_missing([name])}: {answered}; {advice(allow_creation=allow_creation)}")
    error.__cause__ = cause
    return error
