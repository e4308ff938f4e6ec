"""Sticky assignment where members want different topics: partitions are moved until no move makes it more even."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import Final

from ..types import TopicPartition
from .consumer_protocol import Subscription
from .current_assignment import Ownership, Racks, Topics
from .java_hash_order import sort_key
from .partition_movements import Movements

__all__ = ("assign_by_moving",)

_MOST_ROUNDS: Final = 100
"""After so many rounds of moving it stops, for Java does not prove that they end."""


def assign_by_moving(
    topics: Topics, subscriptions: Mapping[str, Subscription], ownership: Ownership, racks: Racks
) -> dict[str, list[TopicPartition]]:
    """Who gets what.

    1. Members keep what they have and still want; where racks matter, of what is in theirs.
    2. What is left goes to whoever wants it and has least; where racks matter, at first to members in its rack.
    3. Partitions are moved from who has more to who has less by two at least, and wants them: back to a former owner if
       there is one, else to who has least. If that makes the whole no more even, none of it is done.
    """
    balance = _Balance(topics, subscriptions, ownership, racks)
    unassigned = balance.keep()
    balance.fill(unassigned)
    balance.even_out(unassigned)
    return balance.result()


class _Balance:
    """Members are numbers here, in the order of their ids; ``_line`` has them by how many partitions they have."""

    def __init__(
        self, topics: Topics, subscriptions: Mapping[str, Subscription], ownership: Ownership, racks: Racks
    ) -> None:
        self._topics, self._ownership, self._racks = topics, ownership, racks
        self._members = sorted(ownership.owned, key=sort_key)
        number = {member: each for each, member in enumerate(self._members)}
        self._former = {where: number[member] for where, member in ownership.former.items()}
        self._wanted: list[dict[str, None]] = []
        self._readers: dict[str, list[int]] = {topic: [] for topic in topics}
        for each, member in enumerate(self._members):
            self._wanted.append({topic: None for topic in subscriptions[member].topics if topic in topics})
            for topic in self._wanted[each]:
                self._readers[topic].append(each)
        order = sorted(topics, key=lambda topic: (len(self._readers[topic]), topic))
        self._all = [TopicPartition(topic, info.partition) for topic in order for info in topics[topic]]
        self._has: list[dict[TopicPartition, None]] = [{} for _ in self._members]
        self._holder: dict[TopicPartition, int] = {}
        self._line: list[int] = []
        self._movements = Movements()
        self._gave_up = False
        self._from_nothing = False
        """Whether nobody had anything at first: then balancing has nothing to keep."""

    def keep(self) -> list[TopicPartition]:
        """Leave members what they have; what nobody has, that of the topics with the fewest readers first."""
        for each, member in enumerate(self._members):
            for where in self._ownership.owned[member]:
                if where.topic in self._wanted[each] and not self._racks.mismatch(member, where):
                    self._give(where, each)
                else:
                    self._gave_up = True
        self._line = sorted(self._place(each) for each in range(len(self._members)))
        return [where for where in self._all if where not in self._holder]

    def fill(self, unassigned: Iterable[TopicPartition]) -> None:
        """Give away what nobody has."""
        self._from_nothing = not self._has[self._line[-1] % len(self._members)]
        left = list(unassigned)
        if self._racks.of_member:
            left = [where for where in left if not self._give_to_least(where, in_rack=True)]
        for where in left:
            self._give_to_least(where, in_rack=False)

    def even_out(self, unassigned: Iterable[TopicPartition]) -> None:
        """Move partitions that several want between the members that may give or take any."""
        self._line = [place for place in self._line if self._takes_part(place % len(self._members))]
        before = [dict(each) for each in self._has]
        score = self._unevenness()
        if not self._gave_up:
            # Those that are new are moved first, as nobody has to give them up.
            self._move([where for where in unassigned if len(self._readers[where.topic]) > 1])
        moved = self._move([where for where in self._all if len(self._readers[where.topic]) > 1])
        # No group is known of which this is so; Java provides for it.
        if moved and not self._from_nothing and self._unevenness() >= score:
            self._has = before

    def result(self) -> dict[str, list[TopicPartition]]:
        """Who has what."""
        return {member: list(has) for member, has in zip(self._members, self._has, strict=True)}

    # --- giving ----------------------------------------------------------------------------------------

    def _place(self, member: int) -> int:
        """Where a member is in the line: by what it has, then by its number."""
        return len(self._has[member]) * len(self._members) + member

    def _give(self, where: TopicPartition, member: int) -> None:
        self._has[member][where] = None
        self._holder[where] = member

    def _give_to_least(self, where: TopicPartition, *, in_rack: bool) -> bool:
        for index, place in enumerate(self._line):
            member = place % len(self._members)
            if where.topic not in self._wanted[member]:
                continue
            if in_rack and self._racks.mismatch(self._members[member], where):
                continue
            del self._line[index]
            self._give(where, member)
            insort(self._line, self._place(member))
            return True
        return False

    # --- moving ----------------------------------------------------------------------------------------

    def _takes_part(self, member: int) -> bool:
        """Whether the member lacks anything that it wants, or has something that another wants as well."""
        if len(self._has[member]) < sum(len(self._topics[topic]) for topic in self._wanted[member]):
            return True
        return any(len(self._readers[topic]) > 1 for topic in self._wanted[member])

    def _move(self, partitions: list[TopicPartition]) -> bool:
        """Whether anything was moved."""
        moved = False
        for _ in range(_MOST_ROUNDS):
            if not [where for where in partitions if self._move_one(where)]:
                break
            moved = True
        return moved

    def _move_one(self, where: TopicPartition) -> bool:
        holder = self._holder[where]
        most = len(self._has[holder]) - 1
        taker = self._former.get(where)
        if taker is None or len(self._has[taker]) >= most:
            taker = next(place % len(self._members) for place in self._line if self._wants(place, where.topic))
            if len(self._has[taker]) >= most:
                return False
        moved = self._movements.instead_of(where, holder, taker)
        giver = self._holder[moved]
        self._movements.move(moved, giver, taker)
        for member in (giver, taker):
            del self._line[bisect_left(self._line, self._place(member))]
        del self._has[giver][moved]
        self._give(moved, taker)
        for member in (giver, taker):
            insort(self._line, self._place(member))
        return True

    def _wants(self, place: int, topic: str) -> bool:
        return topic in self._wanted[place % len(self._members)]

    def _unevenness(self) -> int:
        """The sum of the differences between all pairs of members."""
        sizes = sorted(len(self._has[place % len(self._members)]) for place in self._line)
        return sum((2 * index - len(sizes) + 1) * size for index, size in enumerate(sizes))
