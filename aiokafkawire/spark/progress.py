"""What the progress of a streaming query says of its topics."""

import json
from collections.abc import Iterable, Mapping

import attrs

from ..errors import ConfigError
from ..types import TopicPartition
from .offsets import Offsets, read_offsets

__all__ = ("Behind", "behind", "offsets_in", "reached")


@attrs.frozen
class Behind:
    """How many offsets a query is behind the ends of its partitions, as of its last micro-batch."""

    least: int
    most: int
    average: float
    total: int


def offsets_in(text: str | None) -> Offsets | None:
    """The offsets of a source's ``endOffset`` or ``latestOffset``; None if it is no source of topics."""
    try:
        return read_offsets(json.loads(text or "null"), "the progress")
    except (ValueError, RecursionError, ConfigError):
        return None


def reached(ends: Iterable[str | None]) -> Offsets:
    """Where a micro-batch ended, of all its sources that read topics; where two read a partition, the lesser."""
    found: Offsets = {}
    for end in ends:
        for where, offset in (offsets_in(end) or {}).items():
            found[where] = min(offset, found.get(where, offset))
    return found


def behind(end: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> Behind | None:
    """How far the one is behind the other; None where they share no partition."""
    gaps = [max(0, latest[where] - offset) for where, offset in end.items() if where in latest]
    if not gaps:
        return None
    return Behind(min(gaps), max(gaps), sum(gaps) / len(gaps), sum(gaps))
