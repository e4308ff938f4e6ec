"""The start offsets of a log's leader epochs, by which readers detect truncation (KIP-101, KIP-279, KIP-320)."""

from typing import NamedTuple

__all__ = ("UNKNOWN", "EpochEnd", "LeaderEpochs")


class EpochEnd(NamedTuple):
    """A leader epoch, and the offset after its last record."""

    epoch: int
    end_offset: int


UNKNOWN = EpochEnd(-1, -1)


class LeaderEpochs:
    """The leader epochs of one log and their start offsets, both in ascending order."""

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}

    def begin(self, epoch: int, offset: int) -> None:
        """Add an epoch that starts at ``offset``, and forget the earlier epochs that got no records."""
        self.truncate(offset)
        self._starts[epoch] = offset

    def truncate(self, offset: int) -> None:
        """Forget the epochs that began at ``offset`` or later."""
        self._starts = {epoch: start for epoch, start in self._starts.items() if start < offset}

    def end_of(self, epoch: int, log_start: int, log_end: int, *, leads: bool = True) -> EpochEnd:
        """Return the newest epoch in the log that is not newer than ``epoch``, and the end offset of that epoch.

        If ``epoch`` is older than all epochs in the log, return it with the start of the oldest one as its end. If
        ``epoch`` is negative or newer than all epochs in the log, return ``UNKNOWN``.

        The replica's log has the records from ``log_start`` to ``log_end``. ``leads`` is False for a follower, which
        knows an epoch only when it has the epoch's first record.
        """
        kept = self._kept(log_start, log_end, leads)
        if epoch < 0 or not kept or epoch > kept[-1][0]:
            return UNKNOWN
        if epoch == kept[-1][0]:
            return EpochEnd(epoch, log_end)
        higher = next(index for index, (known, _) in enumerate(kept) if known > epoch)
        return EpochEnd(kept[higher - 1][0] if higher else epoch, kept[higher][1])

    def at(self, offset: int) -> int:
        """Return the epoch to which ``offset`` belongs; -1 if it is before the first epoch."""
        found = -1
        for epoch, start in self._starts.items():
            if start > offset:
                break
            found = epoch
        return found

    def _kept(self, log_start: int, log_end: int, leads: bool) -> list[tuple[int, int]]:
        """Return the log's epochs, each with its first offset at or after ``log_start``; see :meth:`end_of`."""
        kept = [(epoch, start) for epoch, start in self._starts.items() if leads or start < log_end]
        while len(kept) > 1 and kept[1][1] <= log_start:
            del kept[0]
        return [(epoch, max(start, log_start)) for epoch, start in kept]
