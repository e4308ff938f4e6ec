"""Traces that are not sampled get no span, where OpenTelemetry's SDK decides by the trace's id alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.context import attach, detach, get_current, set_value
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    DEFAULT_OFF,
    DEFAULT_ON,
    ParentBased,
    ParentBasedTraceIdRatio,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import NoOpTracer, Tracer, set_span_in_context
from support.collected import Collected

from aiokafkawire import Client
from aiokafkawire.opentelemetry.client_tracing import ClientTracing
from aiokafkawire.opentelemetry.root_sampling import RootSampling

BOUND = TraceIdRatioBased(0.25).bound
HIGH = 7 << 64
"""Bits of a trace's id that do not count."""


class Ids(RandomIdGenerator):
    """Generates these traces' ids, each once."""

    def __init__(self, *ids: int) -> None:
        self.left: Iterator[int] = iter(ids)

    def generate_trace_id(self) -> int:
        return next(self.left)


class Asked(TraceIdRatioBased):
    """Counts how often it is called."""

    calls = 0

    def should_sample(self, *args: Any, **named: Any) -> SamplingResult:
        self.calls += 1
        return super().should_sample(*args, **named)


def tracer(sampler: Sampler, *ids: int) -> Tracer:
    return TracerProvider(sampler, id_generator=Ids(*ids) if ids else None).get_tracer("tests")


@pytest.mark.parametrize(
    "sampler",
    [TraceIdRatioBased(0.25), ParentBased(TraceIdRatioBased(0.25)), ParentBasedTraceIdRatio(0.25)],
    ids=lambda sampler: type(sampler).__name__,
)
def test_an_id_decides_once_and_becomes_that_of_the_trace(sampler: Sampler) -> None:
    plain = tracer(sampler, HIGH | BOUND, HIGH | BOUND - 1, 1)
    roots = RootSampling(plain)
    assert roots.tracer() is None
    chosen = roots.tracer()
    assert chosen is not None
    context = chosen.start_span("send").get_span_context()
    assert context.trace_flags.sampled
    assert context.trace_id == HIGH | BOUND - 1
    assert plain.start_span("mine").get_span_context().trace_id == 1


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, DEFAULT_OFF, TraceIdRatioBased(0)], ids=["off", "parent", "ratio"])
def test_a_sampler_that_says_no_starts_no_span(sampler: Sampler) -> None:
    assert RootSampling(tracer(sampler)).tracer() is None


@pytest.mark.parametrize("sampler", [ALWAYS_ON, DEFAULT_ON, Asked(0.5), ParentBased(Asked(0.5))], ids=range(4))
def test_other_samplers_decide_when_the_span_starts(sampler: Sampler) -> None:
    plain = tracer(sampler)
    assert RootSampling(plain).tracer() is plain


def test_tracers_of_other_makers_decide_themselves() -> None:
    plain = NoOpTracer()
    assert RootSampling(plain).tracer() is plain


def test_another_sampler_of_the_tracer_decides_from_then_on() -> None:
    plain: Any = tracer(ALWAYS_OFF)
    roots = RootSampling(plain)
    assert roots.tracer() is None
    plain.sampler = ALWAYS_ON
    assert roots.tracer() is plain


def test_a_sampler_of_your_own_is_called_once_for_each_batch() -> None:
    sampler = Asked(0.5)
    tracing = traced(sampler, BOUND, (1 << 64) - 1)
    assert begun(tracing) is not None
    assert begun(tracing) is None
    assert sampler.calls == 2


def test_a_batch_without_a_span_leaves_the_context_as_it_is() -> None:
    tracing = traced(TraceIdRatioBased(0))
    before = get_current()
    token = attach(set_value("key", "value"))
    assert begun(tracing) is None
    assert get_current() == {"key": "value"}
    detach(token)
    assert begun(tracing) is None
    assert get_current() is before
    # The variable has a value now, with which each later record finds it sooner.
    assert tracing.variable.get(None) is before


def test_a_sampled_parent_is_followed_though_roots_are_not_sampled() -> None:
    tracing = traced(ParentBased(ALWAYS_OFF))
    collected = Collected()
    with collected.tracer.start_as_current_span("request") as span:
        context = set_span_in_context(span)
        assert begun(tracing, context) is not None
    collected.close()


def traced(sampler: Sampler, *ids: int) -> ClientTracing:
    return ClientTracing(Client("localhost:9092")._cluster, tracer(sampler, *ids), lambda *_: None)


def begun(tracing: ClientTracing, context: Any = None) -> object:
    given = tracing.variable.get() if context is None else context
    return tracing.begin("orders", 0, None, given, None, b"value", (), 1000, alone=False)
