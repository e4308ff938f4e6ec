"""Plans which brokers hold the replicas of partitions; the same input always gives the same plan."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ...errors import UsageError
from ...types import TopicPartition
from .leader_balance import balance_leaders
from .rack_spread import RackSpread

__all__ = ("Assignment", "plan_assignment")

Assignment: TypeAlias = Mapping[TopicPartition, Sequence[int]]
"""The brokers of each partition, the preferred leader first."""


def plan_assignment(
    current: Assignment, racks: Mapping[int, str | None], *, replication_factor: int | None = None
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the brokers that shall hold each partition, the preferred leader first.

    Replicas stay where they are unless their broker may not hold them, their partition is not spread over the racks, or
    a broker has two more replicas of the topic, or of all topics, than another one. Then preferred leaders are balanced
    among the replicas. A plan of the result changes nothing.

    Args:
        current: the brokers that hold each partition.
        racks: the brokers that may hold partitions, with their racks. If one is None, racks do not matter.
        replication_factor: the number of replicas of each partition; None to keep it.

    Raises:
        UsageError: there are fewer brokers than a partition shall have replicas.
    """
    factors = {partition: replication_factor or len(set(brokers)) for partition, brokers in current.items()}
    for partition, factor in factors.items():
        if factor > len(racks):
            brokers = "broker" if len(racks) == 1 else "brokers"
            raise UsageError(f"{partition} shall have {factor} replicas: name more than {len(racks)} {brokers}")
    placement = _Placement(current, racks)
    for partition in placement.replicas:
        placement.settle(partition, factors[partition])
    placement.balance()
    balance_leaders(placement.replicas)
    return {partition: tuple(brokers) for partition, brokers in placement.replicas.items()}


class _Placement:
    """The replicas of partitions, and how many of them each broker has.

    :meth:`balance` ends, since each step within a topic makes the sum of the squared numbers of its replicas on brokers
    smaller; and each other step makes that sum over all topics smaller, and no topic's sum larger. It ends in a state
    where a second plan finds no step.
    """

    def __init__(self, current: Assignment, racks: Mapping[int, str | None]) -> None:
        self._spread, self._brokers = RackSpread(racks), sorted(racks)
        self.replicas: dict[TopicPartition, list[int]] = {}
        self._held: dict[str, dict[int, set[TopicPartition]]] = {}
        self._total: Counter[int] = Counter()
        for partition in sorted(current):
            self.replicas[partition] = []
            self._held.setdefault(partition.topic, {broker: set() for broker in self._brokers})
            for broker in dict.fromkeys(current[partition]):
                if broker in racks:
                    self._add(partition, broker)

    # --- what each partition needs ---------------------------------------------------------------------------------

    def settle(self, partition: TopicPartition, factor: int) -> None:
        """Give a partition its number of replicas, spread over the racks."""
        brokers = self.replicas[partition]
        while len(brokers) > factor:
            self._remove(partition, self._most_dispensable(partition))
        while not self._spread.is_even(brokers):
            self._replace(partition, self._most_dispensable(partition), self._best_place(partition))
        while len(brokers) < factor:
            self._add(partition, self._best_place(partition))

    def _most_dispensable(self, partition: TopicPartition) -> int:
        """Return the replica in the fullest rack on the fullest broker; rather not the preferred leader."""
        brokers = self.replicas[partition]
        racks = self._spread.count(brokers)
        return max(
            brokers,
            key=lambda broker: (
                racks[self._spread.rack_of[broker]],
                broker != brokers[0],
                self._load(partition, broker),
            ),
        )

    def _best_place(self, partition: TopicPartition) -> int:
        """Return the broker with the fewest replicas in the racks that have the fewest of this partition."""
        brokers = self.replicas[partition]
        racks = self._spread.count(brokers)
        return min(
            (broker for broker in self._brokers if broker not in brokers),
            key=lambda broker: (racks[self._spread.rack_of[broker]], self._load(partition, broker)),
        )

    def _load(self, partition: TopicPartition, broker: int) -> tuple[int, int, int]:
        return len(self._held[partition.topic][broker]), self._total[broker], broker

    # --- balance ---------------------------------------------------------------------------------------------------

    def balance(self) -> None:
        """Move replicas to brokers with two fewer, of the topic or else of all topics, until none is left."""
        for topic in self._held:
            self._balance_topic(topic)
        while self._balance_totals():
            pass

    def _balance_topic(self, topic: str) -> None:
        while True:
            held = {broker: len(partitions) for broker, partitions in self._held[topic].items()}
            if not any(self._shift(topic, giver, taker) for giver, taker in self._uneven_pairs(held)):
                return

    def _balance_totals(self) -> bool:
        """Move replicas from one broker to one with two fewer of all topics; return whether any moved.

        A topic never gets less balanced. After the first, replicas move only to their brokers' fair shares.
        """
        share, more = divmod(self._total.total(), len(self._brokers))
        for giver, taker in self._uneven_pairs(self._total):
            moved = False
            for topic, held in self._held.items():
                if len(held[giver]) > len(held[taker]) and self._shift(topic, giver, taker):
                    moved = True
                    self._balance_topic(topic)
                if moved and (self._total[giver] <= share + (more > 0) or self._total[taker] >= share):
                    break
            if moved:
                return True
        return False

    def _uneven_pairs(self, held: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the pairs of brokers of which the first has two replicas more, or even more; the most uneven first."""
        ordered = sorted(self._brokers, key=lambda broker: (held[broker], self._total[broker], broker))
        for giver in reversed(ordered):
            for taker in ordered:
                if held[giver] - held[taker] < 2:
                    break
                yield giver, taker

    def _shift(self, topic: str, giver: int, taker: int) -> bool:
        """Move a replica of the topic, if the racks permit; rather one that is not the preferred leader."""
        held = self._held[topic]
        found = sorted(
            held[giver] - held[taker], key=lambda partition: (self.replicas[partition][0] == giver, partition)
        )
        for partition in found:
            after = [taker if broker == giver else broker for broker in self.replicas[partition]]
            if self._spread.is_even(after):
                self._replace(partition, giver, taker)
                return True
        return False

    # --- changes ---------------------------------------------------------------------------------------------------

    def _add(self, partition: TopicPartition, broker: int) -> None:
        self.replicas[partition].append(broker)
        self._held[partition.topic][broker].add(partition)
        self._total[broker] += 1

    def _remove(self, partition: TopicPartition, broker: int) -> None:
        self.replicas[partition].remove(broker)
        self._held[partition.topic][broker].remove(partition)
        self._total[broker] -= 1

    def _replace(self, partition: TopicPartition, before: int, after: int) -> None:
        position = self.replicas[partition].index(before)
        self._remove(partition, before)
        self._add(partition, after)
        brokers = self.replicas[partition]
        brokers.insert(position, brokers.pop())
