"""Anomalies: what must not happen in a history, each with the fewest events that show it."""

from collections import Counter
from collections.abc import Sequence
from enum import Enum

import attrs

from .events import Event

__all__ = ("AnomaliesFound", "Anomaly", "Kind", "require_none")

_MOST = 5


class Kind(Enum):
    """The name of an anomaly."""

    LOST_WRITE = "lost write"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    MISPLACED = "misplaced record"
    PHANTOM = "phantom record"
    ABORTED_READ = "aborted read"
    TORN_TRANSACTION = "torn transaction"
    UNSEEN_RECORD = "unseen record"
    TWO_OWNERS = "two owners in one generation"
    NOT_OWNED = "read or commit without the partition"
    STALE_READ = "stale read after commit"
    SKIPPED_RECORDS = "skipped records"
    OFFSET_REGRESSION = "offset regression"
    COMMIT_BEYOND_FINISHED = "commit beyond finished"
    LOST_COMMIT = "lost commit"
    UNCOMMITTED = "revocation without a commit"
    UNFINISHED_RECORD = "unfinished record"


@attrs.frozen
class Anomaly:
    """One anomaly, and its counterexample: without one of these events, nothing would be wrong."""

    kind: Kind
    told: str
    events: tuple[Event, ...]

    def __str__(self) -> str:
        return "\n".join((f"{self.kind.value}: {self.told}", *(f"    {event}" for event in self.events)))


class AnomaliesFound(AssertionError):
    """A history has anomalies."""

    def __init__(self, anomalies: Sequence[Anomaly]) -> None:
        counts = Counter(anomaly.kind.value for anomaly in anomalies)
        self.names: tuple[str, ...] = tuple(counts)
        """The names of the anomalies."""
        more = len(anomalies) - _MOST
        lines = [
            ", ".join(f"{count} x {name}" for name, count in counts.items()),
            *map(str, anomalies[:_MOST]),
            *([f"and {more} more"] if more > 0 else []),
        ]
        super().__init__("\n".join(lines))


def require_none(anomalies: Sequence[Anomaly]) -> None:
    """Raise AnomaliesFound if there are any."""
    if anomalies:
        raise AnomaliesFound(anomalies)
