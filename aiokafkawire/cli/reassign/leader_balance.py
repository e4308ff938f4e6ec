"""Balances preferred leaders among the brokers that hold replicas already, so that no replica moves."""

from collections import Counter, deque

from ...types import TopicPartition

__all__ = ("balance_leaders",)

_Path = list[tuple[TopicPartition, int]]
"""Changes of preferred leaders: partitions with their new ones."""


def balance_leaders(replicas: dict[TopicPartition, list[int]]) -> None:
    """Put another replica first where this balances the preferred leaders: those of each topic, then those of all.

    Args:
        replicas: the brokers of each partition, the preferred leader first; their order is changed in place.
    """
    _LeaderBalance(replicas).balance()


class _LeaderBalance:
    def __init__(self, replicas: dict[TopicPartition, list[int]]) -> None:
        self._replicas = replicas
        self._topics: dict[str, list[TopicPartition]] = {}
        self._of_topic: dict[str, Counter[int]] = {}
        self._total: Counter[int] = Counter()
        for partition in sorted(replicas):
            self._topics.setdefault(partition.topic, []).append(partition)
            leader = replicas[partition][0]
            self._of_topic.setdefault(partition.topic, Counter())[leader] += 1
            self._total[leader] += 1

    def balance(self) -> None:
        """Change leaders until neither a topic nor all topics together can be balanced better."""
        for topic in self._topics:
            self._balance_topic(topic)
        while self._balance_totals():
            pass

    def _balance_topic(self, topic: str) -> None:
        while (path := self._path(topic)) is not None:
            for partition, broker in path:
                self._lead(partition, broker)

    def _path(self, topic: str) -> _Path | None:
        """Return changes that move one leader to a broker with at least two fewer; other brokers keep their number."""
        leaders = self._of_topic[topic]
        others: dict[int, dict[int, TopicPartition]] = {}
        """For each leader, the brokers that could lead one of its partitions, with this partition."""
        for partition in self._topics[topic]:
            leader, *followers = self._replicas[partition]
            for follower in followers:
                others.setdefault(leader, {}).setdefault(follower, partition)
        for start in sorted(others, key=lambda broker: (-leaders[broker], broker)):
            came: dict[int, _Path] = {start: []}
            queue = deque([start])
            while queue:
                broker = queue.popleft()
                if leaders[start] - leaders[broker] >= 2:
                    return came[broker]
                for other, partition in others.get(broker, {}).items():
                    if other not in came:
                        came[other] = [*came[broker], (partition, other)]
                        queue.append(other)
        return None

    def _balance_totals(self) -> bool:
        """Move leaders to brokers with two fewer of all topics, as the topics permit; return whether any moved."""
        moved = False
        for partition, brokers in self._replicas.items():
            leader, leaders = brokers[0], self._of_topic[partition.topic]
            for other in brokers[1:]:
                if self._total[leader] - self._total[other] >= 2 and leaders[leader] > leaders[other]:
                    self._lead(partition, other)
                    self._balance_topic(partition.topic)
                    moved = True
                    break
        return moved

    def _lead(self, partition: TopicPartition, broker: int) -> None:
        brokers, leaders = self._replicas[partition], self._of_topic[partition.topic]
        for counts in (leaders, self._total):
            counts[brokers[0]] -= 1
            counts[broker] += 1
        brokers.remove(broker)
        brokers.insert(0, broker)
