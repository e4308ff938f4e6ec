"""The checker of histories."""

from collections.abc import Callable, Iterable

import attrs

from .anomalies import Anomaly
from .events import Event
from .groups import GroupWatch
from .index import Index
from .reads import check_reads
from .results import check_results
from .transactions import check_transactions
from .writes import check_writes

__all__ = ("History", "check")


@attrs.define(eq=False)
class History:
    """A history that is being recorded. What is wrong in a group is told at once, everything else by :func:`check`."""

    on_anomaly: Callable[[Anomaly], None] = lambda _: None
    """Called with each anomaly that the events so far show."""
    events: list[Event] = attrs.field(factory=list)
    group: GroupWatch = attrs.field(factory=GroupWatch)
    anomalies: list[Anomaly] = attrs.field(factory=list)
    """The anomalies that events have shown so far."""

    def add(self, event: Event) -> None:
        """Add the next event."""
        self.events.append(event)
        for anomaly in self.group.happened(event):
            self.anomalies.append(anomaly)
            self.on_anomaly(anomaly)

    def extend(self, events: Iterable[Event]) -> None:
        """Add events."""
        for event in events:
            self.add(event)

    def check(self) -> list[Anomaly]:
        """Return all anomalies of the history."""
        return [*self.anomalies, *_in_the_end(self.events, self.group)]


def check(history: Iterable[Event]) -> list[Anomaly]:
    """Return the anomalies of a history: first those of its group, in their order, then all others."""
    recorded = History()
    recorded.extend(history)
    return recorded.check()


def _in_the_end(events: list[Event], group: GroupWatch) -> list[Anomaly]:
    index = Index.of(events)
    found = [*check_writes(index), *check_transactions(index), *check_results(index), *check_reads(index)]
    if group.generations:
        found += [anomaly for log in index.logs.values() for anomaly in group.ended(log)]
    return found
