"""Which partitions have moved while an assignment is balanced: no two members shall swap partitions of a topic."""

from ..types import TopicPartition
from .java_hash_order import HashOrder, partition_hash, string_hash

__all__ = ("Movements",)

_Pair = tuple[int, int]
"""From which member, and to which."""


class Movements:
    """Partitions that are not where they were at first. Members are numbers."""

    def __init__(self) -> None:
        self._of_partition: dict[TopicPartition, _Pair] = {}
        self._of_topic: dict[str, dict[_Pair, HashOrder[TopicPartition]]] = {}
        self._topic_hashes: dict[str, int] = {}

    def instead_of(self, where: TopicPartition, giver: int, taker: int) -> TopicPartition:
        """What to give to ``taker``: the partition, or one of its topic that went the other way before."""
        first = self._of_partition[where][0] if where in self._of_partition else giver
        others = self._of_topic.get(where.topic, {}).get((taker, first))
        return where if others is None else others.first()

    def move(self, where: TopicPartition, giver: int, taker: int) -> None:
        """The partition goes from one member to another. What comes back to where it began has not moved."""
        first = giver
        if where in self._of_partition:
            first = self._forget(where)
            if first == taker:
                return
        pair = self._of_partition[where] = first, taker
        moved = self._of_topic.setdefault(where.topic, {}).setdefault(pair, HashOrder())
        if where.topic not in self._topic_hashes:
            self._topic_hashes[where.topic] = string_hash(where.topic)
        moved.add(where, partition_hash(where, self._topic_hashes[where.topic]))

    def _forget(self, where: TopicPartition) -> int:
        pair = self._of_partition.pop(where)
        pairs = self._of_topic[where.topic]
        pairs[pair].remove(where)
        if not len(pairs[pair]):
            del pairs[pair]  # one that is made anew begins small again, which its order depends on
        return pair[0]
