"""Metrics of the application (KIP-1076)."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from aiokafkawire.errors import UsageError
from aiokafkawire.metrics import ApplicationMetric
from aiokafkawire.telemetry.application_metrics import ApplicationMetrics
from aiokafkawire.telemetry.exchange import TelemetrySubscription
from aiokafkawire.telemetry.payload import PayloadBuilder


def values(metrics: ApplicationMetrics) -> dict[str, float]:
    return {one.name: one.value for one in metrics.values()}


def test_values_and_functions() -> None:
    metrics, fixed, called = (
        ApplicationMetrics(),
        ApplicationMetric("fixed", 1),
        ApplicationMetric("called", lambda: 2.5),
    )
    metrics.register(fixed)
    metrics.register(called)
    metrics.register(called)
    assert values(metrics) == {"fixed": 1, "called": 2.5}
    fixed.value = 3
    metrics.unregister(called)
    metrics.unregister(called)
    assert values(metrics) == {"fixed": 3}


def test_two_metrics_of_one_name_differ_by_their_attributes() -> None:
    metrics, first = ApplicationMetrics(), ApplicationMetric("open", 1, {"queue": "a"})
    metrics.register(first)
    metrics.register(ApplicationMetric("open", 1, {"queue": "b"}))
    other = ApplicationMetric("open", 1, {"queue": "a"})
    with pytest.raises(UsageError, match="another metric application/open with these attributes is registered"):
        metrics.register(other)
    metrics.unregister(other)  # it is not registered
    assert len([*metrics.values()]) == 2


def test_a_function_that_fails_is_logged_once_until_it_works_again(caplog: pytest.LogCaptureFixture) -> None:
    results: list[Any] = [ValueError("no database"), None, 4, "five"]

    def read() -> Any:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    metrics = ApplicationMetrics()
    metrics.register(ApplicationMetric("rows", read))
    metrics.register(ApplicationMetric("fine", 1))
    with caplog.at_level(logging.WARNING):
        assert values(metrics) == {"fine": 1}
        assert values(metrics) == {"fine": 1}
        assert values(metrics) == {"rows": 4, "fine": 1}
        assert values(metrics) == {"fine": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "the metric application/rows is not pushed while its function fails: no database",
        "the metric application/rows is not pushed while its function fails: it returned 'five', which is no number",
    ]


def test_an_integer_that_no_double_can_be_leaves_its_metric_out(caplog: pytest.LogCaptureFixture) -> None:
    """The others are pushed."""
    metrics = ApplicationMetrics()
    metrics.register(ApplicationMetric("rows", lambda: 10**400))
    metrics.register(ApplicationMetric("fine", 1))
    assert values(metrics) == {"fine": 1}
    assert "the metric application/rows is not pushed" in caplog.text
    with pytest.raises(UsageError, match="value must be a number"):
        ApplicationMetric("rows", -(10**400))


def test_a_function_that_raises_a_cancellation_leaves_its_metric_out(caplog: pytest.LogCaptureFixture) -> None:
    """It would end the task that pushes the metrics."""

    def read() -> float:
        raise asyncio.CancelledError

    metrics = ApplicationMetrics()
    metrics.register(ApplicationMetric("rows", read))
    metrics.register(ApplicationMetric("fine", 1))
    assert values(metrics) == {"fine": 1}
    assert "the metric application/rows is not pushed" in caplog.text


@pytest.mark.parametrize("is_delta", [True, False])
def test_a_counter_whose_function_fails_once_counts_nothing_twice(is_delta: bool) -> None:
    results: list[Any] = [100.0, LookupError("no database"), math.nan, 101.0]

    def read() -> float:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return float(result)

    metrics, builder = ApplicationMetrics(), PayloadBuilder(1_000)
    metrics.register(ApplicationMetric("sold", read, kind="counter"))
    subscription = TelemetrySubscription(1, 1.0, (), 0, is_delta, ("*",))
    pushed = []
    for now in (2_000, 3_000, 4_000, 5_000):
        payload = builder.build([*metrics.values()], subscription, {}, now)
        builder.accepted(payload)
        found = MetricsData.FromString(payload.metrics).resource_metrics
        pushed += [point for each in found for point in each.scope_metrics[0].metrics[0].sum.data_points]
    expected = [(100, 1_000), (1, 2_000)] if is_delta else [(100, 1_000), (101, 1_000)]
    assert [(point.as_double, point.start_time_unix_nano) for point in pushed] == expected


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name must be a string that is not empty"),
    ({"name": 5}, "name must be a string"),
    ({"value": "5"}, "value must be a number, or a function that returns one, got '5'"),
    ({"value": True}, "value must be a number"),
    ({"value": None}, "value must be a number"),
    ({"attributes": ["a"]}, "attributes must be a mapping such as"),
    ({"attributes": {"a": 1}}, "the attribute a must be a string"),
    ({"group": ""}, "group must be a string that is not empty"),
    ({"group": "producer-metrics"}, "group 'producer-metrics' is one of the Kafka client's own metrics"),
    ({"kind": "histogram"}, "kind must be 'counter' or 'gauge', got 'histogram'"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_wrong_metrics(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ApplicationMetric(**{"name": "open", "value": 1, **change})


def test_a_value_is_checked_when_it_is_set_and_the_name_stays() -> None:
    metric: Any = ApplicationMetric("open", 1)
    with pytest.raises(UsageError, match="value must be a number"):
        metric.value = "two"
    with pytest.raises(AttributeError):
        metric.name = "closed"


@pytest.mark.parametrize("method", ["register", "unregister"])
def test_other_objects_are_no_metrics(method: str) -> None:
    with pytest.raises(UsageError, match="metric must be an ApplicationMetric, got 'open'"):
        getattr(ApplicationMetrics(), method)("open")
