"""What holds for every assignment, whoever made it."""

from __future__ import annotations

from collections.abc import Mapping

from aiokafkawire.group.consumer_protocol import Assignment, Partitions, Subscription
from aiokafkawire.types import TopicPartition

__all__ = ("given", "sizes", "wrongs")


def wrongs(
    partitions: Partitions,
    subscriptions: Mapping[str, Subscription],
    assigned: Mapping[str, Assignment],
    *,
    cooperative: bool = False,
) -> list[str]:
    """What is wrong with it, in words. Cooperative members own what they say until they have heard otherwise."""
    found = []
    if assigned.keys() != subscriptions.keys():
        found.append(f"{assigned.keys() ^ subscriptions.keys()} have no assignment, or are no members")
    wanted = {topic for one in subscriptions.values() for topic in one.topics}
    everything = {TopicPartition(topic, info.partition) for topic in wanted for info in partitions.get(topic, ())}
    owners: dict[TopicPartition, set[str]] = {}
    if cooperative:
        for member, one in subscriptions.items():
            for where in one.owned_partitions:
                owners.setdefault(where, set()).add(member)
    seen: dict[TopicPartition, str] = {}
    for member, assignment in assigned.items():
        for where in assignment.partitions:
            if where in seen:
                found.append(f"{where} goes to {seen[where]} and to {member}")
            if where.topic not in subscriptions[member].topics:
                found.append(f"{member} gets {where}, and does not want it")
            if where not in everything:
                found.append(f"{member} gets {where}, which is not there")
            if where in owners and owners[where] - {member} and member not in owners[where]:
                found.append(f"{member} gets {where}, which {owners[where]} have")
            seen[where] = member
    found += [f"nobody gets {where}" for where in sorted(everything - seen.keys()) if where not in owners]
    return found


def given(assigned: Mapping[str, Assignment]) -> dict[str, set[TopicPartition]]:
    """Who has what, in no order."""
    return {member: set(one.partitions) for member, one in assigned.items()}


def sizes(assigned: Mapping[str, Assignment]) -> list[int]:
    """How many partitions members have, the smallest first."""
    return sorted(len(one.partitions) for one in assigned.values())
