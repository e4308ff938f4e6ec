"""The sticky algorithms of the uniform assignor, for members with equal and with different subscriptions (KIP-848)."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, TypeAlias
from uuid import UUID

from .consumer_member import TopicIdPartition

__all__ = ("assign_alike", "assign_mixed")

_MOST_ROUNDS: Final = 16
"""The most rounds in which partitions move between members; overlapping subscriptions may never be balanced."""

_Parts: TypeAlias = dict[str, set[TopicIdPartition]]


def assign_alike(current: Mapping[str, AbstractSet[TopicIdPartition]], counts: Mapping[UUID, int]) -> _Parts:
    """Assign the partitions of ``counts`` to members that all subscribe to these topics."""
    if not current:
        return {}
    partitions = [TopicIdPartition(topic, index) for topic, count in counts.items() for index in range(count)]
    least, extras = divmod(len(partitions), len(current))
    assigned: _Parts = {}
    room: dict[str, int] = {}
    for place, (member_id, parts) in enumerate(current.items()):
        quota = least + (extras > 0)
        assigned[member_id] = set(sorted(parts)[:quota])
        left = quota - len(assigned[member_id])
        uses_extra = extras > 0
        if left and uses_extra and len(current) - place > extras:
            # A later member may hold one partition more already.
            left, uses_extra = left - 1, False
        extras -= uses_extra
        room[member_id] = left
    free = iter(sorted(set(partitions).difference(*assigned.values())))
    for member_id, left in room.items():
        assigned[member_id] |= set(islice(free, left))
    return assigned


def assign_mixed(
    topics: Mapping[str, AbstractSet[UUID]],
    current: Mapping[str, AbstractSet[TopicIdPartition]],
    counts: Mapping[UUID, int],
) -> _Parts:
    """Assign partitions to members that subscribe to different ``topics``."""
    assigned: _Parts = {member_id: set(parts) for member_id, parts in current.items()}
    subscribers = {
        topic: [member_id for member_id, ids in topics.items() if topic in ids]
        for topic in {topic for ids in topics.values() for topic in ids}
    }
    # Topics with the fewest choices come first.
    order = sorted(
        subscribers, key=lambda topic: (-counts[topic] / len(subscribers[topic]), len(subscribers[topic]), topic)
    )
    taken: set[TopicIdPartition] = set().union(*assigned.values())
    for topic in order:
        for part in (TopicIdPartition(topic, index) for index in range(counts[topic])):
            if part not in taken:
                _least_loaded(assigned, subscribers[topic]).add(part)
    for _ in range(_MOST_ROUNDS):
        if not sum(_balance(assigned, topic, subscribers[topic]) for topic in order):
            break
    return assigned


def _least_loaded(assigned: _Parts, members: list[str]) -> set[TopicIdPartition]:
    return min((assigned[member_id] for member_id in members), key=len)


def _balance(assigned: _Parts, topic: UUID, members: list[str]) -> int:
    """Move partitions of a topic from its most loaded subscriber to the least loaded; return how many moved."""
    moved = 0
    while True:
        to = _least_loaded(assigned, members)
        owners = [parts for parts in map(assigned.__getitem__, members) if any(p.topic_id == topic for p in parts)]
        source = max(owners, key=len, default=to)
        if len(source) - len(to) <= 1:
            return moved
        part = max(part for part in source if part.topic_id == topic)
        source.remove(part)
        to.add(part)
        moved += 1
