"""Where each leader epoch of a log begins: what tells a reader that a log was cut off (KIP-101, KIP-279, KIP-320)."""

from typing import NamedTuple

__all__ = ("UNKNOWN", "EpochEnd", "LeaderEpochs")


class EpochEnd(NamedTuple):
    """An epoch, and the offset after its last record."""

    epoch: int
    end_offset: int


UNKNOWN = EpochEnd(-1, -1)


class LeaderEpochs:
    """The epochs of one log in their order, each with the offset that it began at. Offsets rise with the epochs."""

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}

    def begin(self, epoch: int, offset: int) -> None:
        """A leader takes over at ``offset``. Epochs that wrote nothing before it leave no trace."""
        self.truncate(offset)
        self._starts[epoch] = offset

    def truncate(self, offset: int) -> None:
        """Forget the epochs that began at ``offset`` or later."""
        self._starts = {epoch: start for epoch, start in self._starts.items() if start < offset}

    def end_of(self, epoch: int, log_start: int, log_end: int, *, leads: bool = True) -> EpochEnd:
        """The newest epoch up to ``epoch`` and where it ends, in a log between these offsets.

        Below all that is left it is ``epoch`` itself, which then ends where the log begins; ``UNKNOWN`` above the
        newest. A follower (``leads`` off) learns of an epoch by its first record only.
        """
        kept = self._kept(log_start, log_end, leads)
        if epoch < 0 or not kept or epoch > kept[-1][0]:
            return UNKNOWN
        if epoch == kept[-1][0]:
            return EpochEnd(epoch, log_end)
        higher = next(index for index, (known, _) in enumerate(kept) if known > epoch)
        return EpochEnd(kept[higher - 1][0] if higher else epoch, kept[higher][1])

    def at(self, offset: int) -> int:
        """The epoch that ``offset`` is of; -1 before the first."""
        found = -1
        for epoch, start in self._starts.items():
            if start > offset:
                break
            found = epoch
        return found

    def _kept(self, log_start: int, log_end: int, leads: bool) -> list[tuple[int, int]]:
        """The epochs that records are left of; the oldest begins with the log."""
        kept = [(epoch, start) for epoch, start in self._starts.items() if leads or start < log_end]
        while len(kept) > 1 and kept[1][1] <= log_start:
            del kept[0]
        return [(epoch, max(start, log_start)) for epoch, start in kept]
