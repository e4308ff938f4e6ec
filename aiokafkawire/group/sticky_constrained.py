"""Sticky assignment with equal subscriptions, where each member's share is known in advance."""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping

from ..types import TopicPartition
from .java_hash_order import sort_key
from .sticky_input import Ownership, Racks, Topics

__all__ = ("assign_equal_shares",)


def assign_equal_shares(
    topics: Topics, ownership: Ownership, racks: Racks
) -> tuple[Mapping[str, list[TopicPartition]], dict[TopicPartition, str]]:
    """Return each member's partitions, and those that another member has to revoke first.

    1. Members keep their partitions, up to their share; where racks matter, only those in their rack.
    2. Where racks matter, members below their share get partitions in their rack.
    3. The remaining partitions go in turn to members below their share.

    A share is the number of partitions divided by the number of members, rounded up for some members and down for the
    others, so that all partitions are assigned.
    """
    shares = _Shares(topics, ownership, racks)
    shares.keep()
    left = racks.scarcest_first(shares.unassigned())
    if racks.of_member:
        left = shares.deal_in_racks(left)
    shares.deal(left)
    return shares.assigned, shares.moving


class _Shares:
    def __init__(self, topics: Topics, ownership: Ownership, racks: Racks) -> None:
        self._topics, self._ownership, self._racks = topics, ownership, racks
        total, count = sum(len(infos) for infos in topics.values()), len(ownership.owned)
        self._low, self._larger = divmod(total, count)
        """The share rounded down, and the number of members that may still get one partition more than that."""
        self._high = self._low + (self._larger > 0)
        self._below: list[str] = []
        """Members with fewer partitions than the share rounded down."""
        self._at_low: list[str] = []
        """Members with exactly that share, which may get one more partition once no member has fewer."""
        self._given_up: dict[TopicPartition, str] = {}
        self.assigned: dict[str, list[TopicPartition]] = {member: [] for member in ownership.owned}
        self.moving: dict[TopicPartition, str] = {}

    def keep(self) -> None:
        """Keep members' partitions, up to their share."""
        for member, owned in self._ownership.owned.items():
            kept = []
            for partition in owned:
                if self._racks.mismatch(member, partition):
                    self._given_up[partition] = member
                elif partition not in self._ownership.disputed:
                    kept.append(partition)
            kept.sort(key=lambda partition: (partition.partition, partition.topic))
            share = self._share_of(member, len(kept))
            self.assigned[member] = kept[:share]
            self._given_up.update(dict.fromkeys(kept[share:], member))
        self._below.sort(key=sort_key)
        self._at_low.sort(key=sort_key)

    def _share_of(self, member: str, count: int) -> int:
        if count < self._low:
            self._below.append(member)
            return count
        if count >= self._high and self._larger:
            self._larger -= 1
            return self._high
        self._at_low.append(member)
        return self._low

    def unassigned(self) -> list[TopicPartition]:
        """Return the partitions that no member has kept, by topic and partition."""
        kept = {partition for partitions in self.assigned.values() for partition in partitions}
        found = (
            TopicPartition(topic, info.partition) for topic in sorted(self._topics) for info in self._topics[topic]
        )
        return [partition for partition in found if partition not in kept]

    def deal_in_racks(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Assign partitions to members in their racks, and return the remaining partitions.

        Each partition goes to the next member below its share, or else to the first member that may have one more.
        """
        below, at_low = _Below(self._below, self._racks), _AtLow(self._at_low, self._racks)
        left = []
        for partition in partitions:
            racks = self._racks.of(partition)
            member = below.next(racks)
            if member is not None:
                if len(self.assigned[member]) + 1 >= self._low:
                    below.remove(member)
                    at_low.add(member)
            elif self._larger and (member := at_low.pop(racks)) is not None:
                self._larger -= 1
            if member is None:
                left.append(partition)
            else:
                self._assign(partition, member)
        self._below, self._at_low = below.members(), at_low.members()
        return left

    def deal(self, partitions: list[TopicPartition]) -> None:
        """Assign partitions in turn to members below their share, then one to each member that may have one more."""
        below, at_low = deque(self._below), deque(self._at_low)
        for partition in partitions:
            member = (below or at_low).popleft()
            self._assign(partition, member)
            if len(self.assigned[member]) < self._low:
                below.append(member)
            elif len(self.assigned[member]) == self._low:
                at_low.append(member)

    def _assign(self, partition: TopicPartition, member: str) -> None:
        self.assigned[member].append(partition)
        if self._given_up.get(partition, member) != member or partition in self._ownership.disputed:
            self.moving[partition] = member


class _Below:
    """The members below their share, which get partitions in turn, indexed by rack."""

    def __init__(self, members: list[str], racks: Racks) -> None:
        self._order, self._racks = members, racks
        self._position = {member: position for position, member in enumerate(members)}
        self._in_rack: dict[str, list[int]] = {}
        for position, member in enumerate(members):
            if member in racks.of_member:
                self._in_rack.setdefault(racks.of_member[member], []).append(position)
        self._turn = 0

    def next(self, racks: tuple[str, ...]) -> str | None:
        """Return the next member in one of the racks, and advance the turn; None if there is no such member."""
        best: tuple[bool, int] | None = None
        for rack in racks:
            positions = self._in_rack.get(rack)
            if positions:
                index = bisect_left(positions, self._turn)
                found = (False, positions[index]) if index < len(positions) else (True, positions[0])
                best = min(best or found, found)
        if best is None:
            return None
        self._turn = best[1] + 1
        return self._order[best[1]]

    def remove(self, member: str) -> None:
        """Remove a member, which gets no more partitions."""
        positions = self._in_rack[self._racks.of_member[member]]
        del positions[bisect_left(positions, self._position.pop(member))]

    def members(self) -> list[str]:
        """Return the remaining members, in order."""
        return list(self._position)


class _AtLow:
    """The members that have their share but may get one more partition, in the order added, indexed by rack."""

    def __init__(self, members: list[str], racks: Racks) -> None:
        self._racks = racks
        self._added: dict[str, int] = {}
        self._in_rack: dict[str, deque[str]] = {}
        self._count = 0
        for member in members:
            self.add(member)

    def add(self, member: str) -> None:
        self._added[member] = self._count
        self._count += 1
        rack = self._racks.of_member.get(member)
        if rack is not None:
            self._in_rack.setdefault(rack, deque()).append(member)

    def pop(self, racks: tuple[str, ...]) -> str | None:
        """Remove and return the first member in one of the racks; None if there is no such member."""
        firsts = [self._in_rack[rack][0] for rack in racks if self._in_rack.get(rack)]
        if not firsts:
            return None
        member = min(firsts, key=self._added.__getitem__)
        self._in_rack[self._racks.of_member[member]].popleft()
        del self._added[member]
        return member

    def members(self) -> list[str]:
        """Return the remaining members, in the order in which they were added."""
        return list(self._added)
