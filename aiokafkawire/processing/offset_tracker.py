"""Tracks the finished records of one partition, and makes its commits."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import attrs

from ..types import OffsetAndMetadata
from .commit_metadata import MAX_METADATA_BYTES, FinishedRecords, OffsetRange, encode_metadata

__all__ = ("OffsetTracker", "Progress")


@attrs.frozen(eq=False)
class Progress:
    """The next commit of one partition."""

    tracker: "OffsetTracker"
    """The tracker that it is of; another one may have taken its place since."""
    commit: OffsetAndMetadata
    records: int
    """The number of finished records that this commit is the first to cover."""


class OffsetTracker:
    """The records of one partition that were read, in the order of their offsets, until they are committed.

    Only unfinished offsets are kept one by one: every other offset that was read is finished, or has no record. So the
    memory depends on the number of unfinished records alone.

    Args:
        finished: what an earlier owner of the partition has finished after its commit; None if there is no commit.
    """

    def __init__(self, finished: FinishedRecords | None = None) -> None:
        self._unfinished: list[int] = []
        self._has_commit = finished is not None
        self._begin = 0 if finished is None else finished.offset
        self._finished_before = [] if finished is None else list(finished.ranges)
        self._finished_epoch = None if finished is None else finished.leader_epoch
        self._epoch_of_commit = None if finished is None else finished.epoch_before
        self._end: int | None = None
        # The first offset of each leader epoch, for the epoch of the record before the committed offset.
        self._epochs: list[tuple[int, int | None]] = []
        self._uncommitted = 0
        self._committed: OffsetAndMetadata | None = None

    @property
    def in_hand(self) -> int:
        """The number of records that were read, and are not committed: a crash repeats no others."""
        return len(self._unfinished) + self._uncommitted

    @property
    def uncommitted(self) -> int:
        """The number of finished records that no commit covers yet."""
        return self._uncommitted

    def precedes(self, offset: int) -> bool:
        """Return whether the offset is before the last one read: the log was truncated, and other records follow."""
        return self._end is not None and offset < self._end

    def first_unfinished(self, default: int) -> int:
        """Return the first offset that was read and is not finished; ``default`` if there is none."""
        return self._unfinished[0] if self._unfinished else default

    def add(self, offset: int, leader_epoch: int | None = None) -> bool:
        """Add the next record that was read; return False if an earlier owner of the partition has finished it."""
        if not self._epochs or self._epochs[-1][1] != leader_epoch:
            self._epochs.append((offset, leader_epoch))
            if self._finished_before and self._is_of_another_log(offset, leader_epoch):
                self._finished_before.clear()
        self._end = offset + 1
        before = self._finished_before
        while before and before[0][1] <= offset:
            del before[0]
        if before and before[0][0] <= offset:
            return False
        self._unfinished.append(offset)
        return True

    def _is_of_another_log(self, offset: int, leader_epoch: int | None) -> bool:
        """Return whether the log was truncated, so that what was finished after this record is no longer in it.

        It is if records before the commit come again. Leader epochs never decrease in a log: a record with a newer one
        has no older ones after it.
        """
        if offset < self._begin:
            return True
        finished = self._finished_epoch
        return finished is not None and leader_epoch is not None and leader_epoch > finished

    def finish(self, offset: int) -> None:
        """Record that a record is finished. Every record is finished once."""
        at = bisect_left(self._unfinished, offset)
        assert self._unfinished[at] == offset
        del self._unfinished[at]
        self._uncommitted += 1

    def progress(
        self, position: OffsetAndMetadata | None = None, *, limit: int = MAX_METADATA_BYTES
    ) -> Progress | None:
        """Return what to commit; None if the last commit says the same.

        Args:
            position: the consumer's position, which may be after records that users do not get; None if records up to
                it may not have been added yet.
            limit: the largest size of the metadata in bytes.
        """
        if self._end is None:
            return self._beginning(position, limit)
        end = self._end if position is None else max(self._end, position.offset)
        offset = self._unfinished[0] if self._unfinished else end
        metadata = encode_metadata(offset, self._ranges(offset, end), limit, leader_epoch=self._newest_epoch())
        commit = OffsetAndMetadata(offset, metadata, self._epoch_before(offset))
        return None if commit == self._committed else Progress(self, commit, self._uncommitted)

    def _beginning(self, position: OffsetAndMetadata | None, limit: int) -> Progress | None:
        """Return where the group begins, if its commit is not there; None if it is, or if that is not known.

        There may be no commit, or one that is out of range. Without this one, the next owner would begin as
        ``auto_offset_reset`` says: with "latest" after records that were written meanwhile.
        """
        if position is None or (self._has_commit and position.offset == self._begin):
            return None
        offset = position.offset
        if offset < self._begin:  # the log has lost its end
            self._finished_before.clear()
        metadata = encode_metadata(offset, self._ranges(offset, offset), limit, leader_epoch=self._finished_epoch)
        commit = OffsetAndMetadata(offset, metadata, position.leader_epoch)
        return None if commit == self._committed else Progress(self, commit, 0)

    def committed(self, progress: Progress) -> None:
        """Record that this progress is committed."""
        self._committed = progress.commit
        self._uncommitted -= progress.records

    def _ranges(self, offset: int, end: int) -> Iterator[OffsetRange]:
        """Yield the finished ranges after ``offset``: those that were read, and those of an earlier owner."""
        unfinished = self._unfinished
        pending: OffsetRange | None = None
        for start, stop in self._parts(unfinished, end):
            start = max(start, offset)
            if stop <= start:
                continue
            if pending is not None and start <= pending[1]:
                pending = pending[0], max(stop, pending[1])
                continue
            if pending is not None:
                yield pending
            pending = start, stop
        if pending is not None:
            yield pending

    def _parts(self, unfinished: list[int], end: int) -> Iterator[OffsetRange]:
        for at, first in enumerate(unfinished):
            yield first + 1, unfinished[at + 1] if at + 1 < len(unfinished) else end
        for start, stop in self._finished_before:
            yield max(start, end), stop

    def _newest_epoch(self) -> int | None:
        """Return the newest leader epoch of all that is finished; None if it is not known."""
        newest = self._epochs[-1][1] if self._epochs else None
        if not self._finished_before or newest is None:
            return newest
        return None if self._finished_epoch is None else max(newest, self._finished_epoch)

    def _epoch_before(self, offset: int) -> int | None:
        at = bisect_right(self._epochs, offset - 1, key=lambda entry: entry[0])
        if at > 1:
            del self._epochs[: at - 1]
            at = 1
        if at:
            return self._epochs[0][1]
        return self._epoch_of_commit if offset == self._begin else None
