"""Tracks the topics whose metadata a client requests, and logs which of them do not exist."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ..config import ClientConfig
from ..errors import ErrorCode, UnknownTopicOrPartition, broker_error
from ..event_log import EventLog
from .metadata import Snapshot
from .missing_topics import MissingTopics, advice, listed, say_missing

__all__ = ("Names", "TopicsInUse")

_log = EventLog("aiokafkawire.cluster")

Names = Callable[[], Iterable[str]]
"""A function that returns the current names of topics."""


class TopicsInUse:
    """The topics whose metadata one client requests. Times are in seconds of the runtime's clock."""

    def __init__(self, config: ClientConfig) -> None:
        self.missing: MissingTopics = MissingTopics()
        self._config = config
        # The time at which each topic was last used.
        self._used: dict[str, float] = {}
        self._kept: list[Names] = []
        self._followed: list[Names] = []
        # The topics that a broker knows, but whose partitions it does not know yet.
        self._unready: set[str] = set()

    def track(self, topics: Iterable[str], now: float) -> bool:
        """Let :meth:`to_ask` return the topics for ``metadata_max_idle_ms``; return whether any topic is new."""
        is_new = False
        for topic in topics:
            is_new = is_new or topic not in self._used
            self._used[topic] = now
        return is_new

    @contextmanager
    def following(self, names: Names, also: Names = tuple) -> Iterator[None]:
        """Let :meth:`to_ask` return the topics of ``names`` and of ``also`` while the context is open.

        Both arguments are functions that return topics. Only the topics of ``names`` are logged if they do not exist.
        """
        self._followed.append(names)
        self._kept += (names, also)
        try:
            yield
        finally:
            self._followed.remove(names)
            self._kept.remove(names)
            self._kept.remove(also)

    def to_ask(self, now: float) -> list[str]:
        """Return the topics to request now; forget the topics that were unused for ``metadata_max_idle_ms``."""
        for names in self._kept:
            self.track(names(), now)
        oldest = now - self._config.metadata_max_idle_ms / 1000
        self._used = {name: used for name, used in self._used.items() if used >= oldest}
        return list(self._used)

    def learned(self, asked: Iterable[str], snapshot: Snapshot, now: float) -> None:
        """Log which ``asked`` topics do not exist in the snapshot, and which missing topics exist now."""
        self._unready = {name for name in asked if _will_pass(snapshot.topic_error(name))}
        news = self.missing.update(asked, snapshot.topic_error, self._followed_names(), now)
        if news.new:
            text = {"missing": say_missing(news.new)}
            topics = listed(news.new)
            _log.info("%(missing)s in the cluster; requesting metadata again", text=text, topics=topics)
        if news.overdue:
            what_to_do = advice(allow_creation=self._config.allow_auto_create_topics)
            message = "%(missing)s in the cluster (UNKNOWN_TOPIC_OR_PARTITION): %(advice)s"
            text = {"missing": say_missing(news.overdue), "advice": what_to_do}
            _log.warning(message, text=text, topics=listed(news.overdue), error=UnknownTopicOrPartition.__name__)
        for name in news.created:
            _log.info("topic %(topic)r exists now", topic=name)

    def ask_again_within(self) -> float:
        """Return the seconds until the next regular refresh, at most ``metadata_max_age_ms``.

        A topic that was just created has no partitions at first: its metadata is requested again at once, as after any
        error of a topic that passes.
        """
        if not self._unready.isdisjoint(self._followed_names()):
            return 0.0
        return self.missing.ask_again_within(self._followed_names(), self._config.metadata_max_age_ms / 1000)

    def _followed_names(self) -> set[str]:
        return {name for names in self._followed for name in names()}


def _will_pass(code: int | None) -> bool:
    """Return whether this error of a topic passes soon; a topic that is missing may never exist."""
    if code in (None, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        return False
    return broker_error(code).retriable
