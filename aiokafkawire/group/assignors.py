"""What an assignor is; those that look at the subscriptions alone: range and round robin."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from ..types import TopicPartition
from .consumer_protocol import Assignment, PartitionInfo, Partitions, Subscription
from .java_hash_order import hash_ordered, sort_key

__all__ = (
    "Assignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "needs_racks",
    "subscribed_partitions",
)


class RebalanceProtocol(IntEnum):
    """When members give partitions up: all before they join, or those that they lose, afterwards (KIP-429)."""

    EAGER = 0
    COOPERATIVE = 1


class Assignor(Protocol):
    """Decides who reads what (``partition.assignment.strategy``). Users may write their own.

    A consumer has an assignor of its own for as long as it lives. All members of a group tell the coordinator the
    names of theirs; it picks one that all have, and a leader, whose assignor decides for all.
    """

    @property
    def name(self) -> str:
        """What the members of the group call it."""

    @property
    def protocols(self) -> Collection[RebalanceProtocol]:
        """When it lets members give partitions up. With COOPERATIVE, `assign` gives nobody what another still owns."""

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """What the leader's assignor is to know of this member: the ``user_data`` of its subscription.

        ``owned`` and ``generation`` go into the subscription by themselves; a member that has lost its membership has
        none of either, -1 for the latter.
        """

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assignment]:
        """What each member is to read, by member id. An error here ends the rebalance with that error.

        ``partitions`` are those of the topics that anybody wants. ``subscriptions`` are in the coordinator's order, and
        never empty: the leader is a member.
        """

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """What this member is to read from now on, and since which generation."""


def subscribed_partitions(
    partitions: Partitions, subscriptions: Mapping[str, Subscription]
) -> dict[str, list[PartitionInfo]]:
    """The partitions of topics that members want and that exist, in order; topics in the order of Java's hash map."""
    wanted = dict.fromkeys(topic for member in hash_ordered(subscriptions) for topic in subscriptions[member].topics)
    known = [topic for topic in hash_ordered(wanted) if partitions.get(topic)]
    return {topic: sorted(partitions[topic], key=lambda info: info.partition) for topic in hash_ordered(known)}


def needs_racks(members: Collection[str], partitions: Collection[Collection[str]]) -> bool:
    """Whether racks matter: some of the members' have replicas, and not all partitions are in all the same (KIP-881).

    Args:
        members: the racks of members that have one.
        partitions: the racks of each partition.
    """
    everywhere = frozenset(rack for racks in partitions for rack in racks)
    return not everywhere.isdisjoint(members) and any(len(everywhere) > len(frozenset(racks)) for racks in partitions)


