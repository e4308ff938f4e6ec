"""Arithmetic of batch limits and range splits, as in the JVM source."""

from collections.abc import Mapping, Sequence
from math import ceil, floor

from ..types import TopicPartition
from .offsets import OffsetRange, Offsets

__all__ = ("backlog", "limited", "split_up")


def split_up(
    ranges: Sequence[OffsetRange], *, min_partitions: int | None = None, max_records: int | None = None
) -> list[OffsetRange]:
    """Split the ranges into the ranges that Spark tasks read, without empty ranges.

    No resulting range is longer than ``max_records``. If there are fewer ranges than ``min_partitions``, long ranges
    are divided in proportion to their size; rounding may give one or two ranges more or fewer.
    """
    parts = [part for part in ranges if part.size]
    if max_records is not None:
        parts = [piece for part in parts for piece in _divided(part, ceil(part.size / max_records))]
    if min_partitions is None or len(parts) >= min_partitions:
        return parts
    # A range that is too small to divide remains one range; the other ranges are divided into the remaining number.
    total = sum(part.size for part in parts)
    small = {part for part in parts if round(part.size / total * min_partitions) <= 1}
    left = sum(part.size for part in parts if part not in small)
    remaining = max(min_partitions - len(small), 0)
    return [
        piece
        for part in parts
        for piece in _divided(part, 1 if part in small else max(1, round(part.size / left * remaining)))
    ]


def _divided(offsets: OffsetRange, count: int) -> list[OffsetRange]:
    count = max(1, min(count, offsets.size))
    cuts = [offsets.start + offsets.size * index // count for index in range(count + 1)]
    return [OffsetRange(offsets.topic, offsets.partition, cuts[index], cuts[index + 1]) for index in range(count)]


def backlog(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """Return the number of offsets from ``start`` to ``end``, over all partitions that both have."""
    return sum(max(0, end[partition] - start[partition]) for partition in end if partition in start)


def limited(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], maximum: int) -> Offsets:
    """Limit a batch to ``maximum`` offsets, shared in proportion to the backlog of each partition; return its end.

    A share is rounded down, but up if it is less than 1: a batch may be slightly smaller or larger than ``maximum``.
    ``start`` has all partitions of ``end``.
    """
    total = backlog(start, end)
    if total <= maximum:
        return dict(end)
    reached: Offsets = {}
    for partition, until in end.items():
        begin = start[partition]
        share = maximum * ((until - begin) / total)
        # The end of a truncated partition is before its start; the batch then ends at this end.
        step = ceil(share) if share < 1 else floor(share)
        reached[partition] = min(until, begin + step)
    return reached
