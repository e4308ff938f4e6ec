"""The start offsets of a log's leader epochs, by which readers detect truncation (KIP-101, KIP-279, KIP-320)."""

from typing import NamedTuple

__all__ = ("UNKNOWN", "EpochEnd", "LeaderEpochs")


class EpochEnd(NamedTuple):
    """An epoch, and the offset after its last record."""

    epoch: int
    end_offset: int


UNKNOWN = EpochEnd(-1, -1)


class LeaderEpochs:
    """The epochs of one log in order, each with its start offset. Offsets increase with the epochs."""

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}

    def begin(self, epoch: int, offset: int) -> None:
        """Start an epoch at ``offset``, where a leader takes over. Epochs without records are forgotten."""
        self.truncate(offset)
        self._starts[epoch] = offset

    def truncate(self, offset: int) -> None:
        """Forget the epochs that began at ``offset`` or later."""
        self._starts = {epoch: start for epoch, start in self._starts.items() if start < offset}

    def end_of(self, epoch: int, log_start: int, log_end: int, *, leads: bool = True) -> EpochEnd:
        """Return the newest epoch that is not newer than ``epoch``, and the end offset of that epoch.

        The log has the records from ``log_start`` to ``log_end``. If ``epoch`` is older than all epochs left, return it
        with the start of the oldest epoch; if it is newer than the newest epoch, return ``UNKNOWN``. ``leads`` is off
        for a follower, which learns of an epoch by the epoch's first record.
        """
        kept = self._kept(log_start, log_end, leads)
        if epoch < 0 or not kept or epoch > kept[-1][0]:
            return UNKNOWN
        if epoch == kept[-1][0]:
            return EpochEnd(epoch, log_end)
        higher = next(index for index, (known, _) in enumerate(kept) if known > epoch)
        return EpochEnd(kept[higher - 1][0] if higher else epoch, kept[higher][1])

    def at(self, offset: int) -> int:
        """Return the epoch of ``offset``; -1 before the first epoch."""
        found = -1
        for epoch, start in self._starts.items():
            if start > offset:
                break
            found = epoch
        return found

    def _kept(self, log_start: int, log_end: int, leads: bool) -> list[tuple[int, int]]:
        """Return the epochs that still have records, with their start offsets, which are at least ``log_start``."""
        kept = [(epoch, start) for epoch, start in self._starts.items() if leads or start < log_end]
        while len(kept) > 1 and kept[1][1] <= log_start:
            del kept[0]
        return [(epoch, max(start, log_start)) for epoch, start in kept]
