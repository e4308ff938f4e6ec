"""OpenTelemetry's SDK with exporters in memory: the spans and metrics that a test's clients make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler
from opentelemetry.trace import SpanContext, Tracer


class Collected:
    """Providers for ``instrument()``, and what they have collected."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._spans = InMemorySpanExporter()
        self.tracers = TracerProvider(sampler=ParentBased(sampler))
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader])

    @property
    def tracer(self) -> Tracer:
        return self.tracers.get_tracer("the application")

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        return [each for each in self._spans.get_finished_spans() if name in (None, each.name)]

    def span(self, name: str) -> ReadableSpan:
        (found,) = self.spans(name)
        return found

    def metrics(self) -> dict[str, list[Any]]:
        """Return the data points of each metric."""
        data = self._reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def close(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()


def context_of(span: ReadableSpan) -> SpanContext:
    found = span.get_span_context()
    assert found is not None
    return found


def trace_id(span: ReadableSpan) -> int:
    return context_of(span).trace_id


def span_id(span: ReadableSpan) -> int:
    return context_of(span).span_id


def parent_id(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def linked(span: ReadableSpan) -> set[int]:
    return {link.context.span_id for link in span.links}


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or {}
