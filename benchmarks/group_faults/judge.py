"""The result of a group under fault: its members' reads, compared with the producer's journal. Plain functions."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from benchmarks.group_faults.processes import Read

Line: TypeAlias = Mapping[str, Any]
"""A line of the producer's journal (``faults/journal.py``): "record", "partition", "at", and "error" if it failed."""

WRONGS = ("lost", "unknown", "elsewhere")
"""The figures of `check` of which each must be 0."""

_REBALANCED = re.compile(
    r"Stabilized group (?P<classic>\S+) generation (?P<generation>\d+)"
    r"|\[GroupId (?P<consumer>\S+)\] Bumped group epoch to (?P<epoch>\d+)"
)


def check(lines: Iterable[Line], reads: Iterable[Read], handed: int) -> dict[str, int]:
    """Return the number of violations of each kind.

    - lost: records that were acknowledged, and that no member ever read
    - unknown: records read that were never sent
    - elsewhere: records read from another partition than the one they were sent to
    """
    where = {read.number: read.partition for read in reads}
    found: Counter[str] = Counter()
    found["unknown"] = sum(number >= handed for number in where)
    for line in lines:
        partition = where.get(line["record"])
        if partition is None:
            found["lost"] += "error" not in line
        else:
            found["elsewhere"] += partition != line["partition"]
    return {name: found[name] for name in WRONGS}


def figures(lines: Sequence[Line], reads: Sequence[Read], began: float, ended: float) -> dict[str, float | int | None]:
    """Return counts and times, the latter in seconds, and None without data.

    `began` is when the producer's clock did, and `ended` when the last read was waited for, both by `time.monotonic`.
    What is late is so from the acknowledgement on. A gap is a time in which no record was read that was new; the time
    after the last one counts only if records were still missing.
    """
    firsts = first_reads(reads)
    acknowledged = {line["record"]: line for line in lines if "error" not in line}
    late = sorted(firsts[number].at - began - line["at"] for number, line in acknowledged.items() if number in firsts)
    partitions = {line["partition"] for line in acknowledged.values()}
    missing = {line["partition"] for number, line in acknowledged.items() if number not in firsts}
    gaps = [
        _gap([read.at for read in firsts.values() if read.partition == one], began, ended if one in missing else None)
        for one in partitions
    ]
    return {
        "read": len(firsts),
        "redelivered": len(reads) - len(firsts),
        "gap_s": _gap([read.at for read in firsts.values()], began, ended if missing else None),
        "partition_gap_s": max((gap for gap in gaps if gap is not None), default=None),
        "late_p50_s": late[len(late) // 2] if late else None,
        "late_p99_s": late[int(len(late) * 0.99)] if late else None,
        "late_max_s": late[-1] if late else None,
    }


def first_reads(reads: Iterable[Read]) -> dict[int, Read]:
    """Return the earliest read of each record."""
    firsts: dict[int, Read] = {}
    for read in reads:
        if read.number not in firsts or read.at < firsts[read.number].at:
            firsts[read.number] = read
    return firsts


def rebalances(logs: Iterable[str], group: str) -> int:
    """Return the number of the group's completed generations, or of its epochs, by the brokers' logs."""
    found = (one.groupdict() for log in logs for one in _REBALANCED.finditer(log))
    return len({one["generation"] or one["epoch"] for one in found if group in (one["classic"], one["consumer"])})


def _gap(times: Iterable[float], began: float, ended: float | None) -> float | None:
    """Return the longest time between two neighbours, the start and the end included."""
    ordered = [began, *sorted(at for at in times if at > began), *([] if ended is None else [ended])]
    return max((later - one for one, later in pairwise(ordered)), default=None)
