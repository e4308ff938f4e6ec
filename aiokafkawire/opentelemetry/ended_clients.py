"""The totals of clients that no longer exist: counters of OpenTelemetry must not go back."""

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from ..metrics.instrument import Buckets, Instrument

__all__ = ("MAX_SERIES", "EndedClients")

MAX_SERIES: Final = 20_000
"""The number of series that are kept at most; the clients that ended first are forgotten first."""

_Series = dict[tuple[str, tuple[tuple[str, str], ...]], Instrument]


class EndedClients:
    """The totals of clients that no longer exist, by client id: clients with one id have their sum."""

    def __init__(self) -> None:
        self._series: dict[str, _Series] = {}

    def add(self, client_id: str, last: Iterable[Instrument]) -> None:
        """Add the last values of a client; those of gauges end with it."""
        series = self._series.pop(client_id, {})
        for each in last:
            if each.kind != "gauge":
                key = (each.name, tuple(sorted(each.attributes.items())))
                before = series.get(key)
                series[key] = each if before is None else attrs.evolve(each, value=_sum(before.value, each.value))
        self._series[client_id] = series
        while len(self._series) > 1 and sum(map(len, self._series.values())) > MAX_SERIES:
            del self._series[next(iter(self._series))]

    def __iter__(self) -> Iterator[Instrument]:
        return (each for series in self._series.values() for each in series.values())


def _sum(one: float | Buckets, other: float | Buckets) -> float | Buckets:
    if isinstance(one, Buckets):
        assert isinstance(other, Buckets)
        return one.plus(other)
    assert not isinstance(other, Buckets)
    return one + other
