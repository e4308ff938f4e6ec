"""Asks brokers about topics and partitions that users name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import anyio

from ...admin.admin import Admin
from ...admin.config_resources import ConfigResource
from ...admin.topic_descriptions import PartitionReassignment
from ...errors import BrokerError, KafkaError, UnknownTopicOrPartition, UnsupportedVersion, UsageError
from ...types import OffsetAndTimestamp, OffsetSpec, TopicPartition
from ..error_text import error_text
from ..exit_status import FAILED, CommandFailed
from ..shell.outcomes import partial_results
from ..shell.output import note
from .rows import own_configs

__all__ = (
    "all_partitions",
    "configs_of_topics",
    "existing_partitions",
    "leaders_of",
    "min_isr_of_topics",
    "moving_partitions",
    "offsets_at_leaders",
)

_MIN_ISR: Final = "min.insync.replicas"
_TOPICS_AT_ONCE: Final = 500
"""The most topics in one request, since a broker answers in pages, each requested with all names that are left."""


async def all_partitions(admin: Admin, names: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions of those topics that still exist. Raises KafkaError if the brokers refuse."""
    wanted = list(names)
    found, errors = await partial_results(wanted, admin.describe_topics(wanted))
    for error in errors.values():
        if not isinstance(error, UnknownTopicOrPartition):
            raise error
    return [TopicPartition(topic.name, one.index) for topic in found.values() for one in topic.partitions]


async def existing_partitions(
    admin: Admin, chosen: Mapping[str, tuple[int, ...] | None], *, held_by: int | None = None
) -> list[TopicPartition]:
    """Return the chosen partitions of topics; None chooses all of a topic.

    Args:
        admin: asks the brokers.
        chosen: the partitions by topic.
        held_by: a broker; of topics of which all partitions are chosen, only those that it holds.

    Raises:
        CommandFailed: a topic has no such partition (exit status 1).
        KafkaError: a topic does not exist, or the brokers refuse.
    """
    topics = await admin.describe_topics(list(chosen))
    found = []
    for name, indexes in chosen.items():
        partitions = topics[name].partitions
        if indexes is None:
            wanted = [one.index for one in partitions if held_by is None or held_by in one.replicas]
            found += [TopicPartition(name, index) for index in wanted]
            continue
        if max(indexes) >= len(partitions):
            raise CommandFailed(f"topic {name} has no partition {max(indexes)}; it has {len(partitions)}", FAILED)
        found += [TopicPartition(name, index) for index in indexes]
    return found


async def configs_of_topics(admin: Admin, names: Iterable[str]) -> dict[str, dict[str, str | None]]:
    """Return the own configs of topics; print a line and return nothing if this client may not see them."""
    try:
        found = await admin.describe_configs([ConfigResource.topic(name) for name in names])
    except KafkaError as error:
        note(f"without configs: {error_text(error)}")
        return {}
    return {resource.name: own_configs(configs) for resource, configs in found.items()}


async def min_isr_of_topics(admin: Admin, names: Iterable[str]) -> dict[str, int]:
    """Return the setting ``min.insync.replicas`` of each topic, 1 from brokers that do not have it.

    Raise KafkaError if this client may not see it.
    """
    found = await admin.describe_configs([ConfigResource.topic(name) for name in names])
    values = {
        resource.name: configs[_MIN_ISR].value if _MIN_ISR in configs else None for resource, configs in found.items()
    }
    return {name: int(value or 1) for name, value in values.items()}


async def moving_partitions(admin: Admin) -> Mapping[TopicPartition, PartitionReassignment]:
    """Return the reassignments of the cluster; nothing if the brokers are too old, or this client may not see them."""
    try:
        return await admin.list_partition_reassignments()
    except (UnsupportedVersion, BrokerError):
        return {}


async def offsets_at_leaders(
    admin: Admin, leaders: Mapping[TopicPartition, int], spec: OffsetSpec, errors: dict[int, KafkaError]
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Return an offset of each partition, except those whose leaders do not answer.

    Args:
        admin: asks the brokers, each for all of its partitions.
        leaders: the leader of each partition.
        spec: which offset.
        errors: the errors of leaders, which get those of this call; a leader with an error is not asked.

    Raises:
        KafkaError: the brokers are too old for this offset; in an exception group.
    """
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {}

    async def ask(leader: int, led: Sequence[TopicPartition]) -> None:
        try:
            found.update(await admin.list_offsets(dict.fromkeys(led, spec)))
        except (UsageError, UnsupportedVersion):
            raise
        except KafkaError as error:
            errors[leader] = error

    by_leader: dict[int, list[TopicPartition]] = {}
    for partition, leader in leaders.items():
        by_leader.setdefault(leader, []).append(partition)
    async with anyio.create_task_group() as tasks:
        for leader, led in by_leader.items():
            if leader not in errors:
                tasks.start_soon(ask, leader, led)
    return found


async def leaders_of(admin: Admin, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the leaders of the partitions that have one, of those topics that exist."""
    leaders: dict[TopicPartition, int] = {}
    names = sorted(topics)
    for start in range(0, len(names), _TOPICS_AT_ONCE):
        some: Sequence[str] = names[start : start + _TOPICS_AT_ONCE]
        described, _ = await partial_results(some, admin.describe_topics(some))
        leaders |= {
            TopicPartition(topic.name, partition.index): partition.leader
            for topic in described.values()
            for partition in topic.partitions
            if partition.leader is not None
        }
    return leaders
