"""The rows about groups: of lists, partitions with their lag, members and states."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from ...admin.descriptions import (
    GroupDescription,
    GroupListing,
    GroupMember,
    ShareGroupDescription,
    ShareMemberDescription,
    SharePartitionOffsetInfo,
)
from ...admin.streams_group_descriptions import StreamsGroupDescription, StreamsGroupMemberDescription
from ...types import OffsetAndMetadata, TopicPartition
from ..shell.partition_names import indexes_by_topic

__all__ = (
    "LISTED",
    "LISTED_WITH_LAG",
    "MEMBERS",
    "OFFSETS",
    "SHARE_OFFSETS",
    "STATES",
    "Described",
    "PartitionOwner",
    "Row",
    "group_lag",
    "group_type",
    "listed_row",
    "member_rows",
    "offset_rows",
    "owners_of",
    "partition_lag",
    "share_offset_rows",
    "state_row",
)

Row: TypeAlias = dict[str, Any]
Described: TypeAlias = GroupDescription | ShareGroupDescription | StreamsGroupDescription
_Member: TypeAlias = GroupMember | ShareMemberDescription | StreamsGroupMemberDescription

LISTED: Final = ("group_id", "group_type", "protocol_type", "state", "coordinator")
LISTED_WITH_LAG: Final = (*LISTED, "lag")
_PARTITION: Final = ("group_id", "topic", "partition")
OFFSETS: Final = (*_PARTITION, "committed_offset", "log_end_offset", "lag", "member_id", "client_id", "host")
SHARE_OFFSETS: Final = (*_PARTITION, "leader_epoch", "start_offset", "lag")
_MEMBER: Final = ("group_id", "member_id", "group_instance_id", "client_id", "host")
MEMBERS: Final = (*_MEMBER, "member_epoch", "partitions", "assignment")
STATES: Final = (
    *("group_id", "group_type", "state", "coordinator", "assignor", "members", "group_epoch", "assignment_epoch"),
)


# --- lists and lag -------------------------------------------------------------------------------------------------


def group_type(listing: GroupListing | None) -> str:
    """Return the type of a listed group in lower case; brokers before 3.8 have only classic groups."""
    return "classic" if listing is None or listing.type is None else listing.type.lower()


def listed_row(listing: GroupListing) -> Row:
    """Return the row of a listed group."""
    return {
        "group_id": listing.group_id,
        "group_type": group_type(listing),
        "protocol_type": listing.protocol_type or None,
        "state": listing.state,
        "coordinator": str(listing.coordinator),
    }


def partition_lag(committed: int | None, end: int | None) -> int | None:
    """Return the number of offsets from the committed offset to the end, at least 0; None if one is not known."""
    return None if committed is None or end is None else max(0, end - committed)


def group_lag(lags: Iterable[int | None]) -> int | None:
    """Return the sum of the known lags of a group's partitions; None if none is known."""
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None


# --- partitions ----------------------------------------------------------------------------------------------------


@attrs.frozen
class PartitionOwner:
    """The member that reads a partition; ``member_id`` and the others are None without one."""

    member_id: str | None = None
    client_id: str | None = None
    host: str | None = None


_NOBODY: Final = PartitionOwner()


def owners_of(described: Described) -> dict[TopicPartition, PartitionOwner]:
    """Return the member that reads each partition; empty for share groups, where several members may read one."""
    if isinstance(described, ShareGroupDescription):
        return {}
    if isinstance(described, StreamsGroupDescription):
        sources = {
            subtopology.subtopology_id: (
                *subtopology.source_topics,
                *(topic.name for topic in subtopology.repartition_source_topics),
            )
            for subtopology in described.subtopologies
        }
        return {
            TopicPartition(topic, index): _owner(member)
            for member in described.members
            for task, indexes in member.assignment.active_tasks.items()
            for topic in sources.get(task, ())
            for index in indexes
        }
    return {partition: _owner(member) for member in described.members for partition in member.assignment}


