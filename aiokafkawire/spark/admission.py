"""Plans a stream's micro-batch: finds the end that the limits allow, the ranges to read, and offsets that were lost."""

from collections.abc import Mapping
from math import inf

import attrs

from ..types import TopicPartition
from .offsets import OffsetRange, Offsets
from .planning import backlog, limited

__all__ = ("Admission", "lost_between", "ranges_between")


@attrs.define
class Admission:
    """The limits of a stream's micro-batches in offsets, and the time of the last batch. Times are in seconds.

    A query's first batch waits for no minimum, as in the JVM source: each restart would begin the longest wait again.
    """

    maximum: int | None
    minimum: int | None
    longest_wait: float
    passed_at: float = attrs.field(default=-inf, init=False)

    def reach(self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], now: float) -> Offsets:
        """Return the next batch's end; it is ``start`` if the query should wait for more records.

        ``start`` has all partitions of ``end``.
        """
        waits = now < self.passed_at + self.longest_wait
        if self.minimum is not None and waits and backlog(start, end) < self.minimum:
            return {partition: start[partition] for partition in end}
        self.passed_at = now
        return dict(end) if self.maximum is None else limited(start, end, self.maximum)


def ranges_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """Return the range of each partition that is in ``start`` and ``end`` and has offsets to read."""
    return [
        OffsetRange(partition.topic, partition.partition, start[partition], offset)
        for partition, offset in sorted(end.items())
        if partition in start and start[partition] < offset
    ]


def lost_between(
    before: Mapping[TopicPartition, int], began: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> list[str]:
    """Return a sentence for each partition that has lost data.

    Args:
        before: the end of the previous batch.
        began: the beginnings of partitions that are new in this batch.
        end: the end of the batch.
    """
    gone = sorted(set(before) - set(end))
    lost = [f"{partition} was deleted, and its next offset was {before[partition]}" for partition in gone]
    lost += [
        f"{partition} ends at {end[partition]}, before its next offset {offset}: it was truncated or recreated"
        for partition, offset in sorted(before.items())
        if partition in end and end[partition] < offset
    ]
    lost += [
        f"{partition} is new, and begins at {offset} instead of 0"
        for partition, offset in sorted(began.items())
        if offset > 0
    ]
    return lost
