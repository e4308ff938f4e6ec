"""What sticky assignors begin with: who has what, as the members tell it, and which racks things are in."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import attrs

from ..types import TopicPartition
from .assignors import needs_racks
from .consumer_protocol import NO_GENERATION, PartitionInfo, Subscription
from .java_hash_order import hash_ordered

__all__ = ("OwnedPartitions", "Ownership", "Racks", "Topics", "settle")

Topics = Mapping[str, Sequence[PartitionInfo]]
"""The partitions of the topics that members want, in order."""


class OwnedPartitions(NamedTuple):
    """What a member says it had, and since which generation."""

    partitions: Iterable[TopicPartition] = ()
    generation: int = NO_GENERATION


@attrs.frozen
class Ownership:
    """Who has what.

    ``owned`` has all members, in the order of Java's hash map, each with its partitions in the order told.
    ``disputed`` are those that two members of one generation claimed.
    ``former`` is who had a partition in an older generation than the newest, and still wants its topic.
    """

    owned: dict[str, dict[TopicPartition, None]]
    disputed: frozenset[TopicPartition]
    former: dict[TopicPartition, str]


def settle(topics: Topics, subscriptions: Mapping[str, Subscription], held: Mapping[str, OwnedPartitions]) -> Ownership:
    """Of partitions that several claim: the newest generation has it, and of one generation nobody.

    Partitions that are no more are left out. Java leaves them in, and then hands out others twice, or fails.
    """
    existing = {topic: frozenset(info.partition for info in infos) for topic, infos in topics.items()}
    owned: dict[str, dict[TopicPartition, None]] = {member: {} for member in hash_ordered(subscriptions)}
    owner: dict[TopicPartition, str] = {}
    disputed: list[TopicPartition] = []
    for member, own in owned.items():
        generation = held[member].generation
        for where in held[member].partitions:
            if where.partition not in existing.get(where.topic, ()):
                continue
            other = owner.get(where)
            # As in Java, what the other is compared by comes from the subscription, this one's from the assignor.
            others = NO_GENERATION if other is None else subscriptions[other].generation_id
            if other is not None and generation < others:
                continue
            owner[where] = member
            if other is not None:
                owned[other].pop(where, None)
                if generation == others:
                    disputed.append(where)
                    continue
            own[where] = None
    return Ownership(owned, frozenset(disputed), _former(owned, subscriptions, held))


def _former(
    members: Iterable[str], subscriptions: Mapping[str, Subscription], held: Mapping[str, OwnedPartitions]
) -> dict[TopicPartition, str]:
    newest = max(one.generation for one in held.values())
    found: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        generation = held[member].generation
        if generation >= newest:
            continue
        wanted = frozenset(subscriptions[member].topics)
        for where in held[member].partitions:
            # Java does not look at the topics, and may hand a partition back to a member that wants it no more.
            if where.topic in wanted and (where not in found or generation > found[where][0]):
                found[where] = generation, member
    return {where: member for where, (_, member) in found.items()}


class Racks:
    """Who is in the rack of what; nothing at all where racks do not matter."""

    def __init__(self, topics: Topics, subscriptions: Mapping[str, Subscription]) -> None:
        self.of_member: dict[str, str] = {}
        """The racks of members that have one."""
        self._of_partition: dict[TopicPartition, tuple[str, ...]] = {}
        self._members: dict[str, int] = {}
        racks = {member: one.rack_id for member, one in subscriptions.items() if one.rack_id}
        if not racks:
            return
        found = {
            TopicPartition(topic, info.partition): tuple(dict.fromkeys(info.racks))
            for topic, infos in topics.items()
            for info in infos
        }
        if needs_racks(racks.values(), found.values()):
            self.of_member, self._of_partition = racks, found
            for rack in racks.values():
                self._members[rack] = self._members.get(rack, 0) + 1

    def of(self, where: TopicPartition) -> tuple[str, ...]:
        """The racks with a replica, each once."""
        return self._of_partition.get(where, ())

    def mismatch(self, member: str, where: TopicPartition) -> bool:
        """Whether the member has a rack, and the partition no replica there."""
        rack = self.of_member.get(member)
        return rack is not None and rack not in self.of(where)

    def scarcest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Those first that few members have in their rack; otherwise in the order given."""
        if not self.of_member:
            return partitions
        return sorted(partitions, key=lambda where: sum(self._members.get(rack, 0) for rack in self.of(where)))
