"""Sampled values: the same averages, maxima and rates as in Java's client, whenever values come."""

from __future__ import annotations

import math
import sys
from types import FrameType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.metrics import windows
from aiokafkawire.metrics.windows import LATENCY_BUCKETS, WINDOW_SECONDS, Histogram, SampledValue, summary

# Eighths of a second are exact, so that no rounding decides whether a window is over.
TIMES = st.integers(0, 90 * 8).map(lambda eighths: eighths / 8)
VALUES = st.integers(-1000, 1000).map(float)


@attrs.define
class Sample:
    start: float
    last: float
    count: int = 0
    sum: float = 0.0
    max: float = -math.inf

    def reset(self, now: float) -> None:
        self.start = self.last = now
        self.count, self.sum, self.max = 0, 0.0, -math.inf


class JavaStat:
    """SampledStat and Rate of Java's client, with two windows of 30 seconds: three samples in a ring."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.current = 0

    def record(self, value: float, now: float) -> None:
        if not self.samples:
            self.samples.append(Sample(now, now))
        sample = self.samples[self.current]
        if now - sample.start >= 30:
            self.current = (self.current + 1) % 3
            if self.current >= len(self.samples):
                self.samples.append(Sample(now, now))
            else:
                self.samples[self.current].reset(now)
            sample = self.samples[self.current]
        sample.count, sample.sum, sample.last = sample.count + 1, sample.sum + value, now
        sample.max = max(sample.max, value)

    def purge(self, now: float) -> None:
        for sample in self.samples:
            if now - sample.last >= 60:
                sample.reset(now)

    def window_size(self, now: float) -> float:
        elapsed = now - min((sample.start for sample in self.samples), default=now)
        full_windows = int(elapsed // 30)
        if full_windows < 1:
            elapsed += 30 * (1 - full_windows)
        return max(elapsed, 0.001)


@given(st.lists(st.tuples(TIMES, VALUES), max_size=40), TIMES)
def test_values_are_those_of_java(steps: list[tuple[float, float]], later: float) -> None:
    ours, java, now = SampledValue(), JavaStat(), 1000.0
    for pause, value in steps:
        now += pause
        ours.record(value, now)
        java.record(value, now)
    now += later
    java.purge(now)
    count, total = sum(sample.count for sample in java.samples), sum(sample.sum for sample in java.samples)
    assert ours.rate(now) == pytest.approx(total / java.window_size(now))
    assert ours.count_rate(now) == pytest.approx(count / java.window_size(now))
    assert ours.count == len(steps)
    assert ours.total == pytest.approx(sum(value for _, value in steps))
    if count:
        assert ours.average(now) == pytest.approx(total / count)
        assert ours.maximum(now) == max(sample.max for sample in java.samples)
    else:
        assert all(math.isnan(value) for value in (ours.average(now), ours.maximum(now)))


def test_a_first_value_counts_for_a_whole_window() -> None:
    stat = SampledValue()
    assert (stat.rate(5.0), stat.count_rate(5.0)) == (0.0, 0.0)
    stat.record(60.0, 5.0)
    assert stat.rate(5.0) == 60.0 / WINDOW_SECONDS


def test_values_leave_the_average_two_windows_after_the_last_one() -> None:
    stat = SampledValue()
    stat.record(4.0, 0.0)
    assert stat.average(59.875) == 4.0
    assert math.isnan(stat.average(60.0))
    assert (stat.count, stat.total) == (1, 4.0)


def test_reading_changes_nothing() -> None:
    stat, other = SampledValue(), SampledValue()
    for number in range(10):
        stat.record(number, number * 20.0)
        other.record(number, number * 20.0)
        other.rate(number * 20.0 + 70)
        other.average(number * 20.0 + 500)
    assert stat.rate(190.0) == other.rate(190.0)
    assert stat.average(190.0) == other.average(190.0)


def test_another_thread_never_sees_a_total_go_back() -> None:
    """Which a monitor would take for the start of another process. A thread may read between any two steps."""
    stat, read = SampledValue(), list[tuple[int, float]]()

    def look(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename == windows.__file__:
            before = sys.gettrace()
            sys.settrace(None)
            read.append((stat.count, stat.total))
            sys.settrace(before)
        return look

    traced = sys.gettrace()
    sys.settrace(look)
    try:
        for number in range(10):
            stat.record(1.0, number * 40.0)
            stat.record_many((2, 2.0, 1.0), number * 40.0)
    finally:
        sys.settrace(traced)
    assert len(read) > 100
    assert read == sorted(read)
    assert read[-1] == (30, 30.0)


@given(st.lists(st.floats(0, 100)))
def test_every_value_is_in_one_bucket(values: list[float]) -> None:
    histogram = Histogram(LATENCY_BUCKETS)
    for value in values:
        histogram.record(value)
    assert histogram.count == len(values)
    assert histogram.sum == pytest.approx(sum(values))
    for at, bound in enumerate(LATENCY_BUCKETS):
        assert sum(histogram.counts[: at + 1]) == sum(value <= bound for value in values)


@given(st.lists(st.floats(0, 100)))
def test_many_values_at_once_are_the_same_as_one_by_one(values: list[float]) -> None:
    together, apart = Histogram(LATENCY_BUCKETS), Histogram(LATENCY_BUCKETS)
    for value in values:
        apart.record(value)
    together.record_many(values)
    assert together.counts == apart.counts
    assert together.sum == pytest.approx(apart.sum)


@given(st.lists(st.tuples(TIMES, st.lists(VALUES, min_size=1)), max_size=10))
def test_a_summary_counts_as_its_values(steps: list[tuple[float, list[float]]]) -> None:
    together, apart, now = SampledValue(), SampledValue(), 1000.0
    for pause, values in steps:
        now += pause
        together.record_many(summary(values), now)
        for value in values:
            apart.record(value, now)
    assert (together.count, together.total, together.last) == (apart.count, apart.total, apart.last)
    assert str(together.maximum(now)) == str(apart.maximum(now))  # NaN is not equal to itself
