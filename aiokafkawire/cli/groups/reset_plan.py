"""Plans resets of offsets: which offset each partition of a group gets."""

from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs

from ...types import OffsetSpec, TopicPartition
from ..records.points import BeforeEnd, Point

__all__ = (
    "CURRENT",
    "Current",
    "PartitionOffsets",
    "PlannedOffset",
    "ResetTarget",
    "Shift",
    "plan_offset",
    "plan_offsets",
)


@attrs.frozen
class Shift:
    """The committed offset, moved by a number of offsets: back if it is negative."""

    by: int


@attrs.frozen
class Current:
    """The committed offset as it is, or the end of a partition without one."""


CURRENT: Final = Current()

ResetTarget: TypeAlias = Point | Shift | Current
"""Where a group is to go on in a partition."""


@attrs.frozen(kw_only=True)
class PartitionOffsets:
    """The offsets of a partition that a plan is made from.

    Attributes:
        begin: the first offset.
        end: the offset after the last record.
        committed: the group's offset; None if it has none.
        at_time: the first offset at or after the time of the target; None if no record is that late.
    """

    begin: int
    end: int
    committed: int | None = None
    at_time: int | None = None


@attrs.frozen
class PlannedOffset:
    """The offset that a partition gets, and why it is not the one that was asked for; empty if it is."""

    offset: int
    note: str = ""


def plan_offset(target: ResetTarget, log: PartitionOffsets) -> PlannedOffset | None:
    """Return the offset that a partition gets; None to shift a group without a committed offset.

    Offsets outside of the log become its beginning or its end, except the current one.
    """
    if isinstance(target, Current):
        return (
            PlannedOffset(log.end, "no offset yet: the end") if log.committed is None else PlannedOffset(log.committed)
        )
    if isinstance(target, Shift):
        return None if log.committed is None else _within(log, log.committed + target.by)
    if isinstance(target, BeforeEnd):
        return _within(log, log.end - target.count)
    if isinstance(target, int):
        return _within(log, target)
    if target == OffsetSpec.EARLIEST:
        return PlannedOffset(log.begin)
    if target == OffsetSpec.LATEST:
        return PlannedOffset(log.end)
    if log.at_time is None:
        return PlannedOffset(log.end, "no record is that late: the end")
    return _within(log, log.at_time)


def _within(log: PartitionOffsets, offset: int) -> PlannedOffset:
    if offset > log.end:
        return PlannedOffset(log.end, f"{offset} is after the end")
    if offset < log.begin:
        return PlannedOffset(log.begin, f"{offset} is before the beginning")
    return PlannedOffset(offset)


def plan_offsets(
    targets: Mapping[TopicPartition, ResetTarget], logs: Mapping[TopicPartition, PartitionOffsets]
) -> tuple[dict[TopicPartition, PlannedOffset], list[TopicPartition]]:
    """Return the offset of each partition, and the partitions that cannot be shifted."""
    planned: dict[TopicPartition, PlannedOffset] = {}
    unknown: list[TopicPartition] = []
    for partition, target in targets.items():
        offset = plan_offset(target, logs[partition])
        if offset is None:
            unknown.append(partition)
        else:
            planned[partition] = offset
    return planned, unknown
