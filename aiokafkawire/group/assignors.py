"""The interface of assignors, and the range and round-robin assignors."""

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
    """The protocol of a rebalance.

    EAGER members revoke all partitions before a rebalance. COOPERATIVE members revoke, after it, only those that
    move (KIP-429).
    """

    EAGER = 0
    COOPERATIVE = 1


class Assignor(Protocol):
    """An assignor of partitions to members (``partition.assignment.strategy``). Users may write their own.

    Each consumer uses its own assignor objects until it is closed. All members send the names of their assignors to the
    coordinator, which picks a name that all of them sent, and a leader, whose assignor decides for the group.
    """

    @property
    def name(self) -> str:
        """The name that members send to the coordinator."""

    @property
    def protocols(self) -> Collection[RebalanceProtocol]:
        """The rebalance protocols that the assignor supports.

        With COOPERATIVE, :meth:`assign` gives no member a partition that another member still owns.
        """

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return the ``user_data`` of this member's subscription, for the leader's assignor.

        The subscription contains ``owned`` and ``generation`` besides. After the member has lost its membership,
        ``owned`` is empty and ``generation`` is -1.
        """

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assignment]:
        """Return each member's assignment, by member id. An error raised here fails the rebalance.

        ``partitions`` has the partitions of all subscribed topics. ``subscriptions`` has the members in the
        coordinator's order, and at least one: the leader.
        """

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Receive this member's new assignment and the generation in which it was assigned."""


def subscribed_partitions(
    partitions: Partitions, subscriptions: Mapping[str, Subscription]
) -> dict[str, list[PartitionInfo]]:
    """Return the sorted partitions of each existing subscribed topic, with topics in the order of Java's hash map."""
    wanted = dict.fromkeys(topic for member in hash_ordered(subscriptions) for topic in subscriptions[member].topics)
    known = [topic for topic in hash_ordered(wanted) if partitions.get(topic)]
    return {topic: sorted(partitions[topic], key=lambda info: info.partition) for topic in hash_ordered(known)}


def needs_racks(members: Collection[str], partitions: Collection[Collection[str]]) -> bool:
    """Return whether an assignor considers racks (KIP-881).

    It does if there is a replica in the rack of a member, and not all partitions have replicas in the same racks.

    Args:
        members: the racks of the members that have one.
        partitions: the racks of each partition's replicas.
    """
    everywhere = frozenset(rack for racks in partitions for rack in racks)
    return not everywhere.isdisjoint(members) and any(len(everywhere) > len(frozenset(racks)) for racks in partitions)


def _in_turn(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Return the members in the order of assignment: static members by instance id, then all others by member id."""

    def key(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].group_instance_id
        return instance is None, sort_key(member if instance is None else instance)

    return sorted(hash_ordered(subscriptions), key=key)


def _wrapped(assigned: Mapping[str, Iterable[TopicPartition]]) -> dict[str, Assignment]:
    return {member: Assignment(tuple(partitions)) for member, partitions in assigned.items()}


class _Plain:
    """The base of eager assignors that keep no state between generations."""

    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)

    def subscription(self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return None: there is no user data."""
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Ignore the assignment."""


class RoundRobinAssignor(_Plain):
    """The round-robin assignor: it assigns partitions in turn, each to the next member that subscribes to the topic."""

    name = "roundrobin"

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """Return the same assignment as Java's assignor.

        With equal subscriptions, the members' partition counts differ by one at most.
        """
        members = _in_turn(subscriptions)
        readers: dict[str, list[int]] = {}
        for position, member in enumerate(members):
            for topic in dict.fromkeys(subscriptions[member].topics):
                readers.setdefault(topic, []).append(position)
        assigned: list[list[TopicPartition]] = [[] for _ in members]
        turn = 0
        for topic, infos in sorted(subscribed_partitions(partitions, subscriptions).items()):
            positions = readers[topic]
            for info in infos:
                index = bisect_left(positions, turn)
                position = positions[index] if index < len(positions) else positions[0]
                assigned[position].append(TopicPartition(topic, info.partition))
                turn = position + 1
        return _wrapped(dict(zip(members, assigned, strict=True)))


class RangeAssignor(_Plain):
    """The range assignor: members get equal ranges of each topic's partitions; a remainder goes to the first members.

    1. Topics with equal partition counts and the same subscribers are co-partitioned: one member reads the same
       partition number of all of them.
    2. Where racks matter, members first get partitions with replicas in their rack, as far as rule 1 and equal counts
       allow (KIP-881).
    """

    name = "range"

    def assign(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """Return the same assignment as Java's assignor."""
        readers: dict[str, list[str]] = {}
        for member in _in_turn(subscriptions):
            for topic in dict.fromkeys(subscriptions[member].topics):
                readers.setdefault(topic, []).append(member)
        racks = {member: subscription.rack_id for member, subscription in subscriptions.items() if subscription.rack_id}
        known = subscribed_partitions(partitions, subscriptions)
        topics = [_Topic(topic, infos, readers[topic], racks) for topic, infos in known.items()]
        assigned: dict[str, list[TopicPartition]] = {member: [] for member in hash_ordered(subscriptions)}
        in_racks = any(topic.in_racks for topic in topics)
        if in_racks:
            _match_racks(topics, assigned)
        for progress in topics:
            progress.deal_rest(assigned)
        if in_racks:
            for dealt in assigned.values():
                dealt.sort()
        return _wrapped(assigned)


class _Topic:
    """The assignment in progress of one topic's partitions."""

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

    def free_share(self, member: str) -> int:
        """Return the number of partitions that the member may still get."""
        return max(0, self._share + (self._extras > 0) - self._dealt[member])

    def matches(self, member: str, partition: int) -> bool:
        """Return whether the partition has a replica in the member's rack; True if the member has no rack."""
        rack = self._racks.get(member)
        return rack is None or rack in self._replicas.get(partition, ())

    def deal_matching(self, assigned: Mapping[str, list[TopicPartition]]) -> None:
        """Assign each member the partitions in its rack, up to its share."""
        for member in self.readers:
            found = [partition for partition in self._left if self.matches(member, partition)]
            self.deal(member, found[: self.free_share(member)], assigned)

    def deal_rest(self, assigned: Mapping[str, list[TopicPartition]]) -> None:
        """Assign each member further partitions up to its share, until all are assigned."""
        for member in self.readers:
            self.deal(member, self._left[: self.free_share(member)], assigned)

    def deal(self, member: str, partitions: list[int], assigned: Mapping[str, list[TopicPartition]]) -> None:
        """Assign these partitions, which are still unassigned, to one member."""
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
    """Assign each partition number, in all topics at once, to the first member whose rack has replicas in each topic.

    No member gets more than its share; numbers without a matching member stay unassigned.
    """
    remaining = list(readers)
    for partition in range(size):
        matching = (
            member
            for member in remaining
            if all(topic.matches(member, partition) and topic.free_share(member) for topic in topics)
        )
        member = next(matching, None)
        if member is None:
            continue
        for topic in topics:
            topic.deal(member, [partition], assigned)
        if not any(topic.free_share(member) for topic in topics):
            remaining.remove(member)