def _in_turn(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """The members in the order in which partitions are dealt: static ones by instance id, then the others by id."""

    def key(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].group_instance_id
        return instance is None, sort_key(member if instance is None else instance)

    return sorted(hash_ordered(subscriptions), key=key)


def _wrapped(assigned: Mapping[str, Iterable[TopicPartition]]) -> dict[str, Assignment]:
    return {member: Assignment(tuple(partitions)) for member, partitions in assigned.items()}


class _Plain:
    """What assignors have in common that keep nothing from one generation to the next."""

    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Nothing."""
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Nothing is kept."""


class RoundRobinAssignor(_Plain):
    """Deals all partitions in turn, each to the next member that wants its topic."""

    name = "roundrobin"

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """As Java's. Where members want the same topics, their numbers of partitions differ by one at most."""
        members = _in_turn(subscriptions)
        readers: dict[str, list[int]] = {}
        for place, member in enumerate(members):
            for topic in dict.fromkeys(subscriptions[member].topics):
                readers.setdefault(topic, []).append(place)
        assigned: list[list[TopicPartition]] = [[] for _ in members]
        turn = 0
        for topic, infos in sorted(subscribed_partitions(partitions, subscriptions).items()):
            places = readers[topic]
            for info in infos:
                index = bisect_left(places, turn)
                place = places[index] if index < len(places) else places[0]
                assigned[place].append(TopicPartition(topic, info.partition))
                turn = place + 1
        return _wrapped(dict(zip(members, assigned, strict=True)))


class RangeAssignor(_Plain):
    """Deals each topic by itself, a range of its partitions to each member; the first ones get one more.

    1. Topics with as many partitions and the same readers are co-partitioned: who reads a partition of one reads that
       of all.
    2. Where racks matter, members get partitions with replicas in their own first, as far as 1 and even numbers allow
       (KIP-881).
    """

    name = "range"

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """As Java's."""
        readers: dict[str, list[str]] = {}
        for member in _in_turn(subscriptions):
            for topic in dict.fromkeys(subscriptions[member].topics):
                readers.setdefault(topic, []).append(member)
        racks = {member: one.rack_id for member, one in subscriptions.items() if one.rack_id}
        known = subscribed_partitions(partitions, subscriptions)
        topics = [_Topic(topic, infos, readers[topic], racks) for topic, infos in known.items()]
        assigned: dict[str, list[TopicPartition]] = {member: [] for member in hash_ordered(subscriptions)}
        in_racks = any(each.in_racks for each in topics)
        if in_racks:
            _match_racks(topics, assigned)
        for each in topics:
            each.deal_rest(assigned)
        if in_racks:
            for dealt in assigned.values():
                dealt.sort()
        return _wrapped(assigned)


class _Topic:
    """One topic while it is dealt."""

    def __init__(self, name: str, infos: Sequence[PartitionInfo], readers: list[str], racks: Mapping[str, str]) -> None:
        self.name, self.readers, self.size = name, readers, len(infos)
        self._left = [info.partition for info in infos]
        self._racks = {member: racks[member] for member in readers if member in racks}
        self._replicas = {info.partition: frozenset(info.racks) for info in infos}
        self.in_racks = needs_racks(self._racks.values(), self._replicas.values())
        self._share, self._extras = divmod(len(infos), len(readers))
        self._dealt = dict.fromkeys(readers, 0)

    @property
    def has_racks(self) -> bool:
        """Whether any reader has a rack."""
        return bool(self._racks)

    def room(self, member: str) -> int:
        """How many partitions more the member may get."""
        return max(0, self._share + (self._extras > 0) - self._dealt[member])

    def matches(self, member: str, partition: int) -> bool:
        """Whether the partition is in the member's rack, or the member in none."""
        rack = self._racks.get(member)
        return rack is None or rack in self._replicas.get(partition, ())

    def deal_matching(self, assigned: Mapping[str, list[TopicPartition]]) -> None:
        """To each member what is in its rack, up to its share."""
        for member in self.readers:
            found = [partition for partition in self._left if self.matches(member, partition)]
            self.deal(member, found[: self.room(member)], assigned)

    def deal_rest(self, assigned: Mapping[str, list[TopicPartition]]) -> None:
        """To each member up to its share, until nothing is left."""
        for member in self.readers:
            self.deal(member, self._left[: self.room(member)], assigned)

    def deal(self, member: str, partitions: list[int], assigned: Mapping[str, list[TopicPartition]]) -> None:
        """To one member some of what is left."""
        if not partitions:
            return
        assigned[member].extend(TopicPartition(self.name, partition) for partition in partitions)
        self._dealt[member] += len(partitions)
        if self._dealt[member] > self._share:
            self._extras -= 1
        if partitions == self._left[: len(partitions)]:
            del self._left[: len(partitions)]
        else:
            gone = frozenset(partitions)
            self._left = [partition for partition in self._left if partition not in gone]


def _match_racks(topics: Iterable[_Topic], assigned: Mapping[str, list[TopicPartition]]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for topic in topics:
        if topic.has_racks:
            alike.setdefault((tuple(topic.readers), topic.size), []).append(topic)
    for (readers, size), group in alike.items():
        if len(group) > 1:
            _match_co_partitioned(readers, size, group, assigned)
        elif group[0].in_racks:
            group[0].deal_matching(assigned)


def _match_co_partitioned(
    readers: Iterable[str], size: int, topics: list[_Topic], assigned: Mapping[str, list[TopicPartition]]
) -> None:
    """Each partition of all the topics to the first member whose rack has it in all of them."""
    rest = list(readers)
    for partition in range(size):
        matching = (
            member
            for member in rest
            if all(topic.matches(member, partition) and topic.room(member) for topic in topics)
        )
        member = next(matching, None)
        if member is None:
            continue
        for topic in topics:
            topic.deal(member, [partition], assigned)
        if not any(topic.room(member) for topic in topics):
            rest.remove(member)
