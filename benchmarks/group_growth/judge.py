"""The result of a group that has grown: its members' reads, compared with the producer's journal. Plain functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Final, TypeAlias

from benchmarks.group_faults.judge import first_reads
from benchmarks.group_faults.processes import Read

Line: TypeAlias = Mapping[str, Any]
"""A line of the producer's journal (``faults/journal.py``): "record", "partition", "at", and "error" if it failed."""
Owners: TypeAlias = Mapping[int, str]
"""The consumer of each partition."""

LATE: Final = 0.5
"""Seconds after its acknowledgement from which on a record counts as late."""


@dataclass(frozen=True)
class Growth:
    """One more member: the times of its order to join and of equal shares, and the owners before and after."""

    began: float
    ended: float
    before: Owners
    after: Owners

    @property
    def moved(self) -> frozenset[int]:
        """The partitions with another owner."""
        return frozenset(one for one, owner in self.before.items() if self.after.get(one) != owner)


def figures(lines: Sequence[Line], reads: Sequence[Read], began: float, growth: Growth) -> dict[str, float | int]:
    """Return counts and times, the latter in seconds. `began` is when the producer's clock did.

    - joined_s: until all had their shares again; moved: the partitions with another owner
    - unread: the most records at one time, while the group grew, that were acknowledged and not read
    - late, latest_s: the records acknowledged meanwhile that were read late, and the latest of them
    - gap_stayed_s, gap_moved_s: the longest time without a new record of one partition, begun before all had their
      shares and ended after the order to join: of partitions that kept their owner, and of those that moved
    - producer_gap_s: the longest time without an acknowledgement of one partition, in the same sense
    - redelivered: reads of a record after the first; lost: acknowledged records that no member has read
    """
    firsts = first_reads(reads)
    acknowledged = {line["record"]: line["at"] + began for line in lines if "error" not in line}
    meanwhile = {number: at for number, at in acknowledged.items() if growth.began <= at <= growth.ended}
    waits = [firsts[number].at - at for number, at in meanwhile.items() if number in firsts]
    gaps = _gaps(((read.partition, read.at) for read in firsts.values()), growth)
    own = _gaps(((line["partition"], acknowledged[line["record"]]) for line in lines if "error" not in line), growth)
    return {
        "joined_s": growth.ended - growth.began,
        "moved": len(growth.moved),
        "unread": _most_unread(acknowledged, firsts, growth),
        "late": sum(wait > LATE for wait in waits),
        "latest_s": max(waits, default=0.0),
        "gap_stayed_s": max((gap for one, gap in gaps.items() if one not in growth.moved), default=0.0),
        "gap_moved_s": max((gap for one, gap in gaps.items() if one in growth.moved), default=0.0),
        "producer_gap_s": max(own.values(), default=0.0),
        "redelivered": len(reads) - len(firsts),
        "lost": sum(number not in firsts for number in acknowledged),
    }


def _gaps(events: Iterable[tuple[int, float]], growth: Growth) -> dict[int, float]:
    """Return the longest time between two events of each partition, of those that overlap the growth."""
    times: dict[int, list[float]] = {}
    for partition, at in events:
        times.setdefault(partition, []).append(at)
    return {partition: _gap(found, growth) for partition, found in times.items()}


def _gap(times: Sequence[float], growth: Growth) -> float:
    ordered = sorted(times)
    pairs = pairwise(ordered)
    return max((after - one for one, after in pairs if one <= growth.ended and after >= growth.began), default=0.0)


def _most_unread(acknowledged: Mapping[int, float], firsts: Mapping[int, Read], growth: Growth) -> int:
    """Return the most acknowledged records that were unread at one time; a read before its acknowledgement counts 0."""
    steps = chain.from_iterable(
        [(at, 1), (max(at, firsts[number].at), -1)] if number in firsts else [(at, 1)]
        for number, at in acknowledged.items()
    )
    unread = most = 0
    for at, change in sorted(steps):
        unread += change
        if growth.began <= at <= growth.ended:
            most = max(most, unread)
    return most
