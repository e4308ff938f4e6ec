"""The subscription of a consumer in a group, and the topics that it stands for."""

from collections.abc import Sequence

import anyio
import attrs

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..errors import ErrorCode
from .topic_subscription import RebalanceListeners, TopicSubscription

__all__ = ("SubscribedTopics",)


class SubscribedTopics:
    """The topics that a consumer subscribes to: by name, or those that match its pattern.

    Args:
        cluster: has the metadata.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.subscription: TopicSubscription | None = None
        self.chosen: tuple[str, ...] = ()
        """The subscribed topics, or those that match the subscribed pattern, as of the last :meth:`choose`."""
        self._cluster = cluster
        self._changed = anyio.Event()
        self._watches_all = self._ended = False

    @property
    def named(self) -> tuple[str, ...]:
        """The topics that the consumer subscribes to by name; empty with a pattern."""
        return self.subscription.topics if self.subscription is not None else ()

    @property
    def listeners(self) -> RebalanceListeners:
        """The listeners of the subscription."""
        return self.subscription.listeners if self.subscription is not None else RebalanceListeners()

    def replace(self, subscription: TopicSubscription | None) -> bool:
        """Replace the subscription; return whether its topics or its pattern have changed."""
        before, self.subscription = self.subscription, subscription
        self._changed.set()
        if subscription is None:
            self.chosen = ()
            return before is not None
        if subscription.needs_all_topics and not self._watches_all:
            self._watches_all = True
            self._cluster.owner.spawn(self._watch_all_topics)
        metadata = self._cluster.metadata
        metadata.track_topics(subscription.topics)
        if any(metadata.snapshot.topic_error(topic) != ErrorCode.NONE for topic in subscription.topics):
            # To know soon which of the topics do not exist, or are refused.
            metadata.mark_stale(metadata.snapshot)
        return before is None or attrs.evolve(before, listeners=subscription.listeners) != subscription

    def stop(self) -> None:
        """Stop watching the topics."""
        self._ended = True
        self._changed.set()

    def choose(self) -> Sequence[str]:
        """Return the topics to subscribe to now, and keep their metadata."""
        if self.subscription is not None:
            self.chosen = self.subscription.topics_in(self._cluster.metadata.snapshot)
            self._cluster.metadata.track_topics(self.chosen)
        return self.chosen

    def are_outdated(self, snapshot: Snapshot) -> bool:
        """Return whether the subscription stands for other topics than those chosen last."""
        return self.subscription is not None and self.subscription.topics_in(snapshot) != self.chosen

    def are_known(self, snapshot: Snapshot, topics: Sequence[str]) -> bool:
        """Return whether a topic that is missing in the metadata does not exist, rather than being evicted."""
        return self._watches_all or all(topic in snapshot.topics for topic in topics)

    async def _watch_all_topics(self) -> None:
        """Keep the metadata of all topics up to date as long as the subscription is a pattern."""
        try:
            with self._cluster.metadata.all_topics():
                while self.subscription is not None and self.subscription.needs_all_topics and not self._ended:
                    self._changed = anyio.Event()
                    await self._changed.wait()
        finally:
            self._watches_all = False
