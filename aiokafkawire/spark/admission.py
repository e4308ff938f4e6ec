"""How far each micro-batch of a stream reads, and what is missing of it: decided from offsets alone."""

from collections.abc import Mapping

import attrs

from ..types import TopicPartition
from .offsets import OffsetRange, Offsets
from .planning import backlog, limited

__all__ = ("Admission", "lost_between", "ranges_between")


@attrs.define
class Admission:
    """The limits of a stream, and when they last let something through. Times are in seconds."""

    most: int | None
    least: int | None
    longest_wait: float
    passed_at: float = attrs.field(kw_only=True)

    def reach(self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], now: float) -> Offsets:
        """Where the batch ends; at ``start``, if it has to wait for more. ``start`` has all partitions of ``end``."""
        waits = now < self.passed_at + self.longest_wait
        if self.least is not None and waits and backlog(start, end) < self.least:
            return {where: start[where] for where in end}
        self.passed_at = now
        return dict(end) if self.most is None else limited(start, end, self.most)


def ranges_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """What to read of each partition that is in both; empty where there is nothing."""
    return [
        OffsetRange(where.topic, where.partition, start[where], until)
        for where, until in sorted(end.items())
        if where in start and start[where] < until
    ]


def lost_between(
    before: Mapping[TopicPartition, int], began: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> list[str]:
    """What a batch shows to be lost, as sentences.

    Args:
        before: where the batch before it ended.
        began: where partitions begin that came since then.
        end: where the batch ends.
    """
    lost = [f"{where} is gone, of which offset {before[where]} was next" for where in sorted(set(before) - set(end))]
    lost += [
        f"{where} ends at {end[where]}, before offset {at}, which was next: the topic was cut off or created anew"
        for where, at in sorted(before.items())
        if where in end and end[where] < at
    ]
    lost += [f"{where} is new, and begins at {at} instead of 0" for where, at in sorted(began.items()) if at > 0]
    return lost
