"""The offsets in the progress of a streaming query."""

import json
from collections.abc import Iterable, Mapping

import attrs

from ..errors import ConfigError
from ..types import TopicPartition
from .offsets import Offsets, read_offsets

__all__ = ("Behind", "behind", "offsets_in", "reached")


@attrs.frozen
class Behind:
    """A query's lag in offsets after its last micro-batch: least, most, average and total over its partitions."""

    least: int
    most: int
    average: float
    total: int


def offsets_in(text: str | None) -> Offsets | None:
    """Parse a source's ``endOffset`` or ``latestOffset``; return None if the source does not read topics."""
    try:
        return read_offsets(json.loads(text or "null"), "the progress")
    except (ValueError, RecursionError, ConfigError):
        return None


def reached(ends: Iterable[str | None]) -> Offsets:
    """Return a micro-batch's end offsets from its sources' ends, the lower one if two sources read a partition."""
    found: Offsets = {}
    for end in ends:
        for partition, offset in (offsets_in(end) or {}).items():
            found[partition] = min(offset, found.get(partition, offset))
    return found


def behind(end: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> Behind | None:
    """Return the lag of the offsets ``end`` behind ``latest``; None if no partition is in both."""
    gaps = [max(0, latest[partition] - offset) for partition, offset in end.items() if partition in latest]
    if not gaps:
        return None
    return Behind(min(gaps), max(gaps), sum(gaps) / len(gaps), sum(gaps))
