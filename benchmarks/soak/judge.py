"""The result of a soak: whether memory, tasks and open files have grown. Plain functions."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks.report import aligned

LIMITS: Final = {"rss_mb": 4.0, "tasks": 2.0, "files": 2.0}
"""The growth of each figure from which on it is not flat."""


@dataclass(frozen=True)
class Sample:
    """The state of the process at one moment, while the member that comes and goes is not there."""

    seconds: float
    turns: int
    """How often the one has come and gone so far."""
    assignments: int
    """How often a member that stays got partitions so far."""
    records: int
    """Records read so far."""
    rss_mb: float
    tasks: int
    files: int
    """Open files, sockets included."""


def growth(values: Sequence[float]) -> float:
    """Return the growth from the second fifth of a run, when all buffers have been full, to its last."""
    fifth = max(1, len(values) // 5)
    return statistics.median(values[-fifth:]) - statistics.median(values[fifth : 2 * fifth] or values[:1])


def verdicts(samples: Sequence[Sample], lost: int) -> dict[str, tuple[bool, str]]:
    """Return whether each figure is as it should be, and how that is said."""
    found = {}
    for name, limit in LIMITS.items():
        grown = growth([asdict(sample)[name] for sample in samples])
        flat = grown <= limit
        found[name] = flat, f"{'flat' if flat else 'GROWING'}: {grown:+.1f}, at most {limit:+.1f} is flat"
    found["records"] = lost == 0, "nothing lost" if lost == 0 else f"LOST {lost:,} acknowledged records"
    return found


def table(samples: Sequence[Sample]) -> list[str]:
    """Return the samples as lines of text."""
    head = ["", "turns", "assignments", "records", "RSS MB", "tasks", "files"]
    rows = [
        [
            f"{one.seconds / 60:.1f} min",
            f"{one.turns:,}",
            f"{one.assignments:,}",
            f"{one.records:,}",
            f"{one.rss_mb:.1f}",
            str(one.tasks),
            str(one.files),
        ]
        for one in samples
    ]
    return aligned([head, *rows])
