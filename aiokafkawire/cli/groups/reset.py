"""Asks for what a reset of offsets needs, plans it, and sets the offsets."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import attrs

from ...admin.admin import Admin
from ...admin.descriptions import GroupListing
from ...errors import AdminError, GroupIdNotFound, KafkaError, UnsupportedVersion
from ...types import OffsetSpec, TopicPartition
from ..error_text import error_text
from ..exit_status import CommandFailed
from ..shell.outcomes import partial_results
from ..shell.partition_names import partition_text
from .describe import describe_each, groups_to_describe
from .reset_plan import PartitionOffsets, PlannedOffset, ResetTarget, plan_offsets
from .rows import Described, Row, group_type

__all__ = (
    "PLANNED",
    "GroupReset",
    "ResetPlans",
    "ResetRequest",
    "ResetRows",
    "plan_resets",
    "planned_rows",
    "set_offsets",
)

PLANNED: Final = ("group_id", "topic", "partition", "committed_offset", "new_offset", "note")
_WITHOUT_MEMBERS: Final = ("Empty", "Dead", "NotReady")


@attrs.frozen
class ResetRequest:
    """The groups to reset, and the offsets that they get.

    Attributes:
        group_ids: the groups.
        target: where to go on; None if a file says it for each partition.
        topics: the partitions to reset by topic, None for all of a topic; None for all that a group has offsets of.
        from_file: the offsets of each group in a file.
    """

    group_ids: tuple[str, ...]
    target: ResetTarget | None = None
    topics: Mapping[str, tuple[int, ...] | None] | None = None
    from_file: Mapping[str, Mapping[TopicPartition, int]] = attrs.Factory(dict)


@attrs.frozen
class GroupReset:
    """The plan of one group."""

    group_id: str
    type: str
    committed: Mapping[TopicPartition, int | None]
    planned: Mapping[TopicPartition, PlannedOffset]


@attrs.frozen
class ResetPlans:
    """The plans of groups, and a line about each group that cannot be reset."""

    plans: list[GroupReset] = attrs.Factory(list)
    refused: list[str] = attrs.Factory(list)


# --- planning ------------------------------------------------------------------------------------------------------


async def plan_resets(admin: Admin, request: ResetRequest) -> ResetPlans:
    """Plan the resets of groups; change nothing.

    Raises:
        CommandFailed: a topic has no such partition.
        KafkaError: a topic does not exist, or brokers do not answer.
    """
    listings, failures = await groups_to_describe(admin)
    chosen = None if request.topics is None else await _partitions_of(admin, request.topics)
    plans = ResetPlans()
    for group_id in dict.fromkeys(request.group_ids):
        try:
            if failures and listings is not None and group_id not in listings:
                raise _Refused(f"group {group_id!r} is not reset: its type is not known: {error_text(failures[0])}")
            committed = await _committed(admin, group_id, listings)
            targets = _targets(request, group_id, chosen, committed)
            plans.plans.append(await _plan(admin, group_id, listings, committed, targets))
        except _Refused as refused:
            plans.refused.append(str(refused))
    return plans


class _Refused(Exception):
    """A group cannot be reset; the message says why."""


async def _committed(
    admin: Admin, group_id: str, listings: Mapping[str, GroupListing] | None
) -> dict[TopicPartition, int | None]:
    """Return the offsets of a group without members; a group that does not exist has none."""
    kind = group_type((listings or {}).get(group_id))
    try:
        described, errors = await describe_each(admin, [group_id], listings or {})
    except UnsupportedVersion:  # brokers before 0.9, whose groups have no members
        described, errors = {}, {}
    if group_id in described:
        _check_without_members(described[group_id])
    elif not all(isinstance(error, GroupIdNotFound) for error in errors.values()):
        error = errors[group_id]
        raise _Refused(error_text(error))
    if kind == "share":
        shared = (await admin.list_offsets_of_share_groups(group_id))[group_id]
        return {partition: info.start_offset for partition, info in shared.items()}
    offsets = await admin.list_consumer_group_offsets(group_id)
    return {partition: at.offset for partition, at in offsets.items()}


def _check_without_members(group: Described) -> None:
    if group.members or group.state not in _WITHOUT_MEMBERS:
        count = f"{len(group.members)} {'member' if len(group.members) == 1 else 'members'}"
        raise _Refused(
            f"group {group.group_id!r} is not reset: it is {group.state} with {count}, which would not go on at the "
            "new offsets; stop them first"
        )


async def _partitions_of(admin: Admin, topics: Mapping[str, tuple[int, ...] | None]) -> list[TopicPartition]:
    described = await admin.describe_topics(list(topics))
    found = []
    for name, indexes in topics.items():
        known = [partition.index for partition in described[name].partitions]
        missing = sorted(set(indexes or ()) - set(known))
        if missing:
            listed = ", ".join(map(str, missing))
            raise CommandFailed(f"topic {name!r} has {len(known)} partitions, no {listed}")
        found += [TopicPartition(name, index) for index in (known if indexes is None else indexes)]
    return found


def _targets(
    request: ResetRequest,
    group_id: str,
    chosen: Collection[TopicPartition] | None,
    committed: Mapping[TopicPartition, int | None],
) -> Mapping[TopicPartition, ResetTarget]:
    if request.target is None:
        targets: Mapping[TopicPartition, ResetTarget] = request.from_file[group_id]
        why = "the file has no offsets of it"
    else:
        targets = dict.fromkeys(committed if chosen is None else chosen, request.target)
        why = "it has no offsets; name topics with --topic"
    if not targets:
        raise _Refused(f"group {group_id!r} is not reset: {why}")
    return targets


async def _plan(
    admin: Admin,
    group_id: str,
    listings: Mapping[str, GroupListing] | None,
    committed: Mapping[TopicPartition, int | None],
    targets: Mapping[TopicPartition, ResetTarget],
) -> GroupReset:
    await _check_exist(admin, group_id, targets)
    begins = await _offsets(admin, dict.fromkeys(targets, OffsetSpec.EARLIEST))
    ends = await _offsets(admin, dict.fromkeys(targets, OffsetSpec.LATEST))
    times = {
        partition: target
        for partition, target in targets.items()
        if isinstance(target, OffsetSpec) and target not in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
    }
    at_times = await _offsets(admin, times)
    logs = {
        partition: PartitionOffsets(
            begin=begins[partition] or 0,
            end=ends[partition] or 0,
            committed=committed.get(partition),
            at_time=at_times.get(partition),
        )
        for partition in targets
    }
    planned, unknown = plan_offsets(targets, logs)
    if unknown:
        listed = ", ".join(map(partition_text, sorted(unknown)))
        raise _Refused(f"group {group_id!r} is not reset: it has no offset to shift in {listed}")
    kind = group_type((listings or {}).get(group_id))
    return GroupReset(group_id, kind, {partition: committed.get(partition) for partition in planned}, planned)


async def _check_exist(admin: Admin, group_id: str, partitions: Collection[TopicPartition]) -> None:
    topics = sorted({partition.topic for partition in partitions})
    described, _ = await partial_results(topics, admin.describe_topics(topics))
    known = {
        TopicPartition(topic.name, partition.index) for topic in described.values() for partition in topic.partitions
    }
    missing = sorted(partition for partition in partitions if partition not in known)
    if missing:
        listed = ", ".join(map(partition_text, missing))
        raise _Refused(f"group {group_id!r} is not reset: there is no {listed}; leave it out, or delete its offsets")


async def _offsets(admin: Admin, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int | None]:
    found = await admin.list_offsets(specs) if specs else {}
    return {partition: None if at is None else at.offset for partition, at in found.items()}


# --- setting -------------------------------------------------------------------------------------------------------

ResetRows = dict[tuple[str, TopicPartition], Row]
"""The row of each partition of a group."""


def planned_rows(plans: Sequence[GroupReset]) -> ResetRows:
    """Return the rows of plans."""
    return {
        (plan.group_id, partition): {
            "group_id": plan.group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "committed_offset": plan.committed[partition],
            "new_offset": plan.planned[partition].offset,
            "note": plan.planned[partition].note or None,
        }
        for plan in plans
        for partition in sorted(plan.planned)
    }


async def set_offsets(admin: Admin, plans: Sequence[GroupReset]) -> None:
    """Set the planned offsets, group by group.

    Raises:
        AdminError: the offsets of some partitions are not set; it has their errors by group and partition.
    """
    errors: dict[tuple[str, TopicPartition], KafkaError] = {}
    for plan in plans:
        try:
            _, failed = await partial_results(list(plan.planned), _set(admin, plan))
        except KafkaError as error:
            failed = dict.fromkeys(plan.planned, error)
        errors |= {(plan.group_id, partition): error for partition, error in failed.items()}
    if errors:
        raise AdminError(f"setting offsets failed for {len(errors)}", errors, {})


async def _set(admin: Admin, plan: GroupReset) -> Mapping[TopicPartition, Any]:
    offsets = {partition: planned.offset for partition, planned in plan.planned.items()}
    if plan.type == "share":
        await admin.alter_share_group_offsets(plan.group_id, offsets)
    elif plan.type == "streams":
        await admin.alter_streams_group_offsets(plan.group_id, offsets)
    else:
        await admin.alter_consumer_group_offsets(plan.group_id, offsets)
    return {}
