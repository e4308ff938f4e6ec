"""Decides which offsets the next window of batch jobs has, from what the last windows have committed to a group."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

import attrs

from ..types import OffsetAndMetadata, TopicPartition
from .offsets import OffsetRange, Offsets

__all__ = ("WindowPlan", "next_window", "unfinished_window")

Committed: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MARK: Final = re.compile(r"akw-window:(\d{1,15}):(\d{1,9}):(\d{1,18}):(\d{1,18})")


@attrs.frozen
class WindowPlan:
    """The records of one window: the time at which it was planned, in ms since the epoch, and a range per partition."""

    planned_at: int
    ranges: tuple[OffsetRange, ...]

    @property
    def name(self) -> str:
        """The time at which the window was planned, such as ``20261128T190312.123Z``; later windows sort behind it."""
        seconds, ms = divmod(self.planned_at, 1000)
        return f"{_EPOCH + timedelta(seconds=seconds):%Y%m%dT%H%M%S}.{ms:03}Z"

    @property
    def begun(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets to commit before the window is read: its starts."""
        return {each.where: self._commit(each, each.start) for each in self.ranges}

    @property
    def finished(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets to commit once the job has succeeded: its ends."""
        return {each.where: self._commit(each, each.end) for each in self.ranges}

    def _commit(self, each: OffsetRange, offset: int) -> OffsetAndMetadata:
        mark = f"akw-window:{self.planned_at}:{len(self.ranges)}:{each.start}:{each.end}"
        return OffsetAndMetadata(offset, mark)

    def is_current(self, committed: Committed) -> bool:
        """Return whether the group has still committed this window, begun or finished, and no later one."""
        finished = self.finished
        return all(committed.get(partition) in (begun, finished[partition]) for partition, begun in self.begun.items())

    def within(self, first: Offsets, last: Offsets) -> "WindowPlan":
        """Return the plan with what is left of its ranges between the first and last offsets of the partitions."""
        ranges = []
        for each in self.ranges:
            start = min(max(each.start, first[each.where]), last[each.where])
            ranges.append(attrs.evolve(each, start=start, end=min(max(each.end, start), last[each.where])))
        return attrs.evolve(self, ranges=tuple(ranges))


class _Mark(NamedTuple):
    """The window that a committed offset belongs to."""

    planned_at: int
    partitions: int
    """The number of the window's partitions."""
    start: int
    end: int


def _marks(committed: Committed) -> dict[TopicPartition, _Mark]:
    found = {}
    for partition, offset in committed.items():
        match = _MARK.fullmatch(offset.metadata)
        # An offset that was reset since, with its metadata kept, belongs to no window.
        if match is not None and str(offset.offset) in (match[3], match[4]):
            found[partition] = _Mark(*map(int, match.groups()))
    return found


def unfinished_window(committed: Committed) -> tuple[WindowPlan, int] | None:
    """Return the window that a job has begun and not finished, or None.

    It has all its partitions, since its job writes all of its output again. The number is that of partitions which it
    had once, and whose offsets the group has lost, as when their topic is deleted.

    Args:
        committed: all that the group has committed.
    """
    marks = _marks(committed)
    begun = [mark.planned_at for each, mark in marks.items() if committed[each].offset == mark.start < mark.end]
    if not begun:
        return None
    of_window = {partition: mark for partition, mark in sorted(marks.items()) if mark.planned_at == max(begun)}
    ranges = [OffsetRange(*partition, mark.start, mark.end) for partition, mark in of_window.items()]
    return WindowPlan(max(begun), tuple(ranges)), max(mark.partitions for mark in of_window.values()) - len(ranges)


def next_window(committed: Committed, starts: Offsets, ends: Offsets, now: int) -> WindowPlan:
    """Return the window after the last finished one.

    Args:
        committed: what the group has committed.
        starts: where partitions begin for which nothing is committed.
        ends: where the window ends. A partition whose end is before its start has an empty range.
        now: the present time, in ms since the epoch.
    """
    last = max((mark.planned_at for mark in _marks(committed).values()), default=0)
    ranges = []
    for partition, end in sorted(ends.items()):
        start = committed[partition].offset if partition in committed else starts[partition]
        ranges.append(OffsetRange(*partition, start, max(start, end)))
    return WindowPlan(max(now, last + 1), tuple(ranges))
