"""The partition movements of a sticky assignment, recorded so that no two members swap partitions of a topic."""

from ..types import TopicPartition
from .java_hash_order import HashOrder, partition_hash, string_hash

__all__ = ("Movements",)

_Pair = tuple[int, int]
"""The numbers of the members that lose and get a partition."""


class Movements:
    """The partitions that a sticky assignment has moved to other members. Members are numbers."""

    def __init__(self) -> None:
        self._of_partition: dict[TopicPartition, _Pair] = {}
        self._of_topic: dict[str, dict[_Pair, HashOrder[TopicPartition]]] = {}
        self._topic_hashes: dict[str, int] = {}

    def instead_of(self, partition: TopicPartition, giver: int, taker: int) -> TopicPartition:
        """Return the partition to move to the member ``taker``, which is ``partition`` by default.

        If ``taker`` has given a partition of the topic to the first owner of ``partition``, return that one instead.
        """
        first = self._of_partition[partition][0] if partition in self._of_partition else giver
        others = self._of_topic.get(partition.topic, {}).get((taker, first))
        return partition if others is None else others.first()

    def move(self, partition: TopicPartition, giver: int, taker: int) -> None:
        """Record that a partition moves from the member ``giver`` to the member ``taker``.

        A partition that returns to the member that had it first no longer counts as moved.
        """
        first = giver
        if partition in self._of_partition:
            first = self._forget(partition)
            if first == taker:
                return
        pair = self._of_partition[partition] = first, taker
        moved = self._of_topic.setdefault(partition.topic, {}).setdefault(pair, HashOrder())
        if partition.topic not in self._topic_hashes:
            self._topic_hashes[partition.topic] = string_hash(partition.topic)
        moved.add(partition, partition_hash(partition, self._topic_hashes[partition.topic]))

    def _forget(self, partition: TopicPartition) -> int:
        pair = self._of_partition.pop(partition)
        pairs = self._of_topic[partition.topic]
        pairs[pair].remove(partition)
        if not len(pairs[pair]):
            del pairs[pair]  # a new table has the initial size, which determines its order
        return pair[0]
