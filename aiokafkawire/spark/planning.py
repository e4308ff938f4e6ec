"""How much is read, and in how many parts: the arithmetic of the JVM source."""

from collections.abc import Mapping, Sequence
from math import ceil, floor

from ..types import TopicPartition
from .offsets import OffsetRange, Offsets

__all__ = ("backlog", "limited", "split_up")


def split_up(
    ranges: Sequence[OffsetRange], *, min_partitions: int | None = None, max_records: int | None = None
) -> list[OffsetRange]:
    """The ranges in parts, one for each Spark partition; empty ones are left out.

    None is longer than ``max_records``. If there are fewer than ``min_partitions`` then, the long ones are divided in
    proportion to their size; there may be one or two more or fewer, by rounding.
    """
    parts = [one for one in ranges if one.size]
    if max_records is not None:
        parts = [part for one in parts for part in _divided(one, ceil(one.size / max_records))]
    if min_partitions is None or len(parts) >= min_partitions:
        return parts
    # Ranges that would not be divided anyway count as one each, and the rest is shared out among the others.
    total = sum(one.size for one in parts)
    small = {one for one in parts if round(one.size / total * min_partitions) <= 1}
    left = sum(one.size for one in parts if one not in small)
    wanted = max(min_partitions - len(small), 0)
    return [
        part for one in parts for part in _divided(one, 1 if one in small else max(1, round(one.size / left * wanted)))
    ]


def _divided(one: OffsetRange, count: int) -> list[OffsetRange]:
    count = max(1, min(count, one.size))
    cuts = [one.start + one.size * index // count for index in range(count + 1)]
    return [OffsetRange(one.topic, one.partition, cuts[index], cuts[index + 1]) for index in range(count)]


def backlog(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """How many offsets there are between the two, of all partitions that are in both."""
    return sum(max(0, end[where] - start[where]) for where in end if where in start)


def limited(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int) -> Offsets:
    """How far one batch reads: ``most`` offsets, shared out in proportion to what each partition has left.

    A share is rounded down, but up if it is less than 1: so a batch may be a little smaller or larger than ``most``.
    ``start`` has all partitions of ``end``.
    """
    total = backlog(start, end)
    if total <= most:
        return dict(end)
    reached: Offsets = {}
    for where, until in end.items():
        begin = start[where]
        share = most * ((until - begin) / total)
        # A partition that was cut off ends before it starts: it stays where it ends.
        step = ceil(share) if share < 1 else floor(share)
        reached[where] = min(until, begin + step)
    return reached
