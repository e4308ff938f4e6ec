"""Sticky assignment where all members want the same topics: everybody's share is known beforehand."""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping

from ..types import TopicPartition
from .current_assignment import Ownership, Racks, Topics
from .java_hash_order import sort_key

__all__ = ("assign_equal_shares",)


def assign_equal_shares(
    topics: Topics, ownership: Ownership, racks: Racks
) -> tuple[Mapping[str, list[TopicPartition]], dict[TopicPartition, str]]:
    """Who gets what, and of that what another has to give up first.

    1. Members keep what they have, up to their share; where racks matter, of what is in theirs.
    2. Where racks matter, members that have less get what is in their rack.
    3. What is left is dealt in turn to those that have less than their share.

    A share is the number of partitions by that of members, rounded down, or for as many as it takes, up.
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
        """The share rounded down, and how many more members may have one more."""
        self._high = self._low + (self._larger > 0)
        self._below: list[str] = []
        """Members with less than the share rounded down."""
        self._at_low: list[str] = []
        """Members with exactly that, who get one more if any is left when nobody is below."""
        self._given_up: dict[TopicPartition, str] = {}
        self.assigned: dict[str, list[TopicPartition]] = {member: [] for member in ownership.owned}
        self.moving: dict[TopicPartition, str] = {}

    def keep(self) -> None:
        """Leave members what they have, up to their share."""
        for member, owned in self._ownership.owned.items():
            kept = []
            for where in owned:
                if self._racks.mismatch(member, where):
                    self._given_up[where] = member
                elif where not in self._ownership.disputed:
                    kept.append(where)
            kept.sort(key=lambda where: (where.partition, where.topic))
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
        """What nobody has kept, by topic and partition."""
        kept = {where for each in self.assigned.values() for where in each}
        found = (
            TopicPartition(topic, info.partition) for topic in sorted(self._topics) for info in self._topics[topic]
        )
        return [where for where in found if where not in kept]

    def deal_in_racks(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Deal partitions to members in their racks: in turn to those below, then to the first that may have one more.

        Returns what is left.
        """
        below, at_low = _Below(self._below, self._racks), _AtLow(self._at_low, self._racks)
        left = []
        for where in partitions:
            racks = self._racks.of(where)
            member = below.next(racks)
            if member is not None:
                if len(self.assigned[member]) + 1 >= self._low:
                    below.remove(member)
                    at_low.add(member)
            elif self._larger and (member := at_low.pop(racks)) is not None:
                self._larger -= 1
            if member is None:
                left.append(where)
            else:
                self._assign(where, member)
        self._below, self._at_low = below.members(), at_low.members()
        return left

    def deal(self, partitions: list[TopicPartition]) -> None:
        """Deal partitions in turn to the members below, and when there are none, one more to each that may have it."""
        below, at_low = deque(self._below), deque(self._at_low)
        for where in partitions:
            member = (below or at_low).popleft()
            self._assign(where, member)
            if len(self.assigned[member]) < self._low:
                below.append(member)
            elif len(self.assigned[member]) == self._low:
                at_low.append(member)

    def _assign(self, where: TopicPartition, member: str) -> None:
        self.assigned[member].append(where)
        if self._given_up.get(where, member) != member or where in self._ownership.disputed:
            self.moving[where] = member


class _Below:
    """Members that get partitions in turn, found by rack."""

    def __init__(self, members: list[str], racks: Racks) -> None:
        self._order, self._racks = members, racks
        self._place = {member: place for place, member in enumerate(members)}
        self._in_rack: dict[str, list[int]] = {}
        for place, member in enumerate(members):
            if member in racks.of_member:
                self._in_rack.setdefault(racks.of_member[member], []).append(place)
        self._turn = 0

    def next(self, racks: tuple[str, ...]) -> str | None:
        """Whose turn it is, of those in one of the racks; afterwards it is the next one's."""
        best: tuple[bool, int] | None = None
        for rack in racks:
            places = self._in_rack.get(rack)
            if places:
                index = bisect_left(places, self._turn)
                found = (False, places[index]) if index < len(places) else (True, places[0])
                best = min(best or found, found)
        if best is None:
            return None
        self._turn = best[1] + 1
        return self._order[best[1]]

    def remove(self, member: str) -> None:
        """The member gets no more."""
        places = self._in_rack[self._racks.of_member[member]]
        del places[bisect_left(places, self._place.pop(member))]

    def members(self) -> list[str]:
        """Those that have not been removed, in order."""
        return list(self._place)


class _AtLow:
    """Members that may have one more, the first come first, found by rack."""

    def __init__(self, members: list[str], racks: Racks) -> None:
        self._racks = racks
        self._came: dict[str, int] = {}
        self._in_rack: dict[str, deque[str]] = {}
        self._count = 0
        for member in members:
            self.add(member)

    def add(self, member: str) -> None:
        self._came[member] = self._count
        self._count += 1
        rack = self._racks.of_member.get(member)
        if rack is not None:
            self._in_rack.setdefault(rack, deque()).append(member)

    def pop(self, racks: tuple[str, ...]) -> str | None:
        """Take out the first in one of the racks."""
        firsts = [self._in_rack[rack][0] for rack in racks if self._in_rack.get(rack)]
        if not firsts:
            return None
        member = min(firsts, key=self._came.__getitem__)
        self._in_rack[self._racks.of_member[member]].popleft()
        del self._came[member]
        return member

    def members(self) -> list[str]:
        """Those that are left, in the order in which they came."""
        return list(self._came)
