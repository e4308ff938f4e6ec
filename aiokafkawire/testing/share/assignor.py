"""The assignment of partitions to the members of a share group; a partition may have several members."""

from collections.abc import Mapping, Set
from typing import TypeAlias
from uuid import UUID

__all__ = ("SharedPartition", "assign")

SharedPartition: TypeAlias = tuple[UUID, int]
"""A topic's id and the index of one of its partitions."""


def assign(
    subscriptions: Mapping[str, Set[UUID]], partitions: Mapping[UUID, int]
) -> dict[str, frozenset[SharedPartition]]:
    """Return the partitions of each member: all partitions have a member, and the numbers differ by one at most.

    If members outnumber partitions, every partition has equally many members. Topics with the same subscribers are
    assigned together.

    Args:
        subscriptions: the topics of each member.
        partitions: the number of partitions of each topic.
    """
    assigned: dict[str, set[SharedPartition]] = {member: set() for member in subscriptions}
    for members, topics in _by_subscribers(subscriptions, partitions).items():
        shared = [(topic, index) for topic in topics for index in range(partitions[topic])]
        sharing = -(-len(members) // len(shared)) if shared else 0
        for number in range(sharing * len(shared)):
            assigned[members[number % len(members)]].add(shared[number % len(shared)])
    return {member: frozenset(found) for member, found in assigned.items()}


def _by_subscribers(
    subscriptions: Mapping[str, Set[UUID]], partitions: Mapping[UUID, int]
) -> dict[tuple[str, ...], list[UUID]]:
    found: dict[tuple[str, ...], list[UUID]] = {}
    for topic in partitions:
        members = tuple(member for member, topics in subscriptions.items() if topic in topics)
        if members:
            found.setdefault(members, []).append(topic)
    return found
