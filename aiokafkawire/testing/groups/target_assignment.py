"""The assignors of consumer groups: uniform and range (KIP-848)."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias
from uuid import UUID

import attrs

from .consumer_member import TopicIdPartition
from .uniform_assignment import assign_alike, assign_mixed

__all__ = ("ASSIGNORS", "Assignor", "Subscriber", "Target", "assign_range", "assign_uniform")

Target: TypeAlias = frozenset[TopicIdPartition]
"""A member's part of a target assignment."""


@attrs.frozen
class Subscriber:
    """A member as assignors see it: its topics, and its part of the last target assignment."""

    topic_ids: AbstractSet[UUID]
    target: Target = frozenset()
    group_instance_id: str | None = None


Assignor: TypeAlias = Callable[[Mapping[str, Subscriber], Mapping[UUID, int]], dict[str, Target]]
"""A function that assigns the partitions of topics, given by their counts, to the subscribers."""


def assign_uniform(members: Mapping[str, Subscriber], counts: Mapping[UUID, int]) -> dict[str, Target]:
    """Give all members equally many partitions, and let as few partitions as possible move."""
    topics = {member_id: member.topic_ids for member_id, member in members.items()}
    targets = {member_id: _kept(member, counts) for member_id, member in members.items()}
    if len({frozenset(ids) for ids in topics.values()}) <= 1:
        assigned = assign_alike(targets, {topic: counts[topic] for ids in topics.values() for topic in sorted(ids)})
    else:
        assigned = assign_mixed(topics, targets, counts)
    return {member_id: frozenset(parts) for member_id, parts in assigned.items()}


def _kept(member: Subscriber, counts: Mapping[UUID, int]) -> set[TopicIdPartition]:
    topics = member.topic_ids
    return {part for part in member.target if part.topic_id in topics and part.partition < counts[part.topic_id]}


def assign_range(members: Mapping[str, Subscriber], counts: Mapping[UUID, int]) -> dict[str, Target]:
    """Give each subscriber of a topic one range of the topic's partitions."""
    assigned: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in members}
    order = sorted(members, key=lambda member_id: _range_key(member_id, members[member_id]))
    for topic in {topic for member in members.values() for topic in member.topic_ids}:
        subscribers = [member_id for member_id in order if topic in members[member_id].topic_ids]
        for member_id, indexes in zip(subscribers, _ranges(counts[topic], subscribers), strict=True):
            assigned[member_id] |= {TopicIdPartition(topic, index) for index in indexes}
    return {member_id: frozenset(parts) for member_id, parts in assigned.items()}


def _range_key(member_id: str, member: Subscriber) -> tuple[bool, str]:
    # Static members come first: they keep their place when they return with a new member id.
    return member.group_instance_id is None, member.group_instance_id or member_id


def _ranges(count: int, subscribers: Sequence[str]) -> list[range]:
    least, extra = divmod(count, len(subscribers))
    first, ranges = 0, []
    for index in range(len(subscribers)):
        end = first + least + (index < extra)
        ranges.append(range(first, end))
        first = end
    return ranges


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}
"""The assignors by name, the default first."""