def _owner(member: _Member) -> PartitionOwner:
    return PartitionOwner(member.member_id, member.client_id, member.client_host)


def offset_rows(
    group_id: str,
    kind: str,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int | None],
    owners: Mapping[TopicPartition, PartitionOwner],
) -> list[Row]:
    """Return a row for each partition that the group has committed an offset of, or that one of its members reads."""
    rows = []
    for partition in sorted({*committed, *owners}):
        known, end, owner = committed.get(partition), ends.get(partition), owners.get(partition, _NOBODY)
        offset = None if known is None else known.offset
        rows.append(
            {
                "group_id": group_id,
                "group_type": kind,
                "topic": partition.topic,
                "partition": partition.partition,
                "committed_offset": offset,
                "log_end_offset": end,
                "lag": partition_lag(offset, end),
                "leader_epoch": None if known is None else known.leader_epoch,
                "metadata": None if known is None else known.metadata,
                "member_id": owner.member_id,
                "client_id": owner.client_id,
                "host": owner.host,
            }
        )
    return rows


def share_offset_rows(group_id: str, offsets: Mapping[TopicPartition, SharePartitionOffsetInfo]) -> list[Row]:
    """Return a row for each partition that a share group has read."""
    return [
        {
            "group_id": group_id,
            "group_type": "share",
            "topic": partition.topic,
            "partition": partition.partition,
            "leader_epoch": info.leader_epoch,
            "start_offset": info.start_offset,
            "lag": info.lag,
        }
        for partition, info in offsets.items()
    ]


# --- members and states --------------------------------------------------------------------------------------------


def member_rows(described: Described) -> list[Row]:
    """Return a row for each member of a group."""
    return [_member_row(described, member) for member in described.members]


def _member_row(described: Described, member: _Member) -> Row:
    if isinstance(member, StreamsGroupMemberDescription):
        active = _lists(member.assignment.active_tasks)
        more: Row = {
            "process_id": member.process_id,
            "topology_epoch": member.topology_epoch,
            "standby_tasks": {task: list(indexes) for task, indexes in member.assignment.standby_tasks.items()},
            "warmup_tasks": {task: list(indexes) for task, indexes in member.assignment.warmup_tasks.items()},
            "target_assignment": {
                task: list(indexes) for task, indexes in member.target_assignment.active_tasks.items()
            },
        }
    else:
        active = indexes_by_topic(member.assignment)
        more = {"subscription": list(member.subscription)}
        if isinstance(member, GroupMember):
            target = member.target_assignment
            more |= {
                "member_type": member.type,
                "subscribed_pattern": member.subscribed_pattern,
                "target_assignment": None if target is None else indexes_by_topic(target),
            }
    return {
        "group_id": described.group_id,
        "group_type": _type_of(described),
        "member_id": member.member_id,
        "group_instance_id": None if isinstance(member, ShareMemberDescription) else member.group_instance_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "rack": member.rack or None,
        "member_epoch": member.member_epoch,
        "partitions": sum(map(len, active.values())),
        "assignment": active,
        **more,
    }


def _lists(tasks: Mapping[str, Iterable[int]]) -> dict[str, list[int]]:
    return {subtopology: list(indexes) for subtopology, indexes in tasks.items()}


def _type_of(described: Described) -> str:
    if isinstance(described, GroupDescription):
        return described.type
    return "share" if isinstance(described, ShareGroupDescription) else "streams"


def state_row(described: Described) -> Row:
    """Return the row about the state of a group."""
    assignor = described.protocol if isinstance(described, GroupDescription) else described.assignor
    return {
        "group_id": described.group_id,
        "group_type": _type_of(described),
        "state": described.state,
        "coordinator": str(described.coordinator),
        "assignor": assignor or None,
        "members": len(described.members),
        "group_epoch": described.group_epoch,
        "assignment_epoch": described.assignment_epoch,
    }
