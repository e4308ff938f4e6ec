"""Sampled values: averages, maxima and rates over the last windows of time, as the Java client computes them."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

__all__ = ("LATENCY_BUCKETS", "SIZE_BUCKETS", "Histogram", "SampledValue", "Summary", "summary")

WINDOWS: Final = 2
"""The number of windows that count (Java's ``metrics.num.samples``)."""
WINDOW_SECONDS: Final = 30.0
"""The length of a window (Java's ``metrics.sample.window.ms``)."""
_SAMPLES: Final = WINDOWS + 1
"""The samples that are kept: one more than the windows, since the oldest may overlap the time that counts."""

LATENCY_BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)
"""The upper bounds of a histogram's buckets for times, in seconds."""
SIZE_BUCKETS: Final = (100.0, 1e3, 4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6)
"""The upper bounds of a histogram's buckets for sizes, in bytes."""


Summary = tuple[int, float, float]
"""How many values there are, their sum, and the largest."""


def summary(values: Sequence[float]) -> Summary:
    """Return the summary of some values, of which there is at least one."""
    return len(values), sum(values), max(values)


class _Sample:
    """The values of one window: it begins with the first value after the window before it has ended."""

    __slots__ = ("count", "last", "max", "start", "sum")

    def __init__(self, now: float) -> None:
        self.start = self.last = now
        self.count = 0
        self.sum = 0.0
        self.max = -math.inf


class SampledValue:
    """A value that is recorded now and then. Times are in seconds, and never decrease.

    Samples without values in the time that counts are left out. Reading changes nothing, so any thread may read.
    """

    __slots__ = ("_current", "_state")

    def __init__(self) -> None:
        # The number and the sum of the values whose samples were dropped, and the samples: replaced together, so that
        # no other thread misses a sample in between.
        self._state: tuple[int, float, tuple[_Sample, ...]] = 0, 0.0, ()
        self._current: _Sample | None = None

    def record(self, value: float, now: float) -> None:
        """Record a value."""
        sample = self._current
        if sample is None or now - sample.start >= WINDOW_SECONDS:
            sample = self._advance(now)
        sample.count += 1
        sample.sum += value
        sample.last = now
        if value > sample.max:
            sample.max = value

    def record_many(self, summary: "Summary", now: float) -> None:
        """Record several values at once, of which there is at least one."""
        sample = self._current
        if sample is None or now - sample.start >= WINDOW_SECONDS:
            sample = self._advance(now)
        count, total, largest = summary
        sample.count += count
        sample.sum += total
        sample.last = now
        if largest > sample.max:
            sample.max = largest

    def _advance(self, now: float) -> _Sample:
        count, total, samples = self._state
        if len(samples) == _SAMPLES:
            dropped, *kept = samples
            count, total, samples = count + dropped.count, total + dropped.sum, tuple(kept)
        sample = self._current = _Sample(now)
        self._state = count, total, (*samples, sample)
        return sample

    def _recent(self, now: float) -> Sequence[_Sample]:
        return [sample for sample in self._state[2] if now - sample.last < WINDOWS * WINDOW_SECONDS]

    @property
    def last(self) -> float:
        """When a value was last recorded; -infinity if none was."""
        return self._current.last if self._current is not None else -math.inf

    @property
    def count(self) -> int:
        """How many values were recorded since the beginning."""
        count, _, samples = self._state
        return count + sum(sample.count for sample in samples)

    @property
    def total(self) -> float:
        """The sum of all values since the beginning."""
        _, total, samples = self._state
        return total + sum(sample.sum for sample in samples)

    def average(self, now: float) -> float:
        """Return the average of the recent values; NaN without any."""
        samples = self._recent(now)
        count = sum(sample.count for sample in samples)
        return sum(sample.sum for sample in samples) / count if count else math.nan

    def maximum(self, now: float) -> float:
        """Return the largest of the recent values; NaN without any."""
        return max((sample.max for sample in self._recent(now)), default=math.nan)

    def rate(self, now: float) -> float:
        """Return the sum of the recent values for each second."""
        samples = self._recent(now)
        return sum(sample.sum for sample in samples) / _elapsed(samples, now)

    def count_rate(self, now: float) -> float:
        """Return how many values were recorded recently for each second."""
        samples = self._recent(now)
        return sum(sample.count for sample in samples) / _elapsed(samples, now)


def _elapsed(samples: Sequence[_Sample], now: float) -> float:
    """Return the time that rates are for: at least all windows but the last, or a fresh value would be a huge rate."""
    elapsed = now - min((sample.start for sample in samples), default=now)
    missing = WINDOWS - 1 - int(elapsed / WINDOW_SECONDS)
    return max(elapsed + max(missing, 0) * WINDOW_SECONDS, 0.001)


class Histogram:
    """How many values fell into each bucket since the beginning, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds: Sequence[float] = bounds
        """The upper bounds of the buckets, which belong to them; a last bucket has no bound."""
        self.counts: list[int] = [0] * (len(bounds) + 1)
        """The number of values in each bucket, each value in one."""
        self.sum: float = 0.0
        """The sum of all values."""

    def record(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def record_many(self, values: Sequence[float]) -> None:
        """Count several values at once."""
        ordered, begin = sorted(values), 0
        while begin < len(ordered):  # once for each bucket that has values
            bucket = bisect_left(self.bounds, ordered[begin])
            end = len(ordered)
            if bucket < len(self.bounds):
                end = bisect_right(ordered, self.bounds[bucket], begin)
            self.counts[bucket] += end - begin
            begin = end
        self.sum += sum(values)

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)
