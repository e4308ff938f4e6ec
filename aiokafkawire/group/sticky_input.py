"""The input of sticky assignors: the members' current partitions, and the racks of members and partitions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import attrs

from ..types import TopicPartition
from .assignors import needs_racks
from .consumer_protocol import NO_GENERATION, PartitionInfo, Subscription
from .java_hash_order import hash_ordered

__all__ = ("OwnedPartitions", "Ownership", "Racks", "Topics", "settle")

Topics = Mapping[str, Sequence[PartitionInfo]]
"""The partitions of each subscribed topic, sorted by number."""


class OwnedPartitions(NamedTuple):
    """The partitions that a member reports as its own, and their generation."""

    partitions: Iterable[TopicPartition] = ()
    generation: int = NO_GENERATION


@attrs.frozen
class Ownership:
    """The current owners of partitions.

    ``owned`` has all members, in the order of Java's hash map, each with its partitions in the order of its report.
    ``disputed`` has the partitions that two members of one generation claimed. ``former`` has the members that owned a
    partition in a generation before the newest, and still subscribe to its topic.
    """

    owned: dict[str, dict[TopicPartition, None]]
    disputed: frozenset[TopicPartition]
    former: dict[TopicPartition, str]


def settle(topics: Topics, subscriptions: Mapping[str, Subscription], held: Mapping[str, OwnedPartitions]) -> Ownership:
    """Return the owners of partitions, without conflicts.

    Of several members that claim a partition, the one with the newest generation owns it; if two have the same,
    neither owns it. Deleted partitions are left out: Java leaves them in, and then assigns others twice, or fails.
    """
    existing = {topic: frozenset(info.partition for info in infos) for topic, infos in topics.items()}
    owned: dict[str, dict[TopicPartition, None]] = {member: {} for member in hash_ordered(subscriptions)}
    owner: dict[TopicPartition, str] = {}
    disputed: list[TopicPartition] = []
    for member, own in owned.items():
        generation = held[member].generation
        for partition in held[member].partitions:
            if partition.partition not in existing.get(partition.topic, ()):
                continue
            other = owner.get(partition)
            # As in Java, the other member's generation comes from its subscription, and this member's from ``held``.
            others = NO_GENERATION if other is None else subscriptions[other].generation_id
            if other is not None and generation < others:
                continue
            owner[partition] = member
            if other is not None:
                owned[other].pop(partition, None)
                if generation == others:
                    disputed.append(partition)
                    continue
            own[partition] = None
    return Ownership(owned, frozenset(disputed), _former(owned, subscriptions, held))


def _former(
    members: Iterable[str], subscriptions: Mapping[str, Subscription], held: Mapping[str, OwnedPartitions]
) -> dict[TopicPartition, str]:
    newest = max(owned.generation for owned in held.values())
    found: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        generation = held[member].generation
        if generation >= newest:
            continue
        wanted = frozenset(subscriptions[member].topics)
        for partition in held[member].partitions:
            # Java ignores the topics here, and may return a partition to a member that no longer subscribes to it.
            if partition.topic in wanted and (partition not in found or generation > found[partition][0]):
                found[partition] = generation, member
    return {partition: member for partition, (_, member) in found.items()}


class Racks:
    """The racks of members and partitions; empty if the assignor does not consider them."""

    def __init__(self, topics: Topics, subscriptions: Mapping[str, Subscription]) -> None:
        self.of_member: dict[str, str] = {}
        """The racks of the members that have one."""
        self._of_partition: dict[TopicPartition, tuple[str, ...]] = {}
        self._members: dict[str, int] = {}
        racks = {member: subscription.rack_id for member, subscription in subscriptions.items() if subscription.rack_id}
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

    def of(self, partition: TopicPartition) -> tuple[str, ...]:
        """Return the distinct racks of the partition's replicas."""
        return self._of_partition.get(partition, ())

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """Return whether the member has a rack, and the partition has no replica in that rack."""
        rack = self.of_member.get(member)
        return rack is not None and rack not in self.of(partition)

    def scarcest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Sort partitions by the number of members in their racks; without racks, keep the order."""
        if not self.of_member:
            return partitions
        return sorted(partitions, key=lambda partition: sum(self._members.get(rack, 0) for rack in self.of(partition)))
