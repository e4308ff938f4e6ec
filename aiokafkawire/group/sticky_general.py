"""Sticky assignment with different subscriptions: partitions move until no move makes the assignment more balanced."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import Final

from ..types import TopicPartition
from .consumer_protocol import Subscription
from .java_hash_order import sort_key
from .partition_movements import Movements
from .sticky_input import Ownership, Racks, Topics

__all__ = ("assign_by_moving",)

_MOST_ROUNDS: Final = 100
"""The maximum number of rounds of moves, since there is no proof that the algorithm ends."""


def assign_by_moving(
    topics: Topics, subscriptions: Mapping[str, Subscription], ownership: Ownership, racks: Racks
) -> dict[str, list[TopicPartition]]:
    """Return each member's partitions.

    1. Members keep their partitions of subscribed topics; where racks matter, only those in their rack.
    2. Each remaining partition goes to the subscribed member with the fewest partitions; where racks matter, members in
       the partition's rack come first.
    3. Partitions move to subscribed members that have at least two less than their owner: to the partition's former
       owner if possible, else to the member with the fewest. If the result is no better balanced, all moves are undone.
    """
    balance = _Balance(topics, subscriptions, ownership, racks)
    unassigned = balance.keep()
    balance.fill(unassigned)
    balance.even_out(unassigned)
    return balance.result()


class _Balance:
    """An assignment in progress.

    Members are numbers, in the order of their ids; ``_ranking`` sorts them by partition count.
    """

    def __init__(
        self, topics: Topics, subscriptions: Mapping[str, Subscription], ownership: Ownership, racks: Racks
    ) -> None:
        self._topics, self._ownership, self._racks = topics, ownership, racks
        self._members = sorted(ownership.owned, key=sort_key)
        numbers = {member: number for number, member in enumerate(self._members)}
        self._former = {partition: numbers[member] for partition, member in ownership.former.items()}
        self._subscribed: list[dict[str, None]] = []
        self._readers: dict[str, list[int]] = {topic: [] for topic in topics}
        for number, member in enumerate(self._members):
            self._subscribed.append({topic: None for topic in subscriptions[member].topics if topic in topics})
            for topic in self._subscribed[number]:
                self._readers[topic].append(number)
        order = sorted(topics, key=lambda topic: (len(self._readers[topic]), topic))
        self._all = [TopicPartition(topic, info.partition) for topic in order for info in topics[topic]]
        self._has: list[dict[TopicPartition, None]] = [{} for _ in self._members]
        self._holder: dict[TopicPartition, int] = {}
        self._ranking: list[int] = []
        self._movements = Movements()
        self._gave_up = False
        self._from_nothing = False
        """Whether no member owned a partition: then balancing has nothing to keep."""

    def keep(self) -> list[TopicPartition]:
        """Keep members' partitions; return the other partitions, those of topics with the fewest subscribers first."""
        for number, member in enumerate(self._members):
            for partition in self._ownership.owned[member]:
                if partition.topic in self._subscribed[number] and not self._racks.mismatch(member, partition):
                    self._give(partition, number)
                else:
                    self._gave_up = True
        self._ranking = sorted(self._rank(number) for number in range(len(self._members)))
        return [partition for partition in self._all if partition not in self._holder]

    def fill(self, unassigned: Iterable[TopicPartition]) -> None:
        """Assign the unassigned partitions."""
        self._from_nothing = not self._has[self._ranking[-1] % len(self._members)]
        left = list(unassigned)
        if self._racks.of_member:
            left = [partition for partition in left if not self._give_to_least(partition, in_rack=True)]
        for partition in left:
            self._give_to_least(partition, in_rack=False)

    def even_out(self, unassigned: Iterable[TopicPartition]) -> None:
        """Move partitions to balance the members, ``unassigned`` ones first; undo all moves if that has not helped."""
        self._ranking = [rank for rank in self._ranking if self._takes_part(rank % len(self._members))]
        before = [dict(owned) for owned in self._has]
        score = self._unevenness()
        if not self._gave_up:
            # New partitions move first, since no member has to revoke them.
            self._move([partition for partition in unassigned if len(self._readers[partition.topic]) > 1])
        moved = self._move([partition for partition in self._all if len(self._readers[partition.topic]) > 1])
        # No group is known in which this happens, but Java has the same condition.
        if moved and not self._from_nothing and self._unevenness() >= score:
            self._has = before

    def result(self) -> dict[str, list[TopicPartition]]:
        """Return each member's partitions."""
        return {member: list(has) for member, has in zip(self._members, self._has, strict=True)}

    # --- giving ----------------------------------------------------------------------------------------

    def _rank(self, member: int) -> int:
        """Return a member's sort key in the ranking: by its partition count, then by its number."""
        return len(self._has[member]) * len(self._members) + member

    def _give(self, partition: TopicPartition, member: int) -> None:
        self._has[member][partition] = None
        self._holder[partition] = member

    def _give_to_least(self, partition: TopicPartition, *, in_rack: bool) -> bool:
        for index, rank in enumerate(self._ranking):
            member = rank % len(self._members)
            if partition.topic not in self._subscribed[member]:
                continue
            if in_rack and self._racks.mismatch(self._members[member], partition):
                continue
            del self._ranking[index]
            self._give(partition, member)
            insort(self._ranking, self._rank(member))
            return True
        return False

    # --- moving ----------------------------------------------------------------------------------------

    def _takes_part(self, member: int) -> bool:
        """Return whether moves may concern the member: not if only it reads its topics, and has all partitions."""
        if len(self._has[member]) < sum(len(self._topics[topic]) for topic in self._subscribed[member]):
            return True
        return any(len(self._readers[topic]) > 1 for topic in self._subscribed[member])

    def _move(self, partitions: list[TopicPartition]) -> bool:
        """Move partitions until no move helps, or for ``_MOST_ROUNDS``; return whether any partition was moved."""
        moved = False
        for _ in range(_MOST_ROUNDS):
            if not [partition for partition in partitions if self._move_one(partition)]:
                break
            moved = True
        return moved

    def _move_one(self, partition: TopicPartition) -> bool:
        holder = self._holder[partition]
        most = len(self._has[holder]) - 1
        taker = self._former.get(partition)
        if taker is None or len(self._has[taker]) >= most:
            taker = next(rank % len(self._members) for rank in self._ranking if self._subscribes(rank, partition.topic))
            if len(self._has[taker]) >= most:
                return False
        moved = self._movements.instead_of(partition, holder, taker)
        giver = self._holder[moved]
        self._movements.move(moved, giver, taker)
        for member in (giver, taker):
            del self._ranking[bisect_left(self._ranking, self._rank(member))]
        del self._has[giver][moved]
        self._give(moved, taker)
        for member in (giver, taker):
            insort(self._ranking, self._rank(member))
        return True

    def _subscribes(self, rank: int, topic: str) -> bool:
        return topic in self._subscribed[rank % len(self._members)]

    def _unevenness(self) -> int:
        """Return the sum of the differences in partition count between all pairs of members."""
        sizes = sorted(len(self._has[rank % len(self._members)]) for rank in self._ranking)
        return sum((2 * index - len(sizes) + 1) * size for index, size in enumerate(sizes))
