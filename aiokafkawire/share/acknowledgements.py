"""Acknowledgements of acquired records that wait to be sent, by partition."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ..protocol.messages.share_fetch import AcknowledgementBatch

__all__ = ("GAP", "Acknowledge", "AcknowledgedOffsets", "PendingAcknowledgements", "as_batches", "records_in")


class Acknowledge(IntEnum):
    """The acknowledgement of an acquired record."""

    ACCEPT = 1
    """It is processed: no member gets it again."""
    RELEASE = 2
    """It was not processed: any member may get it again, until the group's delivery limit."""
    REJECT = 3
    """It cannot be processed: no member gets it again."""
    RENEW = 4
    """It is still in process: the lock begins again (KIP-1222, Kafka 4.2 and later)."""


GAP: Final = 0
"""The type of an acquired offset without a record."""


class AcknowledgedOffsets(NamedTuple):
    """A range of offsets, both inclusive, with one type of acknowledgement, by the user or by the client itself.

    If the locks have probably ended, it is late, and has a request of its own: brokers refuse all or none of a request.
    """

    first: int
    last: int
    kind: int
    by_user: bool = False
    is_late: bool = False


class PendingAcknowledgements:
    """The acknowledgements of one partition that are not sent yet."""

    def __init__(self) -> None:
        self.since: int | None = None
        """The number of the first acknowledgement here, by which a commit knows whether it is sent; None if empty."""
        self._ranges: list[AcknowledgedOffsets] = []
        self._late: list[AcknowledgedOffsets] = []
        self._renewals: dict[int, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges or self._late or self._renewals)

    @property
    def needs_two_requests(self) -> bool:
        """Whether some are late and others are not."""
        return bool(self._ranges and self._late)

    @property
    def renews(self) -> bool:
        """Whether there are renewals to send."""
        return bool(self._renewals)

    def add(self, part: AcknowledgedOffsets, number: int) -> None:
        """Add a range of offsets that have no acknowledgement yet, or only renewals; or renewals that failed before.

        A renewal does not count beside another acknowledgement of its record, which came later.
        """
        offsets: Sequence[int] = range(part.first, part.last + 1)
        if part.kind == Acknowledge.RENEW:
            offsets = [offset for offset in offsets if not self._ends(offset)]
            if not offsets:
                return
        self.since = number if self.since is None else min(self.since, number)
        if part.kind == Acknowledge.RENEW:
            self._renewals.update(dict.fromkeys(offsets, part.by_user))
            return
        if self._renewals:
            for offset in offsets:
                self._renewals.pop(offset, None)
        if part.is_late:
            _append(self._late, part)
            return
        _append(self._ranges, part)

    def _ends(self, offset: int) -> bool:
        """Return whether an acknowledgement that is no renewal waits here for this offset."""
        return any(part.first <= offset <= part.last for part in (*self._ranges, *self._late))

    def drop(self, first: int, last: int) -> int:
        """Remove the acknowledgements of these offsets; return how many of them the user has made."""
        self._ranges, dropped = _without(self._ranges, first, last)
        self._late, late = _without(self._late, first, last)
        dropped += late
        for offset in [offset for offset in self._renewals if first <= offset <= last]:
            dropped += self._renewals.pop(offset)
        if not self:
            self.since = None
        return dropped

    def take(self, *, renewals: bool) -> list[AcknowledgedOffsets]:
        """Remove and return what is to be sent, in the order of offsets; with the ``renewals``, or without.

        Late acknowledgements are returned only if there is nothing else.
        """
        if not self._ranges and not (renewals and self._renewals):
            self._ranges, self._late = self._late, []
        ranges, self._ranges = self._ranges, []
        if renewals:
            ranges += [
                AcknowledgedOffsets(offset, offset, Acknowledge.RENEW, by_user)
                for offset, by_user in self._renewals.items()
            ]
            self._renewals = {}
        if not self:
            self.since = None
        return sorted(ranges)


def _without(ranges: Sequence[AcknowledgedOffsets], first: int, last: int) -> tuple[list[AcknowledgedOffsets], int]:
    """Return what is left without these offsets, and how many of them the user has acknowledged."""
    kept: list[AcknowledgedOffsets] = []
    dropped = 0
    for part in ranges:
        if part.last < first or last < part.first:
            kept.append(part)
            continue
        dropped += part.by_user * (min(part.last, last) - max(part.first, first) + 1)
        if part.first < first:
            kept.append(part._replace(last=first - 1))
        if last < part.last:
            kept.append(part._replace(first=last + 1))
    return kept, dropped


def _append(ranges: list[AcknowledgedOffsets], part: AcknowledgedOffsets) -> None:
    """Append a range, or extend the last one by it."""
    if ranges and ranges[-1].last + 1 == part.first and ranges[-1][2:] == part[2:]:
        part = ranges.pop()._replace(last=part.last)
    ranges.append(part)


def as_batches(ranges: Sequence[AcknowledgedOffsets]) -> list[AcknowledgementBatch]:
    """Return the form of requests: ordered, with adjacent ranges in one batch that has the type of each offset."""
    runs: list[list[AcknowledgedOffsets]] = []
    for part in sorted(ranges):
        if runs and runs[-1][-1].last + 1 == part.first:
            runs[-1].append(part)
        else:
            runs.append([part])
    return [
        AcknowledgementBatch(first_offset=run[0].first, last_offset=run[-1].last, acknowledge_types=_types(run))
        for run in runs
    ]


def _types(run: Sequence[AcknowledgedOffsets]) -> list[int]:
    if all(part.kind == run[0].kind for part in run):
        return [int(run[0].kind)]
    return [int(part.kind) for part in run for _ in range(part.first, part.last + 1)]


def records_in(ranges: Iterable[AcknowledgedOffsets]) -> int:
    """Return the number of records that the user has acknowledged."""
    return sum(part.last - part.first + 1 for part in ranges if part.by_user)
