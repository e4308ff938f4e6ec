"""The recovery of a client from a fault, computed from the times of its records. Plain functions."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final, NamedTuple

from benchmarks.group_faults.judge import check
from benchmarks.group_faults.processes import Read
from benchmarks.recovery.windows import Window

LATE: Final = 1.0
"""Seconds that a record takes at most where nothing is wrong."""
_ONSET: Final = 2.0
"""Seconds after the healing in which the first late record is due, if the fault delays any; the machine may be busy
later, too."""
READER_WRONGS: Final = ("lost", "doubled", "out_of_order", "unknown", "elsewhere")
"""The figures of `reader_wrongs` of which each must be 0."""


class Passed(NamedTuple):
    """A record's times, by the clock of the windows."""

    due: float
    done: float | None
    """When it was acknowledged, or read; None if it never was."""


@dataclass(frozen=True)
class Recovery:
    """The effect of one fault on one client. Times are in seconds from the healing."""

    first: float | None
    """Until the first record after it; None if there was none before the next fault."""
    caught_up: float | None
    """Until the first moment at which no record was late; None if there was none before the next fault."""
    gap: float
    """The longest time without any record, from the beginning of the fault on."""
    limit: float
    """The seconds that were watched."""
    slowest: float = 0.0
    """The longest time that a record took, until the end of the window if it never came."""


def recovery(records: Iterable[Passed], window: Window) -> Recovery:
    """Return what a fault did to a client that handled these records."""
    began, healed, until = window
    mine = [one for one in records if one.due < until and (one.done is None or one.done >= began)]
    done = sorted(one.done for one in mine if one.done is not None and one.done < until)
    first = next((at for at in done if at >= healed), None)
    caught_up = _caught_up(mine, window)
    return Recovery(
        first=None if first is None else first - healed,
        caught_up=None if caught_up is None else caught_up - healed,
        gap=max(later - one for one, later in pairwise([began, *done, until])),
        limit=until - healed,
        slowest=max(((until if one.done is None else one.done) - one.due for one in mine), default=0.0),
    )


def _caught_up(records: Sequence[Passed], window: Window) -> float | None:
    """Return the moment from which on no record was late for the first time, after those that the fault made late."""
    ends_of_all = ((one.due + LATE, math.inf if one.done is None else one.done) for one in records)
    late = [(since, done) for since, done in ends_of_all if done > since]
    onset = min((since for since, _ in late if since - LATE <= window.healed + _ONSET), default=window.healed)
    moment = max(onset, window.healed)
    while ends := [done for since, done in late if since <= moment < done]:
        moment = max(ends)
    return moment if moment < window.until else None


def summary(recoveries: Sequence[Recovery], figure: str) -> dict[str, float]:
    """Return the median and the worst of a figure; what did not end counts as the time that was watched."""
    values = [one.limit if getattr(one, figure) is None else max(getattr(one, figure), 0.0) for one in recoveries]
    return {"median": median(values), "worst": max(values)}


def reader_wrongs(lines: Iterable[Mapping[str, Any]], reads: Sequence[Read], handed: int) -> dict[str, int]:
    """Return the number of violations of each kind by a reader that ran without interruption.

    - lost, unknown, elsewhere: as in `check`
    - doubled: records that it read again
    - out_of_order: records that it read after a later one of their partition
    """
    lasts: dict[int, int] = {}
    seen: set[int] = set()
    doubled = disordered = 0
    for read in reads:
        if read.number in seen:
            doubled += 1
        elif read.number < lasts.get(read.partition, -1):
            disordered += 1
        seen.add(read.number)
        lasts[read.partition] = max(read.number, lasts.get(read.partition, -1))
    return {**check(lines, reads, handed), "doubled": doubled, "out_of_order": disordered}
