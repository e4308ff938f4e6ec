"""Spans and metrics of clients for OpenTelemetry, by its semantic conventions for messaging."""

try:
    import opentelemetry.trace as _trace
except ImportError as _missing:
    raise ImportError("OpenTelemetry needs its API: pip install 'aiokafkawire[opentelemetry]'") from _missing

from .instrumentation import Instrumentation, instrument
from .process_spans import extract_context, process_span

__all__ = ("Instrumentation", "extract_context", "instrument", "process_span")

del _trace
