"""Tracks which dead letters of one partition are replayed, and makes the commits that say so."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from ...processing.commit_metadata import OffsetRange, decode_metadata, encode_metadata
from ...types import OffsetAndMetadata

__all__ = ("ReplayedOffsets",)


class ReplayedOffsets:
    """The finished offsets of one partition: those that are replayed, or have nothing to be replayed.

    A commit has the first unfinished offset, and in its metadata the finished ranges after it.

    Args:
        begin: everything before this offset is finished.
        finished: the finished ranges, ascending; those before ``begin`` are left out.
    """

    def __init__(self, begin: int, finished: Iterable[OffsetRange] = ()) -> None:
        self._begin = begin
        self._ranges: list[OffsetRange] = []
        for start, stop in finished:
            self.finish(start, stop)

    @classmethod
    def of_commit(cls, committed: OffsetAndMetadata | None, log_start: int) -> "ReplayedOffsets":
        """Return what a commit says; without one, nothing is finished."""
        if committed is None:
            return cls(log_start)
        ranges = decode_metadata(committed.offset, committed.metadata).ranges
        return cls(max(committed.offset, log_start), ranges)

    @property
    def begin(self) -> int:
        """The first offset that is not finished."""
        return self._begin

    def __contains__(self, offset: int) -> bool:
        if offset < self._begin:
            return True
        at = bisect_right(self._ranges, offset, key=lambda one: one[0]) - 1
        return at >= 0 and offset < self._ranges[at][1]

    def finish(self, start: int, stop: int) -> None:
        """Record that the offsets from ``start`` to before ``stop`` are finished."""
        start = max(start, self._begin)
        if stop <= start:
            return
        first = bisect_left(self._ranges, start, key=lambda one: one[1])
        last = bisect_right(self._ranges, stop, key=lambda one: one[0])
        merged = self._ranges[first:last]
        if merged:
            start, stop = min(start, merged[0][0]), max(stop, merged[-1][1])
        self._ranges[first:last] = [(start, stop)]
        if self._ranges[0][0] <= self._begin:
            self._begin = self._ranges.pop(0)[1]

    def copy(self) -> "ReplayedOffsets":
        """Return a copy, for a commit that may not come to be."""
        return ReplayedOffsets(self._begin, self._ranges)

    @property
    def fits(self) -> bool:
        """Whether a commit has room for all finished ranges."""
        return len(decode_metadata(self._begin, self.commit.metadata).ranges) == len(self._ranges)

    @property
    def commit(self) -> OffsetAndMetadata:
        """The commit; it leaves out the last ranges if its metadata has no room for them."""
        return OffsetAndMetadata(self._begin, encode_metadata(self._begin, self._ranges))
