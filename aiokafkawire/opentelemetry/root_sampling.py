"""The decision whether a trace begins, without a span where OpenTelemetry's SDK decides by the trace's id alone.

The SDK makes a span object even for a trace that is not sampled, which takes longer than all else for a batch's trace.
"""

import sys
from copy import copy
from typing import Any, Final

from opentelemetry.trace import Tracer

__all__ = ("RootSampling",)

_ID_BITS: Final = (1 << 64) - 1
"""The bits of a trace's id that ``TraceIdRatioBased`` compares with its bound."""


class RootSampling:
    """Decides for each span without a parent whether it may be sampled, as ``tracer`` would."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer: Any = tracer
        self._sampler: object = None
        self._bound: int | None = None

    def tracer(self) -> Tracer | None:
        """Return a tracer that starts the next span without a parent; None if the sampler does not sample that span.

        The id of each trace is generated once, and each sampler other than the SDK's by ratio is called once.
        """
        tracer = self._tracer
        sampler = getattr(tracer, "sampler", None)
        if sampler is not self._sampler:
            self._sampler, self._bound = sampler, _bound(tracer, sampler)
        if self._bound is None:
            return tracer  # type: ignore[no-any-return]
        generator = tracer.id_generator
        drawn = generator.generate_trace_id()
        if drawn & _ID_BITS >= self._bound:
            return None
        chosen = copy(tracer)  # shares all with the tracer but the id of the next trace
        chosen.id_generator = _Drawn(generator, drawn)
        return chosen  # type: ignore[no-any-return]


class _Drawn:
    """An id generator whose trace id was generated before."""

    def __init__(self, generator: Any, trace_id: int) -> None:
        self._generator, self._trace_id = generator, trace_id

    def generate_trace_id(self) -> int:
        return self._trace_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)


def _bound(tracer: Any, sampler: Any) -> int | None:
    """Return the number below which the ids of sampled traces are; None if the sampler must be called.

    Subclasses that decide in their own way are called.
    """
    sdk, sampling = sys.modules.get("opentelemetry.sdk.trace"), sys.modules.get("opentelemetry.sdk.trace.sampling")
    if sdk is None or sampling is None or type(tracer).start_span is not sdk.Tracer.start_span:
        return None
    if _decides_as(sampler, sampling.ParentBased):
        sampler = getattr(sampler, "_root", None)
    if sampler is sampling.ALWAYS_OFF:
        return 0
    bound = sampler.bound if _decides_as(sampler, sampling.TraceIdRatioBased) else None
    return bound if isinstance(bound, int) else None


def _decides_as(sampler: object, kind: Any) -> bool:
    return isinstance(sampler, kind) and type(sampler).should_sample is kind.should_sample
